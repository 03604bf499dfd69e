// Names: what a scope defines and imports, how a name is found, which definitions read each other,
// and what is said about a name that nothing defines.
#pragma once

#include "sema/state/state.h"

namespace ein::sema {

// ---- names.cc: scopes and lookup ---------------------------------------------------------------

struct Found {
  enum class Kind : uint8_t { None, Index, Value, Extent } kind = Kind::None;
  Index* index = nullptr;
  Value value;
  Span definition = {};  // the name that defines it, where one does
};
void declare(Sema& s, Scope& scope, const std::vector<ast::StmtId>& stmts);
Index* find_index(const Env& env, Symbol name);
// The same for a name alone in an index slot, where lifted coordinates are seen too.
Index* find_slot_index(const Env& env, Symbol name);
const Pack* find_pack(const Env& env, Symbol name);
Definition* find_definition(const Env& env, Symbol name);
const Function* find_function(const Env& env, Symbol name);  // null when there is none
// The same for what stands before the parentheses of a call; a path may lead to a module.
const Function* find_callee(Sema& s, const Env& env, TreeId callee);
bool value_exists(const Env& env, Symbol name);
Found lookup(Sema& s, Env& env, ast::Name name, bool skip_indices = false);
std::optional<CoreId> find_extent(Sema& s, const Env& env, Symbol name);
std::optional<ExtentName> find_extent_name(Sema& s, const Env& env, Symbol name);  // with its place
std::vector<std::string> value_names(const Env& env);
std::vector<std::string> function_names(const Env& env);
void report_unknown(Sema& s, Env& env, ast::Name name);
// A name for a family that no other has.
Symbol fresh_family_name(Names& names, const std::string& base);

// ---- imports.cc: names of other modules ---------------------------------------------------------

void import(Sema& s, Scope& scope, ast::StmtId id);  // a `use` or `mod`
// An exported item by its path.
const Function* function_at(Sema& s, const Env& env, const ast::Path& path, bool report);
Definition* value_at(Sema& s, const Env& env, const ast::Path& path);
// The scalar primitive that a name stands for when no function has it: the one that `use` renamed
// to it, or itself.
Symbol primitive_called(const Env& env, Symbol name);
Symbol primitive_at(Sema& s, const Env& env, const ast::Path& path);  // by its path; or invalid
// The item of that name that a glob of this scope imports; or null.
const Function* glob_function(const Scope& scope, Symbol name);
Definition* glob_value(const Scope& scope, Symbol name);
// The name would come from an import whose failure was reported already.
bool import_failed(const Env& env, Symbol name);
// Reports the name when two globs bring it; true when it did.
bool ambiguous(Sema& s, const Env& env, ast::Name name, bool function);

// ---- groups.cc ---------------------------------------------------------------------------------

// Groups the definitions of a scope that read each other, and puts what is read first.
void find_groups(Sema& s, Scope& scope);

// ---- unknown_function.cc, uncalled.cc ----------------------------------------------------------

Value unknown_function(Sema& s, Env& env, const ast::Name& name);
// The `use` that would bring a library function into scope; empty when the library has no such
// name.
std::string how_to_import(const Sema& s, Symbol function);
// Functions are checked where they are called. Of those that nothing calls, checks only that the
// names in them exist.
void check_uncalled(Sema& s, Scope& module);

}  // namespace ein::sema
