// Names of other modules: what `use` and `mod` bring into a scope, and full paths. Only `pub fn`,
// `pub const` and what a `pub use` brings leave a module. A name that a `use` spells beats one of a
// glob; two globs clash only where the name is used (decisions.md, 7).
#include <fmt/format.h>

#include <algorithm>

#include "sema/builtins.h"
#include "sema/names/names.h"
#include "sema/state/name_state.h"
#include "sema/state/report.h"

namespace ein::sema {
namespace {

// What a module exports by that name: its own, then what a `pub use` of it brings. Modules do not
// import each other in a cycle, so this ends.
const Function* exported_function(const Scope& module, Symbol name) {
  auto it = module.functions.find(name);
  if (it != module.functions.end()) {
    bool own = it->second.fn->pub && it->second.home == &module;
    return own || module.reexported.count(name) ? &it->second : nullptr;
  }
  for (const Glob& glob : module.globs) {
    const Function* f = glob.pub ? exported_function(*glob.module, name) : nullptr;
    if (f) return f;
  }
  return nullptr;
}

const ast::Const* const_of(const Sema& s, const Definition& d) {
  return std::get_if<ast::Const>(&s.ast[d.clauses[0]].node);
}

Definition* exported_value(const Scope& module, Symbol name) {
  auto it = module.values.find(name);
  if (it != module.values.end()) {
    bool own = it->second->exported && it->second->scope == &module;
    return own || module.reexported.count(name) ? it->second : nullptr;
  }
  for (const Glob& glob : module.globs) {
    Definition* d = glob.pub ? exported_value(*glob.module, name) : nullptr;
    if (d) return d;
  }
  return nullptr;
}

const std::string& module_name(const Sema& s, const Scope& module);

// The scalar primitive that a `pub use` of the module spells so; or invalid.
Symbol reexported_primitive(const Scope& module, Symbol name) {
  auto it = module.primitives.find(name);
  if (it != module.primitives.end() && module.reexported.count(name)) return it->second;
  for (const Glob& glob : module.globs) {
    Symbol found = glob.pub ? reexported_primitive(*glob.module, name) : Symbol{};
    if (found) return found;
  }
  return {};
}

// The scalar primitive that a module exports by that name; or invalid. Primitives need no `use`; by
// a path they belong to `std::math`, and to modules that re-export them.
Symbol exported_primitive(const Sema& s, const Scope& module, Symbol name) {
  if (Symbol found = reexported_primitive(module, name)) return found;
  if (primitive_named(name) && module_name(s, module) == "std/math.ein") return name;
  for (const Glob& glob : module.globs) {
    Symbol found = glob.pub ? exported_primitive(s, *glob.module, name) : Symbol{};
    if (found) return found;
  }
  return {};
}

const std::string& module_name(const Sema& s, const Scope& module) {
  for (size_t i = 0; i < s.names.modules.size(); ++i) {
    if (s.names.modules[i] == &module) return s.program.modules[i].name;
  }
  return s.program.modules.back().name;
}

// The module has the name but does not export it, or does not have it at all.
void report_not_exported(Sema& s, const Scope& module, const ast::Name& name) {
  auto& d = s.diags.error(Code::E0212, fmt::format("module `{}` exports no {}",
                                                   module_name(s, module), quoted(name.symbol)));
  d.primary(name.span, "");
  auto f = module.functions.find(name.symbol);
  auto v = module.values.find(name.symbol);
  if (f != module.functions.end() && f->second.home == &module) {
    d.label(f->second.fn->name.span, "defined here without `pub`");
    d.help(fmt::format("write `pub fn {}`", text(name.symbol)));
    return;
  }
  if (v != module.values.end() && v->second->scope == &module) {
    bool constant = const_of(s, *v->second) != nullptr;
    d.label(v->second->name.span,
            constant ? "defined here without `pub`" : "a `let` is private to its module");
    d.help(fmt::format("export it as `pub const {} = …;`", text(name.symbol)));
    return;
  }
  if (f != module.functions.end() || v != module.values.end()) {
    d.help("the module imports it; to export it too, write `pub use` there");
    return;
  }
  if (primitive_named(name.symbol)) {
    d.help(quoted(name.symbol) + " needs no `use`: it is in scope everywhere");
    return;
  }
  if (std::string import = how_to_import(s, name.symbol); !import.empty()) {
    d.help(import);
    return;
  }
  std::vector<std::string> names;
  for (const auto& [known, function] : module.functions) {
    if (exported_function(module, known)) names.push_back(text(known));
  }
  if (module_name(s, module) == "std/math.ein") {
#define EIN_OP(op, spelling, arity, cls) \
  if (primitive_named(intern(spelling))) names.push_back(spelling);
#include "core/ops.def"
#undef EIN_OP
  }
  for (const auto& [known, definition] : module.values) {
    if (exported_value(module, known)) names.push_back(text(known));
  }
  std::string near = did_you_mean(text(name.symbol), names);
  if (!suggest(d, near, name.span) && !names.empty() && names.size() <= 12) {
    std::sort(names.begin(), names.end());  // not in the order in which this process met them
    d.note(fmt::format("it exports `{}`", fmt::join(names, "`, `")));
  }
}

void defined_twice(Sema& s, const ast::Name& name, Span first) {
  s.diags.error(Code::E0202, quoted(name.symbol) + " is defined twice")
      .primary(name.span, "imported here")
      .label(first, "first defined here")
      .help(fmt::format("import it under another name: `{} as other`", text(name.symbol)));
}

void import_item(Sema& s, Scope& scope, Scope& from, const ast::Name& name, const ast::Name& as) {
  const Function* f = exported_function(from, name.symbol);
  Definition* v = exported_value(from, name.symbol);
  Symbol primitive = f || v ? Symbol{} : exported_primitive(s, from, name.symbol);
  if (primitive) {
    auto [it, fresh] = scope.primitives.try_emplace(as.symbol, primitive);
    if (!fresh && it->second != primitive) defined_twice(s, as, as.span);
    auto defined = scope.functions.find(as.symbol);
    if (defined != scope.functions.end()) defined_twice(s, as, defined->second.fn->name.span);
    return;
  }
  if (!f && !v && from.types.count(name.symbol)) return;  // replaced already (type_names.h)
  if (!f && !v) {
    scope.missing.insert(as.symbol);
    return report_not_exported(s, from, name);
  }
  if (f && scope.primitives.count(as.symbol)) defined_twice(s, as, as.span);
  if (f) {
    auto [it, fresh] = scope.functions.try_emplace(as.symbol, *f);
    if (!fresh && it->second.stmt != f->stmt) defined_twice(s, as, it->second.fn->name.span);
  }
  if (v) {
    auto [it, fresh] = scope.values.try_emplace(as.symbol, v);
    if (!fresh && it->second != v) defined_twice(s, as, it->second->name.span);
  }
}

void import_module(Sema& s, Scope& scope, Scope& module, const ast::Name& as) {
  auto [it, fresh] = scope.modules.try_emplace(as.symbol, &module);
  if (fresh || it->second == &module) return;
  s.diags.error(Code::E0202, "module " + quoted(as.symbol) + " is imported twice")
      .primary(as.span, "another module by the same name")
      .help("give one another name with `as`");
}

// The module that all parts of the path but the last lead to; null, and reported, if there is none.
Scope* module_at(Sema& s, const Env& env, const ast::Path& path, bool report) {
  const ast::Name& first = path.parts[0];
  std::vector<std::string> known;
  std::string name = text(first.symbol);
  for (size_t i = 1; i + 1 < path.parts.size(); ++i) name += "::" + text(path.parts[i].symbol);
  for (const Frame* f = env.frame; f; f = f->up) {
    if (!f->scope) continue;
    for (const auto& [alias, module] : f->scope->modules) known.push_back(text(alias));
    auto it = f->scope->modules.find(first.symbol);
    if (it == f->scope->modules.end()) continue;
    Scope* module = it->second;
    for (size_t i = 1; i + 1 < path.parts.size(); ++i) {
      auto inner = module->modules.find(path.parts[i].symbol);
      if (inner == module->modules.end()) {
        if (!report) return nullptr;
        s.diags
            .error(Code::E0211, fmt::format("module `{}` has no module {}", module_name(s, *module),
                                            quoted(path.parts[i].symbol)))
            .primary(path.parts[i].span, "");
        return nullptr;
      }
      module = inner->second;
    }
    return module;
  }
  if (auto it = s.program.paths.find(name); it != s.program.paths.end()) {
    return s.names.modules[it->second];
  }
  if (!report || import_failed(env, first.symbol)) return nullptr;
  auto& d = s.diags.error(Code::E0211, fmt::format("there is no module `{}` in scope", name));
  d.primary(join(first.span, path.parts[path.parts.size() - 2].span), "");
  std::string near = did_you_mean(text(first.symbol), known);
  if (!suggest(d, near, first.span)) d.help(fmt::format("bring it in: `use {};`", name));
  return nullptr;
}

// The statement is not an import, or its module was not found: then its names are missing.
void note_missing(const Sema& s, Scope& scope, ast::StmtId id) {
  if (const auto* mod = std::get_if<ast::Mod>(&s.ast[id].node)) {
    scope.missing.insert(mod->name.symbol);
  } else if (const auto* use = std::get_if<ast::Use>(&s.ast[id].node)) {
    scope.missing_glob |= use->glob;
    scope.missing.insert(use->alias.value_or(use->path.back()).symbol);
    for (const ast::UseItem& item : use->items) {
      scope.missing.insert(item.alias.value_or(item.name).symbol);
    }
  }
}

}  // namespace

bool import_failed(const Env& env, Symbol name) {
  for (const Frame* f = env.frame; f; f = f->up) {
    if (f->scope && (f->scope->missing_glob || f->scope->missing.count(name))) return true;
  }
  return false;
}

void import(Sema& s, Scope& scope, ast::StmtId id) {
  auto target = s.program.targets.find(id);
  if (target == s.program.targets.end()) return note_missing(s, scope, id);
  Scope& from = *s.names.modules[target->second.module];
  if (const auto* mod = std::get_if<ast::Mod>(&s.ast[id].node)) {
    import_module(s, scope, from, mod->name);
    return;
  }
  const auto& use = std::get<ast::Use>(s.ast[id].node);
  auto bring = [&](const ast::Name& name, const ast::Name& as) {
    import_item(s, scope, from, name, as);
    if (use.pub) scope.reexported.insert(as.symbol);
  };
  if (use.glob) {
    scope.globs.push_back({&from, s.ast[id].span, use.pub});
  } else if (!use.items.empty()) {
    for (const ast::UseItem& item : use.items) bring(item.name, item.alias.value_or(item.name));
  } else if (target->second.item) {
    const ast::Name& name = *target->second.item;
    bring(name, use.alias.value_or(name));
  } else {
    import_module(s, scope, from, use.alias.value_or(use.path.back()));
  }
}

Symbol primitive_called(const Env& env, Symbol name) {
  for (const Frame* f = env.frame; f; f = f->up) {
    if (!f->scope) continue;
    auto it = f->scope->primitives.find(name);
    if (it != f->scope->primitives.end()) return it->second;
    for (const Glob& glob : f->scope->globs) {
      if (Symbol found = reexported_primitive(*glob.module, name)) return found;
    }
  }
  return name;
}

Symbol primitive_at(Sema& s, const Env& env, const ast::Path& path) {
  Scope* module = module_at(s, env, path, false);
  Symbol name = path.parts.back().symbol;
  return module ? exported_primitive(s, *module, name) : Symbol{};
}

const Function* function_at(Sema& s, const Env& env, const ast::Path& path, bool report) {
  Scope* module = module_at(s, env, path, report);
  if (!module) return nullptr;
  const Function* f = exported_function(*module, path.parts.back().symbol);
  if (!f && report) report_not_exported(s, *module, path.parts.back());
  return f;
}

Definition* value_at(Sema& s, const Env& env, const ast::Path& path) {
  Scope* module = module_at(s, env, path, true);
  if (!module) return nullptr;
  Definition* d = exported_value(*module, path.parts.back().symbol);
  if (!d) report_not_exported(s, *module, path.parts.back());
  return d;
}

const Function* glob_function(const Scope& scope, Symbol name) {
  for (const Glob& glob : scope.globs) {
    if (const Function* f = exported_function(*glob.module, name)) return f;
  }
  return nullptr;
}

Definition* glob_value(const Scope& scope, Symbol name) {
  for (const Glob& glob : scope.globs) {
    if (Definition* d = exported_value(*glob.module, name)) return d;
  }
  return nullptr;
}

bool ambiguous(Sema& s, const Env& env, ast::Name name, bool function) {
  for (const Frame* f = env.frame; f; f = f->up) {
    if (!f->scope) continue;
    if (function && f->scope->functions.count(name.symbol)) return false;
    if (function && f->scope->primitives.count(name.symbol)) return false;
    if (!function && f->scope->values.count(name.symbol)) return false;
    const Glob* first = nullptr;
    const void* known = nullptr;  // what the first glob brings; others may re-export the same
    for (const Glob& glob : f->scope->globs) {
      const Function* brought = function ? exported_function(*glob.module, name.symbol) : nullptr;
      const void* has = brought    ? static_cast<const void*>(brought->fn)
                        : function ? nullptr
                                   : exported_value(*glob.module, name.symbol);
      if (!has || has == known) continue;
      known = has;
      if (first) {
        s.diags.error(Code::E0213, fmt::format("{} comes from two modules", quoted(name.symbol)))
            .primary(name.span, "which one?")
            .label(first->span, "`" + module_name(s, *first->module) + "` exports it")
            .label(glob.span, "`" + module_name(s, *glob.module) + "` too")
            .help("name the one you mean: `use path::{" + text(name.symbol) + "};`");
        return true;
      }
      first = &glob;
    }
    if (first) return false;
  }
  return false;
}

}  // namespace ein::sema
