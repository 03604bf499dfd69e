#include "driver/gradcheck_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/random.h"

namespace ein {
namespace {

using Verdict = Comparison::Verdict;

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

bool skip(const Slope& slope, const std::string& where, Comparison& out) {
  if (slope.kind == Slope::Kind::Smooth) return false;
  bool kink = slope.kind == Slope::Kind::Kink;
  ++(kink ? out.kinks : out.undefined);
  if (kink && out.kink_at.empty()) out.kink_at = where;
  return true;
}

}  // namespace

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

void Comparer::run(const Derivative& d, const Numbers& n, Comparison& out) {
  std::map<int64_t, std::vector<int64_t>> by_den;  // values of the derivative by cell
  for (int64_t c = 0; c < n.wide->size(); ++c) {
    auto k = static_cast<size_t>(c);
    if (n.den_cell[k] >= 0 && n.num_cell[k] >= 0) by_den[n.den_cell[k]].push_back(c);
  }
  out.cells = static_cast<int64_t>(by_den.size());
  for (int64_t den : sample(by_den)) {
    if (std::chrono::steady_clock::now() > deadline_) break;
    std::map<int64_t, double> one{{den, 1.0}};
    std::vector<Slope> found = slopes(along(d, n, one), std::fabs(n.den->get_float(den)), step(n));
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

std::optional<double> Comparer::step(const Numbers& n) const {
  if (!options_.seed_tolerances) return std::nullopt;
  return seed_row(n.own->dtype()).step;
}

// All cells, or a random sample when there are more than `options_.samples`.
std::vector<int64_t> Comparer::sample(const std::map<int64_t, std::vector<int64_t>>& cells) const {
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
Along Comparer::along(const Derivative& d, const Numbers& n,
                      const std::map<int64_t, double>& direction) {
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

void Comparer::note(const Numbers& n, int64_t cell, const Slope& slope, const std::string& where,
                    Comparison& out) {
  const Tensor& judged = options_.seed_tolerances ? *n.own : *n.wide;
  if (skip(slope, where, out)) return;
  seen_.push_back({judged.get_float(cell), slope, where});
}

void Comparer::direction(const Derivative& d, const Numbers& n, int k, Comparison& out) {
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
void Comparer::judge(const Numbers& n, Comparison& out) {
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

}  // namespace ein
