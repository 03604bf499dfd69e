// What a single thread of a device can execute.
#pragma once

#include <set>
#include <string>

#include "loops/loops.h"

namespace ein::device {

// Why these statements cannot run on a device, in a few words; empty if they can. They may change
// variables that they declare, and those in `own`.
std::string not_on_device(const loops::Program& p, const loops::Block& body,
                          const std::set<loops::VarId>& own = {});
// The same for an expression.
std::string not_on_device(const loops::Program& p, loops::ExprId e);

}  // namespace ein::device
