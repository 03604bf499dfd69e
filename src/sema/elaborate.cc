#include "sema/elaborate.h"

#include "sema/sema.h"

namespace ein::sema {

core::Module elaborate(const ast::Ast& ast, Diagnostics& diags) {
  Sema s(ast, diags);
  Scope& module = s.scopes.emplace_back();
  module.frame.scope = &module;
  module.env.frame = &module.frame;
  declare(s, module, ast.items);
  for (const auto& [name, d] : module.values) s.reserved.insert(name);
  declare_inputs(s, module);
  for (const auto& [name, extent] : module.extents) s.reserved.insert(name);
  for (Definition& d : module.definitions) define(s, d);
  for (ast::StmtId id : ast.items) {
    const auto* stmt = std::get_if<ast::ExprStmt>(&ast[id].node);
    if (!stmt) continue;
    Env env = module.env;
    Site& site = s.sites.emplace_back();
    site.span = site.value = ast[stmt->value].span;
    site.name = "shown";
    env.site = &site;
    const auto* call = std::get_if<ast::Call>(&ast[stmt->value].node);
    if (call && is_effect(path_name(s, call->callee))) {
      elaborate_effect(s, env, *call, ast[stmt->value].span);
    } else if (!elaborate(s, env, stmt->value).poison()) {
      diags.error(Code::E0207, "this statement has no effect")
          .primary(ast[stmt->value].span, "its value is not used")
          .help("give it a name with `let`, or `print` it");
    }
  }
  finish(s);
  return std::move(s.m);
}

}  // namespace ein::sema
