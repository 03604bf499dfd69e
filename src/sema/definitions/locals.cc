// Blocks. A local is a definition like any other; inside a clause it becomes a family that carries
// the clause's coordinates, so that recurrences and requests see it (define.cc decides).
#include <fmt/format.h>

#include <algorithm>

#include "sema/builtins.h"
#include "sema/calls/calls.h"
#include "sema/expressions/expressions.h"
#include "sema/names/names.h"
#include "sema/names/trees.h"
#include "sema/state/name_state.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"

namespace ein::sema {
namespace {

// `assert(…)`: in a block that gives a value it is a condition on the call (contracts.cc).
const ast::Call* as_contract(const Sema& s, const ast::ExprStmt& stmt) {
  const auto* call = std::get_if<ast::Call>(&s[stmt.value].node);
  return call && spells(s.ast, *call, Builtin::Id::Assert) ? call : nullptr;
}

void reject_statement(Sema& s, Env& env, const ast::ExprStmt& stmt) {
  const auto* call = std::get_if<ast::Call>(&s[stmt.value].node);
  if (as_contract(s, stmt)) return;  // checked already
  if (report_statement(s, env, stmt.value)) return;
  if (call && is_effect(path_name(s.ast, call->callee))) {
    const Definition* recurrence = nullptr;
    for (const Site* site = env.site; site; site = site->outer) {
      if (site->definition && site->definition->recurrent) recurrence = site->definition;
    }
    auto& d = s.diags.error(
        Code::E0207, "`" + text(path_name(s.ast, call->callee)) + "` is not allowed in a block");
    d.primary(s[stmt.value].span, "");
    if (recurrence) {
      d.help(fmt::format("to see values of the steps, write `dbg(e)`, or run with `--watch {}`",
                         text(recurrence->name.symbol)));
    } else {
      d.help("effects belong at the top level, or in functions called from there as statements");
    }
    return;
  }
  if (!elaborate(s, env, stmt.value).poison()) warn_unused_value(s, s[stmt.value].span);
}

// An outside gate is evaluated in the reductions of the block: its names must mean the same there.
void check_gate_names(Sema& s, Scope& scope) {
  for (PendingGate* gate : std::vector<PendingGate*>(scope.env.gates)) {
    for (const ast::WhereItem& item : gate->where->items) {
      for (Symbol name : free_names(s.ast, item.value)) {
        auto local = scope.values.find(name);
        if (local == scope.values.end()) continue;
        s.diags
            .error(Code::E0308,
                   fmt::format("{} in this `where` is defined again in the block", quoted(name)))
            .primary(gate->where->where_span, "outside the block")
            .label(local->second->name.span, "inside it")
            .help("rename one of them, or put the `where` inside the reduction's parentheses");
        gate->placed = true;  // reported
        std::erase(scope.env.gates, gate);
      }
    }
  }
}

}  // namespace

Scope& open_block(Sema& s, Env& env, const ast::Block& block, TreeId until) {
  Scope& scope = s.names.scopes.emplace_back();
  scope.frame.up = env.frame;
  scope.frame.scope = &scope;
  scope.env = env;
  scope.env.frame = &scope.frame;
  scope.env.shadow_ok = scope.env.in_slot = scope.env.effects = false;
  for (const Site* site = env.site; site; site = site->outer) {
    scope.step |= site->definition && site->definition->recurrent;
  }
  auto note = [&](TreeId e) { scope.requested.merge(requested_names(s.ast, e)); };
  note(block.value);
  note(until);
  for (ast::StmtId id : block.stmts) {
    if (const auto* l = std::get_if<ast::Let>(&s.ast[id].node)) note(l->value), note(l->until);
  }
  declare(s, scope, block.stmts);
  check_rules(s, scope);
  check_defaults(s, scope);
  check_gate_names(s, scope);
  for (Definition* d : scope.order) {  // before anything asks for an extent that one would name
    if (!d->input) continue;
    s.diags.error(Code::E0210, "an input cannot be declared in a block")
        .primary(d->name.span, "no value")
        .help("declare inputs at the top level of the program");
    d->state = Definition::State::Bad;
  }
  Env inside = scope.env;
  bool met = true;  // conditions first: one that fails is reported, its consequences are not
  for (ast::StmtId id : block.stmts) {
    const auto* e = std::get_if<ast::ExprStmt>(&s.ast[id].node);
    const ast::Call* contract = e && !env.effects ? as_contract(s, *e) : nullptr;
    if (contract) met &= check_contract(s, inside, *contract, s[e->value].span);
  }
  scope.broken = !met;
  for (Definition* d : scope.order) {
    if (!met) d->state = Definition::State::Bad;
    define(s, *d);
  }
  for (ast::StmtId id : block.stmts) {
    const auto* e = std::get_if<ast::ExprStmt>(&s.ast[id].node);
    if (e && env.effects) elaborate_statement(s, inside, e->value);
    if (e && !env.effects) reject_statement(s, inside, *e);
  }
  return scope;
}

void elaborate_procedure(Sema& s, Env& env, const ast::Block& block) {
  env.effects = true;
  Scope& scope = open_block(s, env, block);
  if (block.value) perform(s, scope.env, block.value);
}

Value elaborate_block(Sema& s, Env& env, const ast::Block& block, Span span, TreeId until,
                      Env* after) {
  if (after) *after = env;
  if (block.stmts.empty()) {
    if (block.value) return elaborate(s, env, block.value);
  }
  Scope& scope = open_block(s, env, block, until);
  Env inside = scope.env;
  if (after) *after = inside;
  bool broken = std::any_of(block.stmts.begin(), block.stmts.end(), [&](ast::StmtId id) {
    return std::holds_alternative<ast::ErrorStmt>(s.ast[id].node);
  });
  if (scope.broken || (!block.value && broken)) return {};  // it has been said why
  if (!block.value) {
    s.diags.error(Code::E0502, "this block has no value")
        .primary(span, "")
        .help("end it with an expression");
    return {};
  }
  inside.gates = env.gates;
  return elaborate(s, inside, block.value);
}

}  // namespace ein::sema
