// Checkpointing by strip-mining: a recurrence that a derivative goes through backwards need not keep
// all its steps. The T steps are cut into S segments of K. The forward run keeps the state at the
// start of each segment. The backward run takes the segments in reverse: it computes the steps of a
// segment again from its start and uses them at once.
//
// With h[t] = f(h[t-1]), its adjoint g[t] reading g[t+1] and h, and dw = sum[t](g[t] * h[t-1]):
//
//   h_run[s, r]    the steps of segment s, r = 0 … from h_start[s]      forward, one segment kept
//   h_start[s]     the last steps of segment s-1                        kept: S of them
//   h_again[s, r]  the same as h_run, from h_start[s]                   backward, one segment kept
//   g_run[s, r]    reads h_again[s, ·], g_run[s, r+1], g_run[s+1, 0]    backward, two segments kept
//   dw_run[s]      dw_run[s+1] + sum[r](g_run[s, r] * h_again[s, r-1])  backward, two steps kept
//
// The result is ordinary Core: core/steps.h derives from the reads how many steps are kept, and
// `locksteps` make the families of one direction run together, segment by segment. A segment also
// holds the steps before it (and, backwards, after it) that its cells read. Numbers change in one
// way only: a sum over all steps is now added up segment by segment.
//
// The pass needs a module whose inputs are known, so that T is a number. If a family reads the steps
// in any other way (all at once, or at computed places), all steps are kept after all; the plan says
// so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/core.h"

namespace ein::optimise {

// What was decided for the recurrences that have the same number of steps.
struct SegmentPlan {
  std::vector<std::string> recurrences;  // their names in the program
  int64_t steps = 0;
  int64_t segment = 0;       // steps of a segment; 0: all steps are kept
  uint64_t bytes_whole = 0;  // bytes of everything the program stores if all steps are kept
  uint64_t bytes = 0;        // bytes of everything with this plan
  double work = 1;     // scalar operations of the whole program, relative to keeping all steps
  std::string reason;  // why all steps are kept, or why the budget is exceeded; may be empty
};

struct Checkpointed {
  core::Module module;
  std::vector<SegmentPlan> plans;  // empty if nothing runs backward over a recurrence
};

// Whether there may be something to cut: a budget is given, or a recurrence is marked.
bool wants_segments(const core::Module& m, std::optional<uint64_t> budget);

// `budget`: how many bytes everything stored may take; without one, only recurrences marked
// `#[checkpoint]` are cut.
Checkpointed checkpoint(const core::Module& m, const std::vector<core::FamilyId>& wanted,
                        const std::vector<int64_t>& params, std::optional<uint64_t> budget);

// A sentence about each plan, for people.
std::string describe(const SegmentPlan& plan);

}  // namespace ein::optimise
