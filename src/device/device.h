// Loops → Loops with Launches, for a device; and those back to Loops, for the processor.
//
// A kernel's loops are mapped one after the other, each by the first of these that fits; what fits
// none stays with the host, which runs it between the Launches, as it runs the loops over steps
// around them:
// - rows: loops whose iterations do not depend on each other, with loops inside that threads can
//   share. One iteration is the work of a block, or of a warp where it is short.
// - each: any other such loops; one thread for every iteration.
// - products: a thread for every cell of a sum of products.
// - one block: loops over few steps, with few cells each.
// - sums: at most kSumParts partial results, one for each block; a second Launch adds them up.
//
// Which one it is, how long its pieces are, and so the order in which floats are added up follows
// from the program and its extents alone, never from the device. Where rows may be long or short,
// there are two Launches and the host takes one of them.
//
// A product is never fused into a sum, but where a formula says so (Program::exact), so that both
// ways give the same bits. Of several failures the one that comes first in the order of the loops
// that were mapped is reported, which is the reference's.
#pragma once

#include "loops/loops.h"
#include "plan/plan.h"

namespace ein::device {

// The plan's module gains nodes; its meaning stays.
loops::Program map_device(plan::Plan& plan, loops::Program p);

// Launches get numbers, and before statements of the host stands which buffers they touch.
loops::Program note_touches(loops::Program p);

// How the processor stands for the device. Blocks become a parallel loop, threads one loop for each
// part of a block between two barriers; what threads keep becomes an array with a cell for each.
struct Emulation {
  bool backwards = false;  // threads in the opposite order: it must not matter
};
loops::Program emulate(plan::Plan& plan, loops::Program p, const Emulation& how = {});

}  // namespace ein::device
