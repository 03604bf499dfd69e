#include "syntax/graft.h"

#include "base/match.h"

namespace ein::ast {
namespace {

// Moves the ids and places of a node, in place, to where they are in the other tree.
struct Mover {
  FileId file;
  uint32_t exprs, types, stmts;  // how many the other tree had before

  void move(ExprId& id) const {
    if (id) id.v += exprs;
  }
  void move(TypeId& id) const {
    if (id) id.v += types;
  }
  void move(StmtId& id) const {
    if (id) id.v += stmts;
  }
  void move(Span& span) const {
    if (span.valid()) span.file = file;
  }
  template <class T>
  void move(std::vector<T>& all) const {
    for (T& one : all) move(one);
  }
  template <class T>
  void move(std::optional<T>& one) const {
    if (one) move(*one);
  }
  template <class... T>
  void all(T&... parts) const {
    (move(parts), ...);
  }

  void move(Name& n) const { move(n.span); }
  void move(StrPiece& p) const { move(p.value); }
  void move(Bracket& b) const { all(b.name, b.range, b.group, b.span); }
  void move(RecordField& f) const { all(f.name, f.value); }
  void move(Generator& g) const { all(g.name, g.value); }
  void move(LambdaParam& p) const { all(p.name, p.type); }
  void move(MatchArm& arm) const { all(arm.pattern, arm.guard, arm.body); }
  void move(WhereItem& w) const { all(w.bind, w.value); }
  void move(Dim& d) const { all(d.extent, d.name, d.span); }
  void move(Slot& s) const { all(s.name, s.range, s.at, s.span); }
  void move(FnCoord& c) const { move(c.name); }
  void move(Param& p) const { all(p.name, p.type, p.value); }
  void move(UseItem& u) const { all(u.name, u.alias); }
  void move(Attribute& a) const { all(a.name, a.args, a.span); }

  void move(Expr& e) const {
    move(e.span);
    match(
        e.node, [](IntLit&) {}, [](FloatLit&) {}, [](BoolLit&) {},
        [&](StrLit& n) { move(n.pieces); }, [&](Path& n) { move(n.parts); },
        [&](PackRef& n) { move(n.name); }, [&](Index& n) { all(n.base, n.at); },
        [&](Call& n) { all(n.callee, n.brackets, n.args, n.names); },
        [&](Unary& n) { move(n.arg); }, [&](Binary& n) { all(n.lhs, n.rhs, n.op_span); },
        [&](Cast& n) { all(n.arg, n.type); }, [&](Range& n) { all(n.lo, n.hi); },
        [&](If& n) { all(n.cond, n.then_block, n.else_block); },
        [&](Block& n) { all(n.stmts, n.value); }, [&](Tuple& n) { move(n.items); },
        [&](Array& n) { move(n.items); },
        [&](Comprehension& n) { all(n.body, n.generators, n.block); },
        [&](Field& n) { all(n.base, n.name); }, [&](Record& n) { all(n.base, n.fields); },
        [&](Lambda& n) { all(n.params, n.body); }, [&](Alternatives& n) { move(n.items); },
        [&](NamedPattern& n) { all(n.name, n.pattern); }, [&](Match& n) { all(n.subject, n.arms); },
        [&](Where& n) { all(n.body, n.items, n.otherwise, n.where_span); },
        [&](Request& n) { all(n.num, n.den); }, [&](Error& n) { move(n.kept); });
  }
  void move(Type& t) const {
    move(t.span);
    match(
        t.node, [&](NamedType& n) { move(n.name); }, [&](TensorType& n) { all(n.elem, n.dims); },
        [&](TupleType& n) { all(n.items, n.names, n.members); },
        [&](FnType& n) { all(n.params, n.result); }, [](ErrorType&) {});
  }
  void move(Stmt& s) const {
    all(s.span, s.attributes);
    match(
        s.node, [&](Let& n) { all(n.names, n.slots, n.type, n.value, n.until); },
        [&](Const& n) { all(n.name, n.type, n.value); },
        [&](Fn& n) { all(n.name, n.coords, n.params, n.result, n.body, n.signature); },
        [&](Use& n) { all(n.path, n.items, n.alias); }, [&](Mod& n) { move(n.name); },
        [&](TypeDef& n) { all(n.name, n.type); }, [&](ExprStmt& n) { move(n.value); },
        [&](Test& n) { move(n.body); }, [&](ErrorStmt& n) { move(n.kept); });
  }

  template <class IdType, class T>
  void add(Store<IdType, T>& to, const Store<IdType, T>& from) const {
    for (T node : from) {
      move(node);
      to.add(std::move(node));
    }
  }
};

}  // namespace

std::vector<StmtId> graft(Ast& to, const Ast& from, FileId file) {
  Mover mover{file, static_cast<uint32_t>(to.exprs.size()), static_cast<uint32_t>(to.types.size()),
              static_cast<uint32_t>(to.stmts.size())};
  mover.add(to.exprs, from.exprs);
  mover.add(to.types, from.types);
  mover.add(to.stmts, from.stmts);
  for (ExprId id : from.parenthesised) {
    mover.move(id);
    to.parenthesised.insert(id);
  }
  to.complete &= from.complete;
  std::vector<StmtId> items = from.items;
  mover.move(items);
  return items;
}

}  // namespace ein::ast
