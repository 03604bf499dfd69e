#include "oracle_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <exception>
#include <optional>

#include "base/render.h"
#include "codegen/native.h"
#include "core/groups.h"
#include "core/print.h"
#include "optimise/checkpoint.h"
#include "properties.h"

namespace ein::fuzz {
namespace {

using Values = std::unordered_map<core::FamilyId, Tensor>;

DType element_type(const oracle::Program& p, oracle::Type t) {
  if (t == oracle::Type::Bool) return DType::Bool;
  if (t == oracle::Type::Int) return DType::I32;
  return p.dtype == "f64"   ? DType::F64
         : p.dtype == "f32" ? DType::F32
         : p.dtype == "f16" ? DType::F16
                            : DType::BF16;
}

core::Inputs inputs_of(const oracle::Program& p) {
  core::Inputs out;
  for (size_t k = 0; k < p.defs.size(); ++k) {
    const oracle::Definition& d = p.defs[k];
    if (!d.input || d.dropped) continue;
    Tensor t(element_type(p, d.type), oracle::shape_of(p, static_cast<int>(k)));
    for (int64_t i = 0; i < t.size(); ++i) {
      double x = d.data[static_cast<size_t>(i)];
      if (d.type == oracle::Type::Float) {
        t.set_float(i, x);
      } else {
        t.set_int(i, static_cast<int64_t>(x));
      }
    }
    std::string name = d.name;  // the part `given.x` of a record is a family `given_x`
    std::replace(name.begin(), name.end(), '.', '_');
    out[name] = t;
  }
  return out;
}

std::string compare(const oracle::Expected& e, const Tensor& t) {
  if (t.shape() != e.shape) return fmt::format("shape: `{}` has {} cells", e.name, t.size());
  for (int64_t i = 0; i < t.size(); ++i) {
    auto k = static_cast<size_t>(i);
    if (e.type != oracle::Type::Float) {
      if (t.get_int(i) == static_cast<int64_t>(e.cells[k])) continue;
      return fmt::format("integer differs: `{}` cell {} is {}, expected {}", e.name, i,
                         t.get_int(i), static_cast<double>(e.cells[k]));
    }
    auto want = static_cast<double>(e.cells[k]);
    double got = t.get_float(i);
    if (got == want || (std::isnan(got) && std::isnan(want))) continue;
    if (std::fabs(got - want) <= static_cast<double>(e.tolerance[k])) continue;
    return fmt::format("{} differs: `{}` cell {} is {}, expected {} ± {:.2g}",
                       e.derivative ? "derivative" : "value", e.name, i, got, want,
                       static_cast<double>(e.tolerance[k]));
  }
  return "";
}

struct Case {
  const oracle::Prepared& expected;
  core::Inputs inputs;
  const Routes& routes;
  std::map<std::string, double>& taken;
};

// Adds the processor seconds of its lifetime.
struct Timer {
  double& sum;
  clock_t begin = clock();
  ~Timer() { sum += static_cast<double>(clock() - begin) / CLOCKS_PER_SEC; }
};

std::vector<core::FamilyId> wanted_of(const core::Module& m, const Case& c) {
  std::vector<core::FamilyId> out;
  for (const oracle::Expected& e : c.expected.values) out.push_back(m.find(intern(e.name)));
  return out;
}

std::string compare_all(const Case& c, const core::Module& m, const Values& values,
                        const std::vector<core::FamilyId>& wanted) {
  for (const oracle::Expected& e : c.expected.values) {
    if (e.derivative && e.nonfinite) continue;
    core::FamilyId f = m.find(intern(e.name));
    if (f && std::find(wanted.begin(), wanted.end(), f) == wanted.end()) continue;
    if (!f || !values.count(f)) return fmt::format("missing: `{}`", e.name);
    if (std::string wrong = compare(e, values.at(f)); !wrong.empty()) return wrong;
  }
  return "";
}

std::string reference(const Case& c, core::Module& m, const std::string& route) {
  Timer timer{c.taken[route]};
  std::vector<core::FamilyId> wanted = wanted_of(m, c);
  core::EvalResult r = core::evaluate(m, c.inputs, wanted);
  if (r.error) return fmt::format("{}: error: {}", route, r.error->message);
  std::string wrong = compare_all(c, m, r.values, wanted);
  return wrong.empty() ? "" : route + ": " + wrong;
}

// A few of the values, always with the last one. Wanted values are stored and the others may be
// fused away; and less code compiles faster.
std::vector<core::FamilyId> some_of(std::vector<core::FamilyId> all, const Routes& routes) {
  if (routes.all) return all;
  uint64_t draw = routes.seed * 0x9E3779B97F4A7C15ull;
  while (all.size() > 3) {
    all.erase(all.begin() + static_cast<std::ptrdiff_t>((draw >> 33) % (all.size() - 1)));
    draw = draw * 6364136223846793005ull + 1442695040888963407ull;
  }
  return all;
}

std::string natively(const Case& c, core::Module& m, const NativeOptions& options,
                     const std::string& route) {
  Timer timer{c.taken[route]};
  std::vector<core::FamilyId> wanted = some_of(wanted_of(m, c), c.routes);
  auto compiled = compile_native(m, wanted, options);
  if (auto* why = std::get_if<std::string>(&compiled))
    return fmt::format("{}: no code: {}", route, *why);
  NativeResult r = run(*std::get<std::shared_ptr<Native>>(compiled), c.inputs);
  if (r.error) return fmt::format("{}: error: {}", route, r.error->message);
  std::string wrong = compare_all(c, m, r.values, wanted);
  return wrong.empty() ? "" : route + ": " + wrong;
}

std::string compiled(const Case& c, const std::string& source, Subject& out,
                     autodiff::Direction direction, const std::string& route) {
  Timer timer{c.taken["compile"]};
  std::string wrong = compile_source(source, out, direction);
  if (wrong.empty()) return "";
  std::string code = "?";
  if (size_t at = wrong.find("error["); at != std::string::npos) code = wrong.substr(at + 6, 5);
  return fmt::format("{}: rejected {}: {}", route, code, wrong);
}

// Computes steps again instead of keeping them: every recurrence is marked, or the
// budget is too small.
std::string checkpointed(const Case& c, core::Module& m, bool budget) {
  std::string route = budget ? "grad-memory" : "checkpoints";
  std::vector<core::FamilyId> wanted = wanted_of(m, c);
  auto needed = core::families_of(core::schedule(m, wanted).steps);
  auto params = core::bind_params(m, c.inputs, needed);
  if (auto* e = std::get_if<RuntimeError>(&params))
    return fmt::format("{}: error: {}", route, e->message);
  core::Module marked = m;
  if (!budget)
    for (core::Family& f : marked.families) f.checkpoint = 2;
  optimise::Checkpointed planned =
      optimise::checkpoint(marked, wanted, std::get<std::vector<int64_t>>(params),
                           budget ? std::optional<uint64_t>(1) : std::nullopt);
  bool cut = false;
  for (const optimise::SegmentPlan& p : planned.plans) cut = cut || p.segment > 0;
  if (!cut) return "";
  if (std::string wrong = reference(c, planned.module, route); !wrong.empty()) return wrong;
  if (!c.routes.native || (c.routes.seed % 16 >= 4 && !c.routes.all)) return "";
  return natively(c, planned.module, {}, route + " native");
}

std::string check(const oracle::Program& p, const Case& c) {
  uint64_t s = c.routes.seed;
  bool all = c.routes.all;
  std::string source = oracle::print(p);
  Subject subject;
  std::string wrong = compiled(c, source, subject, autodiff::Direction::Auto, "compile");
  if (!wrong.empty()) return wrong;
  core::Module& m = subject.compiled.module;
  if (wrong = reference(c, m, "reference"); !wrong.empty()) return wrong;
  if (c.routes.native) {
    // Most programs run as they would for a user. Some run at other levels, for other processors
    // and with other plans, and a few do not run natively at all, because machine code takes most
    // of the time.
    NativeOptions options;
    std::string route = "native";
    switch (s % 10) {
      case 6:
        options.opt_level = 0;
        route = "native O0";
        break;
      case 7:
        options.opt_level = 3;
        options.processor = Processor::Sse2;
        route = "native sse2";
        break;
      case 8:
        options.choices = random_choices(s);
        options.opt_level = s % 20 == 8 ? 0 : 2;
        route = "native drawn plan";
        break;
      case 9: route = ""; break;
      default: break;
    }
    if (!route.empty()) {
      if (wrong = natively(c, m, options, route); !wrong.empty()) return wrong;
    }
    if (all && route != "native") {
      if (wrong = natively(c, m, {}, "native"); !wrong.empty()) return wrong;
    }
  }
  if (s % 3 == 0 || all) {
    Subject forward;
    wrong = compiled(c, source, forward, autodiff::Direction::Forward, "forward");
    if (!wrong.empty()) return wrong;
    if (wrong = reference(c, forward.compiled.module, "forward"); !wrong.empty()) return wrong;
    if (c.routes.native && (s % 12 == 0 || all)) {
      wrong = natively(c, forward.compiled.module, {}, "forward native");
      if (!wrong.empty()) return wrong;
    }
  }
  if (s % 3 == 1 || all) {
    Subject reverse;
    wrong = compiled(c, source, reverse, autodiff::Direction::Reverse, "reverse");
    if (!wrong.empty()) return wrong;
    if (wrong = reference(c, reverse.compiled.module, "reverse"); !wrong.empty()) return wrong;
  }
  if (s % 4 == 1 || all) {
    std::string text = core::print(m);
    Subject printed;
    wrong = compiled(c, text, printed, autodiff::Direction::Auto, "printed");
    if (!wrong.empty()) return wrong + text;
    if (wrong = reference(c, printed.compiled.module, "printed"); !wrong.empty())
      return wrong + "\n" + text;
  }
  if (s % 4 == 2 || all) {
    if (wrong = checkpointed(c, m, s % 8 == 2); !wrong.empty()) return wrong;
    if (all) return checkpointed(c, m, s % 8 != 2);
  }
  return "";
}

}  // namespace

std::string check_routes(const oracle::Program& p, const oracle::Prepared& expected,
                         const Routes& routes, std::map<std::string, double>& taken) {
  try {
    return check(p, {expected, inputs_of(p), routes, taken});
  } catch (const std::exception& e) { return std::string("fault: ") + e.what(); }
}

}  // namespace ein::fuzz
