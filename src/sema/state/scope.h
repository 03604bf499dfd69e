// Scopes, and what is known at one place of a program: the names in reach, the indices, the
// conditions that hold.
#pragma once

#include <deque>
#include <map>

#include "sema/state/definition.h"

namespace ein::sema {

struct PendingGate;

// An index in scope. Its range holds placeholders until the statement is complete, if not written.
struct Index {
  Symbol name;
  Span span;
  Span named;  // the name in the text that defines it; invalid: none does
  uint32_t slot = 0;
  core::Range range;
  bool inferred = false;
  bool left = false;  // a coordinate of the left side; otherwise bound by a reduction
  bool used = false;
  bool in_brackets = false;  // used inside an index slot
};

// A link of the lexical chain, innermost first.
struct Frame {
  const Frame* up = nullptr;
  bool function = false;  // indices further out belong to the caller
  bool rule = false;      // of an `@fn`: `@x` is the tangent of its parameter x
  // Indices of a lifted argument: seen only alone in a slot (decisions.md, 1).
  bool slots_only = false;
  std::vector<Pack> packs;
  std::vector<Index*> indices;
  std::vector<std::pair<ast::Name, Value>> values;  // parameters and `where` bindings
  Scope* scope = nullptr;
};

// A call whose gate restricts coordinates of the callee (decisions.md, 17), while its body is
// elaborated (calls/gate_calls.cc).
struct GatedCall {
  GatedCall* outer = nullptr;
  const ast::Fn* fn = nullptr;
  Value gate;                   // bool, over some of the coordinates, by the caller's names
  std::set<Symbol> names;       // the gated coordinates, by the caller's names
  std::vector<CoreId> extents;  // of those coordinates
  Span span;
  // Of the arguments and of what the body has defined so far: for each coordinate of the family,
  // which coordinate of the gate it is.
  std::map<FamilyId, std::vector<int>> roles;
  std::vector<FamilyId> waiting;  // made, but part of a recurrence that is not complete
  size_t recurrences = 0;         // that are being defined now
  bool bad = false;
};

struct Env {
  const Frame* frame = nullptr;
  uint32_t depth = 0;
  Site* site = nullptr;
  // The slots above the site's: reduced indices, and coordinates that a call maps over. Shorter
  // than `depth` says when one of them has no range of its own.
  std::vector<SiteSlot> binders;
  std::vector<CoreId> conds;        // what holds here: gates and `if` conditions around
  std::vector<PendingGate*> gates;  // outside gates looking for their reduction
  GatedCall* gated = nullptr;       // the calls around whose gates apply here
  bool shadow_ok = false;  // in an index slot or a comparison: may hide a value (decisions.md, 2)
  bool in_slot = false;
  bool takes_cells = false;  // an operand of `matrix_factor`: `matrix_cells` may stand here
  bool effects = false;      // a call made as a statement of the top level: its body may print
  const ast::Fn* scalar_body = nullptr;  // in the body of a function that becomes one of Core
};

// A function of some scope, seen from another.
struct Function {
  const ast::Fn* fn = nullptr;
  ast::StmtId stmt;
  Scope* home = nullptr;  // where its free names are looked up
};

// `use path::*`
struct Glob {
  Scope* module = nullptr;
  Span span;
  bool pub = false;  // what it brings is exported too
};

struct ExtentName {
  CoreId extent;
  Span named;  // the name in a type that gives it; invalid: none does
};

// What a module, a block or a function body defines. Names are looked up on demand.
struct Scope {
  Env env;  // where its definitions are elaborated
  Frame frame;
  std::deque<Definition> definitions;
  std::vector<Definition*> order;        // what is read comes before its readers
  std::map<Symbol, Definition*> values;  // its own and those that `use` names
  std::map<Symbol, Function> functions;  // the same
  std::map<Symbol, Function> rules;      // `@fn`, by the name of the function
  std::map<Symbol, Symbol> primitives;   // scalar primitives that `use` names, by their names here
  std::map<Symbol, Scope*> modules;      // by `mod` and `use`
  std::set<Symbol> types;                // exported ones
  std::vector<Glob> globs;
  std::set<Symbol> reexported;           // names that a `pub use` spells
  std::set<Symbol> missing;              // names of failed imports, which were reported
  bool missing_glob = false;             // a glob failed: any name may be missing
  bool module = false;                   // the top level of a file
  bool root = false;                     // of the program: its families keep their names
  bool signature = false;                // of one call: names of the parameters' types belong to it
  bool broken = false;                   // a condition on the call does not hold: there is no value
  std::map<Symbol, ExtentName> extents;  // from type annotations
  std::map<Symbol, Definition*> extent_sources;          // annotations not looked at yet
  std::map<ast::StmtId, std::vector<ClauseOut>> tuples;  // one per name, elaborated together
  std::map<ast::StmtId, LeftSide> lefts;
  bool step = false;           // a block of a recurrence step: its locals are families
  std::set<Symbol> requested;  // locals that a request names
};

}  // namespace ein::sema
