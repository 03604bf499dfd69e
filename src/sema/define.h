// Shared by the files that make definitions: define.cc (the order), header.cc (type, names and
// extents from clauses), family.cc (the family itself).
#pragma once

#include "sema/sema.h"

namespace ein::sema {

const ast::Let* let_of(const Sema& s, ast::StmtId id);    // null for a `const`
ast::TypeId type_of(const Sema& s, const Definition& d);  // written on any clause
size_t spelled_slots(Sema& s, const Definition& d);       // the most that a clause writes

// The type of a definition: written, or that of its clauses, or guessed through the recurrence.
std::optional<DType> decide_type(Sema& s, Definition& d);
// Names of all coordinates, from the clauses elaborated so far; false after an error.
bool merge_coords(Sema& s, Definition& d, std::vector<core::Coord>& coords);
// The extent of coordinate p: the highest end of any clause. Two ends that cannot be compared are
// settled by an entry constraint when one is constant: a literal clause beside a range up to T asks
// for T >= 1 (decisions.md, 13). `extent` stays as it is when no clause says.
bool decide_extent(Sema& s, Definition& d, size_t p, bool ranges_only, CoreId& extent);

// The slots that a local may carry, by number: those of the enclosing clause, then the binders.
std::vector<SiteSlot> slots_around(const Env& env);
// Those of them that the clauses of a definition can read, known before they are elaborated.
std::vector<uint32_t> readable_slots(const Sema& s, const Definition& d);
// A family without clauses yet, so that others can read it. `carries`: slots of the enclosing
// clause that become its first coordinates.
void make_family(Sema& s, Definition& d, std::vector<core::Coord> coords, DType type,
                 std::vector<uint32_t> carries);
bool finish_family(Sema& s, Definition& d);  // false after an error

}  // namespace ein::sema
