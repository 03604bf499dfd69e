// What a run needs to go on between two steps of a recurrence: where it is, and the buffers that
// are still read or given back. A program that can go on is compiled for it (plan::Choices,
// native_abi.h): whatever a step leaves to the next is in its buffers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/execute.h"
#include "runtime/image.h"

namespace ein {

struct KeptState {
  struct Part {
    std::string name;  // of the family
    DType dtype = DType::F32;
    std::vector<int64_t> shape;
    std::string bytes;  // of a recurrence that keeps all its steps: those that are done
  };
  std::string family;  // the recurrence that runs
  uint32_t site = 0;   // which of the sites with that name
  int64_t next = 0, steps = 0;
  std::vector<Part> parts;
};

// `site` is the number of the one where the run stands.
KeptState keep_state(const Image& image, const Frame& frame, size_t site, int64_t next,
                     int64_t steps);
// Puts the values back, and sets where the run goes on. Says which part does not fit.
std::optional<std::string> put_back(const KeptState& state, const Image& image, Frame& frame,
                                    NativeContext& context);

std::string pack(const KeptState& state);
std::optional<KeptState> unpack_state(std::string_view bytes);  // nothing: they are no state

}  // namespace ein
