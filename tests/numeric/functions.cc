// How exact the elementary functions of native code are. Every function is compiled and compared
// with the library in a wider type: samples and special values by default, `--all NAME…` every
// float there is, `--time` nanoseconds per element beside the library's.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/build.h"
#include "core/scalar.h"
#include "driver/compile.h"

namespace ein {
namespace {

using core::Op;

struct Function {
  Op op;
  double (*one)(double);
  long double (*one_long)(long double);
  double (*two)(double, double);
  long double (*two_long)(long double, long double);
  double lo, hi;        // where most samples are
  double single, wide;  // the bounds, in units of the last place
};
#define EIN_ONE(op, f, ...) \
  { Op::op, std::f, f##l, nullptr, nullptr, __VA_ARGS__ }
#define EIN_TWO(op, f, ...) \
  { Op::op, nullptr, nullptr, std::f, f##l, __VA_ARGS__ }
const Function kFunctions[] = {
    EIN_ONE(Exp, exp, -110, 95, 1.5, 1.5), EIN_ONE(Log, log, 0, 10, 1.5, 1.5),
    EIN_ONE(Tanh, tanh, -3, 3, 1.5, 2),    EIN_ONE(Sin, sin, -10, 10, 1, 1.5),
    EIN_ONE(Cos, cos, -10, 10, 1, 1.5),    EIN_ONE(Expm1, expm1, -2, 2, 1, 1.5),
    EIN_ONE(Log1p, log1p, -1, 3, 1, 1.5),  EIN_ONE(Erf, erf, -4, 4, 1.5, 2),
    EIN_TWO(Pow, pow, 0, 10, 1, 2),        EIN_ONE(Tan, tan, -10, 10, 1, 1),
    EIN_ONE(Sinh, sinh, -5, 5, 1, 2),      EIN_ONE(Cosh, cosh, -5, 5, 1, 2),
    EIN_ONE(Asin, asin, -1, 1, 1, 1),      EIN_ONE(Acos, acos, -1, 1, 1, 1),
    EIN_ONE(Atan, atan, -3, 3, 1, 1),      EIN_TWO(Atan2, atan2, -3, 3, 1, 1),
    EIN_TWO(Mod, fmod, -10, 10, 0.5, 0.5),
};

// y[i] = f(x[i]) or f(x[i], z[i])
struct Compiled {
  core::FamilyId y;
  std::shared_ptr<Native> native;
};
Compiled compile(Op op, DType type, const NativeOptions& options) {
  core::Module m;
  auto input = [&](const char* name) {
    core::Family f;
    f.name = intern(name);
    f.kind = core::Family::Kind::Input;
    f.dtype = type;
    core::FamilyId id = m.families.add(f);
    core::ExprId n = core::param(m, m.params.add({intern(std::string("n_") + name), id, 0}));
    m.families[id].coords.push_back({intern("i"), n});
    return id;
  };
  core::FamilyId x = input("x");
  core::ExprId n = m[x].coords[0].extent, s = core::slot(m, 0);
  std::vector<core::ExprId> args{core::access(m, x, {s})};
  if (core::info(op).arity == 2) {
    core::FamilyId z = input("z");
    core::ExprId same = core::apply(m, Op::Eq, {n, m[z].coords[0].extent});
    m.constraints.push_back({same, "equal", {}, {}});
    args.push_back(core::access(m, z, {s}));
  }
  core::Family f;
  f.name = intern("y");
  f.dtype = type;
  f.coords.push_back({intern("i"), n});
  core::Range all{core::int_lit(m, 0), n};
  f.clauses.push_back({{all}, core::apply(m, op, args), {}});
  core::FamilyId y = m.families.add(f);
  auto out = compile_native(m, {y}, options);
  return {y, std::get<std::shared_ptr<Native>>(out)};
}

Tensor values_of(const Compiled& c, const Tensor& x, const Tensor& z) {
  NativeResult r = run(*c.native, {{"x", x}, {"z", z}});
  return r.values.at(c.y);
}

// The distance in units of the last place of the exact value.
template <class T, class Wide>
double distance(T got, Wide want) {
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) == std::isnan(got) ? 0 : INFINITY;
  constexpr int digits = std::numeric_limits<T>::digits,
                lowest = std::numeric_limits<T>::min_exponent;
  constexpr int highest = std::numeric_limits<T>::max_exponent;
  Wide limit = std::ldexp(Wide(1), highest);
  if (std::isinf(want) || std::fabs(want) >= limit) {
    if (std::isinf(got)) return std::signbit(got) == std::signbit(want) ? 0 : INFINITY;
    return std::isinf(want) ? INFINITY : static_cast<double>(std::fabs(want - Wide(got)));
  }
  int e = want == 0 ? lowest - 1 : std::max(std::ilogb(want), lowest - 1);
  Wide unit = std::ldexp(Wide(1), e - (digits - 1));
  Wide value = std::isinf(got) ? std::copysign(limit, Wide(got)) : Wide(got);
  return static_cast<double>(std::fabs(value - want) / unit);
}

struct Worst {
  double ulp = 0, x = 0, z = 0, got = 0;
  void see(double u, double at, double at_z, double value) {
    if (u > ulp) *this = {u, at, at_z, value};
  }
};

Worst compare(const Function& f, const Tensor& x, const Tensor& z, const Tensor& y) {
  Worst worst;
  for (int64_t i = 0; i < x.size(); ++i) {
    if (x.dtype() == DType::F32) {
      double a = x.as<float>()[i], b = f.two ? z.as<float>()[i] : 0;
      worst.see(distance<float, double>(y.as<float>()[i], f.two ? f.two(a, b) : f.one(a)), a, b,
                y.as<float>()[i]);
    } else {
      double a = x.as<double>()[i], b = f.two ? z.as<double>()[i] : 0;
      long double want = f.two ? f.two_long(a, b) : f.one_long(a);
      worst.see(distance<double, long double>(y.as<double>()[i], want), a, b, y.as<double>()[i]);
    }
  }
  return worst;
}

void say(const char* what, const Function& f, DType type, const Worst& w) {
  std::printf("%s %-6s %s  %.3f ulp at %.17g", what, core::info(f.op).name, name_of(type), w.ulp,
              w.x);
  if (f.two) std::printf(", %.17g", w.z);
  std::printf(" (%.17g)\n", w.got);
}

std::vector<double> special_values(DType type) {
  bool wide = type == DType::F64;
  double least = wide ? 5e-324 : 1.401298464324817e-45,
         most = wide ? 1.7976931348623157e308 : 3.4028234663852886e38;
  double normal = wide ? 2.2250738585072014e-308 : 1.1754943508222875e-38;
  std::vector<double> out{0,
                          0.5,
                          1,
                          2,
                          3,
                          0.625,
                          0.85,
                          0.92,
                          1.5,
                          30,
                          88.8,
                          104,
                          710,
                          746,
                          1e-5,
                          1e-20,
                          1e5,
                          5e6,
                          1e10,
                          1e30,
                          least,
                          normal,
                          most,
                          INFINITY,
                          9007199254740991.0,
                          4503599627370497.0,
                          16777215.0};
  for (size_t i = out.size(); i-- > 0;) out.push_back(-out[i]);
  out.push_back(NAN);
  return out;
}

// NaN, infinities and signed zeros are those of the reference.
bool special(const Function& f, DType type, const Compiled& c) {
  std::vector<double> v = special_values(type), a, b;
  for (double i : v) {
    for (double j : f.two ? v : std::vector<double>{0}) {
      a.push_back(i);
      b.push_back(j);
    }
  }
  auto n = static_cast<int64_t>(a.size());
  Tensor x(type, {n}), z(type, {n});
  for (int64_t i = 0; i < n; ++i) {
    x.set_float(i, a[static_cast<size_t>(i)]);
    z.set_float(i, b[static_cast<size_t>(i)]);
  }
  Tensor y = values_of(c, x, z);
  bool good = true;
  for (int64_t i = 0; i < n; ++i) {
    double want =
        core::apply_scalar(f.op, type, type, {.f = x.get_float(i)}, {.f = z.get_float(i)})->f;
    double got = y.get_float(i);
    bool same = std::isnan(want) ? std::isnan(got)
                : std::isinf(want) || want == 0
                    ? got == want && std::signbit(got) == std::signbit(want)
                    : std::isfinite(got) && std::fabs(got - want) <= 1e-6 * std::fabs(want) + 1e-44;
    if (same) continue;
    std::printf("special %s %s(%g, %g): %g, not %g\n", core::info(f.op).name, name_of(type),
                x.get_float(i), z.get_float(i), got, want);
    good = false;
  }
  return good;
}

Tensor samples(DType type, int64_t n, double lo, double hi, uint32_t seed) {
  Tensor x(type, {n});
  std::mt19937_64 rng(seed);
  std::uniform_real_distribution<double> inside(lo, hi);
  for (int64_t i = 0; i < n; ++i) {
    if (i % 50 == 1) {  // as close to multiples of pi/2 as numbers come
      x.set_float(
          i, std::nearbyint(inside(rng) * static_cast<double>(i % 6000)) * 1.57079632679489661923);
    } else if (i % 3 != 0) {
      x.set_float(i, inside(rng));
    } else if (type == DType::F32) {
      uint32_t bits = static_cast<uint32_t>(rng());
      std::memcpy(x.as<float>() + i, &bits, 4);
    } else {
      uint64_t bits = rng();
      std::memcpy(x.as<double>() + i, &bits, 8);
    }
  }
  return x;
}

// A short array runs in the tail, one element at a time: the same bits as in lanes.
bool tail_agrees(const Function& f, const Compiled& c, const Tensor& x, const Tensor& z,
                 const Tensor& y) {
  size_t size = size_of(x.dtype());
  for (int64_t from = 0; from + 7 <= 2100; from += 7) {
    Tensor a(x.dtype(), {7}), b(x.dtype(), {7});
    std::memcpy(a.data(), x.as<char>() + static_cast<size_t>(from) * size, 7 * size);
    std::memcpy(b.data(), z.as<char>() + static_cast<size_t>(from) * size, 7 * size);
    Tensor part = values_of(c, a, b);
    for (int64_t i = 0; i < 7; ++i) {
      double p = part.get_float(i), q = y.get_float(from + i);
      if (std::isnan(p) && std::isnan(q)) continue;
      if (std::memcmp(part.as<char>() + static_cast<size_t>(i) * size,
                      y.as<char>() + static_cast<size_t>(from + i) * size, size) == 0)
        continue;
      std::printf("tail %s %s(%.17g): %.17g, in lanes %.17g\n", core::info(f.op).name,
                  name_of(x.dtype()), a.get_float(i), p, q);
      return false;
    }
  }
  return true;
}

bool check(const Function& f, DType type, int64_t count, const NativeOptions& options, bool loud) {
  Compiled c = compile(f.op, type, options);
  Tensor x = samples(type, count, f.lo, f.hi, 1), z = samples(type, count, f.lo, f.hi, 2);
  Tensor y = values_of(c, x, z);
  Worst w = compare(f, x, z, y);
  double bound = type == DType::F32 ? f.single : f.wide;
  bool good = w.ulp <= bound;
  if (loud || !good) say(good ? name_of(options.processor) : "too far:", f, type, w);
  good &= special(f, type, c);
  good &= tail_agrees(f, c, x, z, y);
  return good;
}

bool every_float(const Function& f, const NativeOptions& options) {
  constexpr uint64_t chunk = 1 << 20;
  std::vector<std::thread> threads;
  std::vector<Worst> found(2);
  Compiled shared[] = {compile(f.op, DType::F32, options), compile(f.op, DType::F32, options)};
  for (uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      Tensor x(DType::F32, {chunk});
      for (uint64_t from = t * chunk; from < (uint64_t{1} << 32); from += 2 * chunk) {
        for (uint64_t i = 0; i < chunk; ++i) {
          auto bits = static_cast<uint32_t>(from + i);
          std::memcpy(x.as<float>() + i, &bits, 4);
        }
        Worst w = compare(f, x, x, values_of(shared[t], x, x));
        if (w.ulp > found[t].ulp) found[t] = w;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  Worst w = found[0].ulp > found[1].ulp ? found[0] : found[1];
  say("all", f, DType::F32, w);
  std::fflush(stdout);
  return w.ulp <= f.single;
}

// The library is called through a pointer, as generated code calls it.
template <class T>
double library_time(const Function& f, const Tensor& x, const Tensor& z) {
  (void)z;
  T (*volatile one)(T) = nullptr;
  switch (f.op) {
    case Op::Exp: one = std::exp; break;
    case Op::Log: one = std::log; break;
    case Op::Tanh: one = std::tanh; break;
    case Op::Sin: one = std::sin; break;
    case Op::Cos: one = std::cos; break;
    case Op::Expm1: one = std::expm1; break;
    case Op::Log1p: one = std::log1p; break;
    case Op::Erf: one = std::erf; break;
    case Op::Tan: one = std::tan; break;
    case Op::Sinh: one = std::sinh; break;
    case Op::Cosh: one = std::cosh; break;
    case Op::Asin: one = std::asin; break;
    case Op::Acos: one = std::acos; break;
    case Op::Atan: one = std::atan; break;
    default: break;
  }
  T(*volatile two)
  (T, T) = f.op == Op::Pow     ? static_cast<T (*)(T, T)>(std::pow)
           : f.op == Op::Atan2 ? static_cast<T (*)(T, T)>(std::atan2)
                               : static_cast<T (*)(T, T)>(std::fmod);
  Tensor out(x.dtype(), x.shape());
  double best = 1e9;
  for (int k = 0; k < 5; ++k) {
    auto t0 = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < x.size(); ++i) {
      out.as<T>()[i] = one ? one(x.as<T>()[i]) : two(x.as<T>()[i], z.as<T>()[i]);
    }
    std::chrono::duration<double, std::nano> d = std::chrono::steady_clock::now() - t0;
    best = std::min(best, d.count() / static_cast<double>(x.size()));
  }
  return best;
}

void time_one(const Function& f, DType type, const NativeOptions& options) {
  Compiled c = compile(f.op, type, options);
  int64_t n = 8192;
  Tensor x(type, {n}), z(type, {n});
  std::mt19937 rng(3);
  std::uniform_real_distribution<double> inside(std::max(f.lo, -80.0), std::min(f.hi, 80.0));
  for (int64_t i = 0; i < n; ++i) {
    x.set_float(i, inside(rng));
    z.set_float(i, inside(rng));
  }
  double best = 1e9;
  for (int k = 0; k < 50; ++k) {
    auto t0 = std::chrono::steady_clock::now();
    values_of(c, x, z);
    std::chrono::duration<double, std::nano> d = std::chrono::steady_clock::now() - t0;
    best = std::min(best, d.count() / static_cast<double>(n));
  }
  double library =
      type == DType::F32 ? library_time<float>(f, x, z) : library_time<double>(f, x, z);
  std::printf("%-6s %s  %6.2f ns, library %6.2f ns: %.1f times\n", core::info(f.op).name,
              name_of(type), best, library, library / best);
}

}  // namespace
}  // namespace ein

int main(int argc, char** argv) {
  using namespace ein;
  bool all = false, time = false, loud = false;
  std::vector<std::string> names;
  NativeOptions wish;  // of --all and --time: `--cpu NAME`
  for (int i = 1; i < argc; ++i) {
    std::string a = argv[i];
    if (a == "--all") {
      all = true;
    } else if (a == "--time") {
      time = true;
    } else if (a == "--cpu" && i + 1 < argc) {
      auto named = processor_named(argv[++i]);
      if (!named || !runs_here(*named)) return 2;
      wish.processor = *named;
    } else if (a == "-v") {
      loud = true;
    } else {
      names.push_back(a);
    }
  }
  bool good = true;
  for (const Function& f : kFunctions) {
    auto named = [&](const std::string& n) { return n == core::info(f.op).name; };
    if (!names.empty() && std::none_of(names.begin(), names.end(), named)) continue;
    if (time) {
      time_one(f, DType::F32, wish);
      time_one(f, DType::F64, wish);
    } else if (all) {
      if (!f.two) good &= every_float(f, wish);
    } else {
      for (Processor p : {Processor::Native, Processor::Sse2}) {
        NativeOptions options;
        options.processor = p;
        good &= check(f, DType::F32, 100000, options, loud);
        good &= check(f, DType::F64, 50000, options, loud);
      }
    }
  }
  return good ? 0 : 1;
}
