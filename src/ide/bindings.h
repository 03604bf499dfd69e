// Which name means what, by the rules of scopes alone. Elaboration says the same where it gets to
// (sema/state/meanings.h; tests/unit/ide_test.cc holds the two together), but a program that is being
// written has functions that nothing calls yet and statements behind a mistake, and an editor wants
// an answer there too.
#pragma once

#include <string>
#include <vector>

#include "sema/modules.h"
#include "sema/state/meanings.h"

namespace ein::ide {

enum class Kind : uint8_t {
  Value,       // a `let`
  Input,       // a `let` of the program without a value
  Constant,    // a `const`
  Parameter,   // of a function or a lambda
  Local,       // a name of a `where`, of a pattern, of `v in xs`
  Index,       // of a left side, of a reduction, of a comprehension
  Extent,      // a name in a type
  Coordinate,  // in the brackets of a function or of its call
  Pack,
  Function,
  Module,
  Type,
  Field,
  Builtin,  // has no definition
};
const char* name_of(Kind kind);  // "index", in the words of messages

struct Entity {
  Kind kind = Kind::Value;
  Symbol name;
  Span span;         // the name that defines it; invalid for Builtin
  ast::StmtId stmt;  // of a value, a function, a type: where it is defined
  // Indices, extents and coordinates that meet by their name belong together: those of one name in
  // the definitions of a file, or in one function with its rule. So do a parameter of a function and
  // that of its rule, and a number that fixes an extent and the coordinates that have its name from
  // there. Every other entity is alone in its group.
  uint32_t group = 0;
  bool exported = false;
  bool top = false;  // of the top level of a file
};

struct Occurrence {
  Span span;
  uint32_t entity = 0;
  bool defines = false;
  bool field = false;  // of `{ a, b }` and `let { a, b } = p`: the name is that of a field too
};

// The names that may be used in a piece of text, besides those of the pieces around it.
struct Region {
  Span span;
  std::vector<uint32_t> entities;
};

struct Bindings {
  std::vector<Entity> entities;
  std::vector<Occurrence> occurrences;  // by file and place
  std::vector<Region> regions;          // an outer one before those in it
};

Bindings bind(const sema::Program& program, const SourceMap& sources);
// The names of arguments of a function that is a value, as in `f(x, rate = 0.1)` for a parameter `f`:
// which function that is follows from no scope, and is known where elaboration got to.
void add_argument_names(Bindings& b, const ast::Ast& ast, const sema::Meanings& meanings);

// The occurrence that has the place in it or ends there; null when there is none.
const Occurrence* occurrence_at(const Bindings& b, FileId file, uint32_t offset);
// The entities that a name at this place can mean, the innermost first.
std::vector<uint32_t> visible_at(const Bindings& b, FileId file, uint32_t offset);

}  // namespace ein::ide
