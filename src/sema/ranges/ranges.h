// Ranges and extents: what is not known yet and how it is found, and which boxes the clauses of a
// family cover.
#pragma once

#include <functional>

#include "sema/state/state.h"

namespace ein::sema {

// ---- extents.cc --------------------------------------------------------------------------------

CoreId placeholder(Sema& s);
core::Range unknown_range(Sema& s, ast::Name name, bool left);
bool has_unsolved(const Sema& s, CoreId e);
CoreId resolve(Sema& s, CoreId e);
core::Range resolve(Sema& s, core::Range r);
core::Facts facts_at_entry(const core::Module& m);
enum class Truth : uint8_t { Yes, No, Open };
Truth equal(Sema& s, CoreId a, CoreId b);
void constrain(Sema& s, CoreId cond, std::string message, Span first, Span second);
CoreId least(core::Module& m, CoreId a, CoreId b);
CoreId greatest(core::Module& m, CoreId a, CoreId b);

// A term of an affine form that is an index, with its slot; no atom: none.
struct IndexTerm {
  CoreId atom;
  uint32_t slot = 0;
};

// ---- infer.cc ----------------------------------------------------------------------------------

// Solves every unwritten range of the clause: the largest box in bounds (decisions.md, 9).
// `fallback[p]` is the extent that other clauses give left slot p, for an index that nothing in
// this clause bounds; invalid when unknown.
void infer_ranges(Sema& s, ClauseOut& clause,
                  const std::function<std::vector<CoreId>()>& fallbacks);
// Where a clause reads that coordinate with that index, for a label.
Span place_of(const Sema& s, const Site* site, FamilyId family, size_t position, CoreId access);

// ---- boxes.cc ----------------------------------------------------------------------------------

using Box = std::vector<core::Range>;
std::vector<Box> subtract(core::Module& m, const Box& a, const Box& b);
bool provably_empty(core::Module& m, const Box& box);
// Clauses with disjoint boxes that cover the coordinates; holes are reported (decisions.md, 11).
std::vector<core::Clause> disjoint(Sema& s, const Definition& d,
                                   const std::vector<core::Coord>& coords, DType type);

}  // namespace ein::sema
