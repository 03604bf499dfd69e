#include "core/prove.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/rewrite.h"

namespace ein::core {
namespace {

// How many facts may be combined, and how many case splits made, in one proof.
constexpr int kEffort = 6;
// How many combinations of conditions are told apart in one clause.
constexpr size_t kMaxContexts = 256;

AffineForm plus(const AffineForm& a, const AffineForm& b, int64_t scale = 1) {
  AffineForm out{{}, a.constant + scale * b.constant};
  out.terms.reserve(a.terms.size() + b.terms.size());
  auto add = [&](ExprId atom, int64_t coef) {
    if (coef != 0) out.terms.push_back({atom, coef});
  };
  auto i = a.terms.begin();
  auto j = b.terms.begin();
  while (i != a.terms.end() || j != b.terms.end()) {
    if (j == b.terms.end() || (i != a.terms.end() && i->atom < j->atom)) {
      add(i->atom, i->coef);
      ++i;
    } else if (i == a.terms.end() || j->atom < i->atom) {
      add(j->atom, scale * j->coef);
      ++j;
    } else {
      add(i->atom, i->coef + scale * j->coef);
      ++i;
      ++j;
    }
  }
  return out;
}

AffineForm scaled(const AffineForm& a, int64_t by) { return plus({}, a, by); }

// `form` with `value` in place of `atom`.
AffineForm replaced(const AffineForm& form, ExprId atom, const AffineForm& value) {
  int64_t c = coefficient(form, atom);
  AffineForm out = form;
  std::erase_if(out.terms, [&](const Affine::Term& t) { return t.atom == atom; });
  return plus(out, value, c);
}

bool small(const AffineForm& f) {
  constexpr int64_t limit = int64_t{1} << 40;  // keeps every product below far from overflow
  if (std::abs(f.constant) > limit) return false;
  return std::all_of(f.terms.begin(), f.terms.end(),
                     [](const Affine::Term& t) { return std::abs(t.coef) < limit; });
}

class Prover {
 public:
  Prover(Module& m, const Facts& facts) : m_(m), facts_(facts) {}

  bool nonnegative(const AffineForm& form, int effort) {
    if (!small(form)) return false;
    if (form.constant >= 0 && std::all_of(form.terms.begin(), form.terms.end(), [&](const auto& t) {
          return t.coef > 0 && never_negative(t.atom, effort);
        })) {
      return true;
    }
    if (form.terms.empty() || effort <= 0) return false;
    return by_fact(form, effort) || by_slot(form, effort) || by_case(form, effort);
  }

 private:
  // form = λ·fact + rest with rest ≥ 0. λ is chosen so that one negative term disappears.
  bool by_fact(const AffineForm& form, int effort) {
    for (const auto& t : form.terms) {
      for (const AffineForm& fact : facts_.nonnegative) {
        if (with_fact(form, t, fact, effort)) return true;
      }
      if (!facts_.entry) continue;
      auto about = facts_.entry->by_atom.find(t.atom);
      if (about == facts_.entry->by_atom.end()) continue;
      for (uint32_t k : about->second) {
        if (with_fact(form, t, facts_.entry->nonnegative[k], effort)) return true;
      }
    }
    return false;
  }

  bool with_fact(const AffineForm& form, const Affine::Term& t, const AffineForm& fact,
                 int effort) {
    int64_t c = coefficient(fact, t.atom);
    if (t.coef < 0) {
      if (c >= 0 || t.coef % c != 0) return false;
      return nonnegative(plus(form, fact, -(t.coef / c)), effort - 2);
    }
    // A constant that is too small may also be lifted by a fact with the same positive term.
    return form.constant < 0 && fact.constant < 0 && c == t.coef &&
           nonnegative(plus(form, fact, -1), effort - 2);
  }

  // Replaces the deepest slot by the end of its range that makes the form smallest.
  bool by_slot(const AffineForm& form, int effort) {
    ExprId deepest;
    uint32_t number = 0;
    for (const auto& t : form.terms) {
      uint32_t n = slot_of(m_, t.atom);
      if (n != ~0u && (!deepest || n > number)) {
        deepest = t.atom;
        number = n;
      }
    }
    if (!deepest || number >= facts_.slots.size()) return false;
    const Range& range = facts_.slots[number];
    if (!range.lo || !range.hi) return false;
    bool low = coefficient(form, deepest) > 0;
    AffineForm end = affine_form(m_, low ? range.lo : range.hi);
    if (!low) end.constant -= 1;
    return nonnegative(replaced(form, deepest, end), effort);
  }

  // min, max, / and % by a constant, and products.
  bool by_case(const AffineForm& form, int effort) {
    for (const auto& t : form.terms) {
      const auto* a = get_if<Apply>(m_, t.atom);
      if (!a) continue;
      if (a->op == Op::Min || a->op == Op::Max) {
        AffineForm x = replaced(form, t.atom, affine_form(m_, a->args[0]));
        AffineForm y = replaced(form, t.atom, affine_form(m_, a->args[1]));
        // The form's least value takes the smaller candidate when it adds +min or −max (both must
        // hold); it is above either candidate when it adds −min or +max (one suffices).
        bool need_both = (a->op == Op::Min) == (t.coef > 0);
        if (need_both) return nonnegative(x, effort - 1) && nonnegative(y, effort - 1);
        if (nonnegative(x, effort - 1) || nonnegative(y, effort - 1)) return true;
        continue;  // another min or max may cancel against this one
      }
      if (a->op == Op::BitAnd) {  // between 0 and whichever operand is not negative
        bool found = false;
        for (ExprId x : a->args) {
          AffineForm most = affine_form(m_, x);
          if (!nonnegative(most, effort - 1)) continue;
          AffineForm end = t.coef > 0 ? AffineForm{} : most;
          found = found || nonnegative(replaced(form, t.atom, end), effort - 1);
        }
        if (found) return true;
        continue;
      }
      if (a->op != Op::Div && a->op != Op::Mod && a->op != Op::Shr) continue;
      auto by = const_int(m_, a->args[1]);
      if (a->op == Op::Shr && by) by = *by >= 0 && *by <= 20 ? int64_t{1} << *by : 0;
      if (!by || *by <= 0 || *by > 1 << 20) continue;
      AffineForm top = affine_form(m_, a->args[0]);
      if (!nonnegative(top, effort - 1)) continue;
      if (a->op == Op::Mod) {  // in 0..by
        AffineForm end{{}, t.coef > 0 ? 0 : *by - 1};
        return nonnegative(replaced(form, t.atom, end), effort - 1);
      }
      // by·(x / by) lies between x − (by − 1) and x.
      if (t.coef > 0) top.constant -= *by - 1;
      AffineForm rest = form;
      std::erase_if(rest.terms, [&](const auto& u) { return u.atom == t.atom; });
      return nonnegative(plus(scaled(rest, *by), top, t.coef), effort - 1);
    }
    return false;
  }

  bool never_negative(ExprId atom, int effort) {
    if (get_if<ParamRef>(m_, atom)) return true;
    if (effort <= 0) return false;
    const auto* a = get_if<Apply>(m_, atom);
    if (!a) return false;
    auto arg = [&](size_t i) { return nonnegative(affine_form(m_, a->args[i]), effort - 1); };
    switch (a->op) {
      case Op::Mul:
      case Op::Min:
      case Op::Div: return arg(0) && arg(1);
      case Op::Max: return arg(0) || arg(1);
      case Op::BitLength: return true;
      case Op::BitOr:
      case Op::BitXor: return arg(0) && arg(1);
      case Op::BitAnd: return arg(0) || arg(1);
      case Op::Shr:
      case Op::Mod: return arg(0);
      default: return false;
    }
  }

  Module& m_;
  const Facts& facts_;
};

// An integer as the index form it converts to. (The arena only grows, so a `const` module may still
// get a node there that it does not have yet.)
AffineForm index_form(const Module& m, ExprId e) {
  if (m[e].type == DType::I64) return affine_form(m, e);
  if (const auto* lit = get_if<IntLit>(m, e)) return {{}, lit->value};
  ExprId cast = m.arena->intern(Apply{Op::Cast, {e}}, DType::I64, m[e].span, m[e].free);
  return {{{cast, 1}}, 0};
}

// `cond` as forms that are ≥ 0 (two for Eq); none for other conditions.
std::vector<AffineForm> as_nonnegative(const Module& m, ExprId cond) {
  const auto* a = get_if<Apply>(m, cond);
  if (!a || a->args.size() != 2 || !is_int(m[a->args[0]].type)) return {};
  AffineForm x = index_form(m, a->args[0]), y = index_form(m, a->args[1]);
  AffineForm x_y = plus(x, y, -1), y_x = plus(y, x, -1);
  auto strict = [](AffineForm f) {
    f.constant -= 1;
    return f;
  };
  switch (a->op) {
    case Op::Lt: return {strict(y_x)};
    case Op::Le: return {y_x};
    case Op::Gt: return {strict(x_y)};
    case Op::Ge: return {x_y};
    case Op::Eq: return {x_y, y_x};
    default: return {};
  }
}

}  // namespace

std::shared_ptr<const EntryFacts> entry_facts(const Module& m) {
  const Constraints& constraints = m.constraints;
  if (constraints.empty()) return nullptr;
  std::shared_ptr<EntryFacts>& known = constraints.facts;
  if (!known) known = std::make_shared<EntryFacts>();
  for (; known->constraints < constraints.size(); ++known->constraints) {
    Facts more;
    assume(m, constraints[known->constraints].cond, more);
    known->holds.insert(more.holds.begin(), more.holds.end());
    for (AffineForm& f : more.nonzero) known->nonzero.push_back(std::move(f));
    for (AffineForm& f : more.nonnegative) {
      auto position = static_cast<uint32_t>(known->nonnegative.size());
      for (const auto& t : f.terms) known->by_atom[t.atom].push_back(position);
      known->nonnegative.push_back(std::move(f));
    }
  }
  return known;
}

Facts clause_facts(const Module& m, const Clause& clause) {
  Facts facts;
  facts.entry = entry_facts(m);
  facts.slots = clause.box;
  return facts;
}

void enter(const Module&, const Reduce& r, Facts& facts) {
  facts.slots.resize(r.first);
  facts.slots.insert(facts.slots.end(), r.over.begin(), r.over.end());
}

bool knows_enough(const Facts& facts) {
  constexpr size_t kMaxConditions = 256;
  return facts.guarded && facts.holds.size() >= kMaxConditions;
}

void assume(const Module& m, ExprId cond, Facts& facts) {
  if (!cond || knows_enough(facts)) return;
  std::vector<ExprId> parts;
  conjuncts(m, cond, parts);
  facts.guarded = true;
  for (ExprId part : parts) {
    facts.holds.push_back(part);
    for (AffineForm& f : as_nonnegative(m, part)) facts.nonnegative.push_back(std::move(f));
    if (const auto* a = get_if<Apply>(m, part);
        a && a->op == Op::Ne && is_int(m[a->args[0]].type)) {
      facts.nonzero.push_back(plus(index_form(m, a->args[0]), index_form(m, a->args[1]), -1));
    }
  }
}

bool proves_nonnegative(Module& m, const AffineForm& form, const Facts& facts) {
  bool entry = facts.entry && !facts.entry->nonzero.empty();
  if (facts.nonzero.empty() && !entry) return Prover(m, facts).nonnegative(form, kEffort);
  // t ≥ 0 and t ≠ 0 give t ≥ 1: the else arm of `if t == 0`.
  Facts more = facts;
  auto strengthen = [&](const AffineForm& f) {
    for (int64_t sign : {1, -1}) {
      AffineForm side = scaled(f, sign);
      if (!Prover(m, facts).nonnegative(side, kEffort)) continue;
      side.constant -= 1;
      more.nonnegative.push_back(std::move(side));
    }
  };
  for (const AffineForm& f : facts.nonzero) strengthen(f);
  if (entry) {
    for (const AffineForm& f : facts.entry->nonzero) strengthen(f);
  }
  return Prover(m, more).nonnegative(form, kEffort);
}

bool proves_le(Module& m, ExprId a, ExprId b, const Facts& facts) {
  if (a == b) return true;
  if (auto x = const_int(m, a), y = const_int(m, b); x && y) return *x <= *y;
  return proves_nonnegative(m, plus(affine_form(m, b), affine_form(m, a), -1), facts);
}

bool proves_lt(Module& m, ExprId a, ExprId b, const Facts& facts) {
  if (auto x = const_int(m, a), y = const_int(m, b); x && y) return *x < *y;
  AffineForm d = plus(affine_form(m, b), affine_form(m, a), -1);
  d.constant -= 1;
  return proves_nonnegative(m, d, facts);
}

namespace {

bool given(ExprId cond, const Facts& facts) {
  return (facts.entry && facts.entry->holds.contains(cond)) ||
         std::find(facts.holds.begin(), facts.holds.end(), cond) != facts.holds.end();
}

}  // namespace

bool proves(Module& m, ExprId cond, const Facts& facts) {
  if (!cond) return true;
  std::vector<ExprId> parts;
  conjuncts(m, cond, parts);
  return std::all_of(parts.begin(), parts.end(), [&](ExprId part) {
    if (const auto* b = get_if<BoolLit>(m, part)) return b->value;
    if (given(part, facts)) return true;
    std::vector<AffineForm> forms = as_nonnegative(m, part);
    if (forms.empty()) return false;
    return std::all_of(forms.begin(), forms.end(),
                       [&](const AffineForm& f) { return proves_nonnegative(m, f, facts); });
  });
}

bool refutes(Module& m, ExprId cond, const Facts& facts) {
  if (!cond) return false;
  std::vector<ExprId> parts;
  conjuncts(m, cond, parts);
  return std::any_of(parts.begin(), parts.end(), [&](ExprId part) {
    if (const auto* b = get_if<BoolLit>(m, part)) return !b->value;
    ExprId opposite = negate(m, part);
    if (given(opposite, facts)) return true;
    for (const AffineForm& f : as_nonnegative(m, part)) {
      AffineForm below = scaled(f, -1);  // f ≤ −1
      below.constant -= 1;
      if (proves_nonnegative(m, below, facts)) return true;
    }
    return false;
  });
}

bool proves_unreachable(Module& m, const Facts& facts) {
  auto empty = [&](const Range& r) { return r.lo && r.hi && proves_le(m, r.hi, r.lo, facts); };
  auto is_zero = [&](const AffineForm& f) {
    Prover prover(m, facts);
    return prover.nonnegative(f, kEffort) && prover.nonnegative(scaled(f, -1), kEffort);
  };
  auto cannot_hold = [&](ExprId cond) { return refutes(m, cond, facts); };
  return std::any_of(facts.slots.begin(), facts.slots.end(), empty) ||
         std::any_of(facts.nonzero.begin(), facts.nonzero.end(), is_zero) ||
         std::any_of(facts.holds.begin(), facts.holds.end(), cannot_hold);
}

bool proves_in_bounds(Module& m, ExprId e, ExprId extent, const Facts& facts) {
  // The common case: an index that runs over the coordinate it stands on.
  if (uint32_t n = slot_of(m, e); n < facts.slots.size() && facts.slots[n].hi == extent) {
    if (auto lo = const_int(m, facts.slots[n].lo); lo && *lo >= 0) return true;
  }
  return proves_nonnegative(m, affine_form(m, e), facts) && proves_lt(m, e, extent, facts);
}

namespace {

// The upper (or lower) end of e's values over the slots in scope.
ExprId closed_end(Module& m, ExprId e, const Facts& facts, bool upper) {
  if (m[e].level() < 0) return reads_values(m, e) ? ExprId{} : e;
  if (const auto* s = get_if<Slot>(m, e)) {
    if (s->n >= facts.slots.size() || !facts.slots[s->n].lo) return {};
    Range r = facts.slots[s->n];
    return closed_end(m, upper ? sub(m, r.hi, int_lit(m, 1)) : r.lo, facts, upper);
  }
  if (const auto* a = get_if<Affine>(m, e)) {
    Affine form = *a;
    ExprId sum = int_lit(m, form.constant);
    for (const auto& t : form.terms) {
      ExprId end = closed_end(m, t.atom, facts, upper == (t.coef > 0));
      if (!end) return {};
      sum = add(m, sum, mul(m, int_lit(m, t.coef), end));
    }
    return sum;
  }
  if (const auto* a = get_if<Apply>(m, e)) {
    Apply f = *a;
    if (f.op == Op::Min || f.op == Op::Max) {
      ExprId x = closed_end(m, f.args[0], facts, upper);
      ExprId y = closed_end(m, f.args[1], facts, upper);
      return x && y ? apply(m, f.op, {x, y}) : ExprId{};
    }
    auto by = f.args.size() == 2 ? const_int(m, f.args[1]) : std::nullopt;
    if (by && *by > 0 && proves_nonnegative(m, affine_form(m, f.args[0]), facts)) {
      if (f.op == Op::Mod) return int_lit(m, upper ? *by - 1 : 0);
      if (f.op == Op::Div || f.op == Op::Shr) {
        ExprId x = closed_end(m, f.args[0], facts, upper);
        return x ? apply(m, f.op, {x, f.args[1]}) : ExprId{};
      }
    }
  }
  return {};
}

}  // namespace

ExprId has_cells(Module& m, const std::vector<Range>& over, const Facts& facts) {
  std::vector<ExprId> open;
  for (const Range& range : over) {
    if (!proves_lt(m, range.lo, range.hi, facts)) {
      open.push_back(apply(m, Op::Lt, {range.lo, range.hi}));
    }
  }
  return all_of(m, open);
}

ExprId closed_upper(Module& m, ExprId e, const Facts& facts) {
  return closed_end(m, e, facts, true);
}
ExprId closed_lower(Module& m, ExprId e, const Facts& facts) {
  return closed_end(m, e, facts, false);
}

namespace {

// The walk of for_each_with_facts. A context is a Facts value with a number; the same (parent,
// condition) gives the same number, so a shared node is visited once per context however many paths
// lead to it.
class Walk {
 public:
  Walk(Module& m, const std::function<bool(const Node&)>& wanted,
       const std::function<void(ExprId, const Facts&)>& f)
      : m_(m), wanted_(wanted), f_(f) {}

  void run(const Clause& clause) {
    contexts_.push_back(clause_facts(m_, clause));
    visit(clause.body, 0);
  }

 private:
  // Whether this is the first visit. Most clauses are small, and a table for each would cost
  // more than the walk.
  bool first_time(ExprId e, int context) {
    std::pair<ExprId, int> key{e, context};
    if (!many_.empty()) return many_.insert(key).second;
    if (std::find(few_.begin(), few_.end(), key) != few_.end()) return false;
    few_.push_back(key);
    if (few_.size() == 24) many_.insert(few_.begin(), few_.end());
    return true;
  }

  template <class F>
  int under(int parent, ExprId key, const F& change) {
    auto [it, fresh] = children_.try_emplace({parent, key}, static_cast<int>(contexts_.size()));
    if (fresh) {
      Facts facts = contexts_[static_cast<size_t>(parent)];
      change(facts);
      contexts_.push_back(std::move(facts));
    }
    return it->second;
  }

  int holding(int parent, ExprId cond) {
    // Selections nested in each other's shared arms have exponentially many contexts.
    // Past the limit nothing more is learned, except that some condition holds: knowing
    // less is always sound.
    if (contexts_.size() >= kMaxContexts)
      return under(parent, {}, [](Facts& facts) { facts.guarded = true; });
    return under(parent, cond, [&](Facts& facts) { assume(m_, cond, facts); });
  }

  void visit(ExprId e, int context) {
    if (!first_time(e, context)) return;
    const Node& node = m_[e].node;
    if (const auto* a = std::get_if<Apply>(&node)) {
      if (a->op == Op::Select || a->op == Op::And || a->op == Op::Or) {
        visit(a->args[0], context);
        ExprId no = negate(m_, a->args[0]);
        if (a->op == Op::Select) {
          visit(a->args[1], holding(context, a->args[0]));
          visit(a->args[2], holding(context, no));
        } else {
          visit(a->args[1], holding(context, a->op == Op::And ? a->args[0] : no));
        }
      } else {
        for (ExprId arg : a->args) visit(arg, context);
      }
    } else if (const auto* r = std::get_if<Reduce>(&node)) {
      for (const Range& range : r->over) {
        visit(range.lo, context);
        visit(range.hi, context);
      }
      int inside = under(context, e, [&](Facts& facts) { enter(m_, *r, facts); });
      if (r->gate) visit(r->gate, inside);
      int open = r->gate ? holding(inside, r->gate) : inside;
      for (const Route& route : r->routes) visit(route.to, open);
      // The body counts only at the address that the routes name.
      int routed = open;
      for (const Route& route : r->routes) {
        ExprId there = apply(m_, Op::Eq, {route.to, slot(m_, route.slot)});
        routed = under(routed, there, [&](Facts& facts) {
          for (AffineForm& f : as_nonnegative(m_, there)) facts.nonnegative.push_back(std::move(f));
        });
      }
      visit(r->body, routed);
    } else {
      for_each_child(m_, e, [&](ExprId child) { visit(child, context); });
    }
    if (wanted_(node)) f_(e, contexts_[static_cast<size_t>(context)]);
  }

  Module& m_;
  const std::function<bool(const Node&)>& wanted_;
  const std::function<void(ExprId, const Facts&)>& f_;
  std::vector<Facts> contexts_;
  std::map<std::pair<int, ExprId>, int> children_;
  std::vector<std::pair<ExprId, int>> few_;
  std::set<std::pair<ExprId, int>> many_;
};

}  // namespace

void for_each_with_facts(Module& m, const Clause& clause,
                         const std::function<bool(const Node&)>& wanted,
                         const std::function<void(ExprId, const Facts&)>& f) {
  Walk(m, wanted, f).run(clause);
}

}  // namespace ein::core
