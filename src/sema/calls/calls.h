// Calls: functions are inlined at every call, except scalar functions, which stay functions of
// Core; `@fn` rules; conditions on a call. `elaborate_call` itself is in state/on_demand.h, what
// calls with coordinates share in coords.h.
#pragma once

#include "sema/state/state.h"

namespace ein::sema {

// ---- dispatch.cc, functions.cc, function_calls.cc ----------------------------------------------

struct Bracketing;  // what stands in the brackets of a call (coords.h)
// `home`: what the body sees. `stmt` is invalid for a lambda. `args`: one for each parameter.
Value call_function(Sema& s, Env& env, const ast::Fn& fn, ast::StmtId stmt, const Frame* home,
                    std::vector<Value> args, Span span, const Bracketing* brackets = nullptr);
// What a call of `name` calls, if that is a value; innermost scopes first.
std::optional<Value> called_value(Sema& s, Env& env, const ast::Name& name);
Value call_value(Sema& s, Env& env, const Value& f, const ast::Call& call, std::vector<Value> args,
                 Span span);

// ---- arguments.cc ------------------------------------------------------------------------------

// "2 arguments", "1 to 3 arguments".
std::string count_of_arguments(size_t fewest, size_t most);
// The arguments in the order of the parameters: by position, by name, by default. Nothing after an
// error. `names` are those of ast::Call.
std::optional<std::vector<Value>> arrange_arguments(Sema& s, const Env& env, const ast::Fn& fn,
                                                    const Frame* home,
                                                    const std::vector<ast::Name>& names,
                                                    std::vector<Value> args, Span span);
void check_defaults(Sema& s, Scope& scope);  // of its functions, when the scope is declared

// ---- each.cc -----------------------------------------------------------------------------------

struct Builtin;
Value elaborate_each(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span);
Value elaborate_names(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span);
Value elaborate_fold(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span);

// ---- rules.cc: `@fn` ---------------------------------------------------------------------------

void check_rules(Sema& s, Scope& scope);  // against their functions, when the scope is declared
// The rule of a function, if it has one and derivatives are asked for; null inside the rule itself.
const Function* rule_of(const Sema& s, const ast::Fn& fn, ast::StmtId stmt, const Frame* home);
// Reports, and returns false for, a rule that does not vary along a coordinate along which its
// function does.
bool check_spread(Sema& s, const Function& rule, const ast::Fn& fn, const Value& tangent,
                  const std::vector<Symbol>& unspelled, Span span);
// The value of a call together with what its rule says.
Value with_rule(Sema& s, Env& env, const Function& rule, Value value, Value tangent, Span span);

// ---- recursion.cc ------------------------------------------------------------------------------

// Directly, or through other functions of its scope.
bool calls_itself(Sema& s, const Scope& scope, ast::StmtId function);
// Whether a recursive function has a signature of scalars; reported when it does not.
bool scalar_signature(Sema& s, const ast::Fn& fn, const Scope& scope, Span call);
// A call with arguments of the parameters' types: a node of Core, not an inlined body.
Value call_recursive(Sema& s, Env& env, const ast::Fn& fn, ast::StmtId stmt, const Frame* home,
                     const std::vector<Value>& args, Span span);

// ---- scalar_functions.cc -----------------------------------------------------------------------

// A name that no function of the module has, and no primitive.
Symbol function_name(const Sema& s, const std::string& base);
// A node that the body of a function of Core cannot have: the outermost one, so a reduction rather
// than something inside it.
CoreId foreign_node(const Sema& s, CoreId body);
// The body of a function of Core: `values` are its parameters. Poison after an error.
Value elaborate_scalar_body(Sema& s, const ast::Fn& fn, ast::StmtId stmt, const Frame* home,
                            std::vector<Value> values);
// A call that stays one: the function computes a real number from its parameters alone, and is
// given real numbers. Nothing for all other calls, which are inlined.
std::optional<Value> call_scalar(Sema& s, Env& env, const ast::Fn& fn, ast::StmtId stmt,
                                 const Frame* home, const std::vector<Value>& args, Span span);

// ---- contracts.cc ------------------------------------------------------------------------------

// An `assert` among the statements of a block; false after an error.
bool check_contract(Sema& s, Env& env, const ast::Call& call, Span span);
void check_contracts(Sema& s);  // those that had to wait for extents

}  // namespace ein::sema
