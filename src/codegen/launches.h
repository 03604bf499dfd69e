// Private to src/codegen: what the host passes to a launch.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "loops/loops.h"

namespace ein::codegen {

struct LaunchArguments {
  std::vector<loops::BufferId> buffers, written;              // but for memory of threads
  std::vector<std::pair<loops::BufferId, uint32_t>> extents;  // that are no constants
  std::vector<uint32_t> params;                               // words, as the variables
  std::vector<loops::VarId> vars;
  std::vector<loops::BufferId> local;  // memory of threads, which nobody passes
  bool stops = false;                  // it may stop the program
};
LaunchArguments arguments_of(const loops::Program& p, const loops::Launch& n);

std::vector<const loops::Launch*> launches_of(const loops::Program& p);  // in order
std::string launch_name(const loops::Launch& n);                         // for the device

}  // namespace ein::codegen
