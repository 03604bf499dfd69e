// Slopes by differences, and whether they can be trusted. They are judged by the function alone: a
// derivative that is compared with a slope must not widen its own tolerance.
#pragma once

#include <functional>
#include <optional>
#include <vector>

namespace ein {

// Values at a signed distance from a point; nothing when the function fails there.
using Along = std::function<std::optional<std::vector<double>>(double distance)>;

struct Slope {
  enum class Kind { Smooth, Kink, Undefined } kind = Kind::Smooth;
  double value = 0;
  double noise = 0;  // how far rounding and the step may have moved it
};

// Central differences of every value along a line, with a step near the cube root of epsilon (in
// units of `magnitude`, that of the point) unless `step` says otherwise. A kink is recognised by
// one-sided slopes whose gap does not shrink with the step, or by two steps that disagree.
std::vector<Slope> slopes(const Along& f, double magnitude, std::optional<double> step = {});

}  // namespace ein
