// What can be proven about index expressions: signs of affine forms under the ranges of the slots
// in scope and conditions known to hold. Sound, not complete: false means "not proven".
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/build.h"
#include "core/core.h"

namespace ein::core {

// What the constraints of a module imply, indexed by atom: there may be thousands of them, and a
// proof needs few.
struct EntryFacts {
  size_t constraints = 0;  // how many of them are in here
  std::vector<AffineForm> nonnegative;
  std::vector<AffineForm> nonzero;
  std::unordered_map<ExprId, std::vector<uint32_t>> by_atom;  // positions in `nonnegative`
  std::unordered_set<ExprId> holds;
};
std::shared_ptr<const EntryFacts> entry_facts(const Module& m);

// What holds at a point inside a clause: ranges of slots by number, and facts (affine forms known
// to be ≥ 0) from gates. Params are ≥ 0 always.
struct Facts {
  std::shared_ptr<const EntryFacts> entry;  // what holds everywhere; may be null
  std::vector<Range> slots;                 // invalid lo/hi: unknown
  std::vector<AffineForm> nonnegative;      // each form ≥ 0
  std::vector<AffineForm> nonzero;          // each form ≠ 0
  std::vector<ExprId> holds;                // conditions of any kind that hold, as written
  bool guarded = false;  // some condition beyond `entry` holds here, affine or not
};

// Facts at the top of a clause: its box.
Facts clause_facts(const Module& m, const Clause& clause);
// Adds the binders of a Reduce (not its gate).
void enter(const Module& m, const Reduce& r, Facts& facts);
// Adds what a condition implies (affine comparisons of i64, conjunctions; others add nothing).
// Where very many conditions nest, only the outermost are remembered: knowing less is sound.
bool knows_enough(const Facts& facts);  // nothing more would be remembered
void assume(const Module& m, ExprId cond, Facts& facts);

bool proves_nonnegative(Module& m, const AffineForm& form, const Facts& facts);  // form ≥ 0
bool proves_le(Module& m, ExprId a, ExprId b, const Facts& facts);               // a ≤ b
bool proves_lt(Module& m, ExprId a, ExprId b, const Facts& facts);               // a < b
bool proves(Module& m, ExprId cond, const Facts& facts);                         // cond holds
bool refutes(Module& m, ExprId cond, const Facts& facts);                        // cond cannot hold
// Two of the facts contradict each other, or a range is empty: nothing is evaluated here.
bool proves_unreachable(Module& m, const Facts& facts);
// 0 ≤ e < extent
bool proves_in_bounds(Module& m, ExprId e, ExprId extent, const Facts& facts);

// The condition under which ranges that do not depend on each other all have cells; invalid
// when that is proven.
ExprId has_cells(Module& m, const std::vector<Range>& over, const Facts& facts);

// The least closed expression (no slots, no values) known to be ≥ e for every value of the slots in
// scope; invalid when none is found.
ExprId closed_upper(Module& m, ExprId e, const Facts& facts);
ExprId closed_lower(Module& m, ExprId e, const Facts& facts);  // the greatest known to be ≤ e

// Calls `f` for every Access (and Request, Reduce …: every node for which `wanted` is true) in a
// clause body together with what is known where it is evaluated: the box, the ranges and gates of
// the reductions around it, the conditions of the Selects and short-circuit operators around it.
// A node is visited once per distinct context.
void for_each_with_facts(Module& m, const Clause& clause,
                         const std::function<bool(const Node&)>& wanted,
                         const std::function<void(ExprId, const Facts&)>& f);

}  // namespace ein::core
