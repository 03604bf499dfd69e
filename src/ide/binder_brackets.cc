// Names in the brackets of reductions and of calls with coordinates, and in gates outside that use
// them.
#include <set>
#include <utility>

#include "ide/binder.h"
#include "sema/builtins.h"
#include "sema/names/trees.h"

namespace ein::ide {

void Binder::call(Frame& f, const ast::Call& c, Span span) {
  bool reduction = false;
  const ast::Name* callee = lone(ast, c.callee);
  if (callee) {
    bool value = false;
    for (Frame* at = &f; at && !value; at = at->up) {  // whether it is a function held in a value
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

// Whether an entity can be called. Only then does a value hide the built-in function of its name.
bool Binder::is_function(Frame& f, uint32_t id) {
  const Entity& e = out.entities[id];
  // A parameter or a local may hold a function: the text does not say.
  if (e.kind != Kind::Value) return true;
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

// In `extent(k)`, `k` is an index or an extent. In `extent(x, k)`, `len(x)` and `shape(x)`, the
// first argument is a value, even if an index has its name. True if the arguments have been walked.
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

// Resolves the names of a gate that stands outside of its reduction or call: they belong to the
// first brackets in the body that have all of them. Indices of the left side take precedence
// (decisions.md, 17). `first`: where the brackets of the body begin.
void Binder::place(Frame& f, const ast::Where& n, size_t first, Frame& gate) {
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
    // If no single brackets have all names, that is an error; a name that is not used yet is
    // offered for completion all the same.
    for (size_t k = first; k < brackets.size() && !found; ++k) found = look(k, name);
    define(gate, gate.indices, *found);
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
  for (const ast::WhereItem& item : n.items) {  // each item sees the names before it
    expr(bound, item.value);
    if (item.bind) bound.values[item.bind->symbol] = made[next++];
  }
  expr(f, n.otherwise);
}

}  // namespace ein::ide
