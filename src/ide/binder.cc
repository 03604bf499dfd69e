// Entities, lookup and statements; the beginning and end of the walk.
#include "ide/binder.h"

#include <algorithm>
#include <utility>

#include "base/match.h"
#include "sema/builtins.h"

namespace ein::ide {

uint32_t Binder::entity(Kind kind, ast::Name name, ast::StmtId stmt) {
  auto id = static_cast<uint32_t>(out.entities.size());
  out.entities.push_back({kind, name.symbol, name.span, stmt, id, false, top});
  return id;
}

uint32_t Binder::along(Frame& f, Kind kind, ast::Name name) {
  uint32_t id = entity(kind, name);
  auto [it, fresh] = groups.try_emplace({f.family, name.symbol}, id);
  out.entities[id].group = it->second;
  return id;
}

void Binder::occurs(Span span, uint32_t id, bool defines) {
  if (span.valid() && span.end > span.begin) out.occurrences.push_back({span, id, defines});
}

uint32_t Binder::declare(Frame& f, Names& names, Kind kind, ast::Name name, ast::StmtId stmt) {
  auto it = names.find(name.symbol);
  if (it == names.end()) {
    bool meets = kind == Kind::Index || kind == Kind::Extent || kind == Kind::Coordinate;
    uint32_t id = meets ? along(f, kind, name) : entity(kind, name, stmt);
    if (kind == Kind::Pack) {
      out.entities[id].group = pack_groups.try_emplace({f.family, name.symbol}, id).first->second;
    }
    define(f, names, id);
    it = names.find(name.symbol);
  }
  occurs(name.span, it->second, true);
  return it->second;
}

void Binder::define(Frame& f, Names& names, uint32_t id) {
  names[out.entities[id].name] = id;
  out.regions[f.region].entities.push_back(id);
}

const Entity* Binder::function_just_used(Span name) const {
  if (out.occurrences.empty() || out.occurrences.back().span != name) return nullptr;
  const Entity& e = out.entities[out.occurrences.back().entity];
  return e.kind == Kind::Function && e.stmt ? &e : nullptr;
}

const std::vector<uint32_t>& Binder::params_of(ast::StmtId fn) {
  auto [it, fresh] = params.try_emplace(fn);
  if (!fresh) return it->second;
  const auto* f = std::get_if<ast::Fn>(&ast[fn].node);
  for (size_t i = 0; f && i < f->params.size(); ++i) {
    it->second.push_back(entity(Kind::Parameter, f->params[i].name));
    out.entities.back().exported = f->pub;
  }
  return it->second;
}

size_t Binder::region(Span span) {
  // The region extends to here even if nothing follows the operator or `where` yet.
  const std::string& all = sources.text(span.file);
  while (span.end < all.size() && all[span.end] == ' ') ++span.end;
  out.regions.push_back({span, {}});
  return out.regions.size() - 1;
}

const uint32_t* Binder::find_value(Frame& f, Symbol name, bool skip_indices) {
  bool indices = !skip_indices;
  for (Frame* at = &f; at; at = at->up) {
    if (indices) {
      if (auto it = at->indices.find(name); it != at->indices.end()) return &it->second;
    }
    for (Names* names : {&at->values, &at->glob_values}) {
      if (auto it = names->find(name); it != names->end()) return &it->second;
    }
    // A shape name in a signature belongs to the function, even if a value outside has the same
    // name.
    if (at->function) {
      if (auto it = at->extents.find(name); it != at->extents.end()) return &it->second;
      indices = false;
    }
  }
  return find_extent(f, name);
}

const uint32_t* Binder::find_extent(Frame& f, Symbol name) {
  for (Frame* at = &f; at; at = at->up) {
    if (auto it = at->extents.find(name); it != at->extents.end()) return &it->second;
  }
  return nullptr;
}

const uint32_t* Binder::find_index(Frame& f, Symbol name) {
  for (Frame* at = &f; at && !at->function; at = at->up) {
    if (auto it = at->indices.find(name); it != at->indices.end()) return &it->second;
    if (at->values.count(name) || at->glob_values.count(name)) return nullptr;
  }
  return nullptr;
}

bool Binder::value_exists(Frame& f, Symbol name) {
  return find(f, name, &Frame::values, &Frame::glob_values) != nullptr;
}

const uint32_t* Binder::find(Frame& f, Symbol name, Names Frame::*own, Names Frame::*glob) {
  for (Frame* at = &f; at; at = at->up) {
    for (Names* names : {&(at->*own), &(at->*glob)}) {
      if (auto it = names->find(name); it != names->end()) return &it->second;
    }
  }
  return nullptr;
}

bool Binder::use_value(Frame& f, ast::Name name, bool skip_indices) {
  const uint32_t* id = find_value(f, name.symbol, skip_indices);
  if (id) occurs(name.span, *id);
  return id != nullptr;
}

bool Binder::use_function(Frame& f, ast::Name name) {
  if (const uint32_t* id = find(f, name.symbol, &Frame::functions, &Frame::glob_functions)) {
    occurs(name.span, *id);
    return true;
  }
  if (!sema::is_builtin(name.symbol)) return false;
  auto [it, fresh] = builtins.try_emplace(name.symbol, 0);
  if (fresh) it->second = entity(Kind::Builtin, {name.symbol, {}});
  occurs(name.span, it->second);
  return true;
}

void Binder::use_coordinate(Frame& f, ast::Name name) {
  auto it = groups.find({f.family, name.symbol});
  uint32_t id = it != groups.end() ? it->second : along(f, Kind::Coordinate, name);
  occurs(name.span, id, it == groups.end());
}

void Binder::use_pack(Frame& f, ast::Name name) {
  for (Frame* at = &f; at; at = at->up) {
    auto it = at->packs.find(name.symbol);
    if (it != at->packs.end()) return occurs(name.span, it->second);
    if (at->function || !at->up) {
      declare(*at, at->packs, Kind::Pack, name);
      return;
    }
  }
}

void Binder::use_field(ast::Name name, bool defines) {
  if (!name.symbol) return;
  auto it = fields.find(name.symbol);
  if (it == fields.end()) {
    if (!defines) return;
    it = fields.emplace(name.symbol, entity(Kind::Field, name)).first;
  }
  occurs(name.span, it->second, defines);
}

void Binder::declare_all(Frame& f, const std::vector<ast::StmtId>& stmts, ModuleFrame* exports) {
  auto exported = [&](uint32_t id, Names ModuleFrame::*names) {
    out.entities[id].exported = true;
    if (exports) (exports->*names)[out.entities[id].name] = id;
  };
  for (ast::StmtId id : stmts) {
    match(
        ast[id].node,
        [&](const ast::Let& l) {
          Kind kind = !l.value && top ? Kind::Input : Kind::Value;
          for (const ast::Name& n : l.names) {
            if (text(n.symbol) == "_") continue;
            declare(f, f.values, kind, n, id);
            if (!l.record) continue;
            out.occurrences.back().field = true;
            use_field(n, false);
          }
        },
        [&](const ast::Const& c) {
          uint32_t made = declare(f, f.values, Kind::Constant, c.name, id);
          if (c.pub) exported(made, &ModuleFrame::values);
        },
        [&](const ast::Fn& fn) {
          if (fn.rule) return;
          uint32_t made = declare(f, f.functions, Kind::Function, fn.name, id);
          if (fn.pub) exported(made, &ModuleFrame::functions);
        },
        [&](const ast::TypeDef& t) {
          uint32_t made = declare(f, f.types, Kind::Type, t.name, id);
          if (t.pub) exported(made, &ModuleFrame::types);
        },
        [](const auto&) {});
  }
  for (ast::StmtId id : stmts) import(f, id, exports);
  // Any type in the scope may use the name of an extent, also above its declaration.
  for (ast::StmtId id : stmts) {
    if (const auto* t = std::get_if<ast::TypeDef>(&ast[id].node)) type(f, t->type);
    if (const auto* l = std::get_if<ast::Let>(&ast[id].node)) type(f, l->type);
  }
}

void Binder::let(Frame& f, const ast::Let& l, Span span) {
  Frame inside;
  inside.up = &f;
  inside.family = f.family;
  inside.region = region(span);
  for (const ast::Slot& s : l.slots) {
    expr(f, s.range);
    expr(f, s.at);
    if (s.kind == ast::Slot::Kind::Index) declare(inside, inside.indices, Kind::Index, s.name);
    if (s.kind == ast::Slot::Kind::Pack) use_pack(f, s.name);
  }
  const auto* b = l.value ? std::get_if<ast::Block>(&ast[l.value].node) : nullptr;
  if (b && l.until) return block(inside, *b, ast[l.value].span, l.until);
  expr(inside, l.value);
  expr(inside, l.until);
}

void Binder::function(Frame& f, const ast::Fn& fn, ast::StmtId id) {
  bool outside = std::exchange(top, false);
  size_t before = brackets.size(), call = std::exchange(around, Brackets::npos);
  // The function that declares the names in the signature: a rule repeats them.
  ast::StmtId owner = id;
  if (fn.rule && use_function(f, fn.name)) {
    if (const Entity* of = function_just_used(fn.name.span)) owner = of->stmt;
  }
  for (const ast::Param& p : fn.params) expr(f, p.value);
  Frame inside;
  inside.up = &f;
  inside.function = inside.scope = true;
  uint32_t& family = families_of[owner];
  if (family == 0) family = ++families;
  inside.family = family;
  inside.region = region(ast[id].span);
  for (const ast::FnCoord& c : fn.coords) {
    if (c.pack) {
      declare(inside, inside.packs, Kind::Pack, c.name);
    } else {
      declare(inside, inside.extents, Kind::Coordinate, c.name);
    }
  }
  const std::vector<uint32_t> own = params_of(id), of_owner = params_of(owner);
  for (size_t i = 0; i < fn.params.size(); ++i) {
    const ast::Param& p = fn.params[i];
    for (uint32_t other : of_owner) {
      if (out.entities[other].name == p.name.symbol) out.entities[own[i]].group = other;
    }
    define(inside, inside.values, own[i]);
    occurs(p.name.span, own[i], true);
    type(inside, p.type);
  }
  in_result = true;
  type(inside, fn.result);
  in_result = false;
  expr(inside, fn.body);
  brackets.resize(before);  // a gate outside of a function does not see the brackets inside
  around = call;
  top = outside;
}

void Binder::block(Frame& f, const ast::Block& b, Span span, ast::ExprId until) {
  bool outside = std::exchange(top, false);
  Frame inside;
  inside.up = &f;
  inside.scope = true;
  inside.family = f.family;
  inside.region = region(span);
  declare_all(inside, b.stmts, nullptr);
  for (ast::StmtId id : b.stmts) statement(inside, id);
  expr(inside, b.value);
  expr(inside, until);
  top = outside;
}

void Binder::statement(Frame& f, ast::StmtId id) {
  const ast::Stmt& stmt = ast[id];
  for (const ast::Attribute& a : stmt.attributes) {
    if (text(a.name.symbol) == "allow") continue;  // its arguments are codes of warnings
    for (ast::ExprId e : a.args) expr(f, e);
  }
  match(
      stmt.node, [&](const ast::Let& l) { let(f, l, stmt.span); },
      [&](const ast::Const& c) {
        type(f, c.type);
        expr(f, c.value);
      },
      [&](const ast::Fn& fn) { function(f, fn, id); }, [](const ast::Use&) {},
      [](const ast::Mod&) {}, [](const ast::TypeDef&) {},
      [&](const ast::ExprStmt& e) { expr(f, e.value); },
      [&](const ast::Test& t) { expr(f, t.body); },
      [&](const ast::ErrorStmt& e) { expr(f, e.kept); });
}

// A value that names an extent is renamed together with the coordinates of that name.
void Binder::join_dimensions() {
  std::map<uint32_t, uint32_t> leads;  // from groups that have been merged into another
  auto group = [&](uint32_t g) {
    for (auto it = leads.find(g); it != leads.end(); it = leads.find(g)) g = it->second;
    return g;
  };
  for (const auto& [value, key] : dimensions) {
    auto it = groups.find(key);
    if (it == groups.end()) continue;
    uint32_t of_value = group(out.entities[value].group), of_coordinate = group(it->second);
    if (of_value != of_coordinate) leads[of_coordinate] = of_value;
  }
  for (Entity& e : out.entities) e.group = group(e.group);
}

Bindings bind(const sema::Program& program, const SourceMap& sources) {
  Binder b{program, sources, program.ast};
  for (size_t i = 0; i < program.modules.size(); ++i) b.module(i);
  b.join_dimensions();
  auto place = [](const Occurrence& o) { return std::pair(o.span.file, o.span.begin); };
  auto& list = b.out.occurrences;
  // The walk may visit one place twice: in `{ a, b }`, each name is a field and a value. The value
  // comes first.
  std::stable_sort(list.begin(), list.end(),
                   [&](const auto& x, const auto& y) { return place(x) < place(y); });
  list.erase(std::unique(list.begin(), list.end(),
                         [&](const auto& x, const auto& y) { return place(x) == place(y); }),
             list.end());
  return std::move(b.out);
}

}  // namespace ein::ide
