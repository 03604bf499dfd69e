// Private to src/codegen: the optimisation pipeline on LLVM IR (optimise.cc).
#pragma once

#include "base/tuning.h"

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace ein::codegen {

void optimise(llvm::Module& mod, llvm::TargetMachine& machine, const Tuning& tuning);

}  // namespace ein::codegen
