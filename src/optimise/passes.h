// Core → Core on the way to native code, in the order in which driver/compile.cc runs them. The
// values stay; what changes is how much there is to compute, and in which form planning finds it.
// A pass after which no order of computation is legal any more leaves the program as it was.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "core/core.h"
#include "core/total.h"

namespace ein::optimise {

// What a pass takes and gives: the module, and what planning is told about its families.
struct Program {
  core::Module module;
  std::vector<core::FamilyId> wanted;
  std::set<core::FamilyId> ordered = {};     // copies that are there for the order of their cells
  std::vector<core::FamilyId> inlined = {};  // need no buffer any more, in the order of inlining
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
// Coordinates that nothing depends on (unused.h).
Program drop_unused(Program p);
// Factors of sums of products, rounded to `to` (precision.h).
Program round_factors(Program p, DType to);
// Running reductions in linear time (scan.h).
Program make_scans(Program p);
// Sums that are added up one by one, in f64 (wide_sums.h).
Program widen_sums(Program p);
// Sums of products in the form that contractions are found in (contractions.h, small_sums.h).
Program form_contractions(Program p);
// An access to an inlined family becomes the body of the clause it falls into. By default that is
// done for the trivial and for those that are read once; `wish` overrides it where it is legal.
using Wish = std::function<std::optional<bool>(core::FamilyId)>;
Program inline_families(Program p, const Wish& wish, core::Overflow overflow);

}  // namespace ein::optimise
