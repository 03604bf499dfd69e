#include "expected.h"

#include <algorithm>
#include <cmath>

namespace oracle {
namespace {

struct Precision {
  Real unit;      // relative error of one operation; for f64 a little more than it has
  Real smallest;  // absolute error: the spacing of the smallest numbers
  Real gap;       // two sides of a decision that are closer than this count as equal
  Real largest;
};

Precision precision_of(const std::string& dtype) {
  if (dtype == "f16") return {0x1p-11L, 0x1p-25L, 0x1p-7L, 500};
  if (dtype == "bf16") return {0x1p-9L, 0x1p-100L, 0x1p-5L, 1e6L};
  if (dtype == "f32") return {0x1p-24L, 0x1p-140L, 1e-5L, 1e6L};
  return {0x1p-52L, 0x1p-1000L, 1e-10L, 1e9L};
}

bool asks(const Program& p, const Node& n, const std::vector<bool>& derived) {
  if (n.kind == Kind::Request) return true;
  if (n.kind == Kind::Read && derived[static_cast<size_t>(n.id)]) return true;
  for (const Node& k : n.kids)
    if (asks(p, k, derived)) return true;
  for (int id : n.locals) {
    for (const Clause& c : p.defs[static_cast<size_t>(id)].clauses)
      if (asks(p, c.body, derived)) return true;
  }
  return false;
}

std::vector<bool> derived_definitions(const Program& p) {
  std::vector<bool> out(p.defs.size(), false);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t k = 0; k < p.defs.size(); ++k) {
      for (const Clause& c : p.defs[k].clauses) {
        if (out[k] || !asks(p, c.body, out)) continue;
        out[k] = changed = true;
      }
    }
  }
  return out;
}

}  // namespace

Prepared prepare(const Program& p, int runs, uint64_t most_operations) {
  Prepared out;
  Precision precision = precision_of(p.dtype);
  Answer exact = evaluate(p, {}, most_operations);
  if (!exact.wrong.empty()) {
    out.state = exact.wrong == "too much work" ? Prepared::State::Work : Prepared::State::Invalid;
    out.why = exact.wrong;
    return out;
  }
  if (exact.tie || exact.smallest_gap < precision.gap) out.state = Prepared::State::Tie;
  if (exact.largest > precision.largest) out.state = Prepared::State::Range;
  std::vector<Answer> noisy;
  if (runs == 0) runs = p.dtype == "f64" ? 2 : 4;
  for (int k = 0; k < runs && out.state == Prepared::State::Ready; ++k) {
    noisy.push_back(evaluate(
        p, {precision.unit, precision.smallest, 77u + static_cast<uint64_t>(k)}, most_operations));
    if (noisy.back().decisions != exact.decisions || !noisy.back().wrong.empty())
      out.state = Prepared::State::Tie;
  }
  if (out.state != Prepared::State::Ready) return out;
  std::vector<bool> derived = derived_definitions(p);
  for (int id : p.order) {
    const Definition& d = p.defs[static_cast<size_t>(id)];
    if (d.input || d.dropped) continue;
    const Computed& c = exact.values.at(id);
    auto at = static_cast<size_t>(id);
    Expected e{d.name, d.type, derived[at], exact.nonfinite[at], c.shape, c.cells, {}};
    // Magnitude of the value as a whole: cells with cancellation are as inexact as the others.
    Real scale = 0;
    for (Real x : c.cells)
      if (std::isfinite(x)) scale = std::max(scale, std::fabs(x));
    for (size_t k = 0; k < c.cells.size(); ++k) {
      Real spread = 0;
      for (const Answer& n : noisy)
        spread = std::max(spread, std::fabs(n.values.at(id).cells[k] - c.cells[k]));
      // Two or four runs show only part of what may happen, and other orders of the same sums have
      // other errors. But a wrong rule differs by far more than fifty times the rounding.
      e.tolerance.push_back(kCaution * spread +
                            64 * precision.unit * (std::fabs(c.cells[k]) + scale) +
                            64 * precision.smallest);
    }
    out.values.push_back(std::move(e));
  }
  return out;
}

}  // namespace oracle
