// The surface tree: a program as written. Nodes are plain structs in a variant, addressed by ids,
// immutable after parsing. Nothing here knows what a name means; facts found later live in tables
// keyed by these ids. A place where the parser could not make sense of the text is an Error node,
// which later phases pass over silently because the parser has already reported it.
#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <variant>
#include <vector>

#include "base/id.h"
#include "base/source.h"
#include "base/symbol.h"

namespace ein::ast {

using ExprId = Id<struct ExprTag>;
using TypeId = Id<struct TypeTag>;
using StmtId = Id<struct StmtTag>;

struct Name {  // a name with the place where it stands
  Symbol symbol;
  Span span;
  bool made = false;  // by the parser: the text at that place is something else
};

// ---- expressions -------------------------------------------------------------------------------

enum class UnaryOp { Neg, Plus, Not, BitNot };
// clang-format off
enum class BinaryOp {
  Add, Sub, Mul, Div, Mod, Pow, BitAnd, BitOr, BitXor, Shl, Shr, Lt, Le, Gt, Ge, Eq, Ne, In, And, Or
};
// clang-format on

struct IntLit { uint64_t value; };
struct FloatLit { double value; };
struct BoolLit { bool value; };

// "loss {x:.4f} done": pieces in order; a piece is text or an expression with a format specifier.
struct StrPiece {
  std::string text;
  ExprId value;        // invalid for a text piece
  std::string format;  // after ':', without it
};
struct StrLit { std::vector<StrPiece> pieces; };

struct Path { std::vector<Name> parts; };  // `x`, `std::math::exp`

struct PackRef { Name name; };  // `..batch` in an index list

// x[i, 2*j, ..b]: an element of `at` is an expression or a PackRef.
struct Index {
  ExprId base;
  std::vector<ExprId> at;
};

// One argument in the brackets of a reduction or a coordinate call: `k`, `k in 0..=i`, `..b`, `(h, w)`.
struct Bracket {
  Name name;            // for a group: invalid symbol
  bool pack = false;    // `..b`
  ExprId range;         // a Range expression or anything that yields one; invalid when absent
  std::vector<Name> group;
  Span span;
};

// f(x), f(x, rate = 0.1), softmax[class](logits), sum[k in 0..n](…)
struct Call {
  ExprId callee;
  bool has_brackets = false;
  std::vector<Bracket> brackets;
  std::vector<ExprId> args;
  // The names of arguments such as `rate = 0.1`, one for each argument and invalid for those
  // without a name. Empty when no argument has one.
  std::vector<Name> names;
  bool method = false;  // written `x.len`, `x.extent(c)`: the first argument stands before the dot
};

struct Unary { UnaryOp op; ExprId arg; };
struct Binary { BinaryOp op; ExprId lhs, rhs; Span op_span; };
struct Cast { ExprId arg; TypeId type; };                     // x as f64
struct Range { ExprId lo, hi; bool inclusive; };              // 0..n, 0..=n
struct If { ExprId cond, then_block, else_block; };           // blocks, or an If for `else if`
struct Block { std::vector<StmtId> stmts; ExprId value; };    // value may be invalid
struct Tuple { std::vector<ExprId> items; };
struct Array { std::vector<ExprId> items; };                  // [1.0, 2.0]
struct Field { ExprId base; uint32_t index; Name name; };     // t.0, or p.w with a name
// { a: x, b: y }, { ..p, a: x }. A field without a value, as in { a, b }, has a path of its name.
struct RecordField { Name name; ExprId value; };
struct Record { ExprId base; std::vector<RecordField> fields; };

// [e | i in 0..n, v in xs, i % 2 == 0]
struct Generator {
  Name name;     // invalid for a filter
  ExprId value;  // the range or the array it runs over; the condition of a filter
};
struct Comprehension {
  ExprId body;
  std::vector<Generator> generators;
  // The same as a block that defines the array, `{ let items[i in 0..n] = e; items }`. Invalid when
  // there is a filter.
  ExprId block;
};

struct LambdaParam { Name name; TypeId type; };
struct Lambda { std::vector<LambdaParam> params; ExprId body; };

// Patterns are expressions restricted to literals, ranges of them, names, `_`, tuples, and these two.
struct Alternatives { std::vector<ExprId> items; };           // 1 | 2
struct NamedPattern { Name name; ExprId pattern; };           // n @ 0..10
struct MatchArm { ExprId pattern; ExprId guard; ExprId body; };
struct Match { ExprId subject; std::vector<MatchArm> arms; };

// body where cond, name = value, … else other
struct WhereItem {
  std::optional<Name> bind;  // `name = value`
  ExprId value;              // the condition, or the bound value
  bool hides = false;        // of a comprehension: the name may hide another
};
struct Where {
  ExprId body;
  std::vector<WhereItem> items;
  ExprId otherwise;  // after `else`; invalid when absent
  Span where_span;   // the word
};

// `@num / @den`, or a lone `@num` when `den` is invalid.
struct Request { ExprId num, den; };

struct Error { ExprId kept; };  // what was read before the mistake, for editors; may be invalid

using ExprNode = std::variant<IntLit, FloatLit, BoolLit, StrLit, Path, PackRef, Index, Call, Unary,
                              Binary, Cast, Range, If, Block, Tuple, Array, Comprehension, Field,
                              Record, Lambda, Alternatives, NamedPattern, Match, Where, Request,
                              Error>;
struct Expr {
  ExprNode node;
  Span span;
};

// ---- types -------------------------------------------------------------------------------------

struct NamedType { Name name; };  // f32, bool, str …
struct Dim {
  enum class Kind { Extent, Pack, Unknown, AnyRank } kind;  // n + 1, ..b, ?, *
  ExprId extent;                                            // Kind::Extent
  Name name;                                                // Kind::Pack
  Span span;
};
struct TensorType { TypeId elem; std::vector<Dim> dims; };
// (f32, [f32; n]), or { a: f32, b: [f32; n] }: then every item has a name.
struct TupleType {
  std::vector<TypeId> items;
  std::vector<Name> names;  // empty for a plain tuple
  // `{ "0.weight" as w: … }`: what a file calls the part, a StrLit; invalid where that is its name.
  std::vector<ExprId> members;
  // Of `[{ … }; n, m]`: how many coordinates the array of records has. They stand in front of those
  // of every item; in a file they are numbers.
  size_t outer = 0;
};
struct FnType { std::vector<TypeId> params; TypeId result; };
struct ErrorType {};

struct Type {
  std::variant<NamedType, TensorType, TupleType, FnType, ErrorType> node;
  Span span;
};

// ---- statements --------------------------------------------------------------------------------

// One slot on the left: `i`, `t in 1..T`, `0` (or any constant expression), `..batch`.
struct Slot {
  enum class Kind { Index, Literal, Pack } kind;
  Name name;     // Index, Pack
  ExprId range;  // Index: invalid when it is to be inferred
  ExprId at;     // Literal
  Span span;
};

// let x = …, let C[i, j]: T = …, let (a, b) = …, let (W, m)[s in 1..S] = …, let { a, b } = …, let x: T;
// let x[t in 1..T] = … until …;
struct Let {
  std::vector<Name> names;  // one, or the names of a tuple pattern (`_` allowed) or a record pattern
  bool tuple = false;
  bool record = false;  // the pattern is { a, b }: `tuple` is set too, and items are found by name
  bool has_slots = false;
  std::vector<Slot> slots;
  TypeId type;   // invalid when absent
  ExprId value;  // invalid for a program input
  ExprId until;  // the condition that ends a recurrence; invalid when absent
};

struct Const { Name name; TypeId type; ExprId value; bool pub = false; };

struct FnCoord { Name name; bool pack = false; };
struct Param {
  Name name;
  TypeId type;
  ExprId value = {};  // what it is when a call leaves it out; invalid when it must be given
};
struct Fn {
  Name name;
  bool pub = false;
  bool rule = false;  // @fn
  std::vector<FnCoord> coords;
  std::vector<Param> params;
  TypeId result;
  ExprId body;     // a Block
  Span signature;  // from the name to the body
};

struct UseItem { Name name; std::optional<Name> alias; };
struct Use {
  std::vector<Name> path;
  bool glob = false;
  std::vector<UseItem> items;
  std::optional<Name> alias;
  bool pub = false;  // what it brings is exported too
};
struct Mod { Name name; };
struct TypeDef { Name name; TypeId type; bool pub = false; };  // type Net = { w: [f32; n] };
struct ExprStmt { ExprId value; };
struct Test { std::string name; ExprId body; };
struct ErrorStmt { ExprId kept; };

struct Attribute { Name name; std::vector<ExprId> args; Span span; };  // #[checkpoint(4)]

struct Stmt {
  std::variant<Let, Const, Fn, Use, Mod, TypeDef, ExprStmt, Test, ErrorStmt> node;
  Span span;
  std::vector<Attribute> attributes;
  std::string doc;  // the text of the `///` lines before it
};

// ---- a file ------------------------------------------------------------------------------------

struct Ast {
  FileId file;
  Store<ExprId, Expr> exprs;
  Store<TypeId, Type> types;
  Store<StmtId, Stmt> stmts;
  std::vector<StmtId> items;  // top level, in source order
  // Expressions written in parentheses (which their spans include). They mean the same without; the
  // formatter keeps them.
  std::unordered_set<ExprId> parenthesised;
  bool complete = true;  // false when the parser reported an error: the tree may lack parts of the text

  const Expr& operator[](ExprId id) const { return exprs[id]; }
  const Type& operator[](TypeId id) const { return types[id]; }
  const Stmt& operator[](StmtId id) const { return stmts[id]; }
};

}  // namespace ein::ast
