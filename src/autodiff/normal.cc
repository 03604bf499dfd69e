#include "autodiff/normal.h"

#include <map>
#include <tuple>

#include "core/build.h"
#include "core/normal.h"
#include "core/rewrite.h"

namespace ein::autodiff {

using namespace core;

namespace {

class Normaliser {
 public:
  Normaliser(Module& m, FamilyId id) : m_(m), base_(text(m[id].name)) {}

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
    auto key = std::tuple{e, place.cond, place.facts.slots.size()};
    if (auto it = memo_.find(key); it != memo_.end()) return it->second;
    const Expr expr = m_[e];
    ExprId out;
    if (const auto* r = std::get_if<Reduce>(&expr.node)) {
      ExprId whole = inside(*r, expr, place);
      ExprId read = hoist(m_, base_, whole, place.cond, place.facts, place.names, expr.span);
      out = read ? read : whole;
    } else if (const auto* a = std::get_if<Apply>(&expr.node);
               a && (a->op == Op::Select || a->op == Op::And || a->op == Op::Or)) {
      ExprId cond = visit(a->args[0], place);
      std::vector<ExprId> args{cond};
      bool first = a->op != Op::Or;  // whether args[1] is evaluated when cond holds
      args.push_back(visit(a->args[1], under(place, first ? cond : negate(m_, cond))));
      if (a->op == Op::Select) args.push_back(visit(a->args[2], under(place, negate(m_, cond))));
      out = apply(m_, a->op, std::move(args), expr.span);
    } else {
      out = map_children(m_, e, [&](ExprId child) { return visit(child, place); });
    }
    memo_[key] = out;
    return out;
  }

  Place under(const Place& place, ExprId cond) {
    Place out = place;
    assume(m_, cond, out.facts);
    out.cond = both(m_, place.cond, cond);
    return out;
  }

  // The reduction with its parts in normal form (ranges are left alone).
  ExprId inside(const Reduce& r, const Expr& expr, const Place& place) {
    if ((r.op == ReduceOp::Max || r.op == ReduceOp::Min) && r.over.size() > 1) {
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
  std::map<std::tuple<ExprId, ExprId, size_t>, ExprId> memo_;
};

}  // namespace

void to_normal_form(Module& m, FamilyId id) {
  for (size_t c = 0; c < m[id].clauses.size(); ++c) {
    const Clause clause = m[id].clauses[c];
    Normaliser n(m, id);
    ExprId body = n.body(clause.body, {clause_facts(m, clause), coordinate_names(m[id]), {}});
    m.families[id].clauses[c].body = body;
  }
}

}  // namespace ein::autodiff
