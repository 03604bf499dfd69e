// The arithmetic that formulas are written in, and the choice how each function is computed.
#include "codegen/emit_math.h"

#include <llvm/IR/Intrinsics.h>

#include "base/check.h"
#include "codegen/emit.h"

namespace ein::codegen {

using core::Op;
using llvm::BasicBlock;
using llvm::Value;

Real operator+(Real a, Real b) { return {a.m, a.m->b().CreateFAdd(a.v, b.v)}; }
Real operator-(Real a, Real b) { return {a.m, a.m->b().CreateFSub(a.v, b.v)}; }
Real operator*(Real a, Real b) { return {a.m, a.m->b().CreateFMul(a.v, b.v)}; }
Real operator/(Real a, Real b) { return {a.m, a.m->b().CreateFDiv(a.v, b.v)}; }
Real operator-(Real a) { return {a.m, a.m->b().CreateFNeg(a.v)}; }
Real operator+(Real a, double b) { return a + a.m->constant(b); }
Real operator-(Real a, double b) { return a - a.m->constant(b); }
Real operator*(Real a, double b) { return a * a.m->constant(b); }
Real operator+(double a, Real b) { return b.m->constant(a) + b; }
Real operator-(double a, Real b) { return b.m->constant(a) - b; }
Real operator/(double a, Real b) { return b.m->constant(a) / b; }

Math::Math(llvm::IRBuilder<>& builder, llvm::Type* type, bool fma)
    : b_(builder), type_(type), wide_(type->getScalarType()->isDoubleTy()), fma_(fma) {
  int_type_ = builder.getIntNTy(wide_ ? 64 : 32);
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type)) {
    int_type_ = llvm::FixedVectorType::get(int_type_, vector->getNumElements());
  }
}

Real Math::constant(double v) { return real(llvm::ConstantFP::get(type_, v)); }

llvm::Constant* Math::integer(uint64_t v) { return llvm::ConstantInt::get(int_type_, v); }

Real Math::mad(Real a, Real b, Real c) {
  auto id = fma_ ? llvm::Intrinsic::fma : llvm::Intrinsic::fmuladd;
  return real(b_.CreateIntrinsic(id, {type_}, {a.v, b.v, c.v}));
}

Real Math::polynomial(Real x, std::span<const double> c) {
  Real sum = constant(c.back());
  for (size_t k = c.size() - 1; k-- > 0;) sum = mad(sum, x, constant(c[k]));
  return sum;
}

Real Math::abs(Real x) { return real(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x.v)); }
Real Math::sqrt(Real x) { return real(b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x.v)); }
Real Math::with_sign(Real magnitude, Real sign) {
  return real(b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude.v, sign.v));
}
Real Math::select(Value* condition, Real a, Real b) {
  return real(b_.CreateSelect(condition, a.v, b.v));
}
Real Math::at_most(Real x, double hi) { return select(less(constant(hi), x), hi, x); }
Real Math::clamp(Real x, double lo, double hi) { return at_most(select(less(x, lo), lo, x), hi); }

Value* Math::less(Real a, Real b) { return b_.CreateFCmpOLT(a.v, b.v); }
Value* Math::equal(Real a, Real b) { return b_.CreateFCmpOEQ(a.v, b.v); }
Value* Math::unordered(Real a, Real b) { return b_.CreateFCmpUNO(a.v, b.v); }
Value* Math::negative(Real x) { return b_.CreateICmpSLT(bits(x), integer(0)); }
Value* Math::bits(Real x) { return b_.CreateBitCast(x.v, int_type_); }
Real Math::from_bits(Value* v) { return real(b_.CreateBitCast(v, type_)); }

Pair Math::two_sum(Real a, Real b) {
  Real sum = a + b, of_b = sum - a;
  return {sum, (a - (sum - of_b)) + (b - of_b)};
}

Pair Math::two_product(Real a, Real b) {
  Real product = a * b;
  if (fma_) {
    Value* low = b_.CreateIntrinsic(llvm::Intrinsic::fma, {type_}, {a.v, b.v, (-product).v});
    return {product, real(low)};
  }
  auto halves = [&](Real x) {  // of 26 bits each
    Real t = x * 134217729.0;
    Real high = t - (t - x);
    return Pair{high, x - high};
  };
  Pair x = halves(a), y = halves(b);
  Real low = ((x.high * y.high - product) + x.high * y.low + x.low * y.high) + x.low * y.low;
  return {product, low};
}

Real Math::power_of_two(Value* n) {
  return from_bits(b_.CreateShl(b_.CreateAdd(n, integer(static_cast<uint64_t>(bias()))),
                                integer(static_cast<uint64_t>(fraction_bits()))));
}

// Multiplies by two powers of two that are both normal numbers; only the second product rounds. The
// shift is a logical shift of a positive sum, because not every target has arithmetic shifts of
// 64-bit lanes.
Real Math::scale(Real x, Real t) {
  const uint64_t up = 1200;
  Value* n = b_.CreateSub(bits(t), bits(constant(magic())));
  Value* first =
      b_.CreateSub(b_.CreateLShr(b_.CreateAdd(n, integer(2 * up)), integer(1)), integer(up));
  return x * power_of_two(first) * power_of_two(b_.CreateSub(n, first));
}

namespace {

// How a function is computed. `inlined`: in lanes, its code is placed in the loop itself; otherwise
// there is one function for each width, which keeps programs with many calls short. `direct`:
// floats are computed as floats; otherwise as doubles, rounded at the end.
struct Known {
  Op op;
  bool in_double = true;  // false: doubles use the library
  bool inlined = false;
  bool direct = false;
  double limit = 0, limit_middle = 0;  // larger arguments use the library
};
constexpr Known kKnown[] = {
    {Op::Exp, true, true, true},
    {Op::Log, true, true, true},
    {Op::Tanh, true, true, true},
    {Op::Erf, true, true, true},
    {Op::Expm1},
    {Op::Log1p},
    {Op::Sin, true, false, false, Math::kTurnLimit, Math::kTurnLimitMiddle},
    {Op::Cos, true, false, false, Math::kTurnLimit, Math::kTurnLimitMiddle},
    {Op::Tan, false, false, false, 0, Math::kTurnLimitMiddle},
    {Op::Pow},
    {Op::Sinh, false},
    {Op::Cosh, false},
    {Op::Asin, false},
    {Op::Acos, false},
    {Op::Atan, false},
    {Op::Atan2, false},
};

const Known* known(Op op, DType type) {
  for (const Known& k : kKnown) {
    if (k.op == op) return type == DType::F64 && !k.in_double ? nullptr : &k;
  }
  return nullptr;
}

Real formula(Math& m, Op op, Real x, Real y, bool middle) {
  switch (op) {
    case Op::Exp: return m.exp(x, middle);
    case Op::Log: return m.log(x, middle);
    case Op::Tanh: return m.tanh(x);
    case Op::Erf: return m.erf(x);
    case Op::Expm1: return m.expm1(x, middle);
    case Op::Log1p: return m.log1p(x, middle);
    case Op::Sin: return m.sin(x, middle);
    case Op::Cos: return m.cos(x, middle);
    case Op::Tan: return m.tan_middle(x);
    case Op::Pow: return m.pow(x, y, middle);
    case Op::Sinh: return m.sinh_middle(x);
    case Op::Cosh: return m.cosh_middle(x);
    case Op::Asin: return m.atan2_middle(x, m.sqrt((1.0 - x) * (1.0 + x)));
    case Op::Acos: return m.atan2_middle(m.sqrt((1.0 - x) * (1.0 + x)), x);
    case Op::Atan: return m.atan2_middle(x, m.constant(1));
    case Op::Atan2: return m.atan2_middle(x, y);
    default: EIN_UNREACHABLE("no formula");
  }
}

Value* compute(llvm::IRBuilder<>& b, const Known& k, const std::vector<Value*>& args, bool fma) {
  llvm::IRBuilderBase::FastMathFlagGuard guard(b);
  b.clearFastMathFlags();
  llvm::Type* type = args[0]->getType();
  bool middle = type->getScalarType()->isFloatTy() && !k.direct;
  llvm::Type* inside = type;
  if (middle) {
    inside = b.getDoubleTy();
    if (auto* v = llvm::dyn_cast<llvm::FixedVectorType>(type)) {
      inside = llvm::FixedVectorType::get(inside, v->getNumElements());
    }
  }
  Math m(b, inside, fma);
  auto in = [&](size_t i) {
    if (i >= args.size()) return Real{};
    return m.real(middle ? b.CreateFPExt(args[i], inside) : args[i]);
  };
  Real out = formula(m, k.op, in(0), in(1), middle);
  return middle ? b.CreateFPTrunc(out.v, type) : out.v;
}

}  // namespace

Value* Emitter::math(Op op, const std::vector<Value*>& args, DType type, NativeFn library) {
  const Known* k = known(op, type);
  if (!k) return call(library, args, type_of(type));
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(args[0]->getType());
  if ((vector || thread) && k->inlined) return compute(b, *k, args, target.fma);
  std::vector<Value*> all{context};
  all.insert(all.end(), args.begin(), args.end());
  llvm::CallInst* c = b.CreateCall(math_function(op, args, type, library), all);
  c->setDoesNotThrow();
  c->setDoesNotAccessMemory();
  return c;
}

// m_op_type_lanes(context, args…), made when it is first needed.
llvm::Function* Emitter::math_function(Op op, const std::vector<Value*>& args, DType type,
                                       NativeFn library) {
  const Known& k = *known(op, type);
  llvm::Type* value = args[0]->getType();
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value);
  std::string name = std::string("m_") + core::info(op).name + "_" + name_of(type) + "_" +
                     std::to_string(vector ? vector->getNumElements() : 1);
  if (llvm::Function* made = mod.getFunction(name)) return made;
  auto& c = mod.getContext();
  std::vector<llvm::Type*> types{b.getPtrTy()};
  types.insert(types.end(), args.size(), value);
  auto* out = llvm::Function::Create(llvm::FunctionType::get(value, types, false),
                                     llvm::Function::InternalLinkage, name, mod);
  out->addFnAttr(llvm::Attribute::NoUnwind);
  out->addFnAttr(llvm::Attribute::NoInline);
  Emitter inside(p, mod, first_dim);
  inside.target = target;
  inside.fn = out;
  inside.context = out->getArg(0);
  inside.b.SetInsertPoint(BasicBlock::Create(c, "entry", out));
  std::vector<Value*> own;
  for (size_t i = 0; i < args.size(); ++i) own.push_back(out->getArg(static_cast<unsigned>(i + 1)));
  Value* result = compute(inside.b, k, own, target.fma);
  double limit = type == DType::F64 ? k.limit : k.limit_middle;
  if (limit == 0) {
    inside.b.CreateRet(result);
    return out;
  }
  // The rare lanes beyond the limit use the library.
  Value* size = inside.b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, own[0]);
  Value* large = inside.b.CreateFCmpOGT(size, llvm::ConstantFP::get(value, limit));
  BasicBlock* rare = BasicBlock::Create(c, "rare", out);
  BasicBlock* usual = BasicBlock::Create(c, "usual", out);
  inside.b.CreateCondBr(vector ? inside.any(large) : large, rare, usual,
                        llvm::MDBuilder(c).createBranchWeights(1, 1 << 20));
  inside.b.SetInsertPoint(usual);
  inside.b.CreateRet(result);
  BasicBlock* lanes = BasicBlock::Create(c, "lanes", out);
  inside.entry.SetInsertPoint(rare);
  inside.b.SetInsertPoint(lanes);
  Value* slow = inside.call(library, own, type_of(type));
  inside.b.CreateRet(inside.b.CreateSelect(large, slow, result));
  inside.entry.CreateBr(lanes);
  return out;
}

}  // namespace ein::codegen
