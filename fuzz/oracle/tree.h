// The oracle's own programs: a tree that is printed as Einlang source (print.cc) and computed from
// as it stands (evaluate.cc). Nothing here knows the compiler.
//
// Every index variable has a number of its own, and so has every definition, locals of blocks
// included. Instances of a local differ in the values of the variables around it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "number.h"

namespace oracle {

enum class Kind {
  None,
  // floats
  Literal,  // value
  Read,     // id: definition; kids: address. `hidden`: how many of the last slots are not written
  Negate,
  Add,
  Subtract,
  Multiply,
  Divide,
  Apply,  // function
  Max2,
  Min2,
  If,       // condition, then, else
  Match,    // locals[0] is the matched value; kids: condition, then, else
  Choose,   // match of an integer: kids[0], then the arms for 0, 1, …, and the last for the rest
  Reduce,   // reduction, vars; kids: body, gate or None, and low and high of every variable
  Block,    // locals, kids[0]
  Shown,    // printed as `text`, means kids[0]; `value`: how many terms it adds up
  Request,  // kids[0] by the cell kids[1…] of definition `id`; `hidden` slots are not written
  Cast,     // an integer as a float
  Recurse,  // id: function; kids: the two floats, the integer
  Param,    // id: of a recursive function: 0 and 1 the arguments, 2 the result of the inner call
  // integers
  Integer,  // value
  Variable,
  Extent,
  Plus,
  Minus,
  Times,
  Modulo,
  BitAnd,
  BitOr,
  BitXor,
  ShiftRight,
  // Read with type Int, and Reduce with an arg-reduction, are integers too
  // conditions
  Less,
  LessEqual,
  Equal,
  Unequal,
  Greater,
  GreaterEqual,
  And,
  Or,
  Not,
};

enum class Reduction { Sum, Prod, Mean, Max, Min, ArgMax, ArgMin };
enum class Type { Float, Int, Bool };

struct Node {
  Kind kind = Kind::None;
  std::vector<Node> kids;
  int id = -1;
  Real value = 0;
  Type type = Type::Float;  // of a Read and of a comparison's sides
  Function function = Function::Sin;
  Reduction reduction = Reduction::Sum;
  bool inferred = false;    // the ranges of a Reduce are not written
  bool inclusive = false;   // the ranges of a Reduce are written `..=`: the highs are one less
  std::vector<int> vars;    // of a Reduce
  std::vector<int> locals;  // definitions
  int hidden = 0;
  std::string text;
};

struct Slot {
  int var = -1;  // −1: the literal `low`
  Node low, high;
  bool inferred = false;  // only the name is written
};

struct Clause {
  std::vector<Slot> slots;
  int trailing = 0;  // how many of the last slots come from the value and are not written
  Node gate, otherwise, body;
  Node until;          // ends the steps, which run along the first slot
  bool down = false;   // they run towards lower addresses
  bool typed = false;  // the element type is written
};

struct Definition {
  std::string name;
  Type type = Type::Float;
  std::vector<Node> extents;
  std::vector<int> around;  // variables in scope where a local is defined
  std::vector<int> blocks;  // the blocks around it, outermost first
  std::vector<Clause> clauses;
  std::string attribute;  // a line before the first clause
  bool input = false;
  std::vector<double> data;  // of an input
  bool dropped = false;      // by the shrinker
};

struct Recursive {
  std::string name;
  Node base, first, second, step;  // the inner call's arguments, and what follows it
};

struct Extent {
  std::string name;  // empty: a constant
  int64_t size;
};

// What is compared with the compiler, in source order.
struct Program {
  std::string dtype = "f64";
  std::vector<std::string> vars;
  std::vector<Extent> extents;
  std::vector<Recursive> functions;
  std::vector<std::string> preamble;  // functions as text, named by Shown nodes
  std::vector<Definition> defs;
  // Global definitions in the order in which they are written; clauses of a group may be mixed.
  std::vector<int> order;
  std::vector<std::string> classes;  // what was drawn, for counting
  int blocks = 0;
};

std::string print(const Program& p);
std::string print(const Program& p, const Node& n);
// The program with its inputs as literals: it runs on its own.
std::string print_closed(const Program& p);

// The extents of a definition.
std::vector<int64_t> shape_of(const Program& p, int def);

}  // namespace oracle
