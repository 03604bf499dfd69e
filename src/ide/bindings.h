// What each name means, by the rules of scope alone. Elaboration finds the same meanings as far as
// it gets (sema/state/meanings.h; tests/unit/ide_test.cc compares the two). But a program that is
// being written has functions that nothing calls yet and statements after a mistake, and an editor
// needs answers there, too.
#pragma once

#include <string>
#include <vector>

#include "sema/modules.h"
#include "sema/state/meanings.h"

namespace ein::ide {

enum class Kind : uint8_t {
  Value,       // a `let`
  Input,       // a `let` of the program that has no value
  Constant,    // a `const`
  Parameter,   // a parameter of a function or a lambda
  Local,       // a name bound by a `where`, by a pattern, by `v in xs`
  Index,       // an index of a left side, a reduction or a comprehension
  Extent,      // a name in a type
  Coordinate,  // a coordinate in the brackets of a function or of its call
  Pack,
  Function,
  Module,
  Type,
  Field,
  Builtin,  // it has no definition
};
const char* name_of(Kind kind);  // "index", as messages call it

struct Entity {
  Kind kind = Kind::Value;
  Symbol name;
  Span span;         // the name that defines it; invalid for Builtin
  ast::StmtId stmt;  // where a value, function or type is defined
  // Indices, extents and coordinates that meet because they share a name are in one group: those of
  // one name in the definitions of a file, or in one function with its rule. A parameter of a
  // function is in one group with the same parameter of its rule, and a number that fixes an extent
  // with the coordinates named after it. Every other entity is alone in its group.
  uint32_t group = 0;
  bool exported = false;
  bool top = false;  // it is at the top level of a file
};

struct Occurrence {
  Span span;
  uint32_t entity = 0;
  bool defines = false;
  bool field = false;  // in `{ a, b }` and `let { a, b } = p` the name is also that of a field
};

// The names that may be used in a region of the text, in addition to those of the regions around
// it.
struct Region {
  Span span;
  std::vector<uint32_t> entities;
};

struct Bindings {
  std::vector<Entity> entities;
  std::vector<Occurrence> occurrences;  // sorted by file and place
  std::vector<Region> regions;          // outer regions before the regions inside them
};

Bindings bind(const sema::Program& program, const SourceMap& sources);
// Adds the argument names in calls of functions that are values, such as `f(x, rate = 0.1)` for a
// parameter `f`. Scopes do not say which function that is; elaboration knows it, as far as it got.
void add_argument_names(Bindings& b, const ast::Ast& ast, const sema::Meanings& meanings);

// The occurrence that contains the place or ends there; or null.
const Occurrence* occurrence_at(const Bindings& b, FileId file, uint32_t offset);
// The entities whose names may be used at this place, the innermost first.
std::vector<uint32_t> visible_at(const Bindings& b, FileId file, uint32_t offset);

}  // namespace ein::ide
