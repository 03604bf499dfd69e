// `--check-bounds`: compares every address that code reads or writes with the bounds of its buffer.
// Programs are already checked, by proofs and by the checks that lowering emits; this option is for
// doubting those, mainly in tests. A failure here is a bug in the compiler, not in the program, and
// ends the process.
#include "codegen/emit.h"

namespace ein::codegen {

using llvm::BasicBlock;
using llvm::Value;

Value* Emitter::cells_of(loops::BufferId id) {
  size_t rank = p.buffers[id].dims.size();
  if (rank == 0) return i64(1);
  Value* stride = memory_of(id).strides[0];
  return b.CreateMul(stride, extent_of(id, 0));
}

void Emitter::guard(loops::BufferId id, const Val& at) {
  if (!target.guards) return;
  Value* count = cells_of(id);
  Value *first = at.v, *outside = nullptr;
  if (at.uniform()) {
    outside = b.CreateICmpUGE(at.v, count);
  } else {
    Value* all = lanes(at, DType::I64);
    outside = b.CreateICmpUGE(all, b.CreateVectorSplat(width, count));
    if (mask) outside = b.CreateAnd(outside, mask);
    outside = any(outside);
    first = b.CreateExtractElement(all, uint64_t{0});
  }
  auto& c = mod.getContext();
  BasicBlock* bad = BasicBlock::Create(c, "outside", fn);
  BasicBlock* fine = BasicBlock::Create(c, "inside", fn);
  b.CreateCondBr(outside, bad, fine);
  b.SetInsertPoint(bad);
  call(NativeFn::OutOfBounds, {buffer_number(id), first, count}, b.getVoidTy());
  b.CreateUnreachable();
  b.SetInsertPoint(fine);
}

void Emitter::guard_contraction(Value* shape, uint32_t operand, loops::BufferId id, Value* at) {
  if (!target.guards) return;
  call(NativeFn::GuardContraction, {shape, i64(operand), buffer_number(id), at, cells_of(id)},
       b.getVoidTy());
}

}  // namespace ein::codegen
