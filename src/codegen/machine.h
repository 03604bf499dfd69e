// Private to src/codegen: which instructions LLVM may choose from. A program must mean the same on
// every processor, so only tested instructions are used: whole levels of x86-64. What a processor
// has beyond its level stays off, and so does whatever processors will have tomorrow: with
// AVX512-FP16, for one, LLVM computes f16 in registers of f16 and fuses products into sums. The
// processor's name is for tuning alone: it says which of several equal instructions is fast.
#pragma once

#include <set>
#include <string>

#include "runtime/processor.h"

namespace ein::codegen {

// A processor in LLVM's words.
struct Host {
  std::string triple, name;
  std::set<std::string> features;
};
const Host& host();  // this machine

struct Machine {
  std::string cpu;   // a level
  std::string tune;  // empty: as the level is
};
Machine machine_for(Processor p, const Host& on);

}  // namespace ein::codegen
