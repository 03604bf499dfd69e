// What a run needs to resume between two steps of a recurrence: where it is, and the buffers that
// are still read or returned. A program that can resume is compiled for that (plan::Choices,
// native_abi.h): whatever one step leaves to the next is in its buffers.
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
    std::string bytes;  // if the recurrence keeps all its steps: those that are done
  };
  std::string family;  // the recurrence that runs
  uint32_t site = 0;   // its number among the sites with that name
  int64_t next = 0, steps = 0;
  std::vector<Part> parts;
};

// `site` is the number of the site at which the run is.
KeptState keep_state(const Image& image, const Frame& frame, size_t site, int64_t next,
                     int64_t steps);
// Restores the values, and sets where the run resumes. Returns which part does not fit, if one does
// not.
std::optional<std::string> put_back(const KeptState& state, const Image& image, Frame& frame,
                                    NativeContext& context);

std::string pack(const KeptState& state);
// Nothing if the bytes are not a state.
std::optional<KeptState> unpack_state(std::string_view bytes);

}  // namespace ein
