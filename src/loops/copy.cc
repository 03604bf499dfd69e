#include "loops/copy.h"

#include "loops/walk.h"

namespace ein::loops {

ExprId Copier::expr(ExprId e, const Renaming& by) {
  Expr x = p.exprs[e];
  if (const auto* get = std::get_if<Get>(&x.node)) {
    auto it = by.find(get->var);
    return it == by.end() ? e : it->second;
  }
  bool changed = false;
  auto all = [&](std::vector<ExprId>& es) {
    for (ExprId& c : es) {
      ExprId now = expr(c, by);
      changed |= now != c;
      c = now;
    }
  };
  if (auto* n = std::get_if<Apply>(&x.node)) all(n->args);
  if (auto* n = std::get_if<Overflows>(&x.node)) all(n->args);
  if (auto* n = std::get_if<Load>(&x.node)) all(n->at);
  if (changed) e = p.exprs.add(std::move(x));
  return replace ? replace(e) : e;
}

VarId Copier::fresh(VarId v, Renaming& by) {
  VarId now = p.vars.add(p.vars[v]);
  by[v] = p.exprs.add({Get{now}, p.vars[v].type});
  return now;
}

VarId Copier::now_called(VarId v, const Renaming& by) const {
  auto it = by.find(v);
  return it == by.end() ? v : std::get<Get>(p.exprs[it->second].node).var;
}

Block Copier::block(const Block& from, Renaming by) {
  Block out = from;
  for (Stmt& s : out) {
    for_each_expr(s, [&](ExprId& e) { e = expr(e, by); });
    if (auto* n = std::get_if<Let>(&s.node)) n->var = fresh(n->var, by);
    if (auto* n = std::get_if<Declare>(&s.node)) n->var = fresh(n->var, by);
    if (auto* n = std::get_if<Invoke>(&s.node)) n->var = fresh(n->var, by);
    if (auto* n = std::get_if<Assign>(&s.node)) n->var = now_called(n->var, by);
    if (auto* n = std::get_if<Fold>(&s.node)) {
      n->acc = now_called(n->acc, by);
      if (n->arg.valid()) n->arg = now_called(n->arg, by);
    }
    if (auto* n = std::get_if<Loop>(&s.node)) {
      for (VarId& v : n->folds) v = now_called(v, by);
      n->var = fresh(n->var, by);
    }
    if (auto* n = std::get_if<Launch>(&s.node)) n->index = fresh(n->index, by);
    if (auto* n = std::get_if<Combine>(&s.node)) n->acc = now_called(n->acc, by);
    for_each_block(s, [&](Block& b) { b = block(b, by); });
  }
  return out;
}

Block Copier::at(const Loop& loop, int64_t i) {
  return block(loop.body, {{loop.var, p.exprs.add({IntConst{i}, DType::I64})}});
}

}  // namespace ein::loops
