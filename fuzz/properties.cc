#include "properties.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <random>

#include "base/render.h"
#include "codegen/native.h"
#include "core/groups.h"
#include "core/print.h"
#include "core/rewrite.h"
#include "plan/checkpoint.h"

namespace ein::fuzz {
namespace {

std::vector<core::FamilyId> families(const core::Module& m, const std::vector<std::string>& names) {
  std::vector<core::FamilyId> out;
  for (const std::string& n : names) out.push_back(m.find(intern(n)));
  return out;
}

double scalar(core::Module& m, const core::Inputs& inputs, const std::string& name) {
  core::FamilyId f = m.find(intern(name));
  core::EvalResult r = core::evaluate(m, inputs, {f});
  return r.error ? std::nan("") : r.values.at(f).get_float(0);
}

}  // namespace

std::string compile_source(const std::string& source, Subject& out) {
  FileId file = out.sources.add("program.ein", source);
  out.compiled = compile(file, out.sources, {}, out.diags);
  if (out.compiled.ok) return "";
  return "rejected:\n" + render(out.diags, out.sources, {});
}

std::string check_round_trip(core::Module& m) {
  std::string printed = core::print(m);
  Subject again;
  if (std::string wrong = compile_source(printed, again); !wrong.empty()) {
    return "printed source is " + wrong + "\n" + printed;
  }
  core::Module& n = again.compiled.module;
  if (core::hash(m) == core::hash(n)) return "";
  std::string out = "printed source parses to another Core\n--- printed\n" + printed +
                    "--- reprinted\n" + core::print(n);
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    core::FamilyId other = n.find(m[core::FamilyId(i)].name);
    if (!other || core::hash(m, core::FamilyId(i)) != core::hash(n, other)) {
      out += fmt::format("differs: {}\n", text(m[core::FamilyId(i)].name));
    }
  }
  for (const core::Module* x : {&m, &n}) {
    for (const core::Constraint& c : x->constraints)
      out += fmt::format("constraint: {}\n", c.message);
  }
  return out;
}

bool close(const Tensor& a, const Tensor& b, double tolerance, std::string& where) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) {
    where = "shape or type differs";
    return false;
  }
  for (int64_t i = 0; i < a.size(); ++i) {
    if (!is_float(a.dtype())) {
      if (a.get_int(i) == b.get_int(i)) continue;
      where = fmt::format("cell {}: {} and {}", i, a.get_int(i), b.get_int(i));
      return false;
    }
    double x = a.get_float(i), y = b.get_float(i);
    if ((std::isnan(x) && std::isnan(y)) || x == y) continue;
    if (std::fabs(x - y) <= tolerance * std::max(1.0, std::max(std::fabs(x), std::fabs(y))))
      continue;
    where = fmt::format("cell {}: {} and {}", i, x, y);
    return false;
  }
  return true;
}

std::string check_native(core::Module& m, const core::Inputs& inputs,
                         const std::vector<std::string>& values, const NativeOptions& options) {
  std::vector<core::FamilyId> wanted = families(m, values);
  core::EvalResult reference = core::evaluate(m, inputs, wanted);
  auto compiled = compile_native(m, wanted, options);
  if (auto* why = std::get_if<std::string>(&compiled)) return "no native code: " + *why;
  NativeResult native = run(*std::get<std::shared_ptr<Native>>(compiled), inputs);
  if (reference.error.has_value() != native.error.has_value()) {
    return fmt::format("reference: {}; native: {}",
                       reference.error ? reference.error->message : "fine",
                       native.error ? native.error->message : "fine");
  }
  if (reference.error) return "";
  for (size_t k = 0; k < wanted.size(); ++k) {
    std::string where;
    double tolerance = m[wanted[k]].dtype == DType::F64 ? 1e-9 : 2e-4;
    if (!close(reference.values.at(wanted[k]), native.values.at(wanted[k]), tolerance, where)) {
      return fmt::format("reference and native differ in `{}`, {}", values[k], where);
    }
  }
  return "";
}

std::string check_gradient(core::Module& m, const core::Inputs& inputs, const std::string& of,
                           const std::string& wrt, const std::string& gradient, int directions,
                           int& skipped) {
  core::FamilyId g_id = m.find(intern(gradient));
  core::EvalResult r = core::evaluate(m, inputs, {g_id});
  if (r.error) return "gradient fails: " + r.error->message;
  const Tensor& g = r.values.at(g_id);
  const Tensor& x = inputs.at(wrt);
  if (g.shape() != x.shape())
    return fmt::format("`{}` does not have the coordinates of `{}`", gradient, wrt);
  std::mt19937_64 rng(12345);
  for (int d = 0; d < directions; ++d) {
    std::vector<double> v;
    double slope = 0;
    for (int64_t i = 0; i < x.size(); ++i) {
      v.push_back(static_cast<double>(rng() >> 11) * 0x1p-52 - 1);
      slope += g.get_float(i) * v.back();
    }
    auto difference = [&](double h) {
      core::Inputs moved = inputs;
      double ends[2];
      for (int side = 0; side < 2; ++side) {
        Tensor t(x.dtype(), x.shape());
        for (int64_t i = 0; i < x.size(); ++i) {
          t.set_float(i, x.get_float(i) + (side == 0 ? h : -h) * v[static_cast<size_t>(i)]);
        }
        moved[wrt] = t;
        ends[side] = scalar(m, moved, of);
      }
      return (ends[0] - ends[1]) / (2 * h);
    };
    double coarse = difference(2e-5), fine = difference(5e-6);
    // Judged by the differences alone: a wrong derivative must not widen its own tolerance.
    double scale = std::max({1.0, std::fabs(coarse), std::fabs(fine)});
    if (!std::isfinite(coarse) || !(std::fabs(coarse - fine) <= 1e-5 * scale)) {
      ++skipped;
      continue;
    }
    if (!(std::fabs(slope - fine) <= 2e-5 * scale)) {
      return fmt::format("`{}`: derivative {} along a direction where differences give {}",
                         gradient, slope, fine);
    }
  }
  return "";
}

std::string check_checkpoints(core::Module& m, const core::Inputs& inputs,
                              const std::vector<std::string>& values, int& cut) {
  std::vector<core::FamilyId> wanted = families(m, values);
  auto needed = core::families_of(core::schedule(m, wanted).steps);
  auto params = core::bind_params(m, inputs, needed);
  if (std::holds_alternative<RuntimeError>(params)) return "";
  core::Module marked = m;
  for (core::Family& f : marked.families) f.checkpoint = 2;
  plan::Checkpointed planned =
      plan::checkpoint(marked, wanted, std::get<std::vector<int64_t>>(params), std::nullopt);
  int before = cut;
  for (const plan::SegmentPlan& p : planned.plans) cut += p.segment > 0;
  if (cut == before) return "";
  core::EvalResult whole = core::evaluate(m, inputs, wanted);
  core::EvalResult again = core::evaluate(planned.module, inputs, wanted);
  if (whole.error || again.error) {
    if (whole.error && again.error) return "";
    return "with checkpoints: " + (whole.error ? "fine" : again.error->message);
  }
  for (size_t k = 0; k < wanted.size(); ++k) {
    std::string where;
    double tolerance = m[wanted[k]].dtype == DType::F64 ? 1e-9 : 2e-4;
    if (!close(whole.values.at(wanted[k]), again.values.at(wanted[k]), tolerance, where))
      return fmt::format("`{}` differs with checkpoints, {}", values[k], where);
  }
  return "";
}

std::string check_size(const core::Module& plain, const core::Module& whole) {
  size_t value = core::node_count(plain), all = core::node_count(whole);
  if (all <= 6 * value) return "";
  return fmt::format("{} nodes with gradients, {} without: more than six times", all, value);
}

}  // namespace ein::fuzz
