// What a statement of the top level does, or one of a function that is called there.
#include "sema/builtins.h"
#include "sema/expressions/expressions.h"
#include "sema/state/definition_state.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"

namespace ein::sema {

namespace {

// `if c { print(a); }`: whether one of its blocks has an effect as a statement.
bool has_effect(const Sema& s, const ast::If& choice) {
  for (TreeId arm : {choice.then_block, choice.else_block}) {
    const auto* block = arm ? std::get_if<ast::Block>(&s[arm].node) : nullptr;
    if (!block) continue;
    std::vector<TreeId> values{block->value};
    for (ast::StmtId id : block->stmts) {
      const auto* stmt = std::get_if<ast::ExprStmt>(&s.ast[id].node);
      if (stmt) values.push_back(stmt->value);
    }
    for (TreeId value : values) {
      const auto* call = value ? std::get_if<ast::Call>(&s[value].node) : nullptr;
      const Builtin* builtin = call ? spelled_builtin(s.ast, *call) : nullptr;
      if (builtin && builtin->kind == Builtin::Kind::Effect) return true;
    }
  }
  return false;
}

}  // namespace

bool perform(Sema& s, const Env& outer, TreeId value) {
  Env env = outer;
  Site& site = s.definitions.sites.emplace_back();
  site.span = site.value = s[value].span;
  site.name = "shown";
  env.site = &site;
  const auto* call = std::get_if<ast::Call>(&s[value].node);
  const Builtin* builtin = call ? spelled_builtin(s.ast, *call) : nullptr;
  if (builtin && builtin->kind == Builtin::Kind::Effect) {
    if (!takes_names(*builtin) && reject_names(s, *call, quoted(builtin->spelling))) return true;
    builtin->elaborate(s, env, *builtin, *call, s[value].span);
    warn_axes(s, site);
    return true;
  }
  if (report_statement(s, env, value)) return true;
  if (const auto* choice = std::get_if<ast::If>(&s[value].node); choice && has_effect(s, *choice)) {
    s.diags.error(Code::E0207, "an effect cannot depend on an `if`")
        .primary(s[value].span, "effects always happen")
        .help(
            "choose the value instead: `print(if c { a } else { b });`; strings can be chosen too");
    return true;
  }
  size_t effects = s.m.effects.size(), errors = s.diags.errors();
  env.effects = call != nullptr;
  Value v = elaborate(s, env, value);
  warn_axes(s, site);
  if (s.m.effects.size() != effects || s.diags.errors() != errors) return true;
  return v.poison() && s.diags.has_errors();  // an argument may be in error
}

void elaborate_statement(Sema& s, const Env& env, TreeId value) {
  if (!perform(s, env, value)) warn_unused_value(s, s[value].span);
}

}  // namespace ein::sema
