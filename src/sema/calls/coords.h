// Coordinates and packs as parameters: how arguments are lifted (decisions.md, 1), how a signature
// is matched (decisions.md, 4), and what a gate over a call does (decisions.md, 17). Shared by
// lift.cc (arguments with free coordinates), signature.cc (matching), coordinate_calls.cc (the
// call) and gate_calls.cc (a gate over a call).
#pragma once

#include <map>
#include <set>

#include "sema/state/state.h"

namespace ein::sema {

// ---- lift.cc -----------------------------------------------------------------------------------

// Names that stand alone in slots of accesses in `e` and are not bound inside, in order.
std::vector<Symbol> lone_names(Sema& s, Env& env, TreeId e);
using BracketNames = std::map<Symbol, Span>;
// The tree as a value whose coordinates are those of `coords` that it reads, followed by those it
// carries. A name in `everywhere` means its coordinate in any position, the others only alone in a
// slot; with it stands the name in the text that defines it, where there is one. `bindings` of a
// `where` are elaborated first, over the same coordinates.
Value elaborate_over(Sema& s, Env& env, TreeId e, const std::vector<core::Coord>& coords,
                     const BracketNames& everywhere, std::set<Symbol>& lifted,
                     const std::vector<ast::WhereItem>& bindings = {});
// The same over the tree's lone names. `brackets`: the names in the brackets of the call.
Value elaborate_lifted(Sema& s, Env& env, TreeId e, const BracketNames& brackets,
                       std::set<Symbol>& lifted);

// ---- signature.cc ------------------------------------------------------------------------------

// One bracket argument: the caller's names of the coordinates.
struct BracketArgument {
  std::vector<ast::Name> names;
  bool several = false;  // a group or a pack, for a pack parameter
  Span span;
};
struct Bracketing {
  std::vector<BracketArgument> arguments;
  Span span;
};
struct Bound {    // a coordinate of the callee
  Symbol name;    // inside
  Symbol caller;  // invalid: the caller's coordinate has no name
  CoreId extent;
  Span span;              // the argument it was found in
  bool grounded = false;  // some argument has it by name
};
// What the parameters' types stand for in one call.
struct Signature {
  const ast::Fn& fn;
  std::map<Symbol, ast::Name> given;  // single bracket parameters → the caller's name
  std::map<Symbol, Bound> singles;    // the same, once met
  std::map<Symbol, std::vector<Bound>> packs;
  std::map<Symbol, Symbol> back;  // names inside → names of the caller
  std::set<Symbol> taken;
};
// An argument and the type that is written for it, or a part of both where they are records or tuples.
struct Argument {
  ast::TypeId type;
  Value* value = nullptr;
  std::string what;  // for messages
};
std::string argument_of(const ast::Fn& fn, const ast::Param& param);
std::string field_name(const Value& v, size_t i);
// The parts of `value`, with its fields in the order of the type; none when it has other fields.
void add_arguments(const ast::Ast& ast, ast::TypeId type, Value& value, const std::string& what,
                   std::vector<Argument>& out);
// The parts of all arguments whose types name coordinates of the brackets, or packs.
std::vector<Argument> coordinate_arguments(const Sema& s, const ast::Fn& fn,
                                           std::vector<Value>& args);
bool uses_coordinates(const Sema& s, const ast::Fn& fn, ast::TypeId type);
bool bind_brackets(Sema& s, Signature& sig, const Bracketing* brackets, Span call);
// Fits the types of all parameters to the arguments; their coordinates take the callee's names.
bool match_signature(Sema& s, Env& env, Scope& scope, Signature& sig, std::vector<Value>& args,
                     Span call);
// The coordinates that a return type, or a field of it, stands for. Names that nothing binds are
// reported.
bool result_coords(Sema& s, Env& env, Scope& scope, const Signature& sig, ast::TypeId type,
                   std::vector<core::Coord>& out);

// ---- coordinate_calls.cc -----------------------------------------------------------------------

// The names that the result of a call carries, in order, by its return type; nothing after an error
// or when it has none.
std::optional<std::vector<Symbol>> result_names(Sema& s, Env& env, const ast::Fn& fn,
                                                const Frame* home, std::vector<Value> args,
                                                const Bracketing& brackets, Span span);
Value elaborate_coordinate_call(Sema& s, Env& env, const ast::Call& call, const ast::Fn& fn,
                                ast::StmtId stmt, const Frame* home, Span span);

// ---- results.cc --------------------------------------------------------------------------------

// The body of a function whose return coordinates close the free ones of its last expression.
Value elaborate_body(Sema& s, Env& env, const ast::Fn& fn, const std::vector<core::Coord>& result);
bool check_result_coords(Sema& s, const ast::Fn& fn, ast::TypeId written, Value& v,
                         const std::vector<core::Coord>& result);

// ---- gate_calls.cc -----------------------------------------------------------------------------

// What the body of a gated call defines is gated as soon as it is complete
// (`gate_family`, on_demand.h); the result, whose coordinates have the caller's names, at the end
// (decisions.md, 17). Poison after an error.
Value gate_result(Sema& s, Env& env, GatedCall& call, Value result);
// The call reads an argument through this family, whose coordinates from `prefix` on have the
// caller's names.
void gate_argument(Sema& s, GatedCall& call, FamilyId family, size_t prefix);

}  // namespace ein::sema
