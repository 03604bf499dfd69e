// Checkpointing by strip-mining: a recurrence that a derivative runs over backwards need not keep
// all its steps. The T steps are cut into S segments of K. The forward run keeps the state at the
// start of each segment; the backward run takes the segments in reverse, computes the steps of one
// again from its start, and uses them there and then.
//
// With h[t] = f(h[t-1]), its adjoint g[t] reading g[t+1] and h, and dw = sum[t](g[t] * h[t-1]):
//
//   h_run[s, r]    the steps of segment s, r = 0 … from h_start[s]      forward, one segment kept
//   h_start[s]     the last steps of segment s-1                        kept: S of them
//   h_again[s, r]  the same as h_run, from h_start[s]                   backward, one segment kept
//   g_run[s, r]    reads h_again[s, ·], g_run[s, r+1], g_run[s+1, 0]    backward, two segments kept
//   dw_run[s]      dw_run[s+1] + sum[r](g_run[s, r] * h_again[s, r-1])  backward, two steps kept
//
// The result is ordinary Core: what is kept follows from who reads what (core/steps.h), and
// `locksteps` ask that the families of one direction run segment by segment together. A segment
// carries the steps before it (and, backwards, after it) that its cells read. Numbers change in one
// way only: a sum over all steps is now added up segment by segment.
//
// It is applied to a module whose inputs are known, so that T is a number. Families that read the
// steps in any other way (all at once, or at computed places) still find them, and then all steps
// are kept after all; the plan says so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/core.h"

namespace ein::optimise {

// What was decided about the recurrences with one number of steps.
struct SegmentPlan {
  std::vector<std::string> recurrences;  // as the program names them
  int64_t steps = 0;
  int64_t segment = 0;       // steps in one; 0: all steps are kept
  uint64_t bytes_whole = 0;  // of everything the program stores, with all steps kept
  uint64_t bytes = 0;        // the same, as planned
  double work = 1;           // scalar operations of the whole program, relative to keeping all
  std::string reason;        // why all steps are kept, or why the budget is not met; may be empty
};

struct Checkpointed {
  core::Module module;
  std::vector<SegmentPlan> plans;  // none: nothing runs over a recurrence backwards
};

// Whether there may be something to cut: `budget` is given, or a recurrence is marked.
bool wants_segments(const core::Module& m, std::optional<uint64_t> budget);

// `budget`: bytes that everything stored may take together; none: only recurrences marked
// `#[checkpoint]` are cut.
Checkpointed checkpoint(const core::Module& m, const std::vector<core::FamilyId>& wanted,
                        const std::vector<int64_t>& params, std::optional<uint64_t> budget);

// A sentence per plan, for people.
std::string describe(const SegmentPlan& plan);

}  // namespace ein::optimise
