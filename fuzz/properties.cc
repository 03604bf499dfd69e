#include "properties.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include "base/render.h"
#include "core/groups.h"
#include "core/rewrite.h"
#include "driver/differences.h"
#include "optimise/checkpoint.h"

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
    auto along = [&](double h) -> std::optional<std::vector<double>> {
      core::Inputs moved = inputs;
      for (size_t k = 0; k < gradients.size(); ++k) {
        const Tensor& x = inputs.at(derivatives[k].wrt);
        Tensor t(x.dtype(), x.shape());
        for (int64_t i = 0; i < x.size(); ++i) {
          t.set_float(i, x.get_float(i) + h * v[k][static_cast<size_t>(i)]);
        }
        moved[derivatives[k].wrt] = t;
      }
      return std::vector<double>{scalar(m, moved, of)};
    };
    const Slope s = slopes(along, 1, 2e-5).at(0);
    if (s.kind != Slope::Kind::Smooth) {
      ++skipped;
      continue;
    }
    if (!(std::fabs(slope - s.value) <= 2e-5 * std::max(1.0, std::fabs(s.value)) + s.noise)) {
      std::string names;
      for (const Derivative& x : derivatives) names += " `" + x.gradient + "`";
      return fmt::format("derivative {} along a direction where differences give {}:{}", slope,
                         s.value, names);
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
  if (auto* e = std::get_if<RuntimeError>(&params))
    return "with checkpoints: inputs do not fit: " + e->message;
  core::Module marked = m;
  for (core::Family& f : marked.families) f.checkpoint = 2;
  optimise::Checkpointed planned =
      optimise::checkpoint(marked, wanted, std::get<std::vector<int64_t>>(params), std::nullopt);
  int before = cut;
  for (const optimise::SegmentPlan& p : planned.plans) cut += p.segment > 0;
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

plan::Choices random_choices(uint64_t seed) {
  // A decision depends on the seed and on its subject, not on how often it is needed.
  auto draw = [seed](uint64_t about, uint64_t below) {
    uint64_t x = (seed * 0x9E3779B97F4A7C15ull) ^ (about * 0xBF58476D1CE4E5B9ull);
    x ^= x >> 31;
    x *= 0x94D049BB133111EBull;
    return (x >> 33) % below;
  };
  plan::Choices out;
  out.inlines = [draw](core::FamilyId f) { return draw(f.v, 2) == 0; };
  out.joins = [draw](core::FamilyId f) -> std::optional<bool> {
    if (draw(f.v + 1000, 3) == 0) return false;
    return std::nullopt;
  };
  out.vector_axis = [draw](core::FamilyId f, size_t clause) -> std::optional<uint32_t> {
    uint64_t axis = draw(f.v * 16 + clause + 2000, 6);
    if (axis >= 4) return std::nullopt;
    return axis == 3 ? core::kMaxSlots : static_cast<uint32_t>(axis);
  };
  out.reduce_width = [draw](core::ExprId e) -> std::optional<uint32_t> {
    uint64_t power = draw(e.v + 3000, 7);
    if (power >= 5) return std::nullopt;
    return 1u << power;
  };
  out.contractions = draw(4000, 2) == 0;
  out.scatters = draw(4007, 4) != 0;
  out.unused = draw(4008, 4) != 0;
  out.rings = draw(4001, 4) != 0;
  out.bands = draw(4010, 4) != 0;
  out.ensembles = draw(4011, 4) != 0;
  out.diagonals = draw(4005, 4) != 0;
  out.rows = draw(4006, 4) != 0;
  out.ends = draw(4009, 4) != 0;
  out.invariants = draw(4012, 4) != 0;
  out.scans = draw(4002, 4) != 0;
  out.expands = [draw](core::FunctionId f) -> std::optional<bool> {
    return draw(f.v + 5000, 3) != 0;
  };
  if (draw(4012, 4) == 0) {
    out.device = Device::Emulated;
    out.mapping = 1 + draw(4013, 1 << 20);
  }
  // Half of the numbers keep their values; the others are at or near one of their limits.
  uint64_t about = 6000;
  for (const Tunable& t : tunables()) {
    int64_t near = static_cast<int64_t>(draw(++about, 8)), range = t.most - t.least;
    uint64_t how = draw(++about, 4);
    if (how == 0) out.tuning.*t.field = t.least + std::min(near, range);
    if (how == 1) out.tuning.*t.field = t.most - std::min(near, range);
  }
  return out;
}

}  // namespace ein::fuzz
