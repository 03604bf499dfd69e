// Core → Core on the way to native code, in the order in which driver/compile.cc runs them. Values
// stay the same; what changes is how much there is to compute, and in which form planning finds it.
// If no order of computation is legal after a pass, it leaves the program as it was.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "base/tuning.h"
#include "core/core.h"
#include "core/total.h"

namespace ein::optimise {

// What a pass takes and gives: the module, and what planning is told about its families.
struct Program {
  core::Module module;
  std::vector<core::FamilyId> wanted;
  std::set<core::FamilyId> ordered = {};     // copies made only for the order of their cells
  std::vector<core::FamilyId> inlined = {};  // need no buffer any more, in the order of inlining
  Tuning tuning = {};
  uint32_t first_made = ~0u;  // families from here on are made by passes
};

// Calls of scalar functions become what the functions compute, but for those that call themselves
// and those that `wish` leaves alone.
using ExpandWish = std::function<std::optional<bool>(core::FunctionId)>;
Program expand_calls(Program p, const ExpandWish& wish);
// Routed sums inside expressions get families of their own (core/normal.h).
Program isolate_routes(Program p);
// An integer input that is an extent is read as the extent: `y[steps]` is then known to be the last
// step, and within bounds.
Program read_extents(Program p);
// Drops coordinates that nothing depends on (unused.h).
Program drop_unused(Program p);
// Rounds the factors of sums of products to `to` (precision.h).
Program round_factors(Program p, DType to);
// Takes running reductions in linear time (scan.h).
Program make_scans(Program p);
// Takes sums that are added up one by one in f64 (wide_sums.h).
Program widen_sums(Program p);
// Takes sums over the steps of a small recurrence along with its steps (along_steps.h).
Program sum_along_steps(Program p, core::Overflow overflow);
// Gives every matrix function a clause of its own, and takes solutions for products with inverses
// (factors.h).
Program isolate_factors(Program p);
Program solve_for_products(Program p);
// Sums of products that divide a coordinate become one for each remainder (residues.h).
Program split_residues(Program p);
// Brings sums of products into the form that contractions are found in
// (contractions.h, small_sums.h).
Program form_contractions(Program p);
// Gives what loops repeat an array of its own (invariants.h).
Program isolate_invariants(Program p);
// An access to an inlined family becomes the body of the clause it falls into. By default trivial
// families and those that are read once are inlined; `wish` overrides that where it is legal.
using Wish = std::function<std::optional<bool>(core::FamilyId)>;
Program inline_families(Program p, const Wish& wish, core::Overflow overflow);

}  // namespace ein::optimise
