// Two passes. `map_device`: Loops → Loops with Launches, for a device. `emulate`: Loops with
// Launches → Loops, so that the processor can stand in for a device.
//
// The loops of a kernel are mapped one after the other, each by the first of these ways that fits.
// A loop that fits none of them stays on the host, which runs it between the Launches; so do the
// loops over steps around Launches.
// - one block: a whole kernel of few steps with few cells each.
// - rows: loops with independent iterations that contain further loops that threads can share. A
//   block computes one iteration, or a warp if the iteration is short.
// - each: other loops with independent iterations; one thread for each iteration.
// - products: one thread for each cell of a sum of products.
// - sums: at most kSumParts partial results, one for each block; a second Launch adds them up.
//
// The choice, the sizes of the pieces and thus the order in which floats are added depend on the
// program and its extents, never on the device. If rows may turn out long or short, there are two
// Launches and the host chooses one at run time.
//
// Machine code does not fuse a multiplication with an addition unless the formula asks for it
// (Program::exact), so that device and emulation give the same bits. If several threads fail, the
// failure that comes first in the order of the mapped loops is reported, as in the reference.
#pragma once

#include "loops/loops.h"
#include "plan/plan.h"

namespace ein::device {

// Adds nodes to the plan's module, but does not change what it means.
loops::Program map_device(plan::Plan& plan, loops::Program p);

// Numbers the launches, and puts a Touch in front of host statements that lists the buffers they
// access.
loops::Program note_touches(loops::Program p);

// How the processor emulates the device. The blocks of a launch become a parallel loop. The code
// between two barriers becomes a loop over the threads, and a variable that a thread keeps across a
// barrier becomes an array with one cell for each thread.
struct Emulation {
  bool backwards = false;  // run threads in reverse order, which must give the same result
};
loops::Program emulate(plan::Plan& plan, loops::Program p, const Emulation& how = {});

}  // namespace ein::device
