#include "optimise/scan.h"

#include <algorithm>
#include <optional>

#include "core/bound.h"
#include "core/build.h"
#include "core/normal.h"
#include "core/prove.h"
#include "core/rewrite.h"
#include "core/scalar.h"
#include "core/total.h"
#include "optimise/wide_sums.h"

namespace ein::optimise {
namespace {

using namespace core;

struct Scan {
  uint32_t along = 0;  // the coordinate along which the range grows
  bool up = true;      // the previous cell is at along − 1, otherwise at along + 1
  ExprId next;         // the binder's value in the cell that is added
  ExprId cond;         // whether that cell counts; invalid: always
};

// The constant in `bound = along + constant`; nothing if the bound has another form.
std::optional<int64_t> offset(const Module& m, ExprId bound, uint32_t along) {
  AffineForm f = affine_form(m, bound);
  if (f.terms.size() != 1 || f.terms[0].coef != 1 || slot_of(m, f.terms[0].atom) != along) {
    return std::nullopt;
  }
  return f.constant;
}

std::optional<Scan> scan_along(Module& m, const Reduce& r, uint32_t along) {
  uint32_t binder = r.first;
  if (mentions_slot(m, r.body, along)) return std::nullopt;
  std::vector<ExprId> gates, rest;
  conjuncts(m, r.gate, gates);
  ExprId lo = r.over[0].lo, hi = r.over[0].hi;
  std::optional<int64_t> grows, shrinks;  // the bound that moves: up and down
  auto moving_hi = [&](ExprId e) {
    if (grows || shrinks || !offset(m, e, along)) return false;
    grows = offset(m, e, along);
    return true;
  };
  auto moving_lo = [&](ExprId e) {
    if (grows || shrinks || !offset(m, e, along)) return false;
    shrinks = offset(m, e, along);
    return true;
  };
  ExprId self = slot(m, binder);
  if (mentions_slot(m, hi, along)) {
    if (!moving_hi(hi)) return std::nullopt;
  } else {
    rest.push_back(apply(m, Op::Lt, {self, hi}));
  }
  if (mentions_slot(m, lo, along)) {
    if (!moving_lo(lo)) return std::nullopt;
  } else {
    rest.push_back(apply(m, Op::Ge, {self, lo}));
  }
  for (ExprId gate : gates) {
    if (!mentions_slot(m, gate, along)) {
      rest.push_back(gate);
      continue;
    }
    auto bound = bound_on(m, gate, binder);
    if (!bound || (bound->lo && bound->hi)) return std::nullopt;
    if (bound->hi ? !moving_hi(bound->hi) : !moving_lo(bound->lo)) return std::nullopt;
  }
  if (!grows && !shrinks) return std::nullopt;
  Scan out{along, grows.has_value(), {}, {}};
  ExprId here = slot(m, along);
  out.next = add(m, here, int_lit(m, grows ? *grows - 1 : *shrinks));
  out.cond = all_of(m, rest);
  return out;
}

std::optional<Scan> find_scan(Module& m, ExprId e, const Family& f, const Clause& clause,
                              int64_t short_extent) {
  const auto* found = get_if<Reduce>(m, e);
  if (!found || found->over.size() != 1 || !found->routes.empty()) return std::nullopt;
  const Reduce r = *found;
  if (!combination(r.op)) return std::nullopt;
  // A reduction of f16 or bf16 is rounded once; a recurrence would round at each step.
  DType type = m[r.body].type;
  if (type == DType::F16 || type == DType::BF16) return std::nullopt;
  for (uint32_t k = 0; k < f.rank(); ++k) {
    const Range& box = clause.box[k];
    bool whole = const_int(m, box.lo) == 0 && box.hi == f.coords[k].extent;
    auto extent = const_int(m, box.hi);
    if (!whole || (extent && *extent <= short_extent)) continue;
    if (auto scan = scan_along(m, r, k)) return scan;
  }
  return std::nullopt;
}

// Splits clause `number`, whose body is the reduction, into a first cell and a step.
void rewrite_clause(Module& m, FamilyId id, size_t number, const Scan& scan) {
  const Family f = m[id];
  const Clause clause = f.clauses[number];
  const Reduce r = std::get<Reduce>(m[clause.body].node);
  ExprId extent = f.coords[scan.along].extent, one = int_lit(m, 1);
  Clause base = clause, step = clause;
  if (scan.up) {
    base.box[scan.along].hi = one;
    step.box[scan.along].lo = one;
  } else {
    base.box[scan.along].lo = step.box[scan.along].hi = sub(m, extent, one);
  }
  std::vector<ExprId> at;
  for (uint32_t k = 0; k < f.rank(); ++k) at.push_back(slot(m, k));
  ExprId here = at[scan.along];
  at[scan.along] = scan.up ? sub(m, here, one) : add(m, here, one);
  ExprId before = access(m, id, at, m[clause.body].span);
  std::vector<ExprId> with(r.first + 1);
  with[r.first] = scan.next;
  auto put = [&](ExprId e) { return substitute(m, e, with, f.rank()); };
  ExprId cell = put(r.body);
  ExprId both_of = scan.up ? apply(m, *combination(r.op), {before, cell})
                           : apply(m, *combination(r.op), {cell, before});
  step.body = both_of;
  if (scan.cond) {
    std::vector<ExprId> parts, open;
    conjuncts(m, put(scan.cond), parts);
    Facts facts = clause_facts(m, step);
    for (ExprId part : parts) {
      if (!proves(m, part, facts)) open.push_back(part);
    }
    if (ExprId cond = all_of(m, open)) step.body = apply(m, Op::Select, {cond, both_of, before});
  }
  auto& clauses = m.families[id].clauses;
  clauses[number] = base;
  clauses.insert(clauses.begin() + static_cast<ptrdiff_t>(number) + 1, step);
}

// Whether the whole clause is a running sum of floats shorter than f64.
bool is_wide_scan(Module& m, const Family& f, const Clause& clause, int64_t short_extent) {
  ExprId by = widened_sum(m, clause.body);
  return by && find_scan(m, get_if<Apply>(m, by)->args[0], f, clause, short_extent);
}

// Converts running sums of floats shorter than f64 inside larger expressions to f64, if they may be
// evaluated everywhere: only those become recurrences.
ExprId with_wide_sums(Module& m, const Family& f, const Clause& clause, int64_t short_extent) {
  std::unordered_map<ExprId, ExprId> wide;
  auto wanted = [](const Node& n) { return std::holds_alternative<Reduce>(n); };
  Facts top = clause_facts(m, clause);
  for_each_with_facts(m, clause, wanted, [&](ExprId e, const Facts& facts) {
    if (facts.slots.size() != f.rank() || wide.contains(e) || e == clause.body) return;
    ExprId by = widened_sum(m, e);
    if (!by || !find_scan(m, get_if<Apply>(m, by)->args[0], f, clause, short_extent)) return;
    if (total(m, e, top, Overflow::Wraps)) wide[e] = by;
  });
  if (wide.empty()) return clause.body;
  return rewrite(m, clause.body, [&](ExprId e) {
    auto it = wide.find(e);
    return it == wide.end() ? e : it->second;
  });
}

// A running reduction inside a larger expression that may be evaluated everywhere.
ExprId inner_scan(Module& m, const Family& f, const Clause& clause, int64_t short_extent,
                  Facts& at) {
  ExprId out;
  auto wanted = [](const Node& n) { return std::holds_alternative<Reduce>(n); };
  Facts top = clause_facts(m, clause);
  for_each_with_facts(m, clause, wanted, [&](ExprId e, const Facts& facts) {
    if (out || e == clause.body || facts.slots.size() != f.rank()) return;
    if (!find_scan(m, e, f, clause, short_extent) || !total(m, e, top, Overflow::Wraps)) return;
    out = e;
    at = top;
  });
  return out;
}

}  // namespace

bool make_scans(Module& m, int64_t short_extent) {
  bool changed = false;
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    FamilyId id(i);
    for (size_t c = 0; c < m[id].clauses.size(); ++c) {
      const Family& f = m[id];  // a reference, since there may be thousands of clauses
      Clause clause = f.clauses[c];
      // The new family is handled later in this loop.
      if (is_wide_scan(m, f, clause, short_extent)) {
        widen_clause(m, id, c);
        changed = true;
        continue;
      }
      clause.body = m.families[id].clauses[c].body = with_wide_sums(m, f, clause, short_extent);
      Facts facts;
      while (ExprId inner = inner_scan(m, f, clause, short_extent, facts)) {
        ExprId read = hoist(m, text(f.name) + "_running", inner, {}, facts, coordinate_names(f),
                            m[inner].span);
        if (!read) break;
        clause.body = rewrite(m, clause.body, [&](ExprId x) { return x == inner ? read : x; });
        m.families[id].clauses[c].body = clause.body;
        changed = true;
      }
      if (auto scan = find_scan(m, clause.body, f, clause, short_extent)) {
        rewrite_clause(m, id, c, *scan);
        changed = true;
        ++c;
      }
    }
  }
  return changed;
}

}  // namespace ein::optimise
