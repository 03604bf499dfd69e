// What one thread of a device can do.
#pragma once

#include <set>
#include <string>

#include "loops/loops.h"

namespace ein::device {

// Why statements cannot run on a device, in a few words; empty when they can. They may change the
// variables of `own`, besides those that they declare.
std::string not_on_device(const loops::Program& p, const loops::Block& body,
                          const std::set<loops::VarId>& own = {});
// The same of an expression.
std::string not_on_device(const loops::Program& p, loops::ExprId e);

}  // namespace ein::device
