#include "properties.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/render.h"
#include "core/rewrite.h"
#include "driver/differences.h"

namespace ein::fuzz {

std::string compile_source(const std::string& source, Subject& out) {
  FileId file = out.sources.add("program.ein", source);
  out.compiled = compile(file, out.sources, {}, out.diags);
  if (out.compiled.ok) return "";
  return "rejected:\n" + render(out.diags, out.sources, {});
}

std::string check_gradient(core::Module& m, const core::Inputs& inputs, const std::string& of,
                           const std::string& wrt, const std::string& gradient, int directions,
                           int& skipped) {
  core::FamilyId g_id = m.find(intern(gradient)), of_id = m.find(intern(of));
  core::EvalResult r = core::evaluate(m, inputs, {g_id});
  if (r.error) return "gradient fails: " + r.error->message;
  const Tensor& g = r.values.at(g_id);
  const Tensor& x = inputs.at(wrt);
  if (g.shape() != x.shape())
    return fmt::format("`{}` does not have the coordinates of `{}`", gradient, wrt);
  std::mt19937_64 rng(12345);
  for (int d = 0; d < directions; ++d) {
    std::vector<double> v;
    double derived = 0;
    for (int64_t i = 0; i < x.size(); ++i) {
      v.push_back(static_cast<double>(rng() >> 11) * 0x1p-52 - 1);
      derived += g.get_float(i) * v.back();
    }
    auto along = [&](double h) -> std::optional<std::vector<double>> {
      core::Inputs moved = inputs;
      Tensor t(x.dtype(), x.shape());
      for (int64_t i = 0; i < x.size(); ++i) {
        t.set_float(i, x.get_float(i) + h * v[static_cast<size_t>(i)]);
      }
      moved[wrt] = t;
      core::EvalResult at = core::evaluate(m, moved, {of_id});
      if (at.error) return std::nullopt;
      return std::vector<double>{at.values.at(of_id).get_float(0)};
    };
    std::vector<Slope> found = slopes(along, 1, 2e-5);
    if (found.empty() || found[0].kind != Slope::Kind::Smooth) {
      ++skipped;
      continue;
    }
    const Slope& s = found[0];
    double tolerance = 2e-5 * std::max(1.0, std::fabs(s.value)) + s.noise;
    if (!(std::fabs(derived - s.value) <= tolerance)) {
      return fmt::format("`{}`: derivative {} along a direction where differences give {}",
                         gradient, derived, s.value);
    }
  }
  return "";
}

std::string check_size(const core::Module& plain, const core::Module& whole) {
  size_t value = core::node_count(plain), all = core::node_count(whole);
  if (all <= 6 * value) return "";
  return fmt::format("{} nodes with gradients, {} without: more than six times", all, value);
}

}  // namespace ein::fuzz
