#include "driver/gradcheck.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <set>

#include "autodiff/differentiate.h"
#include "codegen/native.h"
#include "core/groups.h"
#include "core/print.h"
#include "core/widen.h"
#include "driver/agree.h"
#include "driver/differences.h"
#include "driver/files.h"
#include "driver/gradcheck_program.h"
#include "driver/run.h"
#include "driver/synthetic.h"
#include "runtime/random.h"

namespace ein {
namespace {

using core::FamilyId;
using core::Module;
using Verdict = Comparison::Verdict;

// A program and the values wanted of it, compiled once.
class Evaluator {
 public:
  // Programs that run once, or are small, are not worth optimising.
  enum class Runs { Once, Often };
  Evaluator(Module m, const std::vector<std::string>& wanted, Runs runs = Runs::Often)
      : m_(std::move(m)) {
    std::set<std::string> distinct(wanted.begin(), wanted.end());
    for (const std::string& name : distinct) wanted_.push_back(m_.find(intern(name)));
    NativeOptions options;
    if (runs == Runs::Once) options.opt_level = 0;
    auto compiled = compile_native(m_, wanted_, options);
    if (auto* native = std::get_if<std::shared_ptr<Native>>(&compiled)) native_ = *native;
  }

  using Values = std::map<std::string, Tensor>;
  std::variant<Values, RuntimeError> operator()(const core::Inputs& inputs) {
    ++runs_;
    Values out;
    auto take = [&](auto result) -> std::optional<RuntimeError> {
      if (result.error) return result.error;
      for (FamilyId f : wanted_) out[text(m_[f].name)] = result.values.at(f);
      return std::nullopt;
    };
    auto error = native_ ? take(run(*native_, inputs)) : take(core::evaluate(m_, inputs, wanted_));
    if (error) return *error;
    return out;
  }

  Module& module() { return m_; }
  int runs() const { return runs_; }
  // Includes inputs that only say how large something is.
  std::vector<FamilyId> needed() { return core::families_of(core::schedule(m_, wanted_).steps); }

 private:
  Module m_;
  std::vector<FamilyId> wanted_;
  std::shared_ptr<Native> native_;
  int runs_ = 0;
};

// Differentiates in forward direction, or says why that is not possible.
std::variant<Module, std::string> derive_forward(Module m) {
  Diagnostics diags;
  Module out = autodiff::differentiate(std::move(m), diags, autodiff::Direction::Forward);
  for (const Diagnostic& d : diags.all()) {
    if (info(d.code).severity == Severity::Error) return d.message;
  }
  return out;
}

struct Tolerance {
  double relative, absolute;  // `absolute` in units of the largest slope of the request
};

// How closely results in a type can follow f64.
Tolerance precision(DType t) {
  switch (t) {
    case DType::F32: return {1e-3, 1e-4};
    case DType::F16:
    case DType::BF16: return {5e-2, 1e-2};
    default: return {1e-6, 1e-8};
  }
}

struct SeedRow {
  double relative, absolute, step;
};
SeedRow seed_row(DType t) {
  switch (t) {
    case DType::F32: return {1e-4, 1e-7, 1e-5};
    case DType::F64: return {1e-7, 1e-10, 1e-7};
    default: return {1e-2, 1e-4, 1e-3};
  }
}

// `dA[i=0, k=2]`
std::string cell_text(const std::string& name, const core::Family& f, int64_t cell,
                      const std::vector<int64_t>& shape) {
  std::vector<std::string> parts(shape.size());
  for (size_t k = shape.size(); k-- > 0; cell /= shape[k]) {
    Symbol coord = f.coords[k].name;
    parts[k] = fmt::format("{}{}", coord ? text(coord) + "=" : "", cell % shape[k]);
  }
  return parts.empty() ? name : fmt::format("{}[{}]", name, fmt::join(parts, ", "));
}

// Which cell of a family each value of a derivative belongs to; −1: none.
std::vector<int64_t> linear_cells(const std::vector<std::string>& at, const Tensor& of,
                                  const Evaluator::Values& values, int64_t count) {
  std::vector<int64_t> out(static_cast<size_t>(count), 0);
  for (size_t k = 0; k < at.size(); ++k) {
    const Tensor& index = values.at(at[k]);
    for (int64_t c = 0; c < count; ++c) {
      int64_t i = index.get_int(c);
      int64_t& cell = out[static_cast<size_t>(c)];
      cell = i < 0 || i >= of.shape()[k] || cell < 0 ? -1 : cell * of.shape()[k] + i;
    }
  }
  return out;
}

// Everything that is known about one derivative at one point.
struct Numbers {
  const core::Family* family;  // the holder
  const Tensor *own, *wide;    // in the program's type, and in f64
  const Tensor *num, *den;     // in f64
  std::vector<int64_t> num_cell, den_cell;
};

class Comparer {
 public:
  Comparer(Evaluator& moved, const std::map<std::string, std::string>& names,
           const core::Inputs& point, const GradcheckOptions& options,
           std::chrono::steady_clock::time_point deadline)
      : moved_(moved), names_(names), point_(point), options_(options), deadline_(deadline) {}

  void run(const Derivative& d, const Numbers& n, Comparison& out) {
    std::map<int64_t, std::vector<int64_t>> by_den;  // values of the derivative by cell
    for (int64_t c = 0; c < n.wide->size(); ++c) {
      auto k = static_cast<size_t>(c);
      if (n.den_cell[k] >= 0 && n.num_cell[k] >= 0) by_den[n.den_cell[k]].push_back(c);
    }
    out.cells = static_cast<int64_t>(by_den.size());
    for (int64_t den : sample(by_den)) {
      if (std::chrono::steady_clock::now() > deadline_) break;
      std::map<int64_t, double> one{{den, 1.0}};
      std::vector<Slope> found =
          slopes(along(d, n, one), std::fabs(n.den->get_float(den)), step(n));
      ++out.sampled;
      for (int64_t c : by_den[den]) {
        auto num = static_cast<size_t>(n.num_cell[static_cast<size_t>(c)]);
        std::string where = cell_text(out.name, *n.family, c, n.wide->shape());
        if (num < found.size()) note(n, c, found[num], where, out);
      }
    }
    for (const Seen& s : seen_) scale_ = std::max(scale_, std::fabs(s.slope.value));
    bool full = n.wide->size() == n.num->size() * n.den->size() && out.cells == n.den->size() &&
                n.den->size() > 1;
    for (int k = 0; k < 2 && full && !options_.seed_tolerances; ++k) direction(d, n, k, out);
    judge(n, out);
  }

 private:
  struct Seen {
    double derived;
    Slope slope;
    std::string where;
    bool direction = false;
    double scale = 1;
  };

  std::optional<double> step(const Numbers& n) const {
    if (!options_.seed_tolerances) return std::nullopt;
    return seed_row(n.own->dtype()).step;
  }

  // All cells, or a random sample when there are more than `options_.samples`.
  std::vector<int64_t> sample(const std::map<int64_t, std::vector<int64_t>>& cells) const {
    std::vector<int64_t> all;
    for (const auto& [cell, values] : cells) all.push_back(cell);
    auto keep = static_cast<size_t>(options_.samples);
    if (all.size() <= keep) return all;
    for (size_t k = 0; k < keep; ++k) {
      auto bits = static_cast<uint64_t>(philox(7, static_cast<int64_t>(k)));
      std::swap(all[k], all[k + bits % (all.size() - k)]);
    }
    all.resize(keep);
    return all;
  }

  // The numerator when the denominator moves along `direction`.
  Along along(const Derivative& d, const Numbers& n, const std::map<int64_t, double>& direction) {
    return [&, direction](double distance) -> std::optional<std::vector<double>> {
      core::Inputs inputs = point_;
      Tensor shift(DType::F64, n.den->shape());
      for (auto [cell, by] : direction) shift.set_float(cell, distance * by);
      inputs[shift_of(d.wrt)] = shift;
      auto result = moved_(inputs);
      auto* values = std::get_if<Evaluator::Values>(&result);
      if (!values) return std::nullopt;
      auto moved = names_.find(d.of);
      const Tensor& t = values->at(moved == names_.end() ? d.of : moved->second);
      std::vector<double> out;
      for (int64_t i = 0; i < t.size(); ++i) out.push_back(t.get_float(i));
      return out;
    };
  }

  void note(const Numbers& n, int64_t cell, const Slope& slope, const std::string& where,
            Comparison& out) {
    const Tensor& judged = options_.seed_tolerances ? *n.own : *n.wide;
    if (skip(slope, where, out)) return;
    seen_.push_back({judged.get_float(cell), slope, where});
  }

  static bool skip(const Slope& slope, const std::string& where, Comparison& out) {
    if (slope.kind == Slope::Kind::Smooth) return false;
    bool kink = slope.kind == Slope::Kind::Kink;
    ++(kink ? out.kinks : out.undefined);
    if (kink && out.kink_at.empty()) out.kink_at = where;
    return true;
  }

  void direction(const Derivative& d, const Numbers& n, int k, Comparison& out) {
    std::map<int64_t, double> by;
    for (int64_t c = 0; c < n.den->size(); ++c) by[c] = normal_of(philox(philox(11, k), c));
    std::vector<double> derived(static_cast<size_t>(n.num->size()), 0);
    for (int64_t c = 0; c < n.wide->size(); ++c) {
      auto i = static_cast<size_t>(c);
      if (n.num_cell[i] < 0 || n.den_cell[i] < 0) return;
      derived[static_cast<size_t>(n.num_cell[i])] += n.wide->get_float(c) * by[n.den_cell[i]];
    }
    std::vector<Slope> found = slopes(along(d, n, by), 1);
    if (found.size() != derived.size()) return;
    ++out.directions;
    double many = std::sqrt(static_cast<double>(n.den->size()));
    for (size_t i = 0; i < found.size(); ++i) {
      std::string where = fmt::format("{} along a random direction", out.name);
      if (found[i].kind != Slope::Kind::Smooth) continue;  // among so many cells some cross a kink
      seen_.push_back({derived[i], found[i], where, true, many});
    }
  }

  // Finds the worst disagreement, in units of what is allowed.
  void judge(const Numbers& n, Comparison& out) {
    double worst = -1;
    auto consider = [&](double derived, double expected, double allowed, const std::string& where) {
      double off = std::fabs(derived - expected) / std::max(allowed, 1e-300);
      if (std::isnan(off)) off = std::isnan(expected) ? 0 : INFINITY;
      if (off <= worst) return;
      worst = off;
      out.worst_at = where;
      out.derived = derived;
      out.expected = expected;
    };
    SeedRow seed = seed_row(n.own->dtype());
    Tolerance exact = precision(DType::F64);
    // A cell says more than a direction, so directions count only where all cells are right.
    std::stable_partition(seen_.begin(), seen_.end(), [](const Seen& s) { return !s.direction; });
    for (const Seen& s : seen_) {
      if (s.direction && worst > 1) break;
      double size = std::fabs(s.slope.value);
      double allowed = options_.seed_tolerances ? seed.absolute + seed.relative * size
                                                : exact.absolute * scale_ * s.scale +
                                                      exact.relative * size + 4 * s.slope.noise;
      consider(s.derived, s.slope.value, allowed, s.where);
    }
    out.compared = static_cast<int64_t>(seen_.size());
    out.error = std::max(worst, 0.0);
    if (worst > 1) {
      out.verdict = Verdict::Wrong;
      return;
    }
    if (seen_.empty()) {
      out.verdict = Verdict::NotCompared;
      out.note = out.kinks + out.undefined == 0
                     ? "not compared: it has no cells"
                     : fmt::format("not compared: every value is {}",
                                   out.kinks > 0 ? "at a kink" : "where differences are undefined");
      return;
    }
    if (options_.seed_tolerances || n.own->dtype() == DType::F64) return;
    // The same derivative in the program's own type, everywhere.
    Comparison exactly = out;
    Tolerance loose = precision(n.own->dtype());
    double largest = 0;
    for (int64_t c = 0; c < n.wide->size(); ++c) {
      double v = std::fabs(n.wide->get_float(c));
      if (std::isfinite(v)) largest = std::max(largest, v);
    }
    worst = -1;
    for (int64_t c = 0; c < n.wide->size(); ++c) {
      double v = n.wide->get_float(c);
      if (!std::isfinite(v)) continue;
      consider(n.own->get_float(c), v, loose.absolute * largest + loose.relative * std::fabs(v),
               cell_text(out.name, *n.family, c, n.wide->shape()));
    }
    exactly.own_error = out.own_error = std::max(worst, 0.0);
    if (worst > 1) {
      out.verdict = Verdict::Imprecise;
    } else {
      out = exactly;
    }
  }

  Evaluator& moved_;
  const std::map<std::string, std::string>& names_;
  const core::Inputs& point_;
  const GradcheckOptions& options_;
  std::chrono::steady_clock::time_point deadline_;
  std::vector<Seen> seen_;
  double scale_ = 0;
};

// How far apart two numbers are, in units of what is allowed between two ways to
// compute the same one.
double apart(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) == std::isnan(b) ? 0 : INFINITY;
  if (a == b) return 0;
  return std::fabs(a - b) / (1e-8 * std::max({1.0, std::fabs(a), std::fabs(b)}));
}

// Compares both directions of differentiation, in f64: every derivative from either side, and
// (unless `quick`) <J v, w> = <v, Jᵀ w> for random v and w. Returns what disagrees; empty: nothing.
// Comparison k gets the forward error of derivative k.
std::string directions_agree(const Module& wide, const std::vector<Derivative>& all,
                             const Evaluator::Values& reverse, const core::Inputs& point,
                             bool quick, std::vector<Comparison>& comparisons) {
  std::vector<std::string> holders;
  for (const Derivative& d : all) {
    if (d.why_not.empty()) holders.push_back(d.holder);
  }
  auto forward = derive_forward(wide);
  if (auto* why = std::get_if<std::string>(&forward)) return "forward mode fails: " + *why;
  constexpr auto kOnce = Evaluator::Runs::Once;
  auto result = Evaluator(std::move(std::get<Module>(forward)), holders, kOnce)(point);
  if (auto* e = std::get_if<RuntimeError>(&result)) return "forward mode fails: " + e->message;
  for (size_t k = 0; k < all.size(); ++k) {
    if (!all[k].why_not.empty()) continue;
    const std::string& h = all[k].holder;
    const Tensor &a = reverse.at(h), &b = std::get<Evaluator::Values>(result).at(h);
    for (int64_t i = 0; i < a.size(); ++i) {
      double off = apart(a.get_float(i), b.get_float(i));
      comparisons[k].forward_error = std::max(comparisons[k].forward_error, off);
      if (off <= 1) continue;
      return fmt::format("forward and reverse differ in `{}`, cell {}: {} and {}", h, i,
                         b.get_float(i), a.get_float(i));
    }
  }
  if (quick) return "";
  std::set<std::pair<std::string, std::string>> done;
  for (const Derivative& d : all) {
    if (!d.why_not.empty() || !done.insert({d.of, d.wrt}).second) continue;
    Paired p = paired(wide, d.of, d.wrt);
    core::Inputs inputs = point;
    for (const auto& [name, like] : {std::pair(p.v, d.wrt), std::pair(p.w, d.of)}) {
      Tensor t(DType::F64, reverse.at(like).shape());
      for (int64_t i = 0; i < t.size(); ++i) t.set_float(i, normal_of(philox(name == p.v, i)));
      inputs[name] = t;
    }
    auto both = Evaluator(derive(std::move(p.module)), {p.left, p.right}, kOnce)(inputs);
    auto* values = std::get_if<Evaluator::Values>(&both);
    if (!values) continue;  // it is too large, or an address is not the program's own
    double left = values->at(p.left).get_float(0), right = values->at(p.right).get_float(0);
    if (std::isfinite(left) && std::isfinite(right) && apart(left, right) > 1) {
      return fmt::format("<J v, w> is {} and <v, Jᵀ w> is {} for {}", left, right, d.request);
    }
  }
  return "";
}

// The modules that a check evaluates.
struct Programs {
  std::unique_ptr<Evaluator> own, wide, moved;
  std::map<std::string, std::string> names;  // Shifted::moved
};

bool all_finite(const Evaluator::Values& values, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const Tensor& t = values.at(name);
    for (int64_t i = 0; i < t.size(); ++i) {
      if (!std::isfinite(t.get_float(i))) return false;
    }
  }
  return true;
}

// Whether the printed program gives the same numbers. That is what counts where its Core differs (a
// coordinate without a name gets one by being printed).
bool printed_gives(Module& m, const core::Inputs& inputs, const std::vector<std::string>& values,
                   const CompileOptions& options, const std::string& name) {
  SourceMap sources;
  Diagnostics diags;
  CompileOptions plain = options;
  plain.extra = {};
  Compiled again = compile(sources.add(name, core::print(m)), sources, plain, diags);
  if (!again.ok) return false;
  auto first = Evaluator(m, values)(inputs), second = Evaluator(again.module, values)(inputs);
  auto *a = std::get_if<Evaluator::Values>(&first), *b = std::get_if<Evaluator::Values>(&second);
  if (!a || !b) return false;
  return std::all_of(values.begin(), values.end(), [&](const std::string& v) {
    std::string where;
    return close(a->at(v), b->at(v), m[m.find(intern(v))].dtype == DType::F64 ? 1e-12 : 1e-5,
                 where);
  });
}

}  // namespace

GradcheckReport gradcheck(Compiled& compiled, const core::Inputs& given,
                          const GradcheckOptions& options, const CompileOptions& compile_options,
                          const std::string& name) {
  GradcheckReport out;
  Module asked = compiled.asked;
  std::vector<Derivative> all;
  if (!options.value.empty()) {
    all.push_back(claimed_derivative(asked, options.value, options.named.of, options.named.wrt[0]));
  } else {
    std::vector<std::string> only = options.holders;
    for (const std::string& wrt : options.named.wrt) {
      only.push_back(fmt::format("d_{}_d_{}", options.named.of, wrt));
    }
    all = derivatives_of(asked, only);
  }
  std::vector<std::string> holders, nums, dens, wanted;
  for (const Derivative& d : all) {
    if (!d.why_not.empty()) continue;
    holders.push_back(d.holder);
    nums.push_back(d.of);
    dens.push_back(d.wrt);
    wanted.insert(wanted.end(), d.num_at.begin(), d.num_at.end());
    wanted.insert(wanted.end(), d.den_at.begin(), d.den_at.end());
  }
  for (const auto* list : {&holders, &nums, &dens}) {
    wanted.insert(wanted.end(), list->begin(), list->end());
  }
  auto start = [&](const Derivative& d) {
    Comparison c;
    c.name = d.name;
    c.request = d.request;
    c.span = d.span;
    if (d.why_not.empty()) return c;
    c.verdict = Verdict::NotCompared;
    c.note = d.why_not;
    return c;
  };
  if (options.agree && !options.quick)
    out.printed = printed_agrees(compiled.module, compile_options, name);
  if (holders.empty()) {
    for (const Derivative& d : all) out.requests.push_back(start(d));
    return out;
  }
  std::sort(dens.begin(), dens.end());
  dens.erase(std::unique(dens.begin(), dens.end()), dens.end());

  Programs p;
  bool all_held = true;
  std::vector<std::string> held = hold_stopped(asked, all_held);
  wanted.insert(wanted.end(), held.begin(), held.end());
  p.own = std::make_unique<Evaluator>(derive(asked), wanted);
  Module wide = core::widen(asked);
  p.wide = std::make_unique<Evaluator>(derive(wide), wanted, Evaluator::Runs::Once);
  Shifted moved = shifted(wide, dens, held);
  p.names = moved.moved;
  std::vector<std::string> observed = nums;
  for (std::string& n : observed) {
    if (auto it = p.names.find(n); it != p.names.end()) n = it->second;
  }
  p.moved =
      std::make_unique<Evaluator>(derive(moved.module), observed,
                                  options.quick ? Evaluator::Runs::Once : Evaluator::Runs::Often);

  // A point where the program runs and its numerators are numbers.
  std::vector<FamilyId> needed = p.own->needed();
  core::Inputs from_files = given;
  out.error = read_loaded(p.own->module(), needed, from_files);
  if (out.error) return out;
  for (FamilyId f : needed) {
    const core::Family& family = p.own->module()[f];
    if (family.kind == core::Family::Kind::Input && !from_files.contains(text(family.name))) {
      out.synthetic.push_back(text(family.name));
    }
  }
  core::Inputs inputs;
  std::optional<Evaluator::Values> own, exact;
  for (int attempt = 0; attempt < (out.synthetic.empty() ? 1 : kSyntheticAttempts); ++attempt) {
    auto drawn = synthetic_inputs(p.own->module(), needed, from_files, attempt);
    if (auto* e = std::get_if<RuntimeError>(&drawn)) {
      if (!out.error) out.error = *e;
      break;
    }
    auto result = (*p.own)(std::get<core::Inputs>(drawn));
    auto wider = (*p.wide)(core::widen(std::get<core::Inputs>(drawn)));
    if (auto* e = std::get_if<RuntimeError>(&result)) {
      if (!own && !out.error) out.error = *e;
      continue;
    }
    if (auto* e = std::get_if<RuntimeError>(&wider)) {
      if (!own && !out.error) out.error = *e;
      continue;
    }
    bool finite = all_finite(std::get<Evaluator::Values>(result), nums);
    if (own && !finite) continue;  // no better than the point found before
    inputs = std::get<core::Inputs>(drawn);
    own = std::get<Evaluator::Values>(result);
    exact = std::get<Evaluator::Values>(wider);
    out.error.reset();
    if (finite) break;
  }
  if (out.error) return out;

  core::Inputs point = core::widen(inputs);
  for (const std::string& d : dens) {
    point[shift_of(d)] = Tensor(DType::F64, exact->at(d).shape());
  }
  for (const std::string& h : held) point[h] = exact->at(h);
  auto begin = std::chrono::steady_clock::now();
  double share = options.seconds / static_cast<double>(holders.size());
  int done = 0;
  for (const Derivative& d : all) {
    Comparison c = start(d);
    if (!all_held && c.verdict != Verdict::NotCompared) {
      c.verdict = Verdict::NotCompared;
      c.note = "not compared: a `stop` is inside a reduction whose range is not fixed";
    }
    if (c.verdict != Verdict::NotCompared) {
      Numbers n{&p.own->module()[p.own->module().find(intern(d.holder))],
                &own->at(d.holder),
                &exact->at(d.holder),
                &exact->at(d.of),
                &exact->at(d.wrt),
                {},
                {}};
      n.num_cell = linear_cells(d.num_at, *n.num, *own, n.wide->size());
      n.den_cell = linear_cells(d.den_at, *n.den, *own, n.wide->size());
      auto deadline = begin + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                  std::chrono::duration<double>(share * ++done));
      Comparer(*p.moved, p.names, point, options, deadline).run(d, n, c);
    }
    out.requests.push_back(std::move(c));
  }
  if (!options.agree) return out;
  core::Inputs base = core::widen(inputs);
  out.directions = directions_agree(wide, all, *exact, base, options.quick, out.requests);
  if (options.quick) return out;
  std::vector<std::string> real;  // those of the program itself
  for (const std::string& h : holders) {
    if (compiled.module.find(intern(h))) real.push_back(h);
  }
  if (!out.printed.empty() && printed_gives(compiled.module, inputs, real, compile_options, name)) {
    out.printed.clear();
  }
  // The reference evaluator is some hundred times slower: it is left out where it
  // would take minutes.
  std::chrono::duration<double> native = std::chrono::steady_clock::now() - begin;
  bool large = native.count() / std::max<double>(1, static_cast<double>(p.moved->runs())) > 0.05;
  if (large) {
    out.not_run = "not compared with the reference evaluator because the program is large";
  } else {
    out.native = native_agrees(compiled.module, inputs, real);
  }
  return out;
}

}  // namespace ein
