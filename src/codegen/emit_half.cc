// f16 and bf16: two bytes in memory; in registers, a float that always holds a value of the short
// type. So every operation is a float operation followed by rounding, as in the reference, and
// storing needs no further rounding. All conversions round to nearest, ties to even; subnormals,
// infinities and NaN are preserved.
#include "codegen/emit.h"

namespace ein::codegen {

using llvm::Value;

namespace {

// Floats and their bits, scalar or in lanes.
struct Bits {
  llvm::IRBuilder<>& b;
  llvm::Type* real;
  llvm::Type* whole;

  Value* of(Value* v) { return b.CreateBitCast(v, whole); }
  Value* back(Value* v) { return b.CreateBitCast(v, real); }
  llvm::Constant* i(uint64_t v) { return llvm::ConstantInt::get(whole, v); }
  llvm::Constant* f(double v) { return llvm::ConstantFP::get(real, v); }
  // Drops the low `dropped` bits, rounding to the nearest, ties to even.
  Value* shorter(Value* bits, unsigned dropped) {
    Value* odd = b.CreateAnd(b.CreateLShr(bits, i(dropped)), i(1));
    Value* up = b.CreateAdd(b.CreateAdd(bits, i((1u << (dropped - 1)) - 1)), odd);
    return b.CreateAnd(up, i(~uint64_t{0} << dropped & 0xffffffffu));
  }
};

}  // namespace

Value* Emitter::round_half(Value* v, DType type) {
  // Must not be fused with operations before or after it.
  llvm::IRBuilderBase::FastMathFlagGuard guard(b);
  b.clearFastMathFlags();
  Bits h{b, v->getType(), wide(b.getInt32Ty(), v)};
  if (type == DType::BF16) {
    Value* rounded = h.back(h.shorter(h.of(v), 16));
    return b.CreateSelect(b.CreateFCmpUNO(v, v), v, rounded);
  }
  if (target.halves) {
    return b.CreateFPExt(b.CreateFPTrunc(v, wide(b.getHalfTy(), v)), v->getType());
  }
  Value* size = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v);
  Value* normal = h.back(h.shorter(h.of(size), 13));
  // A float in 1/2..1 is a multiple of 2^-24, like subnormal halves.
  Value* small = b.CreateFSub(b.CreateFAdd(size, h.f(0.5)), h.f(0.5));
  Value* out = b.CreateSelect(b.CreateFCmpOLT(size, h.f(0x1p-14)), small, normal);
  out = b.CreateSelect(b.CreateFCmpOGE(size, h.f(65520)),
                       llvm::ConstantFP::getInfinity(v->getType()), out);
  out = b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, out, v);
  return b.CreateSelect(b.CreateFCmpUNO(v, v), v, out);
}

Value* Emitter::half_to_memory(Value* v, DType type) {
  llvm::Type* two_bytes = wide(b.getInt16Ty(), v);
  if (type == DType::F16 && target.halves) {
    return b.CreateBitCast(b.CreateFPTrunc(v, wide(b.getHalfTy(), v)), two_bytes);
  }
  Bits h{b, v->getType(), wide(b.getInt32Ty(), v)};
  if (type == DType::BF16) return b.CreateTrunc(b.CreateLShr(h.of(v), h.i(16)), two_bytes);
  llvm::IRBuilderBase::FastMathFlagGuard guard(b);
  b.clearFastMathFlags();
  Value* sign = b.CreateAnd(b.CreateLShr(h.of(v), h.i(16)), h.i(0x8000));
  Value* size = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v);
  // The multiplication corrects the exponent, exactly for subnormals too; infinity and NaN are
  // handled below.
  Value* bits = b.CreateLShr(h.of(b.CreateFMul(size, h.f(0x1p-112))), h.i(13));
  bits = b.CreateSelect(b.CreateFCmpOEQ(size, llvm::ConstantFP::getInfinity(v->getType())),
                        h.i(0x7c00), bits);
  bits = b.CreateSelect(b.CreateFCmpUNO(v, v), h.i(0x7e00), bits);
  return b.CreateTrunc(b.CreateOr(bits, sign), two_bytes);
}

Value* Emitter::half_from_memory(Value* v, DType type) {
  llvm::Type* real = wide(b.getFloatTy(), v);
  if (type == DType::F16 && target.halves) {
    return b.CreateFPExt(b.CreateBitCast(v, wide(b.getHalfTy(), v)), real);
  }
  Bits h{b, real, wide(b.getInt32Ty(), v)};
  Value* bits = b.CreateZExt(v, h.whole);
  if (type == DType::BF16) return h.back(b.CreateShl(bits, h.i(16)));
  llvm::IRBuilderBase::FastMathFlagGuard guard(b);
  b.clearFastMathFlags();
  Value* size = b.CreateAnd(bits, h.i(0x7fff));
  Value* sign = b.CreateShl(b.CreateAnd(bits, h.i(0x8000)), h.i(16));
  Value* shifted = b.CreateShl(size, h.i(13));
  Value* number = h.of(b.CreateFMul(h.back(shifted), h.f(0x1p112)));
  Value* beyond = b.CreateICmpUGE(size, h.i(0x7c00));  // infinity or NaN
  Value* out = b.CreateSelect(beyond, b.CreateOr(shifted, h.i(0x7f800000)), number);
  return h.back(b.CreateOr(out, sign));
}

}  // namespace ein::codegen
