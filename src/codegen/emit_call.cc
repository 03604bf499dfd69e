// Scalar functions and their calls. A function is `{i32, T} f(context, calls, params…)`: whether it
// stopped the program, and its result. `calls` counts the calls around it.
#include "base/check.h"
#include "codegen/emit.h"

namespace ein::codegen {

using llvm::BasicBlock;
using llvm::Value;

llvm::Function* Emitter::declare_function(const loops::Function& f) {
  std::vector<llvm::Type*> types{b.getPtrTy(), b.getInt64Ty()};
  for (loops::VarId v : f.params) types.push_back(type_of(p.vars[v].type));
  auto* result =
      llvm::StructType::get(mod.getContext(), {b.getInt32Ty(), type_of(p.exprs[f.result].type)});
  auto* type = llvm::FunctionType::get(result, types, false);
  auto* out = llvm::Function::Create(type, llvm::Function::InternalLinkage, "f_" + f.name, mod);
  out->addFnAttr(llvm::Attribute::NoUnwind);
  return out;
}

void Emitter::function(const loops::Function& f, llvm::Function* to) {
  auto& c = mod.getContext();
  fn = to;
  context = fn->getArg(0);
  calls = fn->getArg(1);
  BasicBlock* first = BasicBlock::Create(c, "entry", fn);
  BasicBlock* start = BasicBlock::Create(c, "start", fn);
  BasicBlock* deep = BasicBlock::Create(c, "deep", fn);
  BasicBlock* body = BasicBlock::Create(c, "body", fn);
  entry.SetInsertPoint(first);
  b.SetInsertPoint(start);
  llvm::FastMathFlags flags;
  flags.setAllowContract(!p.exact);
  b.setFastMathFlags(flags);
  b.CreateCondBr(b.CreateICmpSGE(calls, i64(core::kMaxRecursion)), deep, body);
  b.SetInsertPoint(deep);
  b.CreateStore(i64(f.too_deep.v), failure());
  leave();
  b.SetInsertPoint(body);
  for (size_t k = 0; k < f.params.size(); ++k) {
    values[f.params[k]] = uniform(fn->getArg(static_cast<unsigned>(k + 2)));
  }
  block(f.body);
  Value* out = llvm::PoisonValue::get(fn->getReturnType());
  out = b.CreateInsertValue(out, b.getInt32(0), 0);
  b.CreateRet(b.CreateInsertValue(out, scalar(f.result), 1));
  entry.CreateBr(start);
}

Value* Emitter::failure() {
  return b.CreateLoad(
      b.getPtrTy(), b.CreateConstInBoundsGEP1_64(b.getPtrTy(), context,
                                                 offsetof(NativeContext, failure) / sizeof(void*)));
}

void Emitter::leave() {
  llvm::Type* type = fn->getReturnType();
  if (type->isVoidTy()) {  // of a thread
    b.CreateRetVoid();
    return;
  }
  if (!type->isStructTy()) {
    b.CreateRet(b.getInt32(1));
    return;
  }
  Value* out = llvm::Constant::getNullValue(type);
  b.CreateRet(b.CreateInsertValue(out, b.getInt32(1), 0));
}

void Emitter::leave_unless_zero(Value* status) {
  llvm::LLVMContext& c = fn->getContext();
  BasicBlock* stop = BasicBlock::Create(c, "stop", fn);
  BasicBlock* go_on = BasicBlock::Create(c, "go", fn);
  b.CreateCondBr(b.CreateIsNotNull(status), stop, go_on);
  b.SetInsertPoint(stop);
  leave();
  b.SetInsertPoint(go_on);
}

Value* Emitter::invoke_once(const loops::Invoke& s, std::vector<Value*> args) {
  auto& c = mod.getContext();
  Value* around = calls ? b.CreateAdd(calls, i64(1)) : static_cast<Value*>(i64(0));
  args.insert(args.begin(), {context, around});
  Value* out = b.CreateCall(functions[s.function], args);
  BasicBlock* stopped = BasicBlock::Create(c, "stopped", fn);
  BasicBlock* go_on = BasicBlock::Create(c, "go", fn);
  b.CreateCondBr(b.CreateICmpNE(b.CreateExtractValue(out, 0), b.getInt32(0)), stopped, go_on);
  b.SetInsertPoint(stopped);
  if (s.site) {
    constexpr size_t at = offsetof(NativeFailure, caller) / sizeof(int64_t);
    b.CreateStore(site_number(s.site), b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), failure(), at));
  }
  leave();
  b.SetInsertPoint(go_on);
  return b.CreateExtractValue(out, 1);
}

void Emitter::invoke(const loops::Invoke& s) {
  auto& c = mod.getContext();
  std::vector<Val> args;
  bool one = true;
  for (loops::ExprId a : s.args) {
    args.push_back(expr(a));
    one &= args.back().uniform();
  }
  if (one) {  // some lane is active, and all active lanes have the same arguments
    std::vector<Value*> scalars;
    for (const Val& v : args) scalars.push_back(v.v);
    values[s.var] = uniform(invoke_once(s, std::move(scalars)));
    return;
  }
  std::vector<Value*> wide_args;
  for (size_t k = 0; k < args.size(); ++k) {
    wide_args.push_back(lanes(args[k], p.exprs[s.args[k]].type));
  }
  auto* type = llvm::FixedVectorType::get(type_of(p.vars[s.var].type), width);
  auto* cell = entry.CreateAlloca(type);
  b.CreateStore(llvm::Constant::getNullValue(type), cell);
  for (uint32_t lane = 0; lane < width; ++lane) {
    BasicBlock* after = nullptr;
    if (mask) {
      BasicBlock* active = BasicBlock::Create(c, "lane", fn);
      after = BasicBlock::Create(c, "next", fn);
      b.CreateCondBr(b.CreateExtractElement(mask, lane), active, after);
      b.SetInsertPoint(active);
    }
    std::vector<Value*> scalars;
    for (Value* v : wide_args) scalars.push_back(b.CreateExtractElement(v, lane));
    Value* result = invoke_once(s, std::move(scalars));
    b.CreateStore(b.CreateInsertElement(b.CreateLoad(type, cell), result, lane), cell);
    if (after) {
      b.CreateBr(after);
      b.SetInsertPoint(after);
    }
  }
  values[s.var] = varying(b.CreateLoad(type, cell));
}

}  // namespace ein::codegen
