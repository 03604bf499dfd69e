// What `--check-bounds` adds: a program that is wrong on purpose, made by hand because lowering
// makes no wrong ones.
#include "runtime/guard.h"

#include <gtest/gtest.h>

#include "codegen/jit.h"
#include "loops/loops.h"

namespace ein {
namespace {

// Stores 1 at `cell` of a buffer of four.
int32_t store_at(int64_t cell, float* memory) {
  loops::Program p;
  auto buffer =
      p.buffers.add({"x", {}, DType::F32, {core::ExprId{}}, loops::Buffer::Space::Temp, {4}});
  auto at = p.exprs.add({loops::IntConst{cell}, DType::I64});
  auto one = p.exprs.add({loops::FloatConst{1}, DType::F32});
  p.kernels.push_back({"k", {{loops::Store{buffer, {at}, one}}}});
  codegen::JitTimes times;
  auto code = codegen::load(codegen::object_code(p, {0, Processor::Native, true}, &times));
  void* buffers[] = {memory};
  int64_t dims[] = {4};
  NativeFailure failure;
  NativeContext context;
  context.buffers = buffers;
  context.dims = dims;
  context.failure = &failure;
  context.functions = native_functions(Level::Plain);
  return code->entry(&context);
}

TEST(Guard, AnAddressBeyondItsBufferEndsTheProcess) {
  float memory[8] = {};
  EXPECT_EQ(store_at(3, memory), 0);
  EXPECT_EQ(memory[3], 1.0f);
  EXPECT_DEATH(store_at(4, memory), "uses cell 4 of buffer 0, which has 4");
  EXPECT_DEATH(store_at(-1, memory), "uses cell -1 of buffer 0, which has 4");
}

TEST(Guard, AContractionMayNotReachBeyondItsBuffer) {
  // out[m, n] = sum[k](a[m, k] * b[k, n]) with 2, 3 and 4 indices.
  const int64_t shape[] = {0, 1, 1, 1, 2, 4, 0, 3, 3, 0, 1, 1, 4, 1, 3, 0};
  guard_contraction(shape, 1, 0, 0, 8);
  guard_contraction(shape, 2, 0, 0, 12);
  guard_contraction(shape, 3, 0, 0, 6);
  EXPECT_DEATH(guard_contraction(shape, 1, 5, 0, 7), "uses cell 7 of buffer 5, which has 7");
  EXPECT_DEATH(guard_contraction(shape, 2, 5, 1, 12), "uses cell 12 of buffer 5");
  EXPECT_DEATH(guard_contraction(shape, 3, 5, -1, 6), "uses cell -1 of buffer 5");
}

}  // namespace
}  // namespace ein
