#include "core/solve_gates.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "core/build.h"
#include "core/normal.h"
#include "core/prove.h"
#include "core/rewrite.h"
#include "core/total.h"

namespace ein::core {
namespace {

// ---- one reduction -----------------------------------------------------------------------------

struct Work {
  Reduce r;
  std::vector<ExprId> gates;  // conjuncts of r.gate
  size_t guards = 0;          // how many in front are ranges of eliminated binders
};

void drop_gate(Work& w, size_t gate) {
  w.gates.erase(w.gates.begin() + static_cast<ptrdiff_t>(gate));
  if (gate < w.guards) --w.guards;
}

// The range of a binder as conditions.
std::vector<ExprId> within(Module& m, ExprId binder, const Range& range) {
  if (const_int(m, sub(m, range.hi, range.lo)) == 1) {
    return {apply(m, Op::Eq, {binder, range.lo})};
  }
  return {apply(m, Op::Ge, {binder, range.lo}), apply(m, Op::Lt, {binder, range.hi})};
}

// Puts the conditions that hold for binder p, its range among them, into the gates, before p is
// replaced by `by` because of the equality that stood at `gate`. They go before the user's
// conditions, which may rely on them, and before the guards that mention p, but after the guards of
// binders eliminated earlier, which `by` may rely on. If `by` may fail it may also rely on the
// conditions before the equality, so those that do not mention p go first.
void guard(Module& m, Work& w, size_t gate, size_t p, ExprId by,
           const std::vector<ExprId>& conditions) {
  uint32_t self = w.r.first + static_cast<uint32_t>(p);
  auto stays = [&](ExprId x) { return !mentions_slot(m, x, self); };
  auto guards_end = w.gates.begin() + static_cast<ptrdiff_t>(w.guards);
  if (gate > w.guards && may_fail(m, by)) {
    auto kept = static_cast<size_t>(std::count_if(w.gates.begin(), guards_end, stays));
    auto before = w.gates.begin() + static_cast<ptrdiff_t>(gate);
    auto at = std::stable_partition(w.gates.begin(), before, stays);
    w.gates.insert(at, conditions.begin(), conditions.end());
    w.guards = kept;  // what comes after the user's conditions is not a guard
    return;
  }
  auto at = std::find_if_not(w.gates.begin(), guards_end, stays);
  w.gates.insert(at, conditions.begin(), conditions.end());
  w.guards += conditions.size();
}

// An end of binder k's range into which the value of an eliminated binder was put. It must not be
// evaluated where the guards of that binder fail, so it is selected under them. Guards that mention
// later binders cannot be used here, nor those with reductions (their binders are numbered for the
// body), nor guards after such a one, which may rely on it.
ExprId guarded_end(Module& m, const Work& w, size_t k, ExprId end, const Facts& facts) {
  Facts here = facts;
  here.slots.resize(w.r.first);
  auto later = w.r.over.begin() + static_cast<ptrdiff_t>(k);
  here.slots.insert(here.slots.end(), w.r.over.begin(), later);
  std::vector<ExprId> needed;
  bool all_known = true;
  for (ExprId g : w.gates) {
    bool known = m[g].level() < static_cast<int32_t>(w.r.first + k) && !has_reduce(m, g);
    all_known &= known;
    if (!known || proves(m, g, here)) continue;
    if (!all_known && !total(m, g, here, Overflow::Wraps)) continue;
    needed.push_back(g);
    assume(m, g, here);
  }
  ExprId cond = all_of(m, needed);
  return cond ? apply(m, Op::Select, {cond, end, int_lit(m, 0)}) : end;
}

// Removes binder `p` and puts `by` in its place. `by` is written in the old numbering and does not
// mention p.
void replace_binder(Module& m, Work& w, size_t p, ExprId by, const Facts& facts) {
  uint32_t first = w.r.first, self = first + static_cast<uint32_t>(p);
  auto n = static_cast<uint32_t>(w.r.over.size());
  std::vector<ExprId> with(first + n);
  uint32_t next = first;
  for (uint32_t k = 0; k < n; ++k) {
    if (k != p) with[first + k] = slot(m, next++);
  }
  with[self] = slot(m, self);  // `by` does not mention it
  ExprId moved = substitute(m, by, with, first + n);
  with[self] = moved;
  auto put = [&](ExprId e) { return e ? substitute(m, e, with, first + n - 1) : e; };
  w.r.over.erase(w.r.over.begin() + static_cast<ptrdiff_t>(p));
  w.r.names.erase(w.r.names.begin() + static_cast<ptrdiff_t>(p));
  for (Route& r : w.r.routes) r.to = put(r.to);
  for (ExprId& g : w.gates) g = put(g);
  for (size_t k = 0; k < w.r.over.size(); ++k) {
    for (ExprId* end : {&w.r.over[k].lo, &w.r.over[k].hi}) {
      bool relies = mentions_slot(m, *end, self) && may_fail(m, *end);
      *end = put(*end);
      if (relies) *end = guarded_end(m, w, k, *end, facts);
    }
  }
  w.r.body = put(w.r.body);
}

// Whether binder p may become `by`: ranges of other binders that depend on p must stay evaluable
// before the binders `by` mentions.
bool may_replace(const Module& m, const Work& w, size_t p, ExprId by) {
  uint32_t self = w.r.first + static_cast<uint32_t>(p);
  if (mentions_slot(m, by, self)) return false;
  size_t last_used = 0;  // one past the last binder that `by` mentions
  for (size_t k = 0; k < w.r.over.size(); ++k) {
    if (mentions_slot(m, by, w.r.first + static_cast<uint32_t>(k))) last_used = k + 1;
  }
  for (size_t k = 0; k < w.r.over.size(); ++k) {
    bool depends = mentions_slot(m, w.r.over[k].lo, self) || mentions_slot(m, w.r.over[k].hi, self);
    if (depends && k < last_used) return false;
  }
  return true;
}

AffineForm without(const AffineForm& f, ExprId atom) {
  AffineForm out = f;
  std::erase_if(out.terms, [&](const Affine::Term& t) { return t.atom == atom; });
  return out;
}

ExprId scaled(Module& m, const AffineForm& f, int64_t by) {
  return mul(m, int_lit(m, by), from_form(m, f));
}

// coef·binder + rest == 0 with |coef| == 1: binder := −rest / coef.
bool eliminate_unit(Module& m, Work& w, size_t gate, size_t p, const AffineForm& form,
                    const Facts& facts) {
  ExprId self = slot(m, w.r.first + static_cast<uint32_t>(p));
  int64_t c = coefficient(form, self);
  ExprId by = scaled(m, without(form, self), -c);
  if (!may_replace(m, w, p, by)) return false;
  drop_gate(w, gate);
  guard(m, w, gate, p, by, within(m, self, w.r.over[p]));
  replace_binder(m, w, p, by, facts);
  return true;
}

// s·x + rest == 0 with |s| > 1. Let e be ∓rest, so that s·x == e. If e = e0 − q for another binder
// q, then q runs over one residue class of s: it becomes s·q' + e0 % s, so that every visited cell
// satisfies the equality. If q has at most s values, as e has in the address 64·h + e of a head's
// cell, it is a digit of e0, and both binders are known: x = e0 / s and q = e0 % s.
bool eliminate_residue(Module& m, Work& w, size_t gate, size_t p, const AffineForm& form,
                       const Facts& facts) {
  ExprId self = slot(m, w.r.first + static_cast<uint32_t>(p));
  int64_t c = coefficient(form, self);
  int64_t s = std::abs(c);
  AffineForm e = affine_form(m, scaled(m, without(form, self), c > 0 ? -1 : 1));  // s·x == e
  for (size_t k = 0; k < w.r.over.size(); ++k) {
    if (k == p) continue;
    ExprId partner = slot(m, w.r.first + static_cast<uint32_t>(k));
    // e = e0 − partner (the case that arises from s·x + q == ih), and partner starts at 0.
    if (coefficient(e, partner) != -1 || const_int(m, w.r.over[k].lo) != 0) continue;
    AffineForm e0_form = without(e, partner);
    ExprId e0 = from_form(m, e0_form);
    if (mentions_slot(m, e0, w.r.first + static_cast<uint32_t>(k))) continue;
    // e0's binders must be bound before the partner: its new range mentions e0 % s.
    bool ordered = true;
    for (size_t j = k; j < w.r.over.size(); ++j) {
      ordered &= !mentions_slot(m, e0, w.r.first + static_cast<uint32_t>(j));
    }
    Facts here = facts;
    enter(m, w.r, here);
    const auto values = const_int(m, w.r.over[k].hi), least = const_int(m, w.r.over[p].lo);
    const bool digit = values && *values <= s && least && *least >= 0;
    const bool nonnegative = proves_nonnegative(m, e0_form, here);
    if (mentions_slot(m, e0, w.r.first + static_cast<uint32_t>(p)) || (!ordered && !digit) ||
        (!nonnegative && !digit)) {
      continue;
    }
    bool used_in_range = false;  // a range that depends on either binder would change meaning
    for (const Range& r : w.r.over) {
      for (ExprId x : {self, partner}) {
        uint32_t n = slot_of(m, x);
        used_in_range |= mentions_slot(m, r.lo, n) || mentions_slot(m, r.hi, n);
      }
    }
    if (used_in_range) continue;
    // partner = s·q + e0 % s for q in 0..(hi − e0 % s + s − 1) / s; then x = e0 / s − q. Of a
    // digit, q is 0 alone.
    ExprId step = int_lit(m, s);
    ExprId residue = apply(m, Op::Mod, {e0, step});
    ExprId hi = w.r.over[k].hi;
    ExprId count = apply(m, Op::Div, {add(m, sub(m, hi, residue), int_lit(m, s - 1)), step});
    ExprId by = sub(m, apply(m, Op::Div, {e0, step}), partner);
    if (digit) {
      count = int_lit(m, 1);
      by = apply(m, Op::Div, {e0, step});
    }
    std::vector<ExprId> conditions = within(m, self, w.r.over[p]);
    if (digit) {
      // The range of x in terms of e0, without a division, so that others can use it as a bound.
      // If x >= 0, the equality implies e0 >= 0.
      const Range range = w.r.over[p];
      conditions = {apply(m, Op::Ge, {e0, mul(m, step, range.lo)}),
                    apply(m, Op::Lt, {e0, mul(m, step, range.hi)})};
      if (*values < s) conditions.push_back(apply(m, Op::Lt, {residue, hi}));
    }
    if (!may_replace(m, w, p, by)) continue;
    // First re-index the partner in everything but its own range, then replace x.
    uint32_t n = slot_of(m, partner);
    auto reindex = [&](ExprId x) {
      ExprId value = digit ? residue : add(m, mul(m, step, partner), residue);
      return x ? substitute_slot(m, x, n, value) : x;
    };
    drop_gate(w, gate);
    for (ExprId& g : w.gates) g = reindex(g);
    for (Route& r : w.r.routes) r.to = reindex(r.to);
    w.r.body = reindex(w.r.body);
    w.r.over[k] = {int_lit(m, 0), count};
    guard(m, w, gate, p, by, conditions);
    replace_binder(m, w, p, by, facts);
    return true;
  }
  return false;
}

// s·x == e with no partner: x := e / s where e % s == 0.
bool eliminate_divisible(Module& m, Work& w, size_t gate, size_t p, const AffineForm& form,
                         const Facts& facts) {
  ExprId self = slot(m, w.r.first + static_cast<uint32_t>(p));
  int64_t c = coefficient(form, self);
  ExprId step = int_lit(m, std::abs(c));
  ExprId e = scaled(m, without(form, self), c > 0 ? -1 : 1);
  ExprId by = apply(m, Op::Div, {e, step});
  if (!may_replace(m, w, p, by)) return false;
  drop_gate(w, gate);
  std::vector<ExprId> conditions = within(m, self, w.r.over[p]);
  conditions.insert(conditions.begin(),
                    apply(m, Op::Eq, {apply(m, Op::Mod, {e, step}), int_lit(m, 0)}));
  guard(m, w, gate, p, by, conditions);
  replace_binder(m, w, p, by, facts);
  return true;
}

// The equality `gate` of i64 values as a form that is zero where it holds. Equalities with
// reductions are not moved: at another depth their binders would need other numbers.
std::optional<AffineForm> equality(Module& m, ExprId gate) {
  const auto* a = get_if<Apply>(m, gate);
  if (!a || a->op != Op::Eq || m[a->args[0]].type != DType::I64) return std::nullopt;
  if (has_reduce(m, gate)) return std::nullopt;
  return affine_form(m, sub(m, a->args[0], a->args[1]));
}

// The binder's only occurrence in the form is as an atom of its own.
bool plain(const Module& m, const AffineForm& form, uint32_t binder) {
  return std::all_of(form.terms.begin(), form.terms.end(), [&](const Affine::Term& t) {
    return slot_of(m, t.atom) == binder || !mentions_slot(m, t.atom, binder);
  });
}

int64_t slot_coefficient(const Module& m, const AffineForm& form, uint32_t n) {
  for (const Affine::Term& t : form.terms) {
    if (slot_of(m, t.atom) == n) return t.coef;
  }
  return 0;
}

// Whether an equality over binders can be a route to coordinate r.
bool is_route(const Module& m, const Work& w, const AffineForm& form, uint32_t r) {
  if (w.r.op != ReduceOp::Sum || std::abs(slot_coefficient(m, form, r)) != 1 || !plain(m, form, r))
    return false;
  auto mentions = [&](const Range& x) {
    return mentions_slot(m, x.lo, r) || mentions_slot(m, x.hi, r);
  };
  bool taken = std::any_of(w.r.routes.begin(), w.r.routes.end(),
                           [&](const Route& x) { return x.slot == r; });
  bool bound = std::any_of(form.terms.begin(), form.terms.end(), [&](const Affine::Term& t) {
    return m[t.atom].level() >= static_cast<int32_t>(w.r.first);
  });
  return bound && !taken && std::none_of(w.r.over.begin(), w.r.over.end(), mentions);
}

// Whether the range of binder p is data that depends on other binders, as in
// `sum[i, k in row[i]..row[i + 1]]`. The data says which few k belong to an i; asking every i
// whether a k belongs to it is another order of work. So where an equality leads such a
// binder to a coordinate, it becomes a route. Binders that an equality determines do not
// count: they leave the sum.
bool range_is_data(Module& m, const Work& w, size_t p) {
  uint64_t given = 0;  // binders
  for (ExprId gate : w.gates) {
    auto form = equality(m, gate);
    for (uint32_t k = 0; form && k < w.r.over.size(); ++k) {
      uint32_t binder = w.r.first + k;
      if (k != p && std::abs(slot_coefficient(m, *form, binder)) == 1 && plain(m, *form, binder))
        given |= uint64_t{1} << binder;
    }
  }
  auto depends = [&](ExprId e) {
    uint64_t stay = m[e].free & ~given;
    return may_fail(m, e) && stay >> w.r.first != 0;
  };
  return depends(w.r.over[p].lo) || depends(w.r.over[p].hi);
}

bool eliminate(Module& m, Work& w, uint32_t rank, const Facts& facts) {
  // Their result is the binder, so it has to stay.
  if (w.r.op == ReduceOp::ArgMax || w.r.op == ReduceOp::ArgMin) return false;
  if (w.r.op == ReduceOp::Collect) return false;
  for (size_t g = 0; g < w.gates.size(); ++g) {
    auto form = equality(m, w.gates[g]);
    if (!form) continue;
    for (size_t p = 0; p < w.r.over.size(); ++p) {
      uint32_t binder = w.r.first + static_cast<uint32_t>(p);
      int64_t c = coefficient(*form, slot(m, binder));
      if (c == 0 || !plain(m, *form, binder)) continue;
      if (range_is_data(m, w, p)) {
        bool routed = false;
        for (uint32_t r = 0; r < rank; ++r) routed |= is_route(m, w, *form, r);
        if (routed) continue;
      }
      if (std::abs(c) == 1 ? eliminate_unit(m, w, g, p, *form, facts)
                           : eliminate_residue(m, w, g, p, *form, facts) ||
                                 eliminate_divisible(m, w, g, p, *form, facts)) {
        return true;
      }
    }
  }
  return false;
}

// e == r, for a coordinate r of the family and e over binders, becomes a route.
// Inside, r becomes e.
bool add_route(Module& m, Work& w, uint32_t rank, const Facts& facts) {
  for (size_t g = 0; g < w.gates.size(); ++g) {
    auto form = equality(m, w.gates[g]);
    if (!form) continue;
    for (uint32_t r = 0; r < rank; ++r) {
      if (!is_route(m, w, *form, r)) continue;
      ExprId self = slot(m, r);
      ExprId to = scaled(m, without(*form, self), -coefficient(*form, self));
      drop_gate(w, g);
      // What mentions r will mention `to`, which is within r's range only once that is checked.
      // `to` in turn may rely on conditions before the equality that do not mention r.
      auto uses = [&](ExprId x) { return mentions_slot(m, x, r); };
      bool any = uses(w.r.body) || std::any_of(w.gates.begin(), w.gates.end(), uses);
      auto guards_end = w.gates.begin() + static_cast<ptrdiff_t>(w.guards);
      auto kept = static_cast<size_t>(
          std::count_if(w.gates.begin(), guards_end, [&](ExprId x) { return !uses(x); }));
      auto before = w.gates.begin() + static_cast<ptrdiff_t>(std::max(g, w.guards));
      auto at = std::stable_partition(w.gates.begin(), before, [&](ExprId x) { return !uses(x); });
      if (g > w.guards) {  // what comes after the user's conditions is not a guard
        w.guards = kept;
      } else if (any) {
        w.guards += 2;
      }
      if (any) {
        std::vector<ExprId> range{apply(m, Op::Ge, {self, facts.slots[r].lo}),
                                  apply(m, Op::Lt, {self, facts.slots[r].hi})};
        w.gates.insert(at, range.begin(), range.end());
      }
      auto inside = [&](ExprId e) { return e ? substitute_slot(m, e, r, to) : e; };
      // The level of `to` is a binder of this reduction; reductions inside the body bind above it.
      for (ExprId& x : w.gates) x = inside(x);
      for (Route& x : w.r.routes) x.to = inside(x.to);
      w.r.body = inside(w.r.body);
      w.r.routes.push_back({r, to});
      std::sort(w.r.routes.begin(), w.r.routes.end(),
                [](const Route& a, const Route& b) { return a.slot < b.slot; });
      return true;
    }
  }
  return false;
}

// Drops guards that the ranges in scope imply, such as those of a binder replaced by a coordinate.
void drop_proven_guards(Module& m, Work& w, const Facts& facts) {
  Facts here = facts;
  enter(m, w.r, here);
  for (size_t g = 0; g < w.guards;) {
    if (!proves(m, w.gates[g], here)) {
      ++g;
      continue;
    }
    drop_gate(w, g);
  }
}

// Replaces a binder whose range has exactly one value.
bool collapse(Module& m, Work& w, const Facts& facts) {
  if (w.r.op == ReduceOp::ArgMax || w.r.op == ReduceOp::ArgMin) return false;
  if (w.r.op == ReduceOp::Collect) return false;
  // A gated max over one cell would become a select with an infinite literal; it stays a max.
  if ((w.r.op == ReduceOp::Max || w.r.op == ReduceOp::Min) && !w.gates.empty()) return false;
  for (size_t p = 0; p < w.r.over.size(); ++p) {
    const Range& range = w.r.over[p];
    if (const_int(m, sub(m, range.hi, range.lo)) == 1 && may_replace(m, w, p, range.lo)) {
      replace_binder(m, w, p, range.lo, facts);
      return true;
    }
  }
  return false;
}

// ---- the walk ----------------------------------------------------------------------------------

class Solver {
 public:
  Solver(Module& m, uint32_t rank) : m_(m), rank_(rank) {}

  ExprId solve(ExprId e, const Facts& facts, int context) {
    auto [it, fresh] = memo_.try_emplace({e, context}, ExprId{});
    if (!fresh) return it->second;
    ExprId out = visit(e, facts, context);
    memo_[{e, context}] = out;
    return out;
  }

 private:
  ExprId visit(ExprId e, const Facts& facts, int context) {
    const Expr& expr = m_[e];
    if (const auto* a = std::get_if<Apply>(&expr.node); a && a->op == Op::Select) {
      ExprId cond = simplify_gate(solve(a->args[0], facts, context), facts);
      if (!cond) return solve(a->args[1], facts, context);
      if (refutes(m_, cond, facts)) return solve(a->args[2], facts, context);
      ExprId yes = under(cond, a->args[1], facts, context);
      ExprId no = under(negate(m_, cond), a->args[2], facts, context);
      return apply(m_, Op::Select, {cond, yes, no}, expr.span);
    }
    if (const auto* r = std::get_if<Reduce>(&expr.node)) return reduction(*r, expr, facts, context);
    return map_children(m_, e, [&](ExprId child) { return solve(child, facts, context); });
  }

  ExprId under(ExprId cond, ExprId e, const Facts& facts, int context) {
    if (knows_enough(facts)) return solve(e, facts, context);
    Facts inner = facts;
    assume(m_, cond, inner);
    return solve(e, inner, number(context, cond));
  }

  int number(int parent, ExprId key) {
    return contexts_.try_emplace({parent, key}, static_cast<int>(contexts_.size()) + 1)
        .first->second;
  }

  // Drops the conjuncts that the facts (and earlier conjuncts) imply; invalid when none is left.
  ExprId simplify_gate(ExprId gate, const Facts& facts) {
    std::vector<ExprId> parts, kept;
    conjuncts(m_, gate, parts);
    if (parts.size() == 1) return proves(m_, gate, facts) ? ExprId{} : gate;
    Facts known = facts;
    for (ExprId part : parts) {
      if (proves(m_, part, known)) continue;
      assume(m_, part, known);
      kept.push_back(part);
    }
    return all_of(m_, kept);
  }

  ExprId reduction(const Reduce& in, const Expr& expr, const Facts& facts, int context) {
    Work w{in, {}, 0};
    for (Range& r : w.r.over) r = {solve(r.lo, facts, context), solve(r.hi, facts, context)};
    conjuncts(m_, w.r.gate, w.gates);
    do {
      drop_proven_guards(m_, w, facts);
      // Equalities come before ranges of one value: the only step of a recurrence is then still
      // called `t` where it is known to be `t`, and a read there is seen to be at that step.
    } while (eliminate(m_, w, rank_, facts) || collapse(m_, w, facts) ||
             add_route(m_, w, rank_, facts));
    w.r.gate = all_of(m_, w.gates);
    Facts inner = facts;
    for (const Range& r : w.r.over) {
      if (const auto n = const_int(m_, sub(m_, r.hi, r.lo)); n && *n <= 0) {
        return identity(m_, w.r.op, expr.type);
      }
    }
    if (w.r.over.empty()) {
      // Everything was solved: what is left is a gated value.
      return solve(reduce(m_, w.r, expr.span), facts, context);
    }
    enter(m_, w.r, inner);
    ExprId key = reduce(m_, w.r, expr.span);
    int inside = number(context, key);
    if (w.r.gate) {
      w.r.gate = simplify_gate(solve(w.r.gate, inner, inside), inner);
      if (w.r.gate && refutes(m_, w.r.gate, inner)) return identity(m_, w.r.op, expr.type);
    }
    Facts open = inner;
    int open_context = inside;
    if (w.r.gate) {
      assume(m_, w.r.gate, open);
      open_context = number(inside, w.r.gate);
    }
    for (Route& r : w.r.routes) r.to = solve(r.to, open, open_context);
    w.r.body = solve(w.r.body, open, open_context);
    return reduce(m_, w.r, expr.span);
  }

  Module& m_;
  uint32_t rank_;
  std::map<std::pair<ExprId, int>, ExprId> memo_;
  std::map<std::pair<int, ExprId>, int> contexts_;
};

}  // namespace

namespace {

// There is nothing to solve in a reduction without a gate that runs over whole symbolic extents.
bool is_plain(const Module& m, const Reduce& r) {
  if (r.gate || !r.routes.empty()) return false;
  return std::all_of(r.over.begin(), r.over.end(), [&](const Range& range) {
    return const_int(m, range.lo) == 0 && get_if<ParamRef>(m, range.hi);
  });
}

bool has_gates(const Module& m, ExprId e) {
  bool found = false;
  for_each_node(m, e, [&](ExprId x) {
    if (const auto* a = get_if<Apply>(m, x)) found |= a->op == Op::Select;
    if (const auto* r = get_if<Reduce>(m, x)) found |= !is_plain(m, *r);
  });
  return found;
}

}  // namespace

void solve_gates(Module& m, FamilyId id) {
  uint32_t rank = m[id].rank();
  for (Clause& c : m.families[id].clauses) {
    if (!has_gates(m, c.body)) continue;
    c.body = Solver(m, rank).solve(c.body, clause_facts(m, c), 0);
  }
}

void solve_gates(Module& m) {
  isolate_range_ends(m);
  for (uint32_t i = 0; i < m.families.size(); ++i) solve_gates(m, FamilyId(i));
}

}  // namespace ein::core
