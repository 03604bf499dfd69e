// Private to src/codegen: one thread of a device, while its code is emitted.
#pragma once

#include "codegen/emit.h"
#include "codegen/launches.h"

namespace ein::codegen {

struct Emitter::Thread {
  const loops::Launch* launch;
  llvm::Value* id;               // its number in the block
  llvm::Value* block;            // the number of the block
  llvm::Value *record, *serial;  // the record of failures; the number of the launch
  // Which part of the block's work this is: a failure in an earlier part comes first. Null: nothing
  // can fail.
  llvm::AllocaInst* phase = nullptr;
};

}  // namespace ein::codegen
