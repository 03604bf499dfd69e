#include "sema/elaborate.h"

#include "sema/sema.h"

namespace ein::sema {

namespace {

void elaborate_statement(Sema& s, Scope& module, TreeId value) {
  Env env = module.env;
  Site& site = s.sites.emplace_back();
  site.span = site.value = s[value].span;
  site.name = "shown";
  env.site = &site;
  const auto* call = std::get_if<ast::Call>(&s[value].node);
  if (call && is_effect(path_name(s, call->callee))) {
    elaborate_effect(s, env, *call, s[value].span);
  } else if (!elaborate(s, env, value).poison()) {
    s.diags.error(Code::E0207, "this statement has no effect")
        .primary(s[value].span, "its value is not used")
        .help("give it a name with `let`, or `print` it");
  }
}

core::Module elaborate_program(const ast::Ast& ast, const std::vector<ast::StmtId>& definitions,
                               const std::vector<TreeId>& effects, Diagnostics& diags) {
  Sema s(ast, diags);
  Scope& module = s.scopes.emplace_back();
  module.frame.scope = &module;
  module.env.frame = &module.frame;
  declare(s, module, definitions);
  for (const auto& [name, d] : module.values) s.reserved.insert(name);
  declare_inputs(s, module);
  for (const auto& [name, extent] : module.extents) s.reserved.insert(name);
  for (Definition* d : module.order) define(s, *d);
  for (TreeId value : effects) elaborate_statement(s, module, value);
  finish(s);
  return std::move(s.m);
}

void add_effects(const ast::Ast& ast, const std::vector<ast::StmtId>& stmts,
                 std::vector<TreeId>& out) {
  for (ast::StmtId id : stmts) {
    if (const auto* stmt = std::get_if<ast::ExprStmt>(&ast[id].node)) out.push_back(stmt->value);
  }
}

}  // namespace

core::Module elaborate(const ast::Ast& ast, Diagnostics& diags) {
  std::vector<TreeId> effects;
  add_effects(ast, ast.items, effects);
  return elaborate_program(ast, ast.items, effects, diags);
}

core::Module elaborate_test(const ast::Ast& ast, const ast::Test& test, Diagnostics& diags) {
  std::vector<ast::StmtId> definitions = ast.items;
  std::vector<TreeId> effects;
  if (const auto* block = std::get_if<ast::Block>(&ast[test.body].node)) {
    definitions.insert(definitions.end(), block->stmts.begin(), block->stmts.end());
    add_effects(ast, block->stmts, effects);
    if (block->value) effects.push_back(block->value);  // an `assert` without its `;`
  }
  return elaborate_program(ast, definitions, effects, diags);
}

}  // namespace ein::sema
