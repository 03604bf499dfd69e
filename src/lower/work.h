// How much each kernel has to do: what its time is divided by to judge it.
//
// Counted from Core with the actual extents. An operation is done once for each value of the
// indices it depends on (lowering moves it out of the other loops), every scalar float operation
// counts as one (`exp` too), and a reduction does one more per cell that it visits; affine
// conditions shorten the ranges as they do in the loops. Both sides of an `if` count. Ranges that
// depend on other indices are taken in the middle of those; ranges that depend on data count as
// one. Bytes are the traffic nothing can avoid: every distinct buffer that the kernel touches
// counts once, with the cells that it can reach at most.
#pragma once

#include <string>
#include <vector>

#include "loops/loops.h"
#include "plan/plan.h"

namespace ein::lower {

struct Work {
  std::string name;                   // of the kernel
  std::vector<std::string> computes;  // the families
  bool steps = false;                 // it runs a recurrence
  DType type = DType::F32;            // the widest float that it computes with
  double operations = 0;
  double bytes = 0;
};

// One per kernel of `p`. The plan's module gains nodes; its meaning stays.
std::vector<Work> work_of(plan::Plan& plan, const loops::Program& p,
                          const std::vector<int64_t>& params);

}  // namespace ein::lower
