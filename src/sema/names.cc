// Scopes and lookup: a bare name is an index, else a value, else an extent (decision 2).
#include <fmt/format.h>

#include "base/match.h"
#include "sema/sema.h"

namespace ein::sema {
namespace {

void declare_value(Sema& s, Scope& scope, ast::Name name, ast::StmtId id, bool clause, bool input) {
  auto [it, fresh] = scope.values.try_emplace(name.symbol, nullptr);
  if (fresh) {
    Definition& d = scope.definitions.emplace_back();
    d.name = name;
    d.clauses.push_back(id);
    d.scope = &scope;
    d.input = input;
    it->second = &d;
    return;
  }
  Definition& d = *it->second;
  const auto* first = std::get_if<ast::Let>(&s.ast[d.clauses[0]].node);
  if (clause && first && first->has_slots) {
    d.clauses.push_back(id);
    return;
  }
  auto& e = s.diags.error(Code::E0202, quoted(name.symbol) + " is defined twice");
  e.primary(name.span, "defined again here").label(d.name.span, "first defined here");
  e.help("scopes are unordered, so a name has one meaning: choose another name");
}

void declare_extent_names(Sema& s, Scope& scope, const ast::Let& let, Definition* d) {
  const auto* dims = let.type ? dims_of(s, let.type) : nullptr;
  if (!dims) return;
  for (const ast::Dim& dim : *dims) {
    if (dim.kind != ast::Dim::Kind::Extent) continue;
    for (Symbol name : free_names(s.ast, dim.extent)) scope.extent_sources.try_emplace(name, d);
  }
}

// Adds the names along the chain that `pick` yields.
template <class F>
std::vector<std::string> names_along(const Env& env, F pick) {
  std::vector<std::string> out;
  for (const Frame* f = env.frame; f; f = f->up) pick(*f, out);
  return out;
}

}  // namespace

void declare(Sema& s, Scope& scope, const std::vector<ast::StmtId>& stmts) {
  for (ast::StmtId id : stmts) {
    const ast::Stmt& stmt = s.ast[id];
    match(
        stmt.node,
        [&](const ast::Let& l) {
          if (l.tuple) {
            if (l.type) unsupported(s, s.ast[l.type].span, "types on tuple patterns");
            for (const ast::Name& n : l.names) {
              if (text(n.symbol) != "_") declare_value(s, scope, n, id, l.has_slots, false);
            }
            return;
          }
          declare_value(s, scope, l.names[0], id, l.has_slots, !l.value);
          declare_extent_names(s, scope, l, scope.values[l.names[0].symbol]);
        },
        [&](const ast::Const& c) { declare_value(s, scope, c.name, id, false, false); },
        [&](const ast::Fn& f) {
          if (f.rule) {
            unsupported(s, f.name.span, "`@fn` rules");
            return;
          }
          auto [it, fresh] = scope.functions.try_emplace(f.name.symbol, id);
          if (!fresh) {
            const auto& first = std::get<ast::Fn>(s.ast[it->second].node);
            s.diags.error(Code::E0202, "function " + quoted(f.name.symbol) + " is defined twice")
                .primary(f.name.span, "defined again here")
                .label(first.name.span, "first defined here");
          }
        },
        [&](const ast::Use&) { unsupported(s, stmt.span, "`use`"); },
        [&](const ast::Mod&) { unsupported(s, stmt.span, "`mod`"); }, [](const ast::ExprStmt&) {},
        [](const ast::Test&) {}, [](const ast::ErrorStmt&) {});
  }
  find_groups(s, scope);
}

namespace {

Index* find_index(const Env& env, Symbol name, bool in_slot) {
  for (const Frame* f = env.frame; f; f = f->up) {
    if (f->slots_only && !in_slot) continue;
    for (auto it = f->indices.rbegin(); it != f->indices.rend(); ++it) {
      if ((*it)->name == name) return *it;
    }
    for (const auto& [bound, value] : f->values) {
      if (bound.symbol == name) return nullptr;  // a binding or parameter further in hides it
    }
    if (f->scope && f->scope->values.count(name)) return nullptr;  // so does a local of a block
    if (f->function) return nullptr;
  }
  return nullptr;
}

}  // namespace

Index* find_index(const Env& env, Symbol name) { return find_index(env, name, false); }
Index* find_slot_index(const Env& env, Symbol name) { return find_index(env, name, true); }

Definition* find_definition(const Env& env, Symbol name) {
  for (const Frame* f = env.frame; f; f = f->up) {
    for (const auto& [bound, value] : f->values) {
      if (bound.symbol == name) return nullptr;
    }
    if (!f->scope) continue;
    if (auto it = f->scope->values.find(name); it != f->scope->values.end()) return it->second;
  }
  return nullptr;
}

bool value_exists(const Env& env, Symbol name) {
  for (const Frame* f = env.frame; f; f = f->up) {
    for (const auto& [bound, value] : f->values) {
      if (bound.symbol == name) return true;
    }
    if (f->scope && f->scope->values.count(name)) return true;
  }
  return false;
}

const ast::Fn* find_function(Sema& s, const Env& env, Symbol name, ast::StmtId* stmt,
                             Scope** scope) {
  for (const Frame* f = env.frame; f; f = f->up) {
    if (!f->scope) continue;
    auto it = f->scope->functions.find(name);
    if (it == f->scope->functions.end()) continue;
    *stmt = it->second;
    *scope = f->scope;
    return &std::get<ast::Fn>(s.ast[it->second].node);
  }
  return nullptr;
}

std::optional<CoreId> find_extent(Sema& s, const Env& env, Symbol name) {
  for (const Frame* f = env.frame; f; f = f->up) {
    if (!f->scope) continue;
    Scope& scope = *f->scope;
    if (auto it = scope.extents.find(name); it != scope.extents.end()) return it->second.extent;
    auto source = scope.extent_sources.find(name);
    if (source == scope.extent_sources.end()) continue;
    Definition* d = source->second;
    if (d->state != Definition::State::Todo) continue;  // it is asking for its own name
    define(s, *d);
    if (auto it = scope.extents.find(name); it != scope.extents.end()) return it->second.extent;
  }
  return std::nullopt;
}

Found lookup(Sema& s, Env& env, ast::Name name, bool skip_indices) {
  Found found;
  if (Index* index = skip_indices ? nullptr : find_index(env, name.symbol)) {
    index->used = true;
    index->in_brackets |= env.in_slot;
    found.kind = Found::Kind::Index;
    found.index = index;
    if (!env.shadow_ok && value_exists(env, name.symbol)) {
      s.diags.error(Code::E0208, "index " + quoted(name.symbol) + " hides a value of the same name")
          .primary(name.span, "the index or the value?")
          .label(index->span, "the index")
          .help("rename the index; alone it may only stand in brackets and comparisons");
      return found;
    }
    found.value = untyped_int(env, core::slot(s.m, index->slot), name.span);
    return found;
  }
  for (const Frame* f = env.frame; f; f = f->up) {
    for (auto it = f->values.rbegin(); it != f->values.rend(); ++it) {
      if (it->first.symbol != name.symbol) continue;
      found.kind = Found::Kind::Value;
      found.value = moved(s, it->second, env.depth);
      if (found.value.span.valid()) found.value.span = name.span;
      return found;
    }
    if (!f->scope) continue;
    auto it = f->scope->values.find(name.symbol);
    if (it == f->scope->values.end()) continue;
    found.kind = Found::Kind::Value;
    found.value = read_definition(s, env, *it->second, name.span);
    return found;
  }
  if (auto extent = find_extent(s, env, name.symbol)) {
    found.kind = Found::Kind::Extent;
    found.value = untyped_int(env, *extent, name.span);
    return found;
  }
  for (const Frame* f = env.frame; f; f = f->up) {  // an annotation in error: already reported
    if (!f->scope) continue;
    auto source = f->scope->extent_sources.find(name.symbol);
    if (source != f->scope->extent_sources.end() &&
        source->second->state == Definition::State::Bad) {
      found.kind = Found::Kind::Extent;
    }
  }
  return found;
}

std::vector<std::string> value_names(const Env& env) {
  return names_along(env, [](const Frame& f, std::vector<std::string>& out) {
    for (const Index* i : f.indices) out.push_back(text(i->name));
    for (const auto& [name, value] : f.values) out.push_back(text(name.symbol));
    if (!f.scope) return;
    for (const auto& [name, d] : f.scope->values) out.push_back(text(name));
    for (const auto& [name, e] : f.scope->extents) out.push_back(text(name));
  });
}

std::vector<std::string> function_names(const Env& env) {
  return names_along(env, [](const Frame& f, std::vector<std::string>& out) {
    if (!f.scope) return;
    for (const auto& [name, id] : f.scope->functions) out.push_back(text(name));
  });
}

void report_unknown(Sema& s, Env& env, ast::Name name) {
  if (env.site && !env.site->reported.insert(name.symbol).second) return;
  std::string near;
  // Behind very many mistakes nobody looks for a slip of the pen, and looking is slow.
  if (s.diags.errors() < 100) near = did_you_mean(text(name.symbol), value_names(env));
  if (env.in_slot && env.site) {
    const std::string& k = text(name.symbol);
    auto& d =
        s.diags.error(Code::E0303, fmt::format("index `{}` is neither on the left nor reduced", k));
    d.primary(name.span, "not bound by anything");
    d.label(env.site->span, "the left side of this statement");
    if (near.size() > 1 && near != k) d.note(fmt::format("did you mean `{}`?", near));
    d.help(fmt::format("sum over it: `sum[{}](…)`, or add it to the left side", k));
    Span value = env.site->value;
    bool inside = value.valid() && name.span.begin >= value.begin && name.span.end <= value.end;
    if (inside) {
      Span front{value.file, value.begin, value.begin}, back{value.file, value.end, value.end};
      // Not safe when the name may be a slip for another one.
      bool safe = near.size() <= 1 || near == k;
      d.fix({fmt::format("sum over `{}`", k), {{front, "sum[" + k + "]("}, {back, ")"}}, safe});
    }
    return;
  }
  auto& d = s.diags.error(Code::E0201, "unknown name " + quoted(name.symbol));
  d.primary(name.span, "");
  if (near.empty()) return;
  d.help("did you mean " + quoted(near) + "?");
  d.fix({"use " + quoted(near), {{name.span, near}}, false});
}

}  // namespace ein::sema
