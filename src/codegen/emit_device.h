// Private to src/codegen: one thread of a device, while its code is emitted.
#pragma once

#include "codegen/emit.h"
#include "codegen/launches.h"

namespace ein::codegen {

struct Emitter::Thread {
  const loops::Launch* launch;
  llvm::Value* id;               // in the block
  llvm::Value* block;            // its number
  llvm::Value *record, *serial;  // of failures; of the launch
  // Which part of the work of the block this is: a failure in an earlier one comes first. Null:
  // nothing can fail.
  llvm::AllocaInst* phase = nullptr;
};

}  // namespace ein::codegen
