// Definitions: a name with its clauses becomes a family, or a record of families, or stays a value.
// `define` and `read_definition`, which everything else asks for, are in state/on_demand.h.
//
// define.cc keeps the order, clause.cc elaborates one clause, header.cc finds type, names and
// extents from the clauses, family.cc makes the family, locals.cc does it for the statements of a
// block, leaves.cc for arrays of records, until.cc for the end of a recurrence, inputs.cc for
// inputs of the program, loads.cc for `let W = load(…)`.
#pragma once

#include "sema/state/state.h"

namespace ein::sema {

struct Builtin;

void declare_inputs(Sema& s, Scope& scope);
ClauseOut elaborate_clause(Sema& s, Definition& d, ast::StmtId stmt);

const ast::Let* let_of(const ast::Ast& ast, ast::StmtId id);    // null for a `const`
ast::TypeId type_of(const ast::Ast& ast, const Definition& d);  // written on any clause
size_t spelled_slots(Sema& s, const Definition& d);             // the most that a clause writes

// The type of a definition: written, or that of its clauses, or guessed through the recurrence.
std::optional<DType> decide_type(Sema& s, Definition& d);
// Names of all coordinates, from the clauses elaborated so far; false after an error.
bool merge_coords(Sema& s, Definition& d, std::vector<core::Coord>& coords);
// The extent of coordinate p: the highest end of any clause. Two ends that cannot be compared are
// settled by an entry constraint when one is constant: a literal clause beside a range up to T asks
// for T >= 1 (decisions.md, 13). `extent` stays as it is when no clause says.
bool decide_extent(Sema& s, Definition& d, size_t p, bool ranges_only, CoreId& extent);
// Makes `extent` as large as the ends that are written in the clauses that are not elaborated yet,
// because they read the recurrence. It stays as it is when one of them leaves its range to be
// inferred. False after an error.
bool written_extent(Sema& s, Definition& d, size_t p, CoreId& extent);

// A local that is a family although it stands inside a reduction: it has several clauses or is a
// recurrence, and carries the reduced indices as coordinates.
bool carries_binders(Sema& s, const Definition& d);
// Slots around a local that its clauses can read, known before they are elaborated.
std::vector<uint32_t> readable_slots(const Sema& s, const Definition& d);
// A family without clauses yet, so that others can read it. `carries`: slots of the enclosing
// clause that become its first coordinates.
void make_family(Sema& s, Definition& d, std::vector<core::Coord> coords, DType type,
                 std::vector<uint32_t> carries);
bool finish_family(Sema& s, Definition& d);  // false after an error
// Gives a family its clauses, in the slots of the scope around it.
void place_clauses(Sema& s, Definition& d, std::vector<core::Clause> clauses, DType type);

// ---- until.cc ----------------------------------------------------------------------------------

// Finds the `until` of a group of definitions that read each other, and notes it in each of them.
void find_ending(Sema& s, const std::vector<Definition*>& group);
void reject_until(Sema& s, const Definition& d);  // `d` is no recurrence: `until` is an error
// Makes the family that says whether the steps have ended, once the headers are known.
void make_flag(Sema& s, Ending& ending);
// In a clause that runs the steps: what it computes is computed only while they have not ended.
void note_end(Sema& s, Env& env, const Definition& d, ast::StmtId stmt, const LeftSide& left,
              ClauseOut& out);
bool elaborate_until(Sema& s, Env& env, const Definition& d, TreeId until, ClauseOut& out);
void repeat_when_ended(Sema& s, const Definition& d, ClauseOut& out);
bool finish_flag(Sema& s, const Definition& d, const std::vector<core::Coord>& coords);
bool reads_group(Sema& s, const Definition& d, ast::StmtId clause);  // define.cc

Value elaborate_ran(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span);
Value elaborate_last(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span);

// ---- leaves.cc: an array of records is a record of arrays --------------------------------------

// A definition for every leaf of the records that `d` is an array of, if it is one by its type or
// by the clauses that are elaborated.
void make_leaves(Sema& s, Definition& d);
// The clause of one leaf, from the clause of the whole.
ClauseOut leaf_clause(Sema& s, Definition& d, ast::StmtId stmt);
Value read_leaves(Sema& s, Env& env, Definition& d, Span span);
// The type of the leaf with this number in the type of a record.
ast::TypeId leaf_type(const ast::Ast& ast, ast::TypeId type, size_t leaf);

// `let W = load(…)` names the loaded family itself: W is its binding, not a copy of it.
FamilyId loaded_family(const Sema& s, const Definition& d);  // invalid when `d` is not that
void adopt_load(Sema& s, Definition& d, FamilyId loaded, std::vector<core::Coord> coords);

}  // namespace ein::sema
