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

std::string compile_source(const std::string& source, Subject& out, autodiff::Direction direction) {
  FileId file = out.sources.add("program.ein", source);
  CompileOptions options;
  options.direction = direction;
  out.compiled = compile(file, out.sources, options, out.diags);
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
                           const std::vector<Derivative>& derivatives, int directions,
                           int& skipped) {
  std::vector<core::FamilyId> gradients;
  for (const Derivative& d : derivatives) gradients.push_back(m.find(intern(d.gradient)));
  core::EvalResult r = core::evaluate(m, inputs, gradients);
  if (r.error) return "gradient fails: " + r.error->message;
  for (size_t k = 0; k < gradients.size(); ++k) {
    if (r.values.at(gradients[k]).shape() == inputs.at(derivatives[k].wrt).shape()) continue;
    return fmt::format("`{}` does not have the coordinates of `{}`", derivatives[k].gradient,
                       derivatives[k].wrt);
  }
  std::mt19937_64 rng(12345);
  for (int d = 0; d < directions; ++d) {
    std::vector<std::vector<double>> v(gradients.size());
    double slope = 0;
    for (size_t k = 0; k < gradients.size(); ++k) {
      const Tensor& g = r.values.at(gradients[k]);
      for (int64_t i = 0; i < g.size(); ++i) {
        v[k].push_back(static_cast<double>(rng() >> 11) * 0x1p-52 - 1);
        slope += g.get_float(i) * v[k].back();
      }
    }
    auto difference = [&](double h) {
      core::Inputs moved = inputs;
      double ends[2];
      for (int side = 0; side < 2; ++side) {
        for (size_t k = 0; k < gradients.size(); ++k) {
          const Tensor& x = inputs.at(derivatives[k].wrt);
          Tensor t(x.dtype(), x.shape());
          for (int64_t i = 0; i < x.size(); ++i) {
            t.set_float(i, x.get_float(i) + (side == 0 ? h : -h) * v[k][static_cast<size_t>(i)]);
          }
          moved[derivatives[k].wrt] = t;
        }
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
      std::string names;
      for (const Derivative& x : derivatives) names += " `" + x.gradient + "`";
      return fmt::format("derivative {} along a direction where differences give {}:{}", slope,
                         fine, names);
    }
  }
  return "";
}

std::string check_same_values(core::Module& a, core::Module& b, const core::Inputs& inputs,
                              const std::vector<std::string>& names) {
  std::vector<core::FamilyId> in_a = families(a, names), in_b = families(b, names);
  core::EvalResult x = core::evaluate(a, inputs, in_a), y = core::evaluate(b, inputs, in_b);
  if (x.error || y.error) {
    return "fails: " + (x.error ? x.error->message : "") + (y.error ? y.error->message : "");
  }
  for (size_t k = 0; k < names.size(); ++k) {
    std::string where;
    if (!close(x.values.at(in_a[k]), y.values.at(in_b[k]), 1e-8, where))
      return fmt::format("`{}`, {}", names[k], where);
  }
  return "";
}

std::string check_pairing(const std::string& source, const core::Module& m,
                          const core::Inputs& inputs, const std::string& of,
                          const std::string& wrt) {
  core::FamilyId y = m.find(intern(of)), x = m.find(intern(wrt));
  auto indices = [&](core::FamilyId f, const char* base) {
    std::vector<std::string> out;
    for (uint32_t k = 0; k < m[f].rank(); ++k) out.push_back(fmt::format("{}{}", base, k));
    return fmt::format("{}", fmt::join(out, ", "));
  };
  std::string i = indices(y, "pi"), j = indices(x, "pj");
  std::string request = fmt::format("(@{}[{}] / @{}[{}])", of, i, wrt, j);
  std::string more = fmt::format(
      "let pair_jv[{0}] = sum[{1}]({4} * {3}[{1}]);\n"
      "let pair_vj[{1}] = sum[{0}]({2}[{0}] * {4});\n"
      "let pair_left = sum[{0}](pair_jv[{0}] * {2}[{0}]);\n"
      "let pair_right = sum[{1}](pair_vj[{1}] * {3}[{1}]);\n",
      i, j, of, wrt, request);
  Subject subject;
  if (std::string wrong = compile_source(source + more, subject); !wrong.empty())
    return wrong + more;
  core::Module& n = subject.compiled.module;
  double left = scalar(n, inputs, "pair_left"), right = scalar(n, inputs, "pair_right");
  if (std::fabs(left - right) <= 1e-8 * std::max({1.0, std::fabs(left), std::fabs(right)}))
    return "";
  return fmt::format("<Jv, w> is {}, <v, Jᵀw> is {}:\n{}", left, right, more);
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
