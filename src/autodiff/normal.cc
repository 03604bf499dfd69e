#include "autodiff/normal.h"

#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "core/build.h"
#include "core/normal.h"
#include "core/rewrite.h"

namespace ein::autodiff {

using namespace core;

namespace {

class Normaliser {
 public:
  // Hoists every reduction below the root and, when given, the nodes in `also`.
  Normaliser(Module& m, FamilyId id, std::set<ExprId> also = {})
      : m_(m), base_(text(m[id].name)), also_(std::move(also)) {}

  // What holds where an expression stands.
  struct Place {
    Facts facts;
    std::vector<Symbol> names;
    ExprId cond;  // invalid: evaluated unconditionally
  };

  ExprId body(ExprId e, const Place& place) {
    const Expr expr = m_[e];
    if (const auto* r = std::get_if<Reduce>(&expr.node)) return inside(*r, expr, place);
    return visit(e, place);
  }

 private:
  ExprId visit(ExprId e, const Place& place) {
    Key key{e, place.cond, place.facts.slots.size(), {}};
    note_ranges(m_, e, place.facts.slots, std::get<3>(key));
    note_ranges(m_, place.cond, place.facts.slots, std::get<3>(key));
    if (auto it = memo_.find(key); it != memo_.end()) return it->second;
    const Expr expr = m_[e];
    ExprId out;
    if (const auto* r = std::get_if<Reduce>(&expr.node)) {
      out = apart(inside(*r, expr, place), place, expr.span);
    } else if (also_.contains(e)) {
      out = apart(e, place, expr.span);
    } else if (const auto* a = std::get_if<Apply>(&expr.node);
               a && (a->op == Op::Select || a->op == Op::And || a->op == Op::Or)) {
      ExprId cond = visit(a->args[0], place);
      std::vector<ExprId> args{cond};
      bool first = a->op != Op::Or;  // whether args[1] is evaluated when cond holds
      args.push_back(visit(a->args[1], under(place, first ? cond : negate(m_, cond))));
      if (a->op == Op::Select) args.push_back(visit(a->args[2], under(place, negate(m_, cond))));
      out = apply(m_, a->op, std::move(args), expr.span);
    } else if (const auto* f = get_if<Apply>(m_, e); f && f->op == Op::Factor) {
      out = e;  // its operands stay where they are: cells, not numbers
    } else {
      out = map_children(m_, e, [&](ExprId child) { return visit(child, place); });
    }
    memo_[std::move(key)] = out;
    return out;
  }

  ExprId apart(ExprId e, const Place& place, Span span) {
    ExprId read = hoist(m_, base_, e, place.cond, place.facts, place.names, span);
    return read ? read : e;
  }

  Place under(const Place& place, ExprId cond) {
    Place out = place;
    assume(m_, cond, out.facts);
    out.cond = both(m_, place.cond, cond);
    return out;
  }

  // The reduction with its parts in normal form (ranges are left alone).
  ExprId inside(const Reduce& r, const Expr& expr, const Place& place) {
    bool nests = r.op == ReduceOp::Max || r.op == ReduceOp::Min || r.op == ReduceOp::Prod;
    if (nests && r.over.size() > 1) {
      Reduce inner = r, outer = r;  // binders are numbered in order, so no slot moves
      inner.first = r.first + 1;
      inner.over.erase(inner.over.begin());
      inner.names.erase(inner.names.begin());
      outer.over.resize(1);
      outer.names.resize(1);
      outer.gate = {};
      outer.body = reduce(m_, inner, expr.span);
      return inside(outer, expr, place);
    }
    Place within = place;
    enter(m_, r, within.facts);
    within.names.resize(r.first);
    within.names.insert(within.names.end(), r.names.begin(), r.names.end());
    Reduce out = r;
    if (out.gate) {
      out.gate = visit(out.gate, within);
      within = under(within, out.gate);
    }
    for (Route& route : out.routes) route.to = visit(route.to, within);
    out.body = visit(out.body, within);
    return reduce(m_, std::move(out), expr.span);
  }

  Module& m_;
  std::string base_;
  std::set<ExprId> also_;
  // What replaces an expression: under a condition, at a depth, for the ranges of the slots there.
  using Key = std::tuple<ExprId, ExprId, size_t, std::vector<ExprId>>;
  std::map<Key, ExprId> memo_;
};

void normalise(Module& m, FamilyId id, size_t index, std::set<ExprId> also) {
  const Clause clause = m[id].clauses[index];
  Normaliser n(m, id, std::move(also));
  ExprId body = n.body(clause.body, {clause_facts(m, clause), coordinate_names(m[id]), {}});
  m.families[id].clauses[index].body = body;
}

// Operations whose slope takes work to compute.
bool has_costly_slope(Op op) {
  switch (op) {
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
    case Op::Neg:
    case Op::Select:
    case Op::Cast:
    case Op::Min:
    case Op::Max: return false;
    default: return true;
  }
}

// The topmost operands of costly operations below which at least two active reads lie.
class SharedSlopes {
 public:
  SharedSlopes(const Module& m, const Active& active) : m_(m), active_(active) {}

  std::set<ExprId> found;

  void visit(ExprId e, bool below_costly) {
    if (!seen_.insert({e, below_costly}).second) return;
    const auto* a = get_if<Apply>(m_, e);
    if (!a) return;
    if (below_costly && is_float(m_[e].type) && active_reads(e) >= 2) {
      found.insert(e);
      return;
    }
    OpClass cls = info(a->op).cls;
    if (cls == OpClass::Compare || cls == OpClass::Logic || cls == OpClass::Rule) return;
    for (size_t k = a->op == Op::Select ? 1 : 0; k < a->args.size(); ++k) {
      visit(a->args[k], below_costly || has_costly_slope(a->op));
    }
  }

 private:
  size_t active_reads(ExprId e) {
    size_t n = 0;
    for_each_value_read(m_, e, Mode::Value,
                        [&](ExprId read, Mode mode) { n += active_(read, mode); });
    return n;
  }

  const Module& m_;
  const Active& active_;
  std::set<std::pair<ExprId, bool>> seen_;
};

}  // namespace

void to_normal_form(Module& m, FamilyId id) {
  for (size_t c = 0; c < m[id].clauses.size(); ++c) normalise(m, id, c, {});
}

std::vector<FamilyId> split_shared_slopes(Module& m, FamilyId id, const Active& active) {
  auto before = static_cast<uint32_t>(m.families.size());
  for (size_t c = 0; c < m[id].clauses.size(); ++c) {
    ExprId body = m[id].clauses[c].body;
    SharedSlopes shared(m, active);
    const auto* r = get_if<Reduce>(m, body);
    shared.visit(r ? r->body : body, false);
    if (!shared.found.empty()) normalise(m, id, c, std::move(shared.found));
  }
  std::vector<FamilyId> made;
  for (uint32_t i = before; i < m.families.size(); ++i) made.push_back(FamilyId(i));
  return made;
}

}  // namespace ein::autodiff
