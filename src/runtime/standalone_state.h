// Private to src/runtime: a standalone program after its first call.
#pragma once

#include <memory>
#include <string>

#include "runtime/frame_pool.h"
#include "runtime/standalone.h"

namespace ein {

struct StandaloneState {
  Image image;
  StructLayout inputs, outputs;
  FramePool frames;
};
StandaloneState& state_of(StandaloneProgram& program);

// "prog.ein:3:14: `x` has no cell at [7]: …"
std::string error_text(const Image& image, const RuntimeError& error);

}  // namespace ein
