// What an expression is elaborated to.
//
// Depth. `env.depth` is the first free slot: the coordinates of the enclosing clause and the
// binders of the reductions around the current place are numbered below it. A Value made at depth d
// that carries n coordinates has them as slots d … d+n-1 ("holes"), and reductions inside it bind
// slots from d+n on, so core::substitute can put index expressions into the holes and move the
// value to any other depth.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/symbol.h"
#include "core/core.h"
#include "syntax/ast.h"

namespace ein::sema {

using CoreId = core::ExprId;
using TreeId = ast::ExprId;
using core::FamilyId;
using core::ParamId;

// An index or an extent (decisions.md, 19) and a literal (decisions.md, 20) have no type of their
// own: they adapt to the type they meet. Until then the body is computed in i64 or f64.
enum class Typing : uint8_t { Fixed, Int, Float };

struct Closure;
struct Frame;
struct Index;

struct TextPart {
  std::string text;
  std::optional<size_t> item;  // the value shown here instead of text; Open: its gate
  std::string format;
  // The parts from an Open to its Close are written once for each address of its indices where its
  // gate holds (join.cc). Values inside have a coordinate for each index, outermost first.
  enum class Join : uint8_t { None, Open, Close } join = Join::None;
  size_t rank = 0;                   // how many indices it has itself
  std::vector<Index*> binders = {};  // those; their ranges are known when `sealed`
  bool sealed = false;               // values inside are families, and their gates are in them
};

struct Value {
  enum class Kind : uint8_t {
    Poison,  // an error was reported; everything made from it is silent
    Data,
    Table,     // an array literal whose cells have not become a family yet
    Tuple,     // several values; a record when they have names (expressions/records.cc)
    Function,  // a lambda, or a function by its name; only calls take it
    Text,      // a string: its text is known when compiling, the values it shows are not
    Texts,     // an array of strings along one coordinate; only indexing takes it apart
  };
  Kind kind = Kind::Poison;
  DType type = DType::F32;
  Typing typing = Typing::Fixed;
  std::vector<core::Coord> coords;  // carried, in order
  CoreId body;                      // Data
  uint32_t depth = 0;
  std::vector<CoreId> cells;    // Table: row-major
  std::vector<Value> items;     // Tuple, Texts; Text: the values it shows
  std::vector<Symbol> fields;   // of a record: a name for each item
  std::vector<TextPart> parts;  // Text
  // Text: joins without an index, around strings that are fixed. One gate holds, or none, and then
  // the string is empty. So it can be compared.
  bool choice = false;
  std::shared_ptr<const Closure> function;
  Span span;
  Span division;  // where two untyped integers were divided, if the value is made of that

  bool poison() const { return kind == Kind::Poison; }
  bool scalar() const { return coords.empty(); }
  bool one() const { return kind == Kind::Data || kind == Kind::Table; }  // cells of one type
  bool record() const { return kind == Kind::Tuple && !fields.empty(); }
};

// A function as a value.
struct Closure {
  ast::Fn fn;                   // a lambda has its parameters and its body, and no name
  ast::StmtId stmt;             // invalid for lambdas and primitives
  const Frame* home = nullptr;  // what its body sees
  std::optional<core::Op> primitive;
  ast::TypeId type;  // the function type of the parameter it was given to
  std::string name;  // for messages
};

}  // namespace ein::sema
