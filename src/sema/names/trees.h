// Questions that the tree answers without elaboration: which names are free in an expression, which
// are bound, how a type is written.
#pragma once

#include <functional>
#include <set>

#include "sema/state/state.h"

namespace ein::sema {

const ast::Path* as_path(const ast::Ast& ast, TreeId e);  // a single name, or null
Symbol path_name(const ast::Ast& ast, TreeId e);          // invalid when `e` is not a single name
// `x` of `x` and `x[i]`; invalid for anything else.
TreeId named_base(const ast::Ast& ast, TreeId e);
// The name at the root of `x`, `x[i]`, `p.w`, `s[t].p.w[i]`; invalid for anything else.
Symbol rooted_name(const ast::Ast& ast, TreeId e);

std::set<Symbol> free_names(const ast::Ast& ast, TreeId e);
// Every identifier that the tree spells, in types and brackets too.
void spelled_names(const ast::Ast& ast, TreeId e, std::set<Symbol>& out);
// Every node below `e`, blocks included; for questions that do not depend on scopes.
void for_each_tree(const ast::Ast& ast, TreeId e, const std::function<void(TreeId)>& f);
// Where a forgotten sum over `name` belongs in `e`: around the term that has it.
TreeId sum_body(const ast::Ast& ast, TreeId e, Symbol name);
std::set<Symbol> reduced_names(const ast::Ast& ast, TreeId e);    // bound by reductions inside
std::set<Symbol> requested_names(const ast::Ast& ast, TreeId e);  // operands of requests
// Names in index expressions such as `t - 1`.
std::set<Symbol> stepped_names(const ast::Ast& ast, TreeId e);
// Names that a `let` or `const` of `scope` reads, directly and through functions of the scope.
std::set<Symbol> clause_names(Sema& s, const Scope& scope, const ast::Stmt& stmt);
// Functions of `scope` that the body of another one calls or names.
std::set<ast::StmtId> named_functions(const Sema& s, const Scope& scope, ast::StmtId function);

// For each parameter, which argument of the call is for it, by position or by name.
std::vector<std::optional<size_t>> argument_places(const ast::Fn& fn, const ast::Call& call);

const std::vector<ast::Dim>* dims_of(const ast::Ast& ast,
                                     ast::TypeId type);                   // null for a scalar type
const ast::TupleType* tuple_type(const ast::Ast& ast, ast::TypeId type);  // null for any other
// The parts of a record type that are no records, in order, and what files call them: `enc.w`, or
// `h.#.w` in an array of records, which files number (runtime/members.h). Empty for any other type.
struct FilePart {
  std::string name;
  ast::TypeId type;
};
std::vector<FilePart> file_parts(const ast::Ast& ast, ast::TypeId type);
bool is_text_type(const ast::Ast& ast, ast::TypeId type);
bool is_texts_type(const ast::Ast& ast, ast::TypeId type);  // `[str; n]`

}  // namespace ein::sema
