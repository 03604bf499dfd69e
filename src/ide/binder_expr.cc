// Expressions and types.
#include "base/match.h"
#include "ide/binder.h"
#include "sema/builtins.h"
#include "sema/names/trees.h"

namespace ein::ide {

const ast::Name* lone(const ast::Ast& ast, ast::ExprId e) {
  const auto* path = e ? std::get_if<ast::Path>(&ast[e].node) : nullptr;
  return path && path->parts.size() == 1 ? &path->parts[0] : nullptr;
}

Frame nested(Frame& f, size_t region) {
  Frame out;
  out.up = &f;
  out.family = f.family;
  out.region = region;
  return out;
}

// An index of an access: a name that nothing defines is a coordinate of the array (decisions.md,
// 1).
void Binder::slot(Frame& f, ast::ExprId id) {
  const ast::Name* name = lone(ast, id);
  if (!name) return expr(f, id);
  if (!use_value(f, *name, false)) use_coordinate(f, *name);
}

void Binder::index(Frame& f, const ast::Index& n) {
  const ast::Name* base = lone(ast, n.base);
  if (base) {
    use_value(f, *base, true);  // the array is never an index
  } else {
    expr(f, n.base);
  }
  for (ast::ExprId at : n.at) slot(f, at);
}

void Binder::comprehension(Frame& f, const ast::Comprehension& c, Span span) {
  Frame inside = nested(f, region(span));
  const bool filtered = !c.block;  // then each generator sees the ones before it
  for (const ast::Generator& g : c.generators) {
    expr(g.name.symbol && !filtered ? f : inside, g.value);
    if (!g.name.symbol) continue;
    bool range = g.value && std::holds_alternative<ast::Range>(ast[g.value].node);
    // The coordinates of the resulting array have no names, so this index meets no other.
    uint32_t id = entity(range ? Kind::Index : Kind::Local, g.name);
    define(inside, range ? inside.indices : inside.values, id);
    occurs(g.name.span, id, true);
  }
  expr(inside, c.body);
}

void Binder::pattern(Frame& f, ast::ExprId id) {
  if (!id) return;
  match(
      ast[id].node,
      [&](const ast::Path& n) {
        if (n.parts.size() != 1) return use_path(f, n.parts);
        if (text(n.parts[0].symbol) != "_") declare(f, f.values, Kind::Local, n.parts[0]);
      },
      [&](const ast::NamedPattern& n) {
        declare(f, f.values, Kind::Local, n.name);
        pattern(f, n.pattern);
      },
      [&](const ast::Tuple& n) {
        for (ast::ExprId e : n.items) pattern(f, e);
      },
      [&](const ast::Alternatives& n) {
        for (ast::ExprId e : n.items) pattern(f, e);
      },
      [](const auto&) {});
}

void Binder::match_arms(Frame& f, const ast::Match& n) {
  expr(f, n.subject);
  for (const ast::MatchArm& arm : n.arms) {
    Span from = arm.pattern ? ast[arm.pattern].span : Span{};
    Frame inside = nested(f, region(arm.body ? join(from, ast[arm.body].span) : from));
    pattern(inside, arm.pattern);
    expr(inside, arm.guard);
    expr(inside, arm.body);
  }
}

// An operand of a request, which is never an index.
void Binder::operand(Frame& f, ast::ExprId id) {
  const ast::Name* name = lone(ast, id);
  if (!name || !use_value(f, *name, true)) expr(f, id);
}

void Binder::expr(Frame& f, ast::ExprId id) {
  if (!id) return;
  Span span = ast[id].span;
  auto each = [&](const std::vector<ast::ExprId>& list) {
    for (ast::ExprId e : list) expr(f, e);
  };
  match(
      ast[id].node, [](const ast::IntLit&) {}, [](const ast::FloatLit&) {},
      [](const ast::BoolLit&) {},
      [&](const ast::StrLit& n) {
        for (const ast::StrPiece& p : n.pieces) expr(f, p.value);
      },
      [&](const ast::Path& n) {
        if (n.parts.size() > 1) return use_path(f, n.parts);
        if (!use_value(f, n.parts[0], false)) use_function(f, n.parts[0]);
      },
      [&](const ast::PackRef& n) { use_pack(f, n.name); },
      [&](const ast::Index& n) { index(f, n); }, [&](const ast::Call& n) { call(f, n, span); },
      [&](const ast::Unary& n) { expr(f, n.arg); },
      [&](const ast::Binary& n) {
        expr(f, n.lhs);
        expr(f, n.rhs);
      },
      [&](const ast::Cast& n) {
        expr(f, n.arg);
        type(f, n.type);
      },
      [&](const ast::Range& n) {
        expr(f, n.lo);
        expr(f, n.hi);
      },
      [&](const ast::If& n) {
        expr(f, n.cond);
        expr(f, n.then_block);
        expr(f, n.else_block);
      },
      [&](const ast::Block& n) { block(f, n, span); }, [&](const ast::Tuple& n) { each(n.items); },
      [&](const ast::Array& n) { each(n.items); },
      [&](const ast::Comprehension& n) { comprehension(f, n, span); },
      [&](const ast::Field& n) {
        expr(f, n.base);
        use_field(n.name, false);
      },
      [&](const ast::Record& n) {
        expr(f, n.base);
        for (const ast::RecordField& field : n.fields) {
          size_t before = out.occurrences.size();
          expr(f, field.value);
          bool both = out.occurrences.size() > before &&
                      out.occurrences.back().span == field.name.span;  // `{ a }` for `{ a: a }`
          if (both) out.occurrences.back().field = true;
          use_field(field.name, true);
        }
      },
      [&](const ast::Lambda& n) {
        Frame inside = nested(f, region(span));
        for (const ast::LambdaParam& p : n.params) {
          declare(inside, inside.values, Kind::Parameter, p.name);
          type(f, p.type);
        }
        expr(inside, n.body);
      },
      [](const ast::Alternatives&) {}, [](const ast::NamedPattern&) {},
      [&](const ast::Match& n) { match_arms(f, n); },
      [&](const ast::Where& n) { where(f, n, span); },
      [&](const ast::Request& n) {
        operand(f, n.num);
        operand(f, n.den);
      },
      [&](const ast::Error& n) { expr(f, n.kept); });
}

// A `const` that may be an integer can stand for an extent in a signature by its name.
bool Binder::fixes_extent(uint32_t id) const {
  const Entity& e = out.entities[id];
  const auto* c = e.stmt ? std::get_if<ast::Const>(&ast[e.stmt].node) : nullptr;
  if (!c) return false;
  bool integer = true;
  sema::for_each_tree(ast, c->value, [&](ast::ExprId x) {
    const ast::ExprNode& n = ast[x].node;
    integer &= !std::holds_alternative<ast::FloatLit>(n) && !std::holds_alternative<ast::Cast>(n) &&
               !std::holds_alternative<ast::BoolLit>(n) && !std::holds_alternative<ast::StrLit>(n);
  });
  return integer;
}

// A name in a type is a value, or an extent that the type declares.
void Binder::dim(Frame& f, ast::ExprId id) {
  const ast::Name* name = lone(ast, id);
  if (!name) {
    if (const auto* b = id ? std::get_if<ast::Binary>(&ast[id].node) : nullptr) {
      dim(f, b->lhs);
      return dim(f, b->rhs);
    }
    return expr(f, id);
  }
  Frame* home = &f;
  while (!home->scope && home->up) home = home->up;
  auto it = home->extents.find(name->symbol);
  bool own = home->function;  // whether the function's signature declares it
  if (own && it != home->extents.end()) return occurs(name->span, it->second);
  const uint32_t* known = find_value(*home, name->symbol, true);
  if (known && (!own || in_result || fixes_extent(*known))) {
    Kind kind = out.entities[*known].kind;
    bool value = kind != Kind::Extent && kind != Kind::Coordinate && kind != Kind::Index;
    if (value) dimensions.insert({*known, {f.family, name->symbol}});
    return occurs(name->span, *known);
  }
  if (it != home->extents.end()) return occurs(name->span, it->second);
  declare(*home, home->extents, Kind::Extent, *name);
}

void Binder::type(Frame& f, ast::TypeId id) {
  if (!id) return;
  match(
      ast[id].node,
      [&](const ast::NamedType& n) {
        if (const uint32_t* known = find(f, n.name.symbol, &Frame::types, &Frame::glob_types)) {
          occurs(n.name.span, *known);
        }
      },
      [&](const ast::TensorType& n) {
        type(f, n.elem);
        for (const ast::Dim& d : n.dims) {
          if (d.kind == ast::Dim::Kind::Extent) dim(f, d.extent);
          if (d.kind == ast::Dim::Kind::Pack) use_pack(f, d.name);
        }
      },
      [&](const ast::TupleType& n) {
        for (ast::TypeId item : n.items) type(f, item);
        for (const ast::Name& name : n.names) use_field(name, true);
      },
      [&](const ast::FnType& n) {
        for (ast::TypeId p : n.params) type(f, p);
        type(f, n.result);
      },
      [](const ast::ErrorType&) {});
}

}  // namespace ein::ide
