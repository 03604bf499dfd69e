// Where programs run.
#pragma once

#include <cstdint>

namespace ein {

enum class Device : uint8_t {
  Cpu,
  Gpu,
  Emulated,  // on the processor, exactly what would run on a GPU, with the same bits
};

}  // namespace ein
