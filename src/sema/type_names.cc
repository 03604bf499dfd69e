#include "sema/type_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sema/state/report.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

struct Named {
  ast::TypeId type;
  Span span;
  bool pub = false;
};
using TypeNames = std::map<Symbol, Named>;

class Resolver {
 public:
  Resolver(Program& program, Diagnostics& diags)
      : p_(program), diags_(diags), names_(program.modules.size()) {}

  void run() {
    for (size_t i = 0; i < p_.modules.size(); ++i) {
      imports(i);
      definitions(i);
      const ModuleTree& m = p_.modules[i];
      for (size_t t = m.first_type; t < m.end_type; ++t) {
        resolve(names_[i], ast::TypeId(static_cast<uint32_t>(t)));
      }
    }
  }

 private:
  void add(size_t module, const ast::Name& name, Named what) {
    if (scalar_type(name.symbol)) {
      diags_.error(Code::E0202, quoted(name.symbol) + " is a built-in type").primary(name.span, "");
      return;
    }
    auto [it, fresh] = names_[module].try_emplace(name.symbol, what);
    if (fresh || it->second.type == what.type) return;
    diags_.error(Code::E0202, fmt::format("type {} is defined twice", quoted(name.symbol)))
        .primary(name.span, "defined again here")
        .label(it->second.span, "first defined here");
  }

  void imports(size_t module) {
    if (p_.prelude && module > *p_.prelude) {
      for (const auto& [name, what] : names_[*p_.prelude]) {
        if (what.pub) names_[module].try_emplace(name, Named{what.type, what.span, false});
      }
    }
    for (ast::StmtId id : p_.modules[module].items) {
      const auto* use = std::get_if<ast::Use>(&p_.ast[id].node);
      auto target = p_.targets.find(id);
      if (!use || target == p_.targets.end()) continue;
      const TypeNames& from = names_[target->second.module];
      auto import = [&](const ast::Name& name, const ast::Name& as) {
        auto it = from.find(name.symbol);
        if (it != from.end() && it->second.pub) add(module, as, {it->second.type, as.span});
      };
      if (use->glob) {
        for (const auto& [name, what] : from) {
          if (what.pub) names_[module].try_emplace(name, Named{what.type, what.span, false});
        }
      }
      for (const ast::UseItem& item : use->items) {
        import(item.name, item.alias.value_or(item.name));
      }
      if (target->second.item) {
        import(*target->second.item, use->alias.value_or(*target->second.item));
      }
    }
  }

  void definitions(size_t module) {
    for (ast::StmtId id : p_.modules[module].items) {
      const auto* def = std::get_if<ast::TypeDef>(&p_.ast[id].node);
      if (def) add(module, def->name, {def->type, def->name.span, def->pub});
    }
  }

  // Replaces names in a type, innermost first.
  void resolve(const TypeNames& names, ast::TypeId id) {
    if (open_.count(id)) return part_of_itself(names, id);
    if (!done_.insert(id).second) return;
    open_.insert(id);
    replace(names, id);
    open_.erase(id);
  }

  void part_of_itself(const TypeNames& names, ast::TypeId id) {
    const auto* named = std::get_if<ast::NamedType>(&p_.ast[id].node);
    if (!named) return;  // reported at the name that leads here
    diags_.error(Code::E0203, fmt::format("type {} is part of itself", quoted(named->name.symbol)))
        .primary(p_.ast[id].span, "used here")
        .label(names.at(named->name.symbol).span, "defined here");
    broken_.insert(id);
  }

  void replace(const TypeNames& names, ast::TypeId id) {
    const ast::Type type = p_.ast[id];  // a copy: types are added below
    if (const auto* named = std::get_if<ast::NamedType>(&type.node)) {
      auto it = names.find(named->name.symbol);
      if (it == names.end()) return;
      resolve(names, it->second.type);
      p_.ast.types[id].node = broken_.count(id) ? ast::ErrorType{} : p_.ast[it->second.type].node;
    } else if (const auto* tuple = std::get_if<ast::TupleType>(&type.node)) {
      for (ast::TypeId item : tuple->items) resolve(names, item);
      std::map<Symbol, Span> seen;
      for (const ast::Name& n : tuple->names) {
        auto [it, fresh] = seen.try_emplace(n.symbol, n.span);
        if (fresh) continue;
        diags_.error(Code::E0202, fmt::format("field {} is given twice", quoted(n.symbol)))
            .primary(n.span, "given again here")
            .label(it->second, "first given here");
      }
    } else if (const auto* fn = std::get_if<ast::FnType>(&type.node)) {
      for (ast::TypeId param : fn->params) resolve(names, param);
      if (fn->result) resolve(names, fn->result);
    } else if (const auto* tensor = std::get_if<ast::TensorType>(&type.node)) {
      resolve(names, tensor->elem);
      if (std::holds_alternative<ast::NamedType>(p_.ast[tensor->elem].node)) return;
      p_.ast.types[id].node = p_.ast[with_dims(tensor->elem, tensor->dims)].node;
      auto* record = std::get_if<ast::TupleType>(&p_.ast.types[id].node);
      if (record && !record->names.empty() && known_rank(tensor->dims)) {
        record->outer += tensor->dims.size();
      }
    }
  }

  static bool known_rank(const std::vector<ast::Dim>& dims) {
    return std::all_of(dims.begin(), dims.end(), [](const ast::Dim& d) {
      return d.kind == ast::Dim::Kind::Extent || d.kind == ast::Dim::Kind::Unknown;
    });
  }

  // The type with these coordinates in front of those of its parts.
  ast::TypeId with_dims(ast::TypeId id, const std::vector<ast::Dim>& dims) {
    ast::Type type = p_.ast[id];
    if (auto* tuple = std::get_if<ast::TupleType>(&type.node)) {
      for (ast::TypeId& item : tuple->items) item = with_dims(item, dims);
    } else if (auto* tensor = std::get_if<ast::TensorType>(&type.node)) {
      tensor->dims.insert(tensor->dims.begin(), dims.begin(), dims.end());
    } else if (std::holds_alternative<ast::NamedType>(type.node)) {
      type.node = ast::TensorType{id, dims};
    }
    ast::TypeId made = p_.ast.types.add(std::move(type));
    done_.insert(made);
    return made;
  }

  Program& p_;
  Diagnostics& diags_;
  std::vector<TypeNames> names_;                // by module
  std::set<ast::TypeId> done_, open_, broken_;  // resolved, being resolved, part of themselves
};

}  // namespace

void resolve_type_names(Program& program, Diagnostics& diags) { Resolver(program, diags).run(); }

}  // namespace ein::sema
