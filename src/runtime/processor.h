// Which instructions machine code may use: `--cpu`. Everything that is compiled or chosen for a
// processor follows this one choice, generated code and the contraction kernels alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ein {

enum class Processor : uint8_t {
  Native,      // the richest instruction set below that this machine has, tuned for it
  Avx512Bf16,  // x86-64-v4, plus products of pairs of bf16 in hand-written kernels
  Avx512,      // x86-64-v4
  Avx2,        // x86-64-v3
  Sse2,        // every x86-64
  Portable,    // every machine of this architecture: at present the same
};
const char* name_of(Processor p);
std::optional<Processor> processor_named(const std::string& name);
bool runs_here(Processor p);
Processor best_here();  // the richest one that has a level of its own

enum class Level : uint8_t { Plain, Avx2, Avx512, Avx512Bf16 };  // of hand-written kernels
Level level_of(Processor p);

}  // namespace ein
