// Scalar operations, one case per line of ops.def, with the meaning core/scalar.cc gives them.
#include <llvm/IR/Intrinsics.h>

#include <cmath>
#include <optional>

#include "base/check.h"
#include "codegen/emit.h"

namespace ein::codegen {

using core::Op;
using llvm::Value;

namespace {

// The library function for an operation on reals, for f32; the one for f64 follows it in the table.
std::optional<NativeFn> function_of(Op op) {
  switch (op) {
    case Op::Exp: return NativeFn::Exp32;
    case Op::Expm1: return NativeFn::Expm132;
    case Op::Log: return NativeFn::Log32;
    case Op::Log1p: return NativeFn::Log1p32;
    case Op::Sin: return NativeFn::Sin32;
    case Op::Cos: return NativeFn::Cos32;
    case Op::Tan: return NativeFn::Tan32;
    case Op::Sinh: return NativeFn::Sinh32;
    case Op::Cosh: return NativeFn::Cosh32;
    case Op::Tanh: return NativeFn::Tanh32;
    case Op::Asin: return NativeFn::Asin32;
    case Op::Acos: return NativeFn::Acos32;
    case Op::Atan: return NativeFn::Atan32;
    case Op::Erf: return NativeFn::Erf32;
    case Op::Atan2: return NativeFn::Atan232;
    case Op::Pow: return NativeFn::Pow32;
    case Op::Mod: return NativeFn::Mod32;
    default: return std::nullopt;
  }
}

NativeFn for_type(NativeFn f, DType type) {
  return type == DType::F64 ? static_cast<NativeFn>(static_cast<uint32_t>(f) + 1) : f;
}

// A constant, as a scalar or the same in all lanes.
template <class C>
const C* constant(Value* v) {
  if (auto* c = llvm::dyn_cast<C>(v)) return c;
  if (auto* c = llvm::dyn_cast<llvm::Constant>(v)) {
    if (c->getType()->isVectorTy()) return llvm::dyn_cast_or_null<C>(c->getSplatValue());
  }
  return nullptr;
}

// The same as runtime/random.cc, for threads of a device, which cannot call that.
Value* philox_code(llvm::IRBuilder<>& b, Value* key, Value* address) {
  llvm::Type* wide = b.getInt128Ty();
  auto* multiplier = llvm::ConstantInt::get(wide, 0xD2B74407B1CE6E93ull);
  Value *k = key, *x = address, *y = b.getInt64(0);
  for (int round = 0; round < 10; ++round) {
    Value* product = b.CreateMul(multiplier, b.CreateZExt(x, wide));
    Value* high = b.CreateTrunc(b.CreateLShr(product, 64), b.getInt64Ty());
    x = b.CreateXor(b.CreateXor(high, k), y);
    y = b.CreateTrunc(product, b.getInt64Ty());
    k = b.CreateAdd(k, b.getInt64(0x9E3779B97F4A7C15ull));
  }
  return x;
}

Value* uniform_code(llvm::IRBuilder<>& b, Value* bits) {
  Value* whole = b.CreateUIToFP(b.CreateLShr(bits, 40), b.getFloatTy());
  return b.CreateFMul(whole, llvm::ConstantFP::get(b.getFloatTy(), 0x1p-24));
}

}  // namespace

llvm::Type* Emitter::type_of(DType t) {
  switch (t) {
    case DType::Bool: return b.getInt1Ty();
    case DType::I8:
    case DType::U8: return b.getInt8Ty();
    case DType::I16: return b.getInt16Ty();
    case DType::I32: return b.getInt32Ty();
    case DType::I64: return b.getInt64Ty();
    case DType::F16:
    case DType::BF16:
    case DType::F32: return b.getFloatTy();
    case DType::F64: return b.getDoubleTy();
    case DType::Str: break;
  }
  EIN_UNREACHABLE(std::string("no native code for ") + name_of(t));
}

llvm::Type* Emitter::memory_type_of(DType t) {
  return t == DType::Bool ? b.getInt8Ty() : is_half(t) ? b.getInt16Ty() : type_of(t);
}

llvm::Type* Emitter::wide(llvm::Type* t, Value* like) {
  auto* v = llvm::dyn_cast<llvm::FixedVectorType>(like->getType());
  return v ? llvm::FixedVectorType::get(t, v->getNumElements()) : t;
}

Value* Emitter::to_memory(Value* v, DType t) {
  if (is_half(t)) return half_to_memory(v, t);
  return t == DType::Bool ? b.CreateZExt(v, wide(b.getInt8Ty(), v)) : v;
}

Value* Emitter::from_memory(Value* v, DType t) {
  if (is_half(t)) return half_from_memory(v, t);
  if (t != DType::Bool) return v;
  return b.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
}

// Calls a function of the table, lane by lane.
Value* Emitter::call(NativeFn f, const std::vector<Value*>& args, llvm::Type* result) {
  std::vector<llvm::Type*> types;
  for (Value* a : args) types.push_back(a->getType()->getScalarType());
  auto* type = llvm::FunctionType::get(result, types, false);
  Value* callees = entry.CreateLoad(
      b.getPtrTy(), entry.CreateConstInBoundsGEP1_64(
                        b.getPtrTy(), context, offsetof(NativeContext, functions) / sizeof(void*)));
  Value* address = entry.CreateLoad(
      b.getPtrTy(),
      entry.CreateConstInBoundsGEP1_64(b.getPtrTy(), callees, static_cast<uint64_t>(f)));
  auto one = [&](const std::vector<Value*>& scalars) {
    llvm::CallInst* c = b.CreateCall(type, address, scalars);
    c->setDoesNotThrow();
    bool pure = f < NativeFn::Contract32;  // functions of numbers come first in the table
    if (pure) c->setDoesNotAccessMemory();
    return c;
  };
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(args[0]->getType());
  if (!vector) return one(args);
  Value* out = llvm::PoisonValue::get(llvm::FixedVectorType::get(result, vector->getNumElements()));
  for (uint64_t lane = 0; lane < vector->getNumElements(); ++lane) {
    std::vector<Value*> scalars;
    for (Value* a : args) scalars.push_back(b.CreateExtractElement(a, lane));
    out = b.CreateInsertElement(out, one(scalars), lane);
  }
  return out;
}

Value* Emitter::beats(bool max, Value* challenger, Value* holder, DType type) {
  if (!is_float(type)) {
    if (is_unsigned(type)) {
      return max ? b.CreateICmpUGT(challenger, holder) : b.CreateICmpULT(challenger, holder);
    }
    return max ? b.CreateICmpSGT(challenger, holder) : b.CreateICmpSLT(challenger, holder);
  }
  // Unordered or greater, and the present best is a number.
  Value* better = max ? b.CreateFCmpUGT(challenger, holder) : b.CreateFCmpULT(challenger, holder);
  return b.CreateAnd(b.CreateFCmpORD(holder, holder), better);
}

Value* Emitter::power(Value* x, Value* y, DType type) {
  if (const auto* c = constant<llvm::ConstantFP>(y)) {
    // Squares and the like; each is as exact as pow or within its error.
    if (c->isExactlyValue(1.0)) return x;
    if (c->isExactlyValue(2.0)) return b.CreateFMul(x, x);
    if (c->isExactlyValue(3.0)) return b.CreateFMul(b.CreateFMul(x, x), x);
    if (c->isExactlyValue(-1.0)) {
      return b.CreateFDiv(llvm::ConstantFP::get(x->getType(), 1.0), x);
    }
  }
  return math(Op::Pow, {x, y}, type, for_type(NativeFn::Pow32, type));
}

Value* Emitter::to_integer(Op op, Value* x) {
  if (target.rounds) {
    auto id = op == Op::Floor  ? llvm::Intrinsic::floor
              : op == Op::Ceil ? llvm::Intrinsic::ceil
                               : llvm::Intrinsic::nearbyint;
    return b.CreateUnaryIntrinsic(id, x);
  }
  // Adding 2^23 (2^52) rounds at the unit, to even; numbers beyond are integers already.
  bool is_wide = x->getType()->getScalarType()->isDoubleTy();
  auto* large = llvm::ConstantFP::get(x->getType(), is_wide ? 0x1p52 : 0x1p23);
  auto* one = llvm::ConstantFP::get(x->getType(), 1.0);
  auto* zero = llvm::Constant::getNullValue(x->getType());
  auto sign = [&](Value* v) { return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, v, x); };
  Value* size = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  Value* near = sign(b.CreateFSub(b.CreateFAdd(size, large), large));
  if (op == Op::Floor) {
    near = b.CreateFSub(near, b.CreateSelect(b.CreateFCmpOGT(near, x), one, zero));
  } else if (op == Op::Ceil) {
    near = b.CreateFAdd(near, b.CreateSelect(b.CreateFCmpOLT(near, x), one, zero));
  }
  return b.CreateSelect(b.CreateFCmpOLT(size, large), sign(near), x);
}

Value* Emitter::real(Op op, const std::vector<Value*>& args, DType type) {
  if (is_half(type)) {
    // Each operation is rounded: none may be fused with another, even if the processor could.
    llvm::IRBuilderBase::FastMathFlagGuard guard(b);
    b.clearFastMathFlags();
    Value* v = real(op, args, DType::F32);
    bool exact = op == Op::Neg || op == Op::Abs || op == Op::Min || op == Op::Max ||
                 op == Op::Sign || op == Op::Stop;
    return exact ? v : round_half(v, type);
  }
  Value* x = args[0];
  Value* y = args.size() > 1 ? args[1] : nullptr;
  auto intrinsic = [&](llvm::Intrinsic::ID id) { return b.CreateUnaryIntrinsic(id, x); };
  switch (op) {
    case Op::Add: return b.CreateFAdd(x, y);
    case Op::Sub: return b.CreateFSub(x, y);
    case Op::Mul: return b.CreateFMul(x, y);
    case Op::Div: return b.CreateFDiv(x, y);
    case Op::Neg: return b.CreateFNeg(x);
    case Op::Min: return b.CreateSelect(beats(false, y, x, type), y, x);
    case Op::Max: return b.CreateSelect(beats(true, y, x, type), y, x);
    case Op::Abs: return intrinsic(llvm::Intrinsic::fabs);
    case Op::Stop: return x;
    case Op::Sign: {
      Value* zero = llvm::ConstantFP::get(x->getType(), 0.0);
      Value* up = llvm::ConstantFP::get(x->getType(), 1.0);
      Value* down = llvm::ConstantFP::get(x->getType(), -1.0);
      return b.CreateSelect(b.CreateFCmpOGT(x, zero), up,
                            b.CreateSelect(b.CreateFCmpOLT(x, zero), down, x));
    }
    case Op::Sqrt: return intrinsic(llvm::Intrinsic::sqrt);
    case Op::Floor:
    case Op::Ceil:
    case Op::Round: return to_integer(op, x);
    case Op::Pow: return power(x, y, type);
    default: break;
  }
  auto f = function_of(op);
  EIN_CHECK(f, std::string("not an operation on reals: ") + core::info(op).name);
  return math(op, args, type, for_type(*f, type));
}

Value* Emitter::whole(Op op, const std::vector<Value*>& args, DType type) {
  Value* x = args[0];
  Value* y = args.size() > 1 ? args[1] : nullptr;
  Value* zero = llvm::Constant::getNullValue(x->getType());
  switch (op) {
    case Op::Add: return b.CreateAdd(x, y);
    case Op::Sub: return b.CreateSub(x, y);
    case Op::Mul: return b.CreateMul(x, y);
    case Op::Neg: return b.CreateSub(zero, x);
    case Op::Min: return b.CreateSelect(beats(false, y, x, type), y, x);
    case Op::Max: return b.CreateSelect(beats(true, y, x, type), y, x);
    case Op::Stop: return x;
    case Op::BitAnd: return b.CreateAnd(x, y);
    case Op::BitOr: return b.CreateOr(x, y);
    case Op::BitXor: return b.CreateXor(x, y);
    case Op::BitNot: return b.CreateNot(x);
    case Op::BitLength: {
      Value* size = whole(Op::Abs, args, type);
      Value* unused = b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, size, b.getFalse());
      unsigned bits = x->getType()->getScalarSizeInBits();
      return b.CreateSub(llvm::ConstantInt::get(x->getType(), bits), unused);
    }
    case Op::Shl:
    case Op::Shr: {
      // It was checked before, but inactive lanes may hold any number.
      unsigned bits = x->getType()->getScalarSizeInBits();
      Value* by = b.CreateAnd(y, llvm::ConstantInt::get(y->getType(), bits - 1));
      if (op == Op::Shl) return b.CreateShl(x, by);
      return is_unsigned(type) ? b.CreateLShr(x, by) : b.CreateAShr(x, by);
    }
    case Op::Abs:
      if (is_unsigned(type)) return x;
      return b.CreateSelect(b.CreateICmpSLT(x, zero), b.CreateSub(zero, x), x);
    case Op::Sign: {
      Value* one = llvm::ConstantInt::get(x->getType(), 1);
      if (is_unsigned(type)) return b.CreateSelect(b.CreateICmpNE(x, zero), one, zero);
      Value* down = llvm::Constant::getAllOnesValue(x->getType());
      return b.CreateSelect(b.CreateICmpSGT(x, zero), one,
                            b.CreateSelect(b.CreateICmpSLT(x, zero), down, zero));
    }
    case Op::Div:
    case Op::Mod: {
      Value* one = llvm::ConstantInt::get(x->getType(), 1);
      // Inactive lanes may hold any divisor.
      if (mask && y->getType()->isVectorTy()) y = b.CreateSelect(mask, y, one);
      bool quotient = op == Op::Div;
      if (is_unsigned(type)) return quotient ? b.CreateUDiv(x, y) : b.CreateURem(x, y);
      const auto* c = constant<llvm::ConstantInt>(y);
      if (c && !c->isMinusOne()) return quotient ? b.CreateSDiv(x, y) : b.CreateSRem(x, y);
      // The most negative value divided by −1 wraps; the instruction would stop the process.
      Value* minus = b.CreateICmpEQ(y, llvm::Constant::getAllOnesValue(y->getType()));
      Value* by = b.CreateSelect(minus, one, y);
      if (!quotient) return b.CreateSRem(x, by);  // the remainder by 1 and by −1 is 0
      return b.CreateSelect(minus, b.CreateSub(zero, x), b.CreateSDiv(x, by));
    }
    case Op::Pow: {
      auto* wide_type = wide(b.getInt64Ty(), x);
      auto grow = [&](Value* v) {
        return is_unsigned(type) ? b.CreateZExt(v, wide_type) : b.CreateSExt(v, wide_type);
      };
      Value* r = call(NativeFn::IntPow, {grow(x), grow(y)}, b.getInt64Ty());
      return b.CreateTrunc(r, x->getType());
    }
    default: break;
  }
  EIN_UNREACHABLE(std::string("not an operation on integers: ") + core::info(op).name);
}

Value* Emitter::overflows(Op op, const std::vector<Value*>& args, DType type) {
  namespace I = llvm::Intrinsic;
  Value* x = args[0];
  bool u = is_unsigned(type);
  unsigned size = x->getType()->getScalarSizeInBits();
  auto* least = llvm::ConstantInt::get(x->getType(), llvm::APInt::getSignedMinValue(size));
  auto* zero = llvm::Constant::getNullValue(x->getType());
  Value* never = llvm::Constant::getNullValue(wide(b.getInt1Ty(), x));
  auto pair = [&](I::ID with_sign, I::ID without) {
    Value* both = b.CreateBinaryIntrinsic(u ? without : with_sign, x, args[1]);
    return b.CreateExtractValue(both, 1);
  };
  switch (op) {
    case Op::Add: return pair(I::sadd_with_overflow, I::uadd_with_overflow);
    case Op::Sub: return pair(I::ssub_with_overflow, I::usub_with_overflow);
    case Op::Mul: return pair(I::smul_with_overflow, I::umul_with_overflow);
    case Op::Neg: return u ? b.CreateICmpNE(x, zero) : b.CreateICmpEQ(x, least);
    case Op::Abs: return u ? never : b.CreateICmpEQ(x, least);
    case Op::Div: {
      if (u) return never;
      Value* minus = b.CreateICmpEQ(args[1], llvm::Constant::getAllOnesValue(x->getType()));
      return b.CreateAnd(b.CreateICmpEQ(x, least), minus);
    }
    case Op::Pow: {
      auto grow = [&](Value* v) { return cast(v, type, DType::I64); };
      Value* most = llvm::ConstantInt::get(wide(b.getInt64Ty(), x),
                                           u ? llvm::APInt::getMaxValue(size).zext(64)
                                             : llvm::APInt::getSignedMaxValue(size).sext(64));
      Value* lowest = llvm::ConstantInt::get(
          wide(b.getInt64Ty(), x),
          u ? llvm::APInt(64, 0) : llvm::APInt::getSignedMinValue(size).sext(64));
      Value* r =
          call(NativeFn::PowOverflows, {grow(x), grow(args[1]), lowest, most}, b.getInt64Ty());
      return b.CreateICmpNE(r, llvm::Constant::getNullValue(r->getType()));
    }
    default: break;
  }
  EIN_UNREACHABLE(std::string("no overflow of ") + core::info(op).name);
}

Value* Emitter::compare(Op op, Value* x, Value* y, DType type) {
  using P = llvm::CmpInst::Predicate;
  bool real = is_float(type), u = is_unsigned(type);
  auto pick = [&](P f, P s, P uns) { return real ? f : u ? uns : s; };
  P predicate;
  switch (op) {
    case Op::Lt: predicate = pick(P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT); break;
    case Op::Le: predicate = pick(P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE); break;
    case Op::Gt: predicate = pick(P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT); break;
    case Op::Ge: predicate = pick(P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE); break;
    case Op::Eq: predicate = pick(P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ); break;
    case Op::Ne: predicate = pick(P::FCMP_UNE, P::ICMP_NE, P::ICMP_NE); break;
    default: EIN_UNREACHABLE("not a comparison");
  }
  return real ? b.CreateFCmp(predicate, x, y) : b.CreateICmp(predicate, x, y);
}

Value* Emitter::cast(Value* x, DType from, DType to) {
  if (from == to) return x;
  if (is_half(from)) return cast(x, DType::F32, to);
  if (is_half(to)) return round_half(cast(x, from, DType::F32), to);
  llvm::Type* type = wide(type_of(to), x);
  Value* zero = llvm::Constant::getNullValue(x->getType());
  if (to == DType::Bool) return is_float(from) ? b.CreateFCmpUNE(x, zero) : b.CreateICmpNE(x, zero);
  if (is_float(from) && is_float(to)) {
    return to == DType::F64 ? b.CreateFPExt(x, type) : b.CreateFPTrunc(x, type);
  }
  if (is_float(from)) {  // out of range: saturate; NaN: 0
    auto id = is_unsigned(to) ? llvm::Intrinsic::fptoui_sat : llvm::Intrinsic::fptosi_sat;
    return b.CreateIntrinsic(id, {type, x->getType()}, {x});
  }
  if (is_float(to)) {
    if (is_unsigned(from)) return b.CreateUIToFP(x, type);
    // Wide integers round twice, as the reference does.
    if (from == DType::I64 && to == DType::F32) {
      return b.CreateFPTrunc(b.CreateSIToFP(x, wide(b.getDoubleTy(), x)), type);
    }
    return b.CreateSIToFP(x, type);
  }
  return is_unsigned(from) ? b.CreateZExtOrTrunc(x, type) : b.CreateSExtOrTrunc(x, type);
}

Value* Emitter::apply(Op op, const std::vector<Value*>& args, DType from, DType to) {
  switch (core::info(op).cls) {
    case core::OpClass::Arith: return is_float(from) ? real(op, args, from) : whole(op, args, from);
    case core::OpClass::Real: return real(op, args, from);
    case core::OpClass::Whole: return whole(op, args, from);
    case core::OpClass::Compare: return compare(op, args[0], args[1], from);
    case core::OpClass::Logic:
      if (op == Op::Not) return b.CreateNot(args[0]);
      return op == Op::And ? b.CreateAnd(args[0], args[1]) : b.CreateOr(args[0], args[1]);
    case core::OpClass::Select: return b.CreateSelect(args[0], args[1], args[2]);
    case core::OpClass::Bits:
      if (thread) return philox_code(b, args[0], args[1]);
      return call(NativeFn::Philox, args, b.getInt64Ty());
    case core::OpClass::Draw:
      if (thread && op == Op::Uniform) return uniform_code(b, args[0]);
      return call(op == Op::Uniform ? NativeFn::Uniform : NativeFn::Normal, args, b.getFloatTy());
    case core::OpClass::Rule: EIN_UNREACHABLE("a rule is left after autodiff");
    case core::OpClass::Mark: EIN_UNREACHABLE("a mark is left after sema");
    case core::OpClass::Move: EIN_UNREACHABLE("a move is a statement of its own");
    case core::OpClass::Matrix: EIN_UNREACHABLE("a matrix function is a statement of its own");
    case core::OpClass::Cast: return cast(args[0], from, to);
  }
  EIN_UNREACHABLE("op class");
}

}  // namespace ein::codegen
