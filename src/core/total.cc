#include "core/total.h"

#include <unordered_map>

#include "base/match.h"
#include "core/build.h"
#include "core/rewrite.h"
#include "core/scalar.h"

namespace ein::core {
namespace {

// Walks one context (a Facts value); conditions and binders open new ones. Selections nested in
// each other's shared arms have exponentially many contexts, so there is a budget.
struct TotalityWalk {
  Module& m;
  const Facts& facts;
  int& budget;
  Overflow overflow;
  std::unordered_map<ExprId, bool> known;

  // Without the condition first: most expressions do not need it.
  bool under(ExprId cond, ExprId e) {
    if (holds(e)) return true;
    if (--budget < 0) return false;
    Facts inner = facts;
    assume(m, cond, inner);
    return TotalityWalk{m, inner, budget, overflow, {}}.holds(e);
  }

  bool holds(ExprId e) {
    if (auto it = known.find(e); it != known.end()) return it->second;
    bool out = visit(e);
    known[e] = out;
    return out;
  }

  bool visit(ExprId e) {
    const Node node = m[e].node;  // a copy: proofs add nodes to the arena
    return match(
        node, [](const FloatLit&) { return true; }, [](const IntLit&) { return true; },
        [](const BoolLit&) { return true; }, [](const Slot&) { return true; },
        [](const ParamRef&) { return true; },
        [&](const Affine& n) {
          for (const auto& t : n.terms) {
            if (!holds(t.atom)) return false;
          }
          return overflow == Overflow::Wraps || !may_overflow(m, n);
        },
        [&](const Apply& n) {
          if (!holds(n.args[0])) return false;
          switch (n.op) {
            case Op::Select:
              return under(n.args[0], n.args[1]) && under(negate(m, n.args[0]), n.args[2]);
            case Op::And: return under(n.args[0], n.args[1]);
            case Op::Or: return under(negate(m, n.args[0]), n.args[1]);
            default: break;
          }
          for (size_t i = 1; i < n.args.size(); ++i) {
            if (!holds(n.args[i])) return false;
          }
          if (overflow == Overflow::Stops && may_overflow(m, n)) return false;
          return succeeds(m, n, facts);
        },
        [&](const Access& n) {
          for (ExprId a : n.at) {
            if (!holds(a)) return false;
          }
          return in_bounds(m, n, facts);
        },
        [&](const Reduce& n) { return reduce_holds(n); }, [](const Request&) { return false; },
        [](const Call&) { return false; },  // it may not terminate
        [](const Arg&) { return true; });
  }

  bool reduce_holds(const Reduce& n) {
    Facts inner = facts;
    // Binder by binder: the range of one is evaluated before the next is bound.
    inner.slots.resize(n.first);
    for (const Range& range : n.over) {
      TotalityWalk at{m, inner, budget, overflow, {}};
      if (!at.holds(range.lo) || !at.holds(range.hi)) return false;
      inner.slots.push_back(range);
    }
    if (n.gate) {
      if (!TotalityWalk{m, inner, budget, overflow, {}}.holds(n.gate)) return false;
      assume(m, n.gate, inner);
    }
    TotalityWalk body{m, inner, budget, overflow, {}};
    for (const Route& r : n.routes) {
      if (!body.holds(r.to)) return false;
    }
    bool adds = n.op == ReduceOp::Sum || n.op == ReduceOp::Prod;
    if (overflow == Overflow::Stops && adds && is_int(m[n.body].type)) return false;
    return body.holds(n.body);
  }
};

bool shifts(Module& m, const Apply& apply, const Facts& facts) {
  DType type = m[apply.args[1]].type;
  if (auto by = shift_amount(m, apply)) return shifts_within(type, *by);
  if (type != DType::I64) return false;
  return proves_in_bounds(m, apply.args[1], int_lit(m, 64), facts);
}

}  // namespace

bool total(Module& m, ExprId e, const Facts& facts, Overflow overflow) {
  int budget = 256;
  return TotalityWalk{m, facts, budget, overflow, {}}.holds(e);
}

bool may_overflow(const Module& m, const Apply& apply) {
  if (!is_int(m[apply.args[0]].type)) return false;
  switch (apply.op) {
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
    case Op::Neg:
    case Op::Abs:
    case Op::Pow: return true;
    case Op::Div: {
      auto by = const_int(m, apply.args[1]);
      return !by || *by == -1;
    }
    default: return false;
  }
}

// Indices and extents count things that exist, so small multiples of them fit.
bool may_overflow(const Module& m, const Affine& affine) {
  constexpr int64_t kMultiple = 1 << 12, kConstant = int64_t{1} << 40;
  if (affine.constant > kConstant || affine.constant < -kConstant) return true;
  for (const auto& t : affine.terms) {
    const Node& atom = m[t.atom].node;
    bool counts = std::holds_alternative<Slot>(atom) || std::holds_alternative<ParamRef>(atom);
    if (!counts || t.coef > kMultiple || t.coef < -kMultiple) return true;
  }
  return false;
}

bool in_bounds(Module& m, const Access& access, const Facts& facts) {
  for (size_t k = 0; k < access.at.size(); ++k) {
    if (!proves_in_bounds(m, access.at[k], m[access.family].coords[k].extent, facts)) return false;
  }
  return true;
}

std::optional<int64_t> shift_amount(const Module& m, const Apply& shift) {
  if (auto by = const_int(m, shift.args[1])) return by;
  const auto* cast = get_if<Apply>(m, shift.args[1]);  // literals of narrow types are casts
  if (!cast || cast->op != Op::Cast || !is_int(m[cast->args[0]].type)) return std::nullopt;
  auto by = const_int(m, cast->args[0]);
  return by ? std::optional(wrap_to(m[shift.args[1]].type, *by)) : std::nullopt;
}

bool succeeds(Module& m, const Apply& apply, const Facts& facts) {
  if (apply.op == Op::Shl || apply.op == Op::Shr) return shifts(m, apply, facts);
  if (apply.op != Op::Div && apply.op != Op::Mod) return true;
  DType type = m[apply.args[1]].type;
  if (!is_int(type)) return true;
  if (auto by = const_int(m, apply.args[1])) return *by != 0;
  if (type != DType::I64) return false;
  ExprId zero = int_lit(m, 0);
  return proves_lt(m, zero, apply.args[1], facts) || proves_lt(m, apply.args[1], zero, facts);
}

}  // namespace ein::core
