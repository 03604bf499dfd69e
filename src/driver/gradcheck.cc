#include "driver/gradcheck.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <set>

#include "core/print.h"
#include "core/widen.h"
#include "driver/agree.h"
#include "driver/files.h"
#include "driver/gradcheck_compare.h"
#include "driver/gradcheck_evaluate.h"
#include "driver/gradcheck_program.h"
#include "driver/synthetic.h"
#include "runtime/random.h"

namespace ein {
namespace {

using core::FamilyId;
using core::Module;
using Verdict = Comparison::Verdict;
using Clock = std::chrono::steady_clock;

// Autodiff on a program that was compiled without errors; its warnings were shown then.
Module derived(Module m) {
  Diagnostics ignored;
  return derive(std::move(m), autodiff::Direction::Auto, ignored);
}

// In one direction, or why that is not possible.
std::variant<Module, std::string> derived(Module m, autodiff::Direction direction) {
  Diagnostics diags;
  Module out = derive(std::move(m), direction, diags);
  for (const Diagnostic& d : diags.all()) {
    if (info(d.code).severity == Severity::Error) return d.message;
  }
  return out;
}

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
  auto forward = derived(wide, autodiff::Direction::Forward);
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
    auto both = Evaluator(derived(std::move(p.module)), {p.left, p.right}, kOnce)(inputs);
    auto* values = std::get_if<Evaluator::Values>(&both);
    if (!values) continue;  // it is too large, or an address is not the program's own
    double left = values->at(p.left).get_float(0), right = values->at(p.right).get_float(0);
    if (std::isfinite(left) && std::isfinite(right) && apart(left, right) > 1) {
      return fmt::format("<J v, w> is {} and <v, Jᵀ w> is {} for {}", left, right, d.request);
    }
  }
  return "";
}

// The programs that a check evaluates.
struct Programs {
  Module wide;  // before autodiff, in f64
  std::unique_ptr<Evaluator> own, exact, moved;
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

// What is asked: the derivatives, and the values that comparing them takes.
struct Asked {
  Module program;  // before autodiff
  std::vector<Derivative> all;
  std::vector<std::string> holders, nums, dens;  // of those that are compared; `dens` once each
  std::vector<std::string> wanted;               // everything to evaluate
  std::vector<std::string> held;                 // families that consist of a `stop`
  bool all_held = true;
};

Asked find_asked(const Compiled& compiled, const GradcheckOptions& options) {
  Asked out;
  out.program = compiled.asked;
  for (size_t k = 0; k < options.claimed.size(); ++k) {
    out.all.push_back(claimed_derivative(out.program, options.claimed[k], options.named.of,
                                         options.named.wrt[k]));
  }
  if (options.claimed.empty()) {
    std::vector<std::string> only = options.holders;
    for (const std::string& wrt : options.named.wrt) {
      only.push_back(fmt::format("d_{}_d_{}", options.named.of, wrt));
    }
    out.all = derivatives_of(out.program, only);
  }
  auto want = [&](const std::vector<std::string>& names) {
    out.wanted.insert(out.wanted.end(), names.begin(), names.end());
  };
  for (const Derivative& d : out.all) {
    if (!d.why_not.empty()) continue;
    out.holders.push_back(d.holder);
    out.nums.push_back(d.of);
    out.dens.push_back(d.wrt);
    want(d.num_at);
    want(d.den_at);
  }
  for (const auto* list : {&out.holders, &out.nums, &out.dens}) want(*list);
  std::sort(out.dens.begin(), out.dens.end());
  out.dens.erase(std::unique(out.dens.begin(), out.dens.end()), out.dens.end());
  if (out.holders.empty()) return out;
  out.held = hold_stopped(out.program, out.all_held);
  want(out.held);
  return out;
}

Programs make_programs(const Asked& asked, bool quick) {
  constexpr auto kOnce = Evaluator::Runs::Once, kOften = Evaluator::Runs::Often;
  Programs p;
  p.own = std::make_unique<Evaluator>(derived(asked.program), asked.wanted);
  p.wide = core::widen(asked.program);
  p.exact = std::make_unique<Evaluator>(derived(p.wide), asked.wanted, kOnce);
  Shifted moved = shifted(p.wide, asked.dens, asked.held);
  p.names = moved.moved;
  std::vector<std::string> observed = asked.nums;
  for (std::string& n : observed) {
    if (auto it = p.names.find(n); it != p.names.end()) n = it->second;
  }
  p.moved = std::make_unique<Evaluator>(derived(moved.module), observed, quick ? kOnce : kOften);
  return p;
}

// Where the program runs, and what it computes there, in its own type and in f64.
struct Point {
  core::Inputs inputs;
  std::optional<Evaluator::Values> own, exact;
};

// A point where the program runs and, if there is one, where its numerators are numbers. Otherwise
// `out.error` says why not.
Point find_point(Programs& p, const std::vector<std::string>& nums, const core::Inputs& given,
                 GradcheckReport& out) {
  Point found;
  const std::vector<FamilyId>& needed = p.own->needed();
  core::Inputs from_files = given;
  out.error = read_loaded(p.own->module(), needed, from_files);
  if (out.error) return found;
  for (FamilyId f : needed) {
    const core::Family& family = p.own->module()[f];
    if (family.kind == core::Family::Kind::Input && !from_files.contains(text(family.name))) {
      out.synthetic.push_back(text(family.name));
    }
  }
  for (int attempt = 0; attempt < (out.synthetic.empty() ? 1 : kSyntheticAttempts); ++attempt) {
    auto drawn = synthetic_inputs(p.own->module(), needed, from_files, attempt);
    if (auto* e = std::get_if<RuntimeError>(&drawn)) {
      if (!out.error) out.error = *e;
      break;
    }
    auto result = (*p.own)(std::get<core::Inputs>(drawn));
    auto wider = (*p.exact)(core::widen(std::get<core::Inputs>(drawn)));
    if (auto* e = std::get_if<RuntimeError>(&result)) {
      if (!found.own && !out.error) out.error = *e;
      continue;
    }
    if (auto* e = std::get_if<RuntimeError>(&wider)) {
      if (!found.own && !out.error) out.error = *e;
      continue;
    }
    bool finite = all_finite(std::get<Evaluator::Values>(result), nums);
    if (found.own && !finite) continue;  // no better than the point found before
    found = {std::get<core::Inputs>(drawn), std::get<Evaluator::Values>(result),
             std::get<Evaluator::Values>(wider)};
    out.error.reset();
    if (finite) break;
  }
  return found;
}

Comparison comparison_of(const Derivative& d) {
  Comparison c;
  c.name = d.name;
  c.request = d.request;
  c.span = d.span;
  if (d.why_not.empty()) return c;
  c.verdict = Verdict::NotCompared;
  c.note = d.why_not;
  return c;
}

// Compares every derivative with differences. Returns when it began.
Clock::time_point compare_all(Programs& p, const Asked& asked, const Point& at,
                              const GradcheckOptions& options, std::vector<Comparison>& out) {
  core::Inputs point = core::widen(at.inputs);
  for (const std::string& d : asked.dens) {
    point[shift_of(d)] = Tensor(DType::F64, at.exact->at(d).shape());
  }
  for (const std::string& h : asked.held) point[h] = at.exact->at(h);
  p.moved->compile(point);
  const auto start = Clock::now();
  double share = options.seconds / static_cast<double>(asked.holders.size());
  int done = 0;
  for (const Derivative& d : asked.all) {
    Comparison c = comparison_of(d);
    if (!asked.all_held && c.verdict != Verdict::NotCompared) {
      c.verdict = Verdict::NotCompared;
      c.note = "not compared: a `stop` is inside a reduction whose range is not fixed";
    }
    if (c.verdict != Verdict::NotCompared) {
      Numbers n{&p.own->module()[p.own->module().find(intern(d.holder))],
                &at.own->at(d.holder),
                &at.exact->at(d.holder),
                &at.exact->at(d.of),
                &at.exact->at(d.wrt),
                {},
                {}};
      n.num_cell = linear_cells(d.num_at, *n.num, *at.own, n.wide->size());
      n.den_cell = linear_cells(d.den_at, *n.den, *at.own, n.wide->size());
      auto deadline = start + std::chrono::duration_cast<Clock::duration>(
                                  std::chrono::duration<double>(share * ++done));
      Comparer(*p.moved, p.names, point, options, deadline).run(d, n, c);
    }
    out.push_back(std::move(c));
  }
  return start;
}

}  // namespace

GradcheckReport gradcheck(Compiled& compiled, const core::Inputs& given,
                          const GradcheckOptions& options, const CompileOptions& compile_options,
                          const std::string& name) {
  GradcheckReport out;
  const Asked asked = find_asked(compiled, options);
  if (options.agree && !options.quick)
    out.printed = printed_agrees(compiled.module, compile_options, name);
  if (asked.holders.empty()) {
    for (const Derivative& d : asked.all) out.requests.push_back(comparison_of(d));
    return out;
  }
  Programs programs = make_programs(asked, options.quick);
  const Point point = find_point(programs, asked.nums, given, out);
  if (out.error) return out;
  const auto start = compare_all(programs, asked, point, options, out.requests);
  if (!options.agree) return out;
  out.directions = directions_agree(programs.wide, asked.all, *point.exact,
                                    core::widen(point.inputs), options.quick, out.requests);
  if (options.quick) return out;
  std::vector<std::string> real;  // the holders that the program itself has
  for (const std::string& h : asked.holders) {
    if (compiled.module.find(intern(h))) real.push_back(h);
  }
  if (!out.printed.empty() &&
      printed_gives(compiled.module, point.inputs, real, compile_options, name)) {
    out.printed.clear();
  }
  // The reference evaluator is some hundred times slower: left out where it would take minutes.
  std::chrono::duration<double> spent = Clock::now() - start;
  if (spent.count() / std::max(1, programs.moved->runs()) > 0.05) {
    out.not_run = "not compared with the reference evaluator because the program is large";
  } else {
    out.native = native_agrees(compiled.module, point.inputs, real);
  }
  return out;
}

}  // namespace ein
