// Expressions and types.
#include <set>
#include <utility>

#include "base/match.h"
#include "ide/binder.h"
#include "sema/builtins.h"
#include "sema/names/trees.h"

namespace ein::ide {
namespace {

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

}  // namespace

// In a slot of an access: a name that nothing defines is a coordinate of the value around
// (decisions.md, 1).
void Binder::slot(Frame& f, ast::ExprId id) {
  const ast::Name* name = lone(ast, id);
  if (!name) return expr(f, id);
  if (!use_value(f, *name, false)) use_coordinate(f, *name);
}

void Binder::index(Frame& f, const ast::Index& n) {
  const ast::Name* base = lone(ast, n.base);
  if (base) {
    use_value(f, *base, true);  // never an index
  } else {
    expr(f, n.base);
  }
  for (ast::ExprId at : n.at) slot(f, at);
}

void Binder::call(Frame& f, const ast::Call& c, Span span) {
  bool reduction = false;
  const ast::Name* callee = lone(ast, c.callee);
  if (callee) {
    bool value = false;
    for (Frame* at = &f; at && !value; at = at->up) {  // a function that is a value
      if (at->functions.count(callee->symbol)) break;
      auto it = at->values.find(callee->symbol);
      if (it == at->values.end()) continue;
      value = !sema::is_builtin(callee->symbol) || is_function(*at, it->second);
      if (value) occurs(callee->span, it->second);
    }
    if (!value) {
      reduction = !find(f, callee->symbol, &Frame::functions, &Frame::glob_functions) &&
                  sema::reduction_named(callee->symbol);
      use_function(f, *callee);
    }
  } else {
    expr(f, c.callee);
  }
  argument_names(c);
  if (callee && shape_of_name(f, c)) return;
  if (c.brackets.empty()) {
    for (ast::ExprId a : c.args) expr(f, a);
    return;
  }
  Frame inside = nested(f, region(span));
  Kind kind = reduction ? Kind::Index : Kind::Coordinate;
  for (const ast::Bracket& b : c.brackets) {
    expr(inside, b.range);
    if (b.pack) {
      use_pack(f, b.name);
    } else if (b.name.symbol) {
      declare(inside, inside.indices, kind, b.name);
    }
    for (const ast::Name& n : b.group) declare(inside, inside.indices, kind, n);
  }
  brackets.push_back({inside.indices, around});
  size_t outside = std::exchange(around, brackets.size() - 1);
  for (ast::ExprId a : c.args) expr(inside, a);
  around = outside;
}

// Only then does a value hide the built-in function of its name.
bool Binder::is_function(Frame& f, uint32_t id) {
  const Entity& e = out.entities[id];
  if (e.kind != Kind::Value) return true;  // a parameter or a local: what it is, is not written
  const auto* let = e.stmt ? std::get_if<ast::Let>(&ast[e.stmt].node) : nullptr;
  if (!let || !let->value) return false;
  if (std::holds_alternative<ast::Lambda>(ast[let->value].node)) return true;
  const ast::Name* other = lone(ast, let->value);
  if (!other) return false;
  bool function = find(f, other->symbol, &Frame::functions, &Frame::glob_functions) ||
                  sema::primitive_named(other->symbol);
  return function && !value_exists(f, other->symbol);
}

// `temperature` of `softmax[class](x, temperature = 2.0)`.
void Binder::argument_names(const ast::Call& c) {
  const auto* path = c.names.empty() ? nullptr : std::get_if<ast::Path>(&ast[c.callee].node);
  const Entity* fn = path ? function_just_used(path->parts.back().span) : nullptr;
  if (!fn) return;
  for (uint32_t param : params_of(fn->stmt)) {
    for (const ast::Name& name : c.names) {
      if (name.symbol && name.symbol == out.entities[param].name) occurs(name.span, param);
    }
  }
}

// `extent(k)` is about the index or the extent `k`; `extent(x, k)`, `len(x)` and `shape(x)` are about
// a value, also where an index has its name. True: the arguments have been walked.
bool Binder::shape_of_name(Frame& f, const ast::Call& c) {
  using Id = sema::Builtin::Id;
  const auto* builtin = sema::spelled_builtin(ast, c);
  if (!builtin || c.args.empty()) return false;
  Symbol callee = lone(ast, c.callee)->symbol;
  if (find(f, callee, &Frame::functions, &Frame::glob_functions)) return false;
  if (builtin->id != Id::Extent && builtin->id != Id::Len && builtin->id != Id::Shape) return false;
  const ast::Name* name = lone(ast, c.args[0]);
  if (builtin->id == Id::Extent && c.args.size() == 1) {
    if (!name) return false;
    const uint32_t* index = find_index(f, name->symbol);
    const uint32_t* known = index ? index : find_extent(f, name->symbol);
    if (known) {
      occurs(name->span, *known);
    } else {
      use_value(f, *name, false);
    }
    return true;
  }
  if (name) {
    use_value(f, *name, value_exists(f, name->symbol));
  } else {
    expr(f, c.args[0]);
  }
  for (size_t i = 1; i < c.args.size(); ++i) {
    const ast::Name* coordinate = lone(ast, c.args[i]);
    if (coordinate) {
      use_coordinate(f, *coordinate);
    } else {
      expr(f, c.args[i]);
    }
  }
  return true;
}

void Binder::comprehension(Frame& f, const ast::Comprehension& c, Span span) {
  Frame inside = nested(f, region(span));
  const bool filtered = !c.block;  // then a generator sees those before it
  for (const ast::Generator& g : c.generators) {
    expr(g.name.symbol && !filtered ? f : inside, g.value);
    if (!g.name.symbol) continue;
    bool range = g.value && std::holds_alternative<ast::Range>(ast[g.value].node);
    // The coordinates of the array have no names, so no other index meets this one.
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

// The names of a gate that stands outside of the reduction or the call it belongs to: those in the
// brackets of the first one in the body that has them all. An index of the left side comes before
// (decisions.md, 17). `first`: where the brackets of the body begin.
void Binder::place(Frame& f, const ast::Where& n, size_t first, Frame& out) {
  std::set<Symbol> inside, bound, names;
  for (size_t k = first; k < brackets.size(); ++k) {
    for (const auto& [name, id] : brackets[k].names) inside.insert(name);
  }
  for (const ast::WhereItem& item : n.items) {
    for (Symbol name : sema::free_names(ast, item.value)) {
      if (inside.count(name) && !bound.count(name)) names.insert(name);
    }
    if (item.bind) bound.insert(item.bind->symbol);
  }
  auto look = [&](size_t from, Symbol name) -> const uint32_t* {
    for (size_t k = from; k != Brackets::npos && k >= first; k = brackets[k].up) {
      auto it = brackets[k].names.find(name);
      if (it != brackets[k].names.end()) return &it->second;
    }
    return nullptr;
  };
  auto all = [&](size_t k) {
    bool binds = false;
    for (Symbol name : names) {
      if (!look(k, name)) return false;
      binds |= brackets[k].names.count(name) > 0;
    }
    return binds;
  };
  for (Symbol name : inside) {
    if (find_index(f, name)) continue;
    const uint32_t* found = nullptr;
    for (size_t k = first; k < brackets.size() && !found; ++k) {
      if (names.count(name) && all(k)) found = look(k, name);
    }
    // In no single one, which is an error; or not used yet, and offered to whoever writes the gate.
    for (size_t k = first; k < brackets.size() && !found; ++k) found = look(k, name);
    define(out, out.indices, *found);
  }
}

void Binder::where(Frame& f, const ast::Where& n, Span span) {
  Frame inside = nested(f, region(span));
  std::vector<uint32_t> made;
  for (const ast::WhereItem& item : n.items) {
    if (!item.bind) continue;
    made.push_back(entity(Kind::Local, *item.bind));
    define(inside, inside.values, made.back());
    occurs(item.bind->span, made.back(), true);
  }
  size_t first = brackets.size();
  expr(inside, n.body);
  Span items = n.where_span;
  for (const ast::WhereItem& item : n.items) {
    if (item.value) items = join(items, ast[item.value].span);
  }
  Frame gate = nested(f, region(items));
  place(f, n, first, gate);
  Frame bound = nested(gate, gate.region);
  size_t next = 0;
  for (const ast::WhereItem& item : n.items) {  // each sees the names before it
    expr(bound, item.value);
    if (item.bind) bound.values[item.bind->symbol] = made[next++];
  }
  expr(f, n.otherwise);
}

// Of a request: never an index.
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

// A `const` that may be an integer is meant by its name in a signature too.
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
  bool own = home->function;  // of a signature
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
