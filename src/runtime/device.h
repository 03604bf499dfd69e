// Where programs run.
#pragma once

#include <cstdint>

namespace ein {

enum class Device : uint8_t {
  Cpu,
  Gpu,
  Emulated,  // what would run on a GPU, computed by the processor: the same bits
};

}  // namespace ein
