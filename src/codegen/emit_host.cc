// The host's part of a program for a device: it launches kernels, and announces which buffers it is
// about to access itself (runtime/device_run.h).
#include "codegen/emit.h"
#include "codegen/launches.h"

namespace ein::codegen {

using llvm::Value;

namespace {

// A value of any type as a word; emit_device.cc converts it back.
Value* to_word(llvm::IRBuilder<>& b, Value* v) {
  llvm::Type* type = v->getType();
  if (type->isFloatingPointTy()) v = b.CreateBitCast(v, b.getIntNTy(type->getScalarSizeInBits()));
  return b.CreateZExtOrTrunc(v, b.getInt64Ty());
}

}  // namespace

void Emitter::launch(const loops::Launch& s) {
  flush_stores();
  LaunchArguments args = arguments_of(p, s);
  std::vector<Value*> words;
  for (uint32_t index : args.params) words.push_back(param(index));
  for (Value* v : values_now(args.vars)) words.push_back(to_word(b, v));
  auto* type = llvm::ArrayType::get(b.getInt64Ty(), words.size());
  Value* array = entry.CreateAlloca(type);
  for (size_t k = 0; k < words.size(); ++k) {
    b.CreateStore(words[k], b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), array, k));
  }
  leave_unless_zero(call(NativeFn::DeviceLaunch, {context, i64(s.number), scalar(s.blocks), array},
                         b.getInt32Ty()));
}

void Emitter::touch_host(const loops::Touch& s) {
  flush_stores();
  auto list = [&](const std::vector<loops::BufferId>& buffers) -> Value* {
    std::vector<uint64_t> numbers;
    for (loops::BufferId id : buffers) numbers.push_back(id.v);
    auto* data = llvm::ConstantDataArray::get(mod.getContext(), numbers);
    return new llvm::GlobalVariable(mod, data->getType(), true, llvm::GlobalValue::PrivateLinkage,
                                    data, "touched");
  };
  leave_unless_zero(call(NativeFn::DeviceTouch,
                         {context, list(s.loads), i64(static_cast<int64_t>(s.loads.size())),
                          list(s.stores), i64(static_cast<int64_t>(s.stores.size()))},
                         b.getInt32Ty()));
}

}  // namespace ein::codegen
