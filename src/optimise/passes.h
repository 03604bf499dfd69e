// The passes from Core to Core on the way to native code, in the order in which driver/compile.cc
// runs them. Values stay the same; what changes is how much there is to compute, and in which form
// the planner finds it. If no order of computation is legal after a pass, the pass leaves the
// program as it was.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "base/tuning.h"
#include "core/core.h"
#include "core/total.h"

namespace ein::optimise {

// The input and output of a pass: the module, and what the planner is told about its families.
struct Program {
  core::Module module;
  std::vector<core::FamilyId> wanted;
  std::set<core::FamilyId> ordered = {};  // copies made only to change the order of coordinates
  // Families that need no buffer any more, in the order of inlining.
  std::vector<core::FamilyId> inlined = {};
  Tuning tuning = {};
  uint32_t first_made = ~0u;  // families from here on are made by passes
};

// Replaces calls of scalar functions by the functions' bodies, except for recursive functions and
// those that `wish` leaves alone.
using ExpandWish = std::function<std::optional<bool>(core::FunctionId)>;
Program expand_calls(Program p, const ExpandWish& wish);
// Gives routed sums inside expressions families of their own (core/normal.h).
Program isolate_routes(Program p);
// Where an integer input is an extent, replaces the input by the extent: then `y[steps]` is known
// to be the last step, and in bounds.
Program read_extents(Program p);
// Drops coordinates that nothing depends on (unused.h).
Program drop_unused(Program p);
// Rounds the factors of sums of products to type `to` (precision.h).
Program round_factors(Program p, DType to);
// Computes running reductions in linear time (scan.h).
Program make_scans(Program p);
// Computes sums that are added one cell at a time in f64 (wide_sums.h).
Program widen_sums(Program p);
// Adds up sums over the steps of a small recurrence while the steps run (along_steps.h).
Program sum_along_steps(Program p, core::Overflow overflow);
// Gives every matrix function a clause of its own, and replaces products with inverses by solutions
// (factors.h).
Program isolate_factors(Program p);
Program solve_for_products(Program p);
// Splits sums of products that divide a coordinate into one for each remainder (residues.h).
Program split_residues(Program p);
// Brings sums of products into the form in which contractions are recognised (contractions.h,
// small_sums.h).
Program form_contractions(Program p);
// Computes once, in arrays of their own, what loops would repeat (invariants.h).
Program isolate_invariants(Program p);
// Replaces accesses to inlined families by the body of the clause they fall into. By default
// trivial families and those that are read once are inlined; `wish` overrides that where it is
// legal.
using Wish = std::function<std::optional<bool>(core::FamilyId)>;
Program inline_families(Program p, const Wish& wish, core::Overflow overflow);

}  // namespace ein::optimise
