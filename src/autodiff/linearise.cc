#include "autodiff/linearise.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "autodiff/custom.h"
#include "autodiff/functions.h"
#include "base/check.h"
#include "core/build.h"
#include "core/normal.h"
#include "core/rewrite.h"

namespace ein::autodiff {

using core::Access;
using core::Apply;
using core::DType;
using core::FamilyId;
using core::Op;
using core::Reduce;
using core::ReduceOp;

namespace {

// A node as it is read: the same expression may stand inside a rule and outside.
using ModeNode = std::pair<ExprId, Mode>;

// The operands through which a value, float, integer or boolean, reaches the result of a node. The
// condition of an `if` is control, not a value.
void value_children(const Module& m, ModeNode node, const std::function<void(ModeNode)>& f) {
  auto [e, mode] = node;
  if (const auto* a = core::get_if<Apply>(m, e)) {
    if (a->op == Op::Stop) return;
    if (a->op == Op::Rule) {
      if (mode == Mode::Value) f({a->args[1], Mode::Rule});
      return;
    }
    if (a->op == Op::Tangent) mode = Mode::Value;
    // An index that becomes a value is control, even where that value is read:
    // `k as f64` at a winner k.
    bool index = a->op == Op::Cast && m[a->args[0]].type == DType::I64 && is_float(m[e].type);
    if (index && !core::get_if<Access>(m, a->args[0]) && !is_rule(m, a->args[0])) return;
    for (size_t k = a->op == Op::Select ? 1 : 0; k < a->args.size(); ++k) f({a->args[k], mode});
  } else if (const auto* r = core::get_if<Reduce>(m, e)) {
    f({r->body, mode});
  } else if (const auto* n = core::get_if<core::Affine>(m, e)) {
    for (const auto& t : n->terms) f({t.atom, mode});
  } else if (const auto* c = core::get_if<core::Call>(m, e)) {
    for (ExprId arg : c->args) f({arg, mode});
  }
}

struct HashModeNode {
  size_t operator()(const ModeNode& n) const {
    return std::hash<ExprId>{}(n.first) ^ static_cast<size_t>(n.second);
  }
};

// `e`, from a scope of `slots` slots, moved below `binders` further binders: its own
// come after them.
ExprId below_binders(Module& m, ExprId e, size_t slots, size_t binders) {
  if (!e) return e;
  return core::substitute(m, e, std::vector<ExprId>(slots), static_cast<uint32_t>(slots + binders));
}

bool has_derivative(ReduceOp op) {
  return op == ReduceOp::Sum || op == ReduceOp::Prod || op == ReduceOp::Max || op == ReduceOp::Min;
}

// The product of all factors but one, written out: quadratically many multiplications.
ExprId factors_but_one(Module& m, const Reduce& r) {
  uint32_t other = r.first + 1;
  std::vector<ExprId> with(other);
  with[r.first] = core::slot(m, other);
  auto moved = [&](ExprId e) { return core::substitute(m, e, with, other + 1); };
  Reduce out = r;
  out.first = other;
  out.gate = core::apply(m, Op::Ne, {core::slot(m, other), core::slot(m, r.first)});
  if (r.gate) out.gate = core::both(m, out.gate, moved(r.gate));
  out.body = moved(r.body);
  return core::reduce(m, std::move(out), m[r.body].span);
}

// Reverse accumulation over one scalar expression, a DAG: the coefficient of every active read, per
// gate under which it is read.
class Accumulation {
 public:
  Accumulation(Module& m, ModeNode root, DType type, const Active& active)
      : m_(m), root_(root), type_(type), active_(active) {}

  std::vector<Term> terms;
  std::map<ExprId, Coef> of_parameter;  // in the body of a function, of the one that is active
  std::optional<NotDifferentiable> problem;

  void run() {
    order(root_);
    if (!live_[root_]) return;
    entries_[root_][ExprId{}] = Coef{};
    for (auto it = order_.rbegin(); it != order_.rend() && !problem; ++it) {
      if (live_[*it] && entries_.contains(*it)) push(*it);
    }
  }

 private:
  // Children first; a node is live when some active read lies below it.
  bool order(ModeNode n) {
    if (auto it = live_.find(n); it != live_.end()) return it->second;
    live_[n] = false;
    bool leaf = core::get_if<Access>(m_, n.first) || core::get_if<core::Arg>(m_, n.first);
    bool live = leaf && active_(n.first, n.second);
    value_children(m_, n, [&](ModeNode c) { live |= order(c); });
    live_[n] = live;
    order_.push_back(n);
    return live;
  }

  void push(ModeNode n) {
    auto [e, mode] = n;
    const core::Expr expr = m_[e];
    std::map<ExprId, Coef> entries = std::move(entries_[n]);
    if (const auto* a = std::get_if<Access>(&expr.node)) return read(e, *a, entries);
    if (std::holds_alternative<core::Arg>(expr.node)) {
      merge_arms(entries);
      of_parameter = std::move(entries);
      return;
    }
    if (const auto* c = std::get_if<core::Call>(&expr.node)) return call(*c, expr, mode, entries);
    const auto* a = std::get_if<Apply>(&expr.node);
    const auto* r = std::get_if<Reduce>(&expr.node);
    bool inside = r && r->routes.empty() && (r->op == ReduceOp::Sum || r->over.size() == 1);
    if (inside && has_derivative(r->op)) return inner_reduction(*r, mode, entries);
    if (!a) return fail(expr, "this expression", std::holds_alternative<Reduce>(expr.node));
    if (a->op == Op::Factor) return fail(expr, "a matrix function without a rule (`@fn`)");
    for (const auto& [gate, coef] : entries) {
      if (a->op == Op::Select) {
        give({a->args[1], mode}, core::both(m_, gate, a->args[0]), coef);
        give({a->args[2], mode}, core::both(m_, gate, core::negate(m_, a->args[0])), coef);
      } else if (a->op == Op::Cast) {
        // An integer has a tangent only by a rule (decisions.md, 26).
        if (!is_float(m_[a->args[0]].type) && !core::get_if<Access>(m_, a->args[0]) &&
            !is_rule(m_, a->args[0])) {
          return fail(expr, std::string("a conversion from an integer or boolean to ") +
                                name_of(expr.type));
        }
        give({a->args[0], mode}, gate, coef);
      } else if (a->op == Op::Rule) {
        give({a->args[1], Mode::Rule}, gate, coef);
      } else if (a->op == Op::Tangent) {
        give({a->args[0], Mode::Value}, gate, coef);
      } else {
        for (size_t k = 0; k < a->args.size(); ++k) {
          if (!live_[{a->args[k], mode}]) continue;
          Partial p = partial(m_, a->op, a->args, e, k);
          give({a->args[k], mode}, core::both(m_, gate, p.when), times(m_, coef, typed(p.coef)));
        }
      }
    }
  }

  // A reduction that is not a family of its own, because an index around it runs over data and has
  // no closed bound: its terms get its binders.
  void inner_reduction(const Reduce& r, Mode mode, const std::map<ExprId, Coef>& entries) {
    Accumulation inner(m_, {r.body, mode}, type_, active_);
    inner.run();
    if (inner.problem) problem = inner.problem;
    if (inner.terms.empty()) return;
    ExprId taken = r.gate;
    Coef others;
    if (r.op == ReduceOp::Prod) others = typed({.num = factors_but_one(m_, r)});
    if (r.op == ReduceOp::Max || r.op == ReduceOp::Min) taken = core::both(m_, taken, winner(r));
    for (const auto& [gate, coef] : entries) {
      for (const Term& t : inner.terms) {
        Term out = t;
        out.over.insert(out.over.begin(), r.over.begin(), r.over.end());
        out.names.insert(out.names.begin(), r.names.begin(), r.names.end());
        auto deeper = [&](ExprId e) { return below_binders(m_, e, r.first, out.over.size()); };
        auto own = [&](ExprId e) {
          return below_binders(m_, e, r.first + r.over.size(), t.over.size());
        };
        out.gate = core::both(m_, core::both(m_, deeper(gate), own(taken)), t.gate);
        Coef around{coef.zero, coef.scale, deeper(coef.num), deeper(coef.den)};
        Coef factor{others.zero, others.scale, own(others.num), own(others.den)};
        out.coef = times(m_, times(m_, around, factor), t.coef);
        terms.push_back(std::move(out));
      }
    }
  }

  // The condition that the binder is the one that wins.
  ExprId winner(const Reduce& r) {
    Reduce select = r;
    select.op = r.op == ReduceOp::Max ? ReduceOp::ArgMax : ReduceOp::ArgMin;
    ExprId arg = core::cast(m_, core::reduce(m_, select, m_[r.body].span), DType::I64);
    return core::apply(m_, Op::Eq,
                       {core::slot(m_, r.first), below_binders(m_, arg, r.first, r.over.size())});
  }

  void call(const core::Call& c, const core::Expr& expr, Mode mode,
            const std::map<ExprId, Coef>& entries) {
    for (size_t k = 0; k < c.args.size() && !problem; ++k) {
      if (!live_[{c.args[k], mode}]) continue;
      if (!is_float(m_[c.args[k]].type)) {
        problem = integer_argument(m_, c.function, k, expr.span);
        return;
      }
      Partial p = slope(m_, c, k, problem);
      for (const auto& [gate, coef] : entries) {
        give({c.args[k], mode}, core::both(m_, gate, p.when), times(m_, coef, typed(p.coef)));
      }
    }
  }

  // Below a cast the operands have another float type; coefficients all have the family's.
  Coef typed(Coef c) {
    if (c.num) c.num = core::cast(m_, c.num, type_);
    if (c.den) c.den = core::cast(m_, c.den, type_);
    return c;
  }

  void give(ModeNode n, ExprId gate, const Coef& coef) {
    if (coef.zero || !live_[n]) return;
    auto [it, fresh] = entries_[n].try_emplace(gate, coef);
    if (!fresh) it->second = plus(m_, it->second, coef, type_);
  }

  void read(ExprId e, const Access& a, std::map<ExprId, Coef> entries) {
    merge_arms(entries);
    for (const auto& [gate, coef] : entries) {
      terms.push_back({{}, {}, gate, coef, a.family, a.at, m_[e].span});
    }
  }

  // Read in both arms of one `if`: one term whose coefficient selects, instead of two gated ones.
  void merge_arms(std::map<ExprId, Coef>& entries) {
    for (bool again = true; again;) {
      again = false;
      for (auto i = entries.begin(); i != entries.end() && !again; ++i) {
        std::vector<ExprId> parts;
        core::conjuncts(m_, i->first, parts);
        if (parts.empty()) continue;
        ExprId last = parts.back();
        parts.back() = core::negate(m_, last);
        auto j = entries.find(core::all_of(m_, parts));
        if (j == entries.end() || j == i) continue;
        parts.pop_back();
        ExprId outer = core::all_of(m_, parts);
        // The arm whose condition is written without a negation comes first.
        const auto* n = core::get_if<Apply>(m_, last);
        bool swapped = n && n->op == Op::Not;
        auto yes = swapped ? j : i, no = swapped ? i : j;
        ExprId cond = swapped ? core::negate(m_, last) : last;
        Coef merged{.num = core::apply(
                        m_, Op::Select,
                        {cond, value(m_, yes->second, type_), value(m_, no->second, type_)})};
        ExprId first = i->first, second = j->first;
        entries.erase(first);
        entries.erase(second);
        auto [k, fresh] = entries.try_emplace(outer, merged);
        if (!fresh) k->second = plus(m_, k->second, merged, type_);
        again = true;
      }
    }
  }

  void fail(const core::Expr& expr, std::string what, bool limitation = false) {
    if (!problem) problem = NotDifferentiable{std::move(what), expr.span, limitation};
  }

  Module& m_;
  ModeNode root_;
  DType type_;
  const Active& active_;
  std::unordered_map<ModeNode, bool, HashModeNode> live_;
  std::vector<ModeNode> order_;
  std::unordered_map<ModeNode, std::map<ExprId, Coef>, HashModeNode> entries_;
};

bool has_active_read(const Module& m, ExprId body, Mode mode, const Active& active) {
  bool found = false;
  for_each_value_read(m, body, mode, [&](ExprId e, Mode how) { found |= active(e, how); });
  return found;
}

// What `body` is where `gate` holds: the arm that its conditions choose.
ExprId value_under(Module& m, ExprId body, ExprId gate) {
  std::vector<ExprId> known;
  core::conjuncts(m, gate, known);
  auto holds = [&](ExprId cond) {
    std::vector<ExprId> parts;
    core::conjuncts(m, cond, parts);
    return std::all_of(parts.begin(), parts.end(), [&](ExprId p) {
      return std::find(known.begin(), known.end(), p) != known.end();
    });
  };
  for (;;) {
    const auto* a = core::get_if<Apply>(m, body);
    if (!a || a->op != Op::Select) return body;
    Apply select = *a;
    if (holds(select.args[0])) {
      body = select.args[1];
    } else if (holds(core::negate(m, select.args[0]))) {
      body = select.args[2];
    } else {
      return body;
    }
  }
}

// Makes factors outside of the range zero. No product has them, but they may be infinite, as the
// maximum of nothing is, and then the adjoint of what they are computed from would be 0 · inf.
void limit_factors(Module& m, FamilyId factors, ExprId at, const core::Range& range) {
  core::Clause c = m[factors].clauses.back();
  if (core::get_if<Reduce>(m, c.body)) return;
  const core::Facts facts = core::clause_facts(m, c);
  std::vector<ExprId> inside;
  for (ExprId cond :
       {core::apply(m, Op::Ge, {at, range.lo}), core::apply(m, Op::Lt, {at, range.hi})}) {
    if (!core::proves(m, cond, facts)) inside.push_back(cond);
  }
  if (inside.empty()) return;
  ExprId zero = core::number(m, 0, m[c.body].type);
  c.body = core::apply(m, Op::Select, {core::all_of(m, inside), c.body, zero});
  m.families[factors].clauses.back() = std::move(c);
}

// The product of all factors but one, exact when factors are zero: exclusive prefix times exclusive
// suffix, each a recurrence over the binder.
ExprId other_factors(Module& m, FamilyId id, const core::Clause& clause, const Reduce& r) {
  core::Facts facts = core::clause_facts(m, clause);
  core::enter(m, r, facts);
  std::vector<Symbol> names = core::coordinate_names(m[id]);
  names.resize(r.first);
  names.push_back(r.names[0]);
  DType type = m[r.body].type;
  ExprId one = core::number(m, 1, type);
  ExprId factor = r.gate ? core::apply(m, Op::Select, {r.gate, r.body, one}) : r.body;
  // Both recurrences have the factor's coordinates, the binder last: it is the deepest slot.
  ExprId read = core::mentions_slot(m, factor, r.first)
                    ? core::hoist(m, text(m[id].name) + "_factor", factor, {}, facts, names,
                                  m[clause.body].span)
                    : ExprId{};
  if (!read) return factors_but_one(m, r);
  FamilyId factors = core::get_if<Access>(m, read)->family;
  const std::vector<ExprId> at = core::get_if<Access>(m, read)->at;
  uint64_t has = 0;
  for (ExprId e : at) has |= m[e].free;
  // The factors are the same for all ranges, but which of them are multiplied is not.
  if ((m[r.over[0].lo].free | m[r.over[0].hi].free) & ~has) return factors_but_one(m, r);
  auto last = static_cast<uint32_t>(at.size() - 1);
  // The range in the numbering of the factors, whose coordinate k is at[k] here.
  std::vector<ExprId> with(r.first + 1);
  for (uint32_t k = 0; k < at.size(); ++k) {
    for (uint32_t n = 0; n <= r.first; ++n) {
      if (!core::mentions_slot(m, at[k], n)) continue;
      // at[k] is slot n minus the start of the range.
      ExprId start = core::sub(m, core::slot(m, n), at[k]);
      with[n] = core::add(m, core::slot(m, k), start);
    }
  }
  auto put = [&](ExprId e) { return core::substitute(m, e, with, last + 1); };
  const core::Range range{put(r.over[0].lo), put(r.over[0].hi)};
  limit_factors(m, factors, with[r.first], range);
  auto running = [&](const char* suffix, int64_t step) {
    core::Family f = m[factors];
    f.name = core::fresh_name(m, text(m[id].name) + suffix);
    core::Clause c{{}, {}, m[clause.body].span};
    std::vector<ExprId> before;
    for (uint32_t k = 0; k <= last; ++k) {
      c.box.push_back({core::int_lit(m, 0), f.coords[k].extent});
      before.push_back(core::slot(m, k));
    }
    before[last] = core::add(m, before[last], core::int_lit(m, step));
    ExprId there = core::substitute_slot(m, with[r.first], last, before[last]);
    ExprId first = core::apply(m, Op::Ge, {there, range.lo});
    ExprId end = core::apply(m, Op::Lt, {there, range.hi});
    std::vector<ExprId> inside{step < 0 ? first : end};
    // A range that depends on other indices or on data may end beyond the cells that exist.
    ExprId cell = step < 0 ? core::apply(m, Op::Ge, {before[last], core::int_lit(m, 0)})
                           : core::apply(m, Op::Lt, {before[last], f.coords[last].extent});
    inside.insert(inside.begin(), cell);
    if (inside[0] == inside[1]) inside.pop_back();
    // Cells beyond the other end are never read, but their factors may be infinite (the maximum of
    // nothing), and the adjoint of such a cell would be 0 · inf.
    ExprId other = step < 0 ? end : first;
    core::Facts here = core::clause_facts(m, c);
    for (ExprId cond : inside) core::assume(m, cond, here);
    if (!core::proves(m, other, here)) inside.push_back(other);
    f.clauses.clear();
    FamilyId self = m.families.add(f);
    ExprId next = core::mul(m, core::access(m, self, before), core::access(m, factors, before));
    c.body = core::apply(m, Op::Select, {core::all_of(m, inside), next, one});
    m.families[self].clauses.push_back(std::move(c));
    return core::access(m, self, at);
  };
  return core::mul(m, running("_before", -1), running("_after", 1));
}

// The family of winners just made, or an equal one that an earlier derivative made.
ExprId same_winner(Module& m, ExprId read) {
  const Access made = *core::get_if<Access>(m, read);
  core::Family& f = m.families[made.family];
  f.winner = true;
  auto same = [&](const core::Clause& a, const core::Clause& b) {
    auto equal = [](const core::Range& x, const core::Range& y) {
      return x.lo == y.lo && x.hi == y.hi;
    };
    return a.body == b.body && std::equal(a.box.begin(), a.box.end(), b.box.begin(), equal);
  };
  for (uint32_t i = 0; i < made.family.v; ++i) {
    const core::Family& other = m[FamilyId(i)];
    if (other.winner && other.rank() == f.rank() &&
        std::equal(other.clauses.begin(), other.clauses.end(), f.clauses.begin(), f.clauses.end(),
                   same))
      return core::access(m, FamilyId(i), made.at, m[read].span);
  }
  return read;
}

Linear reduction_terms(Module& m, FamilyId id, const core::Clause& clause, const Reduce& r,
                       Mode mode, const Active& active) {
  Linear out;
  if (!has_derivative(r.op)) {
    if (has_active_read(m, r.body, mode, active)) {
      out.problem =
          NotDifferentiable{std::string("`") + core::name_of(r.op) + "`", m[clause.body].span};
    }
    return out;
  }
  Accumulation sweep(m, {r.body, mode}, m[r.body].type, active);
  sweep.run();
  out.problem = sweep.problem;
  if (sweep.terms.empty() || out.problem) return out;
  ExprId gate = r.gate;
  for (const core::Route& route : r.routes) {
    gate = core::both(m, gate, core::apply(m, Op::Eq, {route.to, core::slot(m, route.slot)}));
  }
  if (r.op == ReduceOp::Prod) {
    EIN_CHECK(r.over.size() == 1, "prod over several binders is split by the normal form");
    ExprId others = other_factors(m, id, clause, r);
    for (Term& t : sweep.terms) {
      ExprId there = below_binders(m, others, r.first + r.over.size(), t.over.size());
      t.coef = times(m, {.num = there}, t.coef);
    }
  } else if (r.op != ReduceOp::Sum) {
    // The tangent is the winner's: only the binder value that argmax names passes.
    EIN_CHECK(r.over.size() == 1, "max over several binders is split by the normal form");
    Reduce winner = r;
    winner.op = r.op == ReduceOp::Max ? ReduceOp::ArgMax : ReduceOp::ArgMin;
    ExprId arg = core::reduce(m, winner, m[clause.body].span);
    const core::Family family = m[id];
    ExprId read = core::hoist(m, text(family.name) + "_" + core::name_of(winner.op), arg, {},
                              core::clause_facts(m, clause), core::coordinate_names(family),
                              m[clause.body].span);
    EIN_CHECK(read.valid(), "argmax over a clause without closed bounds");
    read = same_winner(m, read);
    ExprId is_winner =
        core::apply(m, Op::Eq, {core::slot(m, r.first), core::cast(m, read, DType::I64)});
    gate = core::both(m, gate, is_winner);
  }
  for (Term& t : sweep.terms) {
    ExprId own = below_binders(m, gate, r.first + r.over.size(), t.over.size());
    t.over.insert(t.over.begin(), r.over.begin(), r.over.end());
    t.names.insert(t.names.begin(), r.names.begin(), r.names.end());
    t.gate = core::both(m, own, t.gate);
    out.terms.push_back(std::move(t));
  }
  return out;
}

}  // namespace

void for_each_value_read(const Module& m, ExprId body, Mode mode,
                         const std::function<void(ExprId, Mode)>& f) {
  std::unordered_map<ModeNode, bool, HashModeNode> seen;
  std::function<void(ModeNode)> visit = [&](ModeNode n) {
    if (seen[n]) return;
    seen[n] = true;
    if (core::get_if<Access>(m, n.first)) f(n.first, n.second);
    value_children(m, n, visit);
  };
  visit({body, mode});
}

Linear linearise(Module& m, FamilyId id, size_t index, Mode mode, const Active& active,
                 bool reuse) {
  const core::Clause clause = m[id].clauses[index];
  if (const auto* r = core::get_if<Reduce>(m, clause.body)) {
    Reduce copy = *r;
    return reduction_terms(m, id, clause, copy, mode, active);
  }
  Accumulation sweep(m, {clause.body, mode}, tangent_type(m, id), active);
  sweep.run();
  Linear out{std::move(sweep.terms), sweep.problem};
  if (!reuse) return out;
  // Where a coefficient needs the value of the whole body, that is the family itself.
  std::vector<ExprId> here;
  for (uint32_t k = 0; k < m[id].rank(); ++k) here.push_back(core::slot(m, k));
  for (Term& t : out.terms) {
    ExprId whole =
        value_under(m, is_rule(m, clause.body) ? rule_value(m, clause.body) : clause.body, t.gate);
    if (!core::get_if<Apply>(m, whole)) continue;
    ExprId self = core::access(m, id, here);
    auto by_name = [&](ExprId e) {
      return e ? core::rewrite(m, e, [&](ExprId x) { return x == whole ? self : x; }) : e;
    };
    t.coef.num = by_name(t.coef.num);
    t.coef.den = by_name(t.coef.den);
  }
  return out;
}

Linear linearise_cell(Module& m, FamilyId id, size_t cell, Mode mode, const Active& active) {
  Accumulation sweep(m, {m[id].cells[cell], mode}, m[id].dtype, active);
  sweep.run();
  return {std::move(sweep.terms), sweep.problem};
}

Slopes linearise_function(Module& m, core::FunctionId function, uint32_t k) {
  const Active active = [&](ExprId e, Mode mode) {
    const auto* arg = core::get_if<core::Arg>(m, e);
    return arg && arg->n == k && mode == Mode::Value;
  };
  const core::Function& f = m.functions[function];
  Accumulation sweep(m, {f.body, Mode::Value}, f.result, active);
  sweep.run();
  return {std::move(sweep.of_parameter), std::move(sweep.problem)};
}

}  // namespace ein::autodiff
