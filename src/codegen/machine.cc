#include "codegen/machine.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>

#include <algorithm>
#include <vector>

namespace ein::codegen {
namespace {

struct LevelOf {
  const char* cpu;
  std::vector<const char*> features;  // beyond those of the levels below
};

// The richest first.
const std::vector<LevelOf>& levels() {
  static const std::vector<LevelOf> all = {
      {"x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}},
      {"x86-64-v3",
       {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave", "sse3", "ssse3",
        "sse4.1", "sse4.2", "popcnt", "cx16"}},
      {"x86-64", {}},
  };
  return all;
}

// The richest level of which the host has everything, the levels below included.
const char* richest(const Host& on) {
  for (size_t i = 0; i < levels().size(); ++i) {
    bool has = std::all_of(
        levels().begin() + static_cast<ptrdiff_t>(i), levels().end(), [&](const LevelOf& level) {
          return std::all_of(level.features.begin(), level.features.end(),
                             [&](const char* f) { return on.features.contains(f); });
        });
    if (has) return levels()[i].cpu;
  }
  return "x86-64";
}

}  // namespace

const Host& host() {
  static const Host found = [] {
    Host h{llvm::sys::getProcessTriple(), llvm::sys::getHostCPUName().str(), {}};
    for (const auto& f : llvm::sys::getHostCPUFeatures()) {
      if (f.second) h.features.insert(f.first().str());
    }
    return h;
  }();
  return found;
}

Machine machine_for(Processor p, const Host& on) {
  switch (p) {
    case Processor::Native: return {richest(on), on.name};
    case Processor::Avx512Bf16:
    case Processor::Avx512: return {"x86-64-v4", ""};
    case Processor::Avx2: return {"x86-64-v3", ""};
    case Processor::Sse2:
    case Processor::Portable: break;
  }
  return {"x86-64", ""};
}

}  // namespace ein::codegen
