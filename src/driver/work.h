// How much each kernel has to do, to judge its time by.
//
// Counted from Core with the actual extents. An operation is done once for each value of the
// indices it depends on (lowering moves it out of the other loops), every scalar float operation
// counts as one (`exp` too), and a reduction does one more per cell that it visits; affine
// conditions shorten the ranges as they do in the loops. Both sides of an `if` count. A range that
// depends on other indices is taken with those in the middle of theirs; one that depends on data
// counts as one cell. Bytes are the traffic that nothing can avoid: every distinct buffer that the
// kernel touches counts once, with the most cells that it can reach.
#pragma once

#include <string>
#include <vector>

#include "loops/loops.h"
#include "plan/plan.h"

namespace ein {

struct Work {
  std::string name;                   // of the kernel
  std::vector<std::string> computes;  // the families
  bool steps = false;                 // it runs a recurrence
  DType type = DType::F32;            // the widest float that it computes with
  double operations = 0;
  double bytes = 0;
};

// One per kernel of `p`, with those that continue it. The plan's module gains nodes; its meaning
// stays.
std::vector<Work> work_of(plan::Plan& plan, const loops::Program& p,
                          const std::vector<int64_t>& params);

}  // namespace ein
