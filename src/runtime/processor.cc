#include "runtime/processor.h"

namespace ein {

const char* name_of(Processor p) {
  switch (p) {
    case Processor::Native: return "native";
    case Processor::Avx512Bf16: return "avx512-bf16";
    case Processor::Avx512: return "avx512";
    case Processor::Avx2: return "avx2";
    case Processor::Sse2: return "sse2";
    case Processor::Portable: return "portable";
  }
  return "";
}

std::optional<Processor> processor_named(const std::string& name) {
  for (Processor p : {Processor::Native, Processor::Avx512Bf16, Processor::Avx512, Processor::Avx2,
                      Processor::Sse2, Processor::Portable}) {
    if (name == name_of(p)) return p;
  }
  return std::nullopt;
}

bool runs_here(Processor p) {
  static const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                         __builtin_cpu_supports("f16c") && __builtin_cpu_supports("lzcnt");
  static const bool v4 = v3 && __builtin_cpu_supports("avx512f") &&
                         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
                         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  static const bool bf16 = v4 && __builtin_cpu_supports("avx512bf16");
  switch (p) {
    case Processor::Avx512Bf16: return bf16;
    case Processor::Avx512: return v4;
    case Processor::Avx2: return v3;
    case Processor::Native:
    case Processor::Sse2:
    case Processor::Portable: break;
  }
  return true;
}

Processor best_here() {
  for (Processor p : {Processor::Avx512Bf16, Processor::Avx512, Processor::Avx2}) {
    if (runs_here(p)) return p;
  }
  return Processor::Sse2;
}

Level level_of(Processor p) {
  switch (p == Processor::Native ? best_here() : p) {
    case Processor::Avx512Bf16: return Level::Avx512Bf16;
    case Processor::Avx512: return Level::Avx512;
    case Processor::Avx2: return Level::Avx2;
    default: return Level::Plain;
  }
}

}  // namespace ein
