// Types and coordinates: element types that adapt, annotations, packs, and families that hold
// values.
#pragma once

#include "sema/state/state.h"

namespace ein::sema {

// ---- types.cc ----------------------------------------------------------------------------------

std::optional<DType> scalar_type(Symbol name);
DType default_type(const Value& v);
// Converts or reports. `asked`: with `as`, which may round a literal to infinity; other conversions
// may not.
Value adapt(Sema& s, const Env& env, Value v, DType to, bool asked = false);
bool fits(const Value& v, DType to);  // without an error
// Brings operands to one type; reports when they differ.
bool same_type(Sema& s, const Env& env, std::vector<Value*> values, Span span);
// True, and reported, for a tuple, a function or a string.
bool reject_non_data(Sema& s, const Value& v);
bool reject_untyped_empty(Sema& s, const Value& v);      // the same for `[]` that met no type
Value settle(Sema& s, const Env& env, Value v);          // default type, tables become families
Value as_data(Sema& s, const Env& env, Value v);         // tables become families
Value without_tables(Sema& s, const Env& env, Value v);  // the same, in tuples too
Value table_as(Sema& s, const Env& env, const Value& v, DType type, const std::string& name);

// ---- integers.cc -------------------------------------------------------------------------------

// A scalar integer as an index, i64; reported otherwise, at `e` where it is given.
CoreId as_index(Sema& s, const Env& env, const Value& v, TreeId e);
// The end of a range with scalar integer inputs in it as params, which are known at entry.
CoreId as_extent(Sema& s, CoreId e);

// ---- annotations.cc ----------------------------------------------------------------------------

std::optional<DType> element_type(Sema& s, ast::TypeId type);  // reported when it is not a scalar
// `T` in `x: [T; n]`: a capitalised name, bound to a type by each call of the function.
bool is_type_parameter(const ast::Ast& ast, ast::TypeId type);
// The type that `f32` or the elements of `[f32; n]` are written with; nothing for any other type.
std::optional<DType> written_type(const ast::Ast& ast, ast::TypeId type);
// The extent that one dimension of a type stands for. A name that is new in `scope` is bound to
// `actual`; arithmetic is solved for one new name. Invalid after an error.
CoreId dim_extent(Sema& s, Env& env, Scope& scope, const ast::Dim& dim, CoreId actual);
Symbol dim_name(const ast::Ast& ast, const ast::Dim& dim);
// Applies the dimensions of a type to coordinates, by position (decisions.md, 5); false after an
// error. `rename`: the type's names replace the value's, as `as` does.
bool annotate(Sema& s, Env& env, Scope& scope, std::vector<core::Coord>& coords, ast::TypeId type,
              Span value, const std::string& what, bool rename = false);
bool any_rank(const ast::Ast& ast, ast::TypeId type);  // `[f32; *]`

// ---- guess.cc ----------------------------------------------------------------------------------

// The element type of an expression without elaborating it; for recurrences that start from bare
// literals. `self` is the definition whose type is wanted.
struct Guess {
  Typing typing = Typing::Int;
  DType type = DType::I32;
};
std::optional<Guess> guess_type(Sema& s, Env& env, const ast::Let& clause, const Definition* self);

// ---- coordinates.cc ----------------------------------------------------------------------------

// A common coordinate list for operands of a pointwise operation; reports and returns false when
// they differ. Scalars fit everything.
bool same_coords(Sema& s, const Env& env, std::vector<Value*> values, Span span,
                 std::vector<core::Coord>& out);

// ---- packs.cc ----------------------------------------------------------------------------------

// The pack of that name that a statement or reduction brings: its rank is that of an operand in
// `e` read with `..name`. Reported when there is none.
std::optional<Pack> infer_pack(Sema& s, Env& env, ast::Name name, TreeId e, const Definition* self);
// An index list with its packs expanded: a tree for every coordinate, and for those of a pack the
// name of the coordinate. False after an error.
struct IndexItem {
  TreeId tree;
  Symbol pack;  // invalid: the tree is an expression
};
bool expand_indices(Sema& s, Env& env, const std::vector<TreeId>& at, std::vector<IndexItem>& out);
CoreId item_index(Sema& s, Env& env, const IndexItem& item);  // invalid after an error
Symbol fresh_coordinate(Symbol label, const std::string& base, std::set<Symbol>& taken);

// ---- held.cc: values as families ---------------------------------------------------------------

// The coordinates and the box of a value, with every unwritten range in it solved.
ClauseOut ranges_of(Sema& s, Env& env, const Value& v);
// A family that holds the value; the name is made fresh. Invalid after an error.
FamilyId family_of(Sema& s, Env& env, const Value& v, const std::string& name);
// The value as a read of a family of its own, which carries all enclosing slots; poison after an
// error.
Value bound_to_family(Sema& s, Env& env, const Value& v, const std::string& name);
// The same for a local of `scope`: of the enclosing slots it carries only those that it needs.
Value bound_to_local(Sema& s, Env& env, const Value& v, const Scope& scope,
                     const std::string& name);
// The value as a read of a family, so that a callee does not compute it again at every use. A plain
// read stays as it is unless `always`; so does a value for which no family can be made.
Value hold(Sema& s, Env& env, Value v, const std::string& name, bool always);

}  // namespace ein::sema
