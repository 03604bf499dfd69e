#include "autodiff/sweep.h"

#include <algorithm>
#include <cmath>

#include "autodiff/custom.h"
#include "core/build.h"
#include "core/rewrite.h"
#include "core/solve_gates.h"

namespace ein::autodiff {

using namespace core;

namespace {

// The factors of a product, in source order.
void factors(const Module& m, ExprId e, std::vector<ExprId>& out) {
  if (const auto* a = get_if<Apply>(m, e); a && a->op == Op::Mul) {
    factors(m, a->args[0], out);
    factors(m, a->args[1], out);
    return;
  }
  out.push_back(e);
}

bool is_zero(const Module& m, ExprId e) {
  const auto* lit = get_if<FloatLit>(m, e);
  return lit && lit->value == 0;
}

ExprId without_zeros(Module& m, ExprId e) {
  const auto* a = get_if<Apply>(m, e);
  if (!a || (a->op != Op::Add && a->op != Op::Sub && a->op != Op::Neg)) return e;
  const Apply sum = *a;
  ExprId left = without_zeros(m, sum.args[0]);
  if (sum.op == Op::Neg) return is_zero(m, left) ? left : neg(m, left);
  ExprId right = without_zeros(m, sum.args[1]);
  if (is_zero(m, right)) return left;
  if (is_zero(m, left)) return sum.op == Op::Add ? right : neg(m, right);
  return apply(m, sum.op, {left, right}, m[e].span);
}

}  // namespace

bool at_same_step(const Module& m, const Sweep& sweep, FamilyId reader, FamilyId family,
                  const std::vector<ExprId>& at) {
  if (sweep.local.empty()) return true;
  auto r = sweep.local.find(reader), f = sweep.local.find(family);
  if (r == sweep.local.end() || f == sweep.local.end()) return false;
  for (size_t level = 0; level < r->second.size(); ++level) {
    if (slot_of(m, at[f->second[level]]) != r->second[level]) return false;
  }
  return true;
}

bool follows(const Module& m, const Sweep& sweep, FamilyId reader, ExprId node, Mode mode) {
  const auto& a = *get_if<Access>(m, node);
  if (mode != sweep.mode(a.family)) return false;
  if (!is_float(m[a.family].dtype) && !has_rule(m, a.family)) return false;
  return at_same_step(m, sweep, reader, a.family, a.at);
}

std::vector<uint32_t> free_coordinates(const Module& m, const Sweep& sweep, FamilyId family) {
  std::vector<uint32_t> out;
  auto it = sweep.local.find(family);
  for (uint32_t k = 0; k < m[family].rank(); ++k) {
    bool local = it != sweep.local.end() &&
                 std::find(it->second.begin(), it->second.end(), k) != it->second.end();
    if (!local) out.push_back(k);
  }
  return out;
}

std::set<FamilyId> between(const Module& m, const Sweep& sweep,
                           const std::function<bool(FamilyId, ExprId, Mode)>& accepts) {
  // Backward from the numerators, remembering who reads what; then forward from the denominators.
  std::map<FamilyId, std::set<FamilyId>> readers;
  std::set<FamilyId> below = sweep.nums;
  std::vector<FamilyId> work(below.begin(), below.end());
  for (size_t i = 0; i < work.size(); ++i) {
    FamilyId reader = work[i];
    for_each_body(m, reader, [&](ExprId body) {
      for_each_value_read(m, body, sweep.mode(reader), [&](ExprId node, Mode mode) {
        if (!accepts(reader, node, mode)) return;
        FamilyId read = get_if<Access>(m, node)->family;
        readers[read].insert(reader);
        if (below.insert(read).second) work.push_back(read);
      });
    });
  }
  std::set<FamilyId> out;
  std::vector<FamilyId> forward;
  for (FamilyId den : sweep.dens) {
    if (below.contains(den) && out.insert(den).second) forward.push_back(den);
  }
  for (size_t i = 0; i < forward.size(); ++i) {
    for (FamilyId reader : readers[forward[i]]) {
      if (out.insert(reader).second) forward.push_back(reader);
    }
  }
  return out;
}

std::set<FamilyId> cone(const Module& m, const Sweep& sweep) {
  return between(m, sweep, [&](FamilyId reader, ExprId read, Mode mode) {
    return follows(m, sweep, reader, read, mode);
  });
}

bool carries(const Module& m, const Sweep& sweep, const std::set<FamilyId>& members,
             FamilyId reader, ExprId read, Mode mode) {
  return members.contains(get_if<Access>(m, read)->family) && follows(m, sweep, reader, read, mode);
}

std::vector<LinearClause> linear_clauses(Module& m, const Sweep& sweep,
                                         const std::set<FamilyId>& members, FamilyId id,
                                         std::optional<Problem>& problem) {
  std::vector<LinearClause> out;
  Active active = [&](ExprId node, Mode mode) {
    return carries(m, sweep, members, id, node, mode);
  };
  auto take = [&](Linear linear, std::vector<Range> box) {
    if (linear.problem && !problem) problem = Problem{id, *linear.problem};
    out.push_back({std::move(box), std::move(linear.terms)});
  };
  for (size_t c = 0; c < m[id].clauses.size(); ++c) {
    take(linearise(m, id, c, sweep.mode(id), active, !sweep.is_asked(id)), m[id].clauses[c].box);
  }
  for (size_t c = 0; c < m[id].cells.size(); ++c) {
    std::vector<Range> cell;
    auto rest = static_cast<int64_t>(c);
    for (size_t k = m[id].coords.size(); k-- > 0;) {
      int64_t n = const_int(m, m[id].coords[k].extent).value();
      cell.insert(cell.begin(), {int_lit(m, rest % n), int_lit(m, rest % n + 1)});
      rest /= n;
    }
    // A cell is a closed expression: it has no slots, its address is the point `cell`.
    take(linearise_cell(m, id, c, sweep.mode(id), active), std::move(cell));
  }
  return out;
}

ExprId weighted(Module& m, const Coef& coef, ExprId by, DType type, bool& negative) {
  ExprId value;
  negative = std::signbit(coef.scale);
  if (double size = std::fabs(coef.scale); size != 1) value = float_lit(m, size, type);
  if (by) value = value ? mul(m, value, by) : by;
  if (coef.num) {  // g * a * b reads better than g * (a * b)
    std::vector<ExprId> parts;
    factors(m, coef.num, parts);
    for (ExprId f : parts) value = value ? mul(m, value, f) : f;
  }
  if (!value) value = float_lit(m, 1, type);
  if (coef.den) value = apply(m, Op::Div, {value, coef.den});
  return value;
}

void solve_sum(Module& m, FamilyId family) {
  solve_gates(m, family);
  for (Clause& c : m.families[family].clauses) c.body = without_zeros(m, c.body);
}

namespace {

// Where a summand is not zero by structure.
struct Supports {
  Module& m;
  uint32_t rank;  // of the family it stands in
  const std::map<FamilyId, ExprId>& known;
  const std::map<FamilyId, FamilyId>& made;

  // The gate of a summand that is gated as a whole.
  ExprId of(ExprId e) {
    if (const auto* read = get_if<Access>(m, e)) return of_read(*read, rank);
    const auto* a = get_if<Apply>(m, e);
    if (!a) return {};
    switch (a->op) {
      case Op::Select: return is_zero(m, a->args[2]) ? a->args[0] : ExprId{};
      case Op::Neg:
      case Op::Cast: return of(a->args[0]);
      case Op::Add:
      case Op::Sub: {
        const std::vector<ExprId> args = a->args;
        ExprId left = of(args[0]);
        return left && left == of(args[1]) ? left : ExprId{};
      }
      default: return {};
    }
  }

  ExprId of_read(const Access& read, uint32_t depth) {
    const std::vector<ExprId> at = read.at;
    for (const auto& [family, gate] : known) {
      if (made.at(family) == read.family) return substitute(m, gate, at, depth);
    }
    return {};
  }
};

// Pairs of slots, the smaller one first, that are equal wherever an expression is not zero by
// structure. A second derivative by the points that a network is evaluated at lies on such a
// diagonal; knowing that through products and sums makes it linear in the points.
using Pairs = std::set<std::pair<uint32_t, uint32_t>>;

struct Diagonals {
  Supports& supports;
  Module& m = supports.m;

  // `depth`: the slots in scope. Nothing: the expression is zero.
  std::optional<Pairs> of(ExprId e, uint32_t depth) {
    if (is_zero(m, e)) return std::nullopt;
    const Node node = m[e].node;
    if (const auto* read = std::get_if<Access>(&node)) {
      return of_condition(supports.of_read(*read, depth));
    }
    if (const auto* r = std::get_if<Reduce>(&node)) return of_sum(*r);
    if (const auto* a = std::get_if<Apply>(&node)) return of_operation(*a, depth);
    return Pairs{};
  }

 private:
  Pairs of_condition(ExprId cond) {
    Pairs out;
    if (!cond) return out;
    std::vector<ExprId> parts;
    conjuncts(m, cond, parts);
    for (ExprId part : parts) {
      const auto* a = get_if<Apply>(m, part);
      if (!a || a->op != Op::Eq) continue;
      uint32_t p = slot_of(m, a->args[0]), q = slot_of(m, a->args[1]);
      if (p != ~0u && q != ~0u && p != q) out.insert(std::minmax(p, q));
    }
    return out;
  }

  std::optional<Pairs> of_sum(const Reduce& r) {
    if (r.op != ReduceOp::Sum || !r.routes.empty()) return Pairs{};
    auto body = of(r.body, r.first + static_cast<uint32_t>(r.over.size()));
    if (!body) return body;
    Pairs out = both(*body, of_condition(r.gate));
    std::erase_if(out, [&](const auto& pair) { return pair.second >= r.first; });
    return out;
  }

  std::optional<Pairs> of_operation(const Apply& a, uint32_t depth) {
    switch (a.op) {
      case Op::Neg:
      case Op::Cast:
      case Op::Div: return of(a.args[0], depth);
      case Op::Mul: {
        auto left = of(a.args[0], depth), right = of(a.args[1], depth);
        return left && right ? std::optional(both(*left, *right)) : std::nullopt;
      }
      case Op::Add:
      case Op::Sub: return either(of(a.args[0], depth), of(a.args[1], depth));
      case Op::Select: {
        auto then = of(a.args[1], depth);
        if (then) then = both(*then, of_condition(a.args[0]));
        return either(std::move(then), of(a.args[2], depth));
      }
      default: return Pairs{};
    }
  }

  // With all pairs that follow from others, so that what two sums share is seen.
  static Pairs both(Pairs a, const Pairs& b) {
    a.insert(b.begin(), b.end());
    for (bool again = true; again;) {
      again = false;
      for (auto [p, q] : Pairs(a)) {
        for (auto [r, s] : Pairs(a)) {
          if (p == r && q != s) again |= a.insert(std::minmax(q, s)).second;
          if (q == r) again |= a.insert({p, s}).second;
          if (q == s && p != r) again |= a.insert(std::minmax(p, r)).second;
        }
      }
    }
    return a;
  }

  static std::optional<Pairs> either(std::optional<Pairs> a, std::optional<Pairs> b) {
    if (!a) return b;
    if (b) std::erase_if(*a, [&](const auto& pair) { return !b->contains(pair); });
    return a;
  }
};

}  // namespace

ExprId support(Module& m, FamilyId family, const std::map<FamilyId, ExprId>& supports,
               const std::map<FamilyId, FamilyId>& made) {
  if (m[family].clauses.size() != 1) return {};
  Supports find{m, m[family].rank(), supports, made};
  ExprId body = m[family].clauses[0].body;
  if (ExprId gate = find.of(body)) return gate;
  std::vector<ExprId> equal;
  for (auto [p, q] : Diagonals{find}.of(body, m[family].rank()).value_or(Pairs{}))
    equal.push_back(apply(m, Op::Eq, {slot(m, p), slot(m, q)}));
  return all_of(m, equal);
}

ExprId sum(Module& m, std::vector<Contribution> parts, DType type) {
  if (parts.empty()) return float_lit(m, 0, type);
  // The direct response first, then what comes back through other values; among these a positive
  // one first, so that the sum reads `a - b` rather than `-b + a`.
  std::stable_partition(parts.begin(), parts.end(), [](const Contribution& c) { return c.first; });
  std::stable_partition(parts.begin(), parts.end(),
                        [](const Contribution& c) { return !c.negative; });
  ExprId total = parts[0].negative ? neg(m, parts[0].value) : parts[0].value;
  for (size_t k = 1; k < parts.size(); ++k) {
    total = apply(m, parts[k].negative ? Op::Sub : Op::Add, {total, parts[k].value});
  }
  return total;
}

}  // namespace ein::autodiff
