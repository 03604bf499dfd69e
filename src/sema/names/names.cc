// Scopes and lookup: a bare name is an index, else a value, else an extent (decisions.md, 2).
#include "sema/names/names.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/match.h"
#include "sema/names/attributes.h"
#include "sema/names/trees.h"
#include "sema/state/meanings.h"
#include "sema/state/name_state.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"

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
    if (input) {
      s.diags.error(Code::E0405, "a clause of " + quoted(name.symbol) + " has no value")
          .primary(name.span, "a type without a value declares an input, which has no clauses")
          .label(d.name.span, "other clauses define its cells")
          .help("give the clause a value, or remove it");
      return;
    }
    d.clauses.push_back(id);
    return;
  }
  auto& e = s.diags.error(Code::E0202, quoted(name.symbol) + " is defined twice");
  e.primary(name.span, "defined again here").label(d.name.span, "first defined here");
  e.help(
      "the order of definitions does not matter, so a name has one meaning: choose another name");
  if (clause) {
    e.note(
        fmt::format("for another cell, define a new array: `let new_{0}[i] = if i == 0 {{ … }} "
                    "else {{ {0}[i] }};`",
                    text(name.symbol)));
  } else if (const auto* let = std::get_if<ast::Let>(&s.ast[id].node);
             let && let->value && free_names(s.ast, let->value).count(name.symbol)) {
    e.note(
        fmt::format("steps that follow each other are a recurrence: `let {0}[0] = …;` and `let "
                    "{0}[t in 1..T] = … "
                    "{0}[t - 1] …;`",
                    text(name.symbol)));
  }
}

// A function and a value of one scope: a reader could not tell them apart.
void both_kinds(Sema& s, const ast::Name& function, const ast::Name& value) {
  bool later = function.span.begin > value.span.begin;
  s.diags.error(Code::E0202, quoted(function.symbol) + " is defined as a function and as a value")
      .primary((later ? function : value).span, later ? "the function" : "the value")
      .label((later ? value : function).span, later ? "the value" : "the function")
      .help("give one of them another name");
}

void declare_extent_names(Sema& s, Scope& scope, ast::TypeId type, Definition* d) {
  if (const ast::TupleType* tuple = tuple_type(s.ast, type)) {
    for (ast::TypeId item : tuple->items) declare_extent_names(s, scope, item, d);
  }
  const auto* dims = type ? dims_of(s.ast, type) : nullptr;
  if (!dims) return;
  for (const ast::Dim& dim : *dims) {
    if (dim.kind != ast::Dim::Kind::Extent) continue;
    for (Symbol name : free_names(s.ast, dim.extent)) scope.extent_sources.try_emplace(name, d);
  }
}

Definition* value_of(const Scope& scope, Symbol name) {
  auto it = scope.values.find(name);
  return it != scope.values.end() ? it->second : glob_value(scope, name);
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
    check_attributes(s, stmt);
    match(
        stmt.node,
        [&](const ast::Let& l) {
          if (l.tuple) {
            if (!l.value) {
              s.diags.error(Code::E0405, "this pattern has no value")
                  .primary(l.names[0].span, "there is no value to take apart")
                  .help("declare each input separately, with its type");
            }
            const ast::TupleType* type = tuple_type(s.ast, l.type);
            if (l.record && type) {
              for (const ast::Name& n : l.names) {
                declare_value(s, scope, n, id, l.has_slots, false);
                declare_extent_names(s, scope, l.type, scope.values[n.symbol]);
              }
              return;
            }
            if (l.type && (!type || type->items.size() != l.names.size())) {
              s.diags
                  .error(Code::E0405,
                         fmt::format("a pattern of {0} names needs a tuple type of {0} types",
                                     l.names.size()))
                  .primary(s.ast[l.type].span, "")
                  .label(l.names[0].span, "the pattern starts here");
              type = nullptr;
            }
            for (size_t i = 0; i < l.names.size(); ++i) {
              const ast::Name& n = l.names[i];
              if (text(n.symbol) == "_") continue;
              declare_value(s, scope, n, id, l.has_slots, false);
              if (!l.value) scope.values[n.symbol]->state = Definition::State::Bad;
              if (type) declare_extent_names(s, scope, type->items[i], scope.values[n.symbol]);
            }
            return;
          }
          declare_value(s, scope, l.names[0], id, l.has_slots, !l.value);
          Definition* d = scope.values[l.names[0].symbol];
          declare_extent_names(s, scope, l.type, d);
          for_each_tree(s.ast, l.value, [&](TreeId e) {  // `x as [f32; n]` names an extent too
            const auto* cast = std::get_if<ast::Cast>(&s[e].node);
            if (cast) declare_extent_names(s, scope, cast->type, d);
          });
        },
        [&](const ast::Const& c) {
          declare_value(s, scope, c.name, id, false, false);
          if (c.pub) scope.values[c.name.symbol]->exported = true;
        },
        [&](const ast::Fn& f) {
          auto& functions = f.rule ? scope.rules : scope.functions;
          auto [it, fresh] = functions.try_emplace(f.name.symbol, Function{&f, id, &scope});
          if (!fresh) {
            const char* what = f.rule ? "the rule of " : "function ";
            s.diags.error(Code::E0202, what + quoted(f.name.symbol) + " is defined twice")
                .primary(f.name.span, "defined again here")
                .label(it->second.fn->name.span, "first defined here");
          }
        },
        [](const ast::Use&) {}, [](const ast::Mod&) {},
        [&](const ast::TypeDef& t) {  // type_names.cc has replaced its uses
          if (t.pub) scope.types.insert(t.name.symbol);
          if (scope.module) return;
          s.diags.error(Code::E0210, "a type is defined at the top level of a file")
              .primary(t.name.span, "not in a block");
        },
        [](const ast::ExprStmt&) {}, [](const ast::Test&) {}, [](const ast::ErrorStmt&) {});
  }
  for (const auto& [name, function] : scope.functions) {
    auto value = scope.values.find(name);
    if (value != scope.values.end()) both_kinds(s, function.fn->name, value->second->name);
  }
  for (ast::StmtId id : stmts) import(s, scope, id);
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
    if (f->scope && value_of(*f->scope, name)) return nullptr;  // so does a local of a block
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
    if (Definition* d = value_of(*f->scope, name)) return d;
  }
  return nullptr;
}

bool value_exists(const Env& env, Symbol name) {
  for (const Frame* f = env.frame; f; f = f->up) {
    for (const auto& [bound, value] : f->values) {
      if (bound.symbol == name) return true;
    }
    if (f->scope && value_of(*f->scope, name)) return true;
  }
  return false;
}

const Function* find_function(const Env& env, Symbol name) {
  for (const Frame* f = env.frame; f; f = f->up) {
    if (!f->scope) continue;
    auto it = f->scope->functions.find(name);
    if (it != f->scope->functions.end()) return &it->second;
    if (f->scope->primitives.count(name)) return nullptr;
    if (const Function* imported = glob_function(*f->scope, name)) return imported;
  }
  return nullptr;
}

const Function* find_callee(Sema& s, const Env& env, TreeId callee) {
  const auto* path = callee ? std::get_if<ast::Path>(&s[callee].node) : nullptr;
  if (!path) return nullptr;
  if (path->parts.size() > 1) return function_at(s, env, *path, false);
  return find_function(env, path->parts[0].symbol);
}

std::optional<ExtentName> find_extent_name(Sema& s, const Env& env, Symbol name) {
  for (const Frame* f = env.frame; f; f = f->up) {
    if (!f->scope) continue;
    Scope& scope = *f->scope;
    if (auto it = scope.extents.find(name); it != scope.extents.end()) return it->second;
    auto source = scope.extent_sources.find(name);
    if (source == scope.extent_sources.end()) continue;
    Definition* d = source->second;
    if (d->state != Definition::State::Todo) continue;  // it is asking for its own name
    define(s, *d);
    if (auto it = scope.extents.find(name); it != scope.extents.end()) return it->second;
  }
  return std::nullopt;
}

std::optional<CoreId> find_extent(Sema& s, const Env& env, Symbol name) {
  auto found = find_extent_name(s, env, name);
  return found ? std::optional(found->extent) : std::nullopt;
}

namespace {

Span named_at(const ast::Name& name) { return name.made ? Span{} : name.span; }

Found find_name(Sema& s, Env& env, ast::Name name, bool skip_indices) {
  Found found;
  if (Index* index = skip_indices ? nullptr : find_index(env, name.symbol)) {
    index->used = true;
    index->in_brackets |= env.in_slot;
    found.kind = Found::Kind::Index;
    found.index = index;
    found.definition = index->named;
    if (!env.shadow_ok && value_exists(env, name.symbol)) {
      s.diags.error(Code::E0208, "index " + quoted(name.symbol) + " hides a value of the same name")
          .primary(name.span, "the index or the value?")
          .label(index->span, "the index")
          .help(
              "rename the index; an index by itself may only be used in brackets and comparisons");
      return found;
    }
    found.value = untyped_int(env, core::slot(s.m, index->slot), name.span);
    return found;
  }
  for (const Frame* f = env.frame; f; f = f->up) {
    for (auto it = f->values.rbegin(); it != f->values.rend(); ++it) {
      if (it->first.symbol != name.symbol) continue;
      found.kind = Found::Kind::Value;
      found.definition = named_at(it->first);
      found.value = moved(s.m, it->second, env.depth);
      if (found.value.span.valid()) found.value.span = name.span;
      return found;
    }
    if (!f->scope) continue;
    // A shape name of a signature belongs to the function, also where a value outside has it.
    auto extent = f->scope->extents.find(name.symbol);
    if (f->scope->signature && extent != f->scope->extents.end()) {
      found.kind = Found::Kind::Extent;
      found.definition = extent->second.named;
      found.value = untyped_int(env, extent->second.extent, name.span);
      return found;
    }
    Definition* d = value_of(*f->scope, name.symbol);
    if (!d) continue;
    found.kind = Found::Kind::Value;
    found.definition = named_at(d->name);
    if (!ambiguous(s, env, name, false)) found.value = read_definition(s, env, *d, name.span);
    return found;
  }
  if (auto extent = find_extent_name(s, env, name.symbol)) {
    found.kind = Found::Kind::Extent;
    found.definition = extent->named;
    found.value = untyped_int(env, extent->extent, name.span);
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

}  // namespace

Found lookup(Sema& s, Env& env, ast::Name name, bool skip_indices) {
  Found found = find_name(s, env, name, skip_indices);
  if (s.meanings) {
    note_definition(s, name, found.definition);
    if (found.kind == Found::Kind::Value) note_value(s, name, found.value);
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
    for (const auto& [name, function] : f.scope->functions) out.push_back(text(name));
    for (const Glob& glob : f.scope->globs) {
      for (const auto& [name, function] : glob.module->functions) {
        if (function.fn->pub) out.push_back(text(name));
      }
    }
  });
}

namespace {

// How to write in Einlang what other languages call by this name.
const char* foreign_name(const std::string& name) {
  static const std::map<std::string, const char*> kNames = {
      {"True", "write `true`"},
      {"False", "write `false`"},
      {"None", "there is no `None`: every array has a value in every cell"},
      {"null", "there is no `null`: every array has a value in every cell"},
      {"pi", "the constant is `PI`"},
      {"inf", "the constant is `infinity`"},
      {"np", "there is no such module; reductions and scalar functions need no `use`"},
      {"torch", "there is no such module; reductions and scalar functions need no `use`"},
  };
  auto it = kNames.find(name);
  return it == kNames.end() ? nullptr : it->second;
}

// Whether `name` is a slip for the index `near`: long enough that two indices would not be called so.
bool slip_of(const Env& env, const std::string& near, const std::string& name) {
  return name.size() > 3 && near.size() > 3 && find_index(env, intern(near)) != nullptr;
}

// How many factors of a product are accesses with `name` alone in a slot.
int contracted(const Sema& s, TreeId e, Symbol name) {
  if (const auto* b = std::get_if<ast::Binary>(&s[e].node); b && b->op == ast::BinaryOp::Mul) {
    return contracted(s, b->lhs, name) + contracted(s, b->rhs, name);
  }
  const auto* index = std::get_if<ast::Index>(&s[e].node);
  if (!index) return 0;
  return std::any_of(index->at.begin(), index->at.end(),
                     [&](TreeId at) { return path_name(s.ast, at) == name; });
}

}  // namespace

void report_unknown(Sema& s, Env& env, ast::Name name) {
  if (env.site && !env.site->reported.insert(name.symbol).second) return;
  if (import_failed(env, name.symbol)) return;
  std::string near;
  // Looking for similar names is slow, and after a hundred errors nobody needs the hint.
  if (s.diags.errors() < 100) near = did_you_mean(text(name.symbol), value_names(env));
  if (env.in_slot && env.site) {
    const std::string& k = text(name.symbol);
    auto& d =
        s.diags.error(Code::E0303, fmt::format("index `{}` is neither on the left nor reduced", k));
    d.primary(name.span, "nothing defines this index");
    const Definition* defined = env.site->definition;
    // Slots are written after the name, so a left side with slots ends later than the name.
    bool indexed = defined && env.site->span.end > defined->name.span.end;
    d.label(env.site->span, defined ? "the left side of this statement" : "this statement");
    if (slip_of(env, near, k)) {  // `x[bacth]`: not one more index, but one that is there
      suggest(d, near, name.span);
      return;
    }
    if (near.size() > 1 && near != k) d.note(fmt::format("did you mean `{}`?", near));
    std::string left = indexed ? "or add it to the left side"
                       : defined
                           ? fmt::format("or compute one cell for each: `let {}[{}] = …`",
                                         text(defined->name.symbol), k)
                           : fmt::format("or give the cells a name first: `let y[{}] = …;`", k);
    d.help(fmt::format("sum over it: `sum[{}](…)`, {}", k, left));
    Span value = env.site->value;
    TreeId term = env.site->tree ? sum_body(s.ast, env.site->tree, name.symbol) : TreeId{};
    if (term) value = s[term].span;
    bool inside = value.valid() && name.span.begin >= value.begin && name.span.end <= value.end;
    if (inside) {
      Span front{value.file, value.begin, value.begin}, back{value.file, value.end, value.end};
      // The fix is safe only when a contraction is clearly intended: two factors of an indexed
      // `let` share the name. Otherwise it may be misspelled, or forgotten on the left.
      bool safe = (near.size() <= 1 || near == k) && indexed && term &&
                  contracted(s, term, name.symbol) > 1;
      d.fix({fmt::format("sum over `{}`", k), {{front, "sum[" + k + "]("}, {back, ")"}}, safe});
    }
    return;
  }
  auto& d = s.diags.error(Code::E0201, "unknown name " + quoted(name.symbol));
  d.primary(name.span, "");
  if (const char* help = foreign_name(text(name.symbol))) {
    d.help(help);
    return;
  }
  suggest(d, near, name.span);
}

Symbol fresh_family_name(Names& names, const std::string& base) {
  for (int& n = names.fresh[base];; ++n) {
    Symbol name = intern(n == 0 ? base : base + "_" + std::to_string(n));
    if (names.reserved.insert(name).second) return name;
  }
}

const Pack* find_pack(const Env& env, Symbol name) {
  for (const Frame* f = env.frame; f; f = f->up) {
    for (const Pack& p : f->packs) {
      if (p.name == name) return &p;
    }
    if (f->function) return nullptr;
  }
  return nullptr;
}

}  // namespace ein::sema
