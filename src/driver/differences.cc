#include "driver/differences.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ein {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kFiner = 4;  // the second step is this much smaller

// The slope of one value, from the point itself and from both sides at both steps.
Slope slope(double here, const double (&above)[2], const double (&below)[2], double h,
            double magnitude) {
  double size = magnitude, central[2], gap[2];
  for (double y : {here, above[0], above[1], below[0], below[1]}) {
    if (!std::isfinite(y)) return {Slope::Kind::Undefined};
    size = std::max(size, std::fabs(y));
  }
  for (int k = 0; k < 2; ++k) {
    double step = k == 0 ? h : h / kFiner;
    central[k] = (above[k] - below[k]) / (2 * step);
    gap[k] = std::fabs((above[k] - here) / step - (here - below[k]) / step);
  }
  // A value is often a sum of many cells, and what it was computed from may have been larger: more
  // than its own last bit is uncertain.
  double noise = 64 * kEpsilon * size / h;
  double scale = std::max({1.0, std::fabs(central[0]), std::fabs(central[1])});
  bool corner = gap[0] > 1e-4 * scale + 2 * noise && gap[1] > gap[0] / 2;
  bool steps_disagree = std::fabs(central[0] - central[1]) > 1e-5 * scale + (1 + kFiner) * noise;
  return {corner || steps_disagree ? Slope::Kind::Kink : Slope::Kind::Smooth, central[0],
          noise + std::fabs(central[0] - central[1])};
}

}  // namespace

std::vector<Slope> slopes(const Along& f, double magnitude, std::optional<double> step) {
  double h = step.value_or(std::cbrt(kEpsilon) * std::max(1.0, magnitude));
  auto here = f(0);
  if (!here) return {};
  std::vector<Slope> out(here->size(), {Slope::Kind::Undefined});
  std::optional<std::vector<double>> above[2] = {f(h), f(h / kFiner)};
  std::optional<std::vector<double>> below[2] = {f(-h), f(-h / kFiner)};
  if (!above[0] || !above[1] || !below[0] || !below[1]) return out;
  for (size_t k = 0; k < out.size(); ++k) {
    out[k] = slope((*here)[k], {(*above[0])[k], (*above[1])[k]}, {(*below[0])[k], (*below[1])[k]},
                   h, magnitude);
  }
  return out;
}

}  // namespace ein
