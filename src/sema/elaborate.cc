#include "sema/elaborate.h"

#include "sema/calls/calls.h"
#include "sema/definitions/definitions.h"
#include "sema/finish.h"
#include "sema/names/names.h"
#include "sema/state/call_state.h"
#include "sema/state/definition_state.h"
#include "sema/state/name_state.h"
#include "sema/state/on_demand.h"
#include "sema/state/range_state.h"

namespace ein::sema {

namespace {

// The scopes of all modules, each below the prelude. A module imports only modules that stand
// before it, so every import finds its scope.
Scope& declare_modules(Sema& s, const std::vector<ast::StmtId>& root) {
  const Program& p = s.program;
  for (size_t i = 0; i < p.modules.size(); ++i) {
    Scope& module = s.names.scopes.emplace_back();
    s.names.modules.push_back(&module);
    module.module = true;
    module.root = i + 1 == p.modules.size();
    module.frame.scope = &module;
    // The prelude and what it is made of stand by themselves.
    if (p.prelude && i > *p.prelude) module.frame.up = &s.names.modules[*p.prelude]->frame;
    module.env.frame = &module.frame;
    declare(s, module, module.root ? root : p.modules[i].items);
    check_rules(s, module);
    check_defaults(s, module);
    if (module.root) break;
    for (Definition& d : module.definitions) {
      if (!d.input) continue;
      d.state = Definition::State::Bad;
      s.diags.error(Code::E0210, "an imported module cannot have inputs")
          .primary(d.name.span, "no value")
          .help("declare inputs at the top level of the main program and pass them to functions");
    }
    for (ast::StmtId id : p.modules[i].items) {
      if (!std::holds_alternative<ast::ExprStmt>(s.ast[id].node)) continue;
      s.diags.error(Code::E0207, "an imported module cannot have effects")
          .primary(s.ast[id].span, "")
          .help("move it into a function that the program calls, or into a `test` block");
    }
  }
  return *s.names.modules.back();
}

core::Module elaborate_program(const Program& program, const std::vector<ast::StmtId>& definitions,
                               const std::vector<TreeId>& effects, Diagnostics& diags,
                               const FileLookup& files, const InputShapes& inputs, bool uncalled,
                               Meanings* meanings) {
  Names names;
  Ranges ranges;
  Definitions owned;
  Calls calls;
  Sema s{program, program.ast, diags, files, inputs, {}, names, ranges, owned, calls, meanings};
  Scope& module = declare_modules(s, definitions);
  for (const auto& [name, d] : module.values) s.names.reserved.insert(name);
  declare_inputs(s, module);
  for (const auto& [name, extent] : module.extents) s.names.reserved.insert(name);
  for (Definition* d : module.order) define(s, *d);
  for (TreeId value : effects) elaborate_statement(s, module.env, value);
  if (uncalled) check_uncalled(s, module);
  finish(s);
  finish_meanings(s);
  return std::move(s.m);
}

void add_effects(const ast::Ast& ast, const std::vector<ast::StmtId>& stmts,
                 std::vector<TreeId>& out) {
  for (ast::StmtId id : stmts) {
    if (const auto* stmt = std::get_if<ast::ExprStmt>(&ast[id].node)) out.push_back(stmt->value);
  }
}

}  // namespace

core::Module elaborate(const Program& program, Diagnostics& diags, const FileLookup& files,
                       const InputShapes& inputs, Meanings* meanings) {
  std::vector<TreeId> effects;
  add_effects(program.ast, program.ast.items, effects);
  return elaborate_program(program, program.ast.items, effects, diags, files, inputs, true,
                           meanings);
}

std::vector<ast::StmtId> test_definitions(const Program& program) {
  std::vector<ast::StmtId> out;
  for (ast::StmtId id : program.ast.items) {
    if (!std::holds_alternative<ast::Test>(program.ast[id].node)) out.push_back(id);
  }
  return out;
}

core::Module elaborate_test(const Program& program, const ast::Test& test, Diagnostics& diags,
                            const FileLookup& files, const InputShapes& inputs,
                            const std::vector<ast::StmtId>* shared, Meanings* meanings) {
  const ast::Ast& ast = program.ast;
  std::vector<ast::StmtId> definitions = shared ? *shared : test_definitions(program);
  std::vector<TreeId> effects;
  if (const auto* block = std::get_if<ast::Block>(&ast[test.body].node)) {
    definitions.insert(definitions.end(), block->stmts.begin(), block->stmts.end());
    add_effects(ast, block->stmts, effects);
    if (block->value) effects.push_back(block->value);  // an `assert` without its `;`
  }
  return elaborate_program(program, definitions, effects, diags, files, inputs, false, meanings);
}

}  // namespace ein::sema
