// The code of one thread of a device. Statements outside of loops over threads are executed by
// every thread, with the same values; in such a loop, each thread executes its own iteration.
#include "codegen/emit_device.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

#include "base/check.h"
#include "runtime/device_run.h"

namespace ein::codegen {

using llvm::BasicBlock;
using llvm::Value;

namespace {

constexpr unsigned kGlobal = 1, kShared = 3;  // address spaces
constexpr int64_t kWarpBits = 40;             // bits of a phase, below the warp

Value* nvvm(llvm::IRBuilder<>& b, llvm::Intrinsic::ID id, llvm::ArrayRef<Value*> args = {}) {
  llvm::Module* mod = b.GetInsertBlock()->getModule();
  return b.CreateCall(llvm::Intrinsic::getDeclaration(mod, id), args);
}

Value* word_at(llvm::IRBuilder<>& b, Value* record, unsigned number) {
  return b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), record, number);
}

// The value of lane + `by`, or of lane 0 if `by` is null. Values of up to a word are sent in one
// word, wider ones in two.
Value* shuffled(llvm::IRBuilder<>& b, Value* v, Value* by) {
  llvm::Type* type = v->getType();
  unsigned bits = type->getScalarSizeInBits();
  Value* whole = type->isFloatingPointTy() ? b.CreateBitCast(v, b.getIntNTy(bits)) : v;
  auto one = [&](Value* word) {
    auto id =
        by ? llvm::Intrinsic::nvvm_shfl_sync_down_i32 : llvm::Intrinsic::nvvm_shfl_sync_idx_i32;
    return nvvm(b, id, {b.getInt32(~0u), word, by ? by : b.getInt32(0), b.getInt32(31)});
  };
  Value* out = nullptr;
  if (bits <= 32) {
    out = b.CreateTrunc(one(b.CreateZExt(whole, b.getInt32Ty())), b.getIntNTy(bits));
  } else {
    Value* low = one(b.CreateTrunc(whole, b.getInt32Ty()));
    Value* high = one(b.CreateTrunc(b.CreateLShr(whole, 32), b.getInt32Ty()));
    out = b.CreateOr(b.CreateZExt(low, b.getInt64Ty()),
                     b.CreateShl(b.CreateZExt(high, b.getInt64Ty()), 32));
  }
  return type->isFloatingPointTy() ? b.CreateBitCast(out, type) : out;
}

// The record of failures, word by word. Threads read and write it one at a time; a thread that
// waits for the lock does so in a loop of its own.
struct Record {
  llvm::IRBuilder<>& b;
  Value* at;

  llvm::LoadInst* load(unsigned number) {
    return b.CreateLoad(b.getInt64Ty(), word_at(b, at, number), true);
  }
  void store(Value* v, unsigned number) { b.CreateStore(v, word_at(b, at, number), true); }
  void lock() {
    auto& c = b.getContext();
    llvm::Function* fn = b.GetInsertBlock()->getParent();
    auto* wait = BasicBlock::Create(c, "wait", fn);
    auto* locked = BasicBlock::Create(c, "locked", fn);
    b.CreateBr(wait);
    b.SetInsertPoint(wait);
    auto order = llvm::AtomicOrdering::Monotonic;
    Value* old = b.CreateExtractValue(
        b.CreateAtomicCmpXchg(word_at(b, at, DeviceFailure::Lock), b.getInt64(0), b.getInt64(1),
                              llvm::MaybeAlign(8), order, order),
        0);
    b.CreateCondBr(b.CreateICmpEQ(old, b.getInt64(0)), locked, wait);
    b.SetInsertPoint(locked);
    nvvm(b, llvm::Intrinsic::nvvm_membar_gl);
  }
  void open() {
    nvvm(b, llvm::Intrinsic::nvvm_membar_gl);
    b.CreateAtomicRMW(llvm::AtomicRMWInst::Xchg, word_at(b, at, DeviceFailure::Lock), b.getInt64(0),
                      llvm::MaybeAlign(8), llvm::AtomicOrdering::Monotonic);
  }
  // Whether `ours` comes before the recorded key: the first parts that differ decide. `equal`: the
  // answer if all parts are equal.
  Value* before(llvm::ArrayRef<Value*> ours, bool theirs_first, Value* equal) {
    const unsigned keys[] = {DeviceFailure::Serial, DeviceFailure::Block, DeviceFailure::Phase,
                             DeviceFailure::Thread};
    Value* less = equal;
    for (size_t k = ours.size(); k-- > 0;) {
      Value* theirs = load(keys[k]);
      Value* first = theirs_first ? theirs : ours[k];
      Value* second = theirs_first ? ours[k] : theirs;
      Value* same = b.CreateAnd(b.CreateICmpEQ(first, second), less);
      less = b.CreateOr(b.CreateICmpSLT(first, second), same);
    }
    return less;
  }
};

llvm::Function* helper(llvm::Module& mod, const char* name, llvm::Type* result, unsigned words,
                       bool values) {
  auto& c = mod.getContext();
  std::vector<llvm::Type*> types{llvm::PointerType::get(c, kGlobal)};
  types.insert(types.end(), words, llvm::Type::getInt64Ty(c));
  if (values) types.push_back(llvm::PointerType::getUnqual(c));
  auto* out = llvm::Function::Create(llvm::FunctionType::get(result, types, false),
                                     llvm::Function::InternalLinkage, name, mod);
  out->addFnAttr(llvm::Attribute::NoUnwind);
  out->addFnAttr(llvm::Attribute::NoInline);
  return out;
}

// ein_fail(record, serial, block, phase, thread, site, values): records the failure, unless the
// record has a smaller key.
llvm::Function* fail_function(llvm::Module& mod) {
  if (llvm::Function* made = mod.getFunction("ein_fail")) return made;
  auto& c = mod.getContext();
  auto* out = helper(mod, "ein_fail", llvm::Type::getVoidTy(c), 5, true);
  llvm::IRBuilder<> b(BasicBlock::Create(c, "entry", out));
  Record record{b, out->getArg(0)};
  record.lock();
  auto* write = BasicBlock::Create(c, "write", out);
  auto* after = BasicBlock::Create(c, "after", out);
  Value* key[] = {out->getArg(1), out->getArg(2), out->getArg(3), out->getArg(4)};
  Value* less = record.before(key, false, b.getFalse());
  Value* none = b.CreateICmpEQ(record.load(DeviceFailure::Set), b.getInt64(0));
  b.CreateCondBr(b.CreateOr(none, less), write, after);
  b.SetInsertPoint(write);
  const unsigned keys[] = {DeviceFailure::Serial, DeviceFailure::Block, DeviceFailure::Phase,
                           DeviceFailure::Thread, DeviceFailure::Site};
  for (unsigned k = 0; k < 5; ++k) record.store(out->getArg(k + 1), keys[k]);
  for (unsigned k = 0; k < NativeFailure::kMaxValues; ++k) {
    Value* from = b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), out->getArg(6), k);
    record.store(b.CreateLoad(b.getInt64Ty(), from), DeviceFailure::Values + k);
  }
  record.store(b.getInt64(1), DeviceFailure::Set);
  b.CreateBr(after);
  b.SetInsertPoint(after);
  record.open();
  b.CreateRetVoid();
  return out;
}

// ein_failed(record, serial, block, phase): whether a failure has been recorded that comes no later
// than that.
llvm::Function* failed_function(llvm::Module& mod) {
  if (llvm::Function* made = mod.getFunction("ein_failed")) return made;
  auto& c = mod.getContext();
  auto* out = helper(mod, "ein_failed", llvm::Type::getInt1Ty(c), 3, false);
  llvm::IRBuilder<> b(BasicBlock::Create(c, "entry", out));
  Record record{b, out->getArg(0)};
  record.lock();
  Value* key[] = {out->getArg(1), out->getArg(2), out->getArg(3)};
  Value* before = record.before(key, true, b.getTrue());
  record.open();
  b.CreateRet(before);
  return out;
}

}  // namespace

llvm::Function* Emitter::kernel_of(const loops::Launch& s) {
  auto& c = mod.getContext();
  LaunchArguments args = arguments_of(p, s);
  auto* global = llvm::PointerType::get(c, kGlobal);
  std::vector<llvm::Type*> types(args.buffers.size(), global);
  types.insert(types.end(), args.extents.size() + args.params.size() + args.vars.size(),
               b.getInt64Ty());
  types.push_back(global);
  types.push_back(b.getInt64Ty());
  auto* type = llvm::FunctionType::get(b.getVoidTy(), types, false);
  fn = llvm::Function::Create(type, llvm::Function::ExternalLinkage, launch_name(s), mod);
  fn->setCallingConv(llvm::CallingConv::PTX_Kernel);
  fn->addFnAttr(llvm::Attribute::NoUnwind);
  fn->addFnAttr(llvm::Attribute::Convergent);  // threads synchronise in it
  auto note = [&](const char* what, uint32_t value) {
    llvm::Metadata* parts[] = {llvm::ValueAsMetadata::get(fn), llvm::MDString::get(c, what),
                               llvm::ConstantAsMetadata::get(b.getInt32(value))};
    mod.getOrInsertNamedMetadata("nvvm.annotations")->addOperand(llvm::MDNode::get(c, parts));
  };
  note("kernel", 1);
  note("maxntidx", s.threads);
  context = llvm::ConstantPointerNull::get(b.getPtrTy());  // it calls no function of the library
  written = {args.written.begin(), args.written.end()};
  BasicBlock* first = BasicBlock::Create(c, "entry", fn);
  BasicBlock* start = BasicBlock::Create(c, "start", fn);
  entry.SetInsertPoint(first);
  b.SetInsertPoint(start);
  unsigned next = 0;
  Thread here{&s};
  auto special = [&](llvm::Intrinsic::ID id) {
    return entry.CreateZExt(nvvm(entry, id), b.getInt64Ty());
  };
  here.id = special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x);
  here.block = special(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
  for (loops::BufferId id : args.buffers) {
    memory[id].base = entry.CreateAddrSpaceCast(fn->getArg(next++), b.getPtrTy());
  }
  std::map<std::pair<loops::BufferId, uint32_t>, Value*> extents;
  for (const auto& key : args.extents) extents[key] = fn->getArg(next++);
  for (uint32_t index : args.params) params[index] = fn->getArg(next++);
  for (loops::VarId v : args.vars) {
    llvm::Type* as = type_of(p.vars[v].type);
    Value* word = entry.CreateTrunc(fn->getArg(next++), b.getIntNTy(as->getScalarSizeInBits()));
    values[v] = uniform(as->isFloatingPointTy() ? entry.CreateBitCast(word, as) : word);
  }
  here.record = fn->getArg(next++);
  here.serial = fn->getArg(next++);
  auto extent = [&](loops::BufferId id, uint32_t axis) -> Value* {
    auto known = p.buffers[id].known[axis];
    return known ? i64(*known) : extents.at({id, axis});
  };
  auto strides = [&](loops::BufferId id) {
    std::vector<Value*>& to = memory[id].strides;
    to.resize(p.buffers[id].dims.size());
    Value* step = i64(1);
    for (size_t k = to.size(); k-- > 0;) {
      to[k] = step;
      step = entry.CreateMul(step, extent(id, static_cast<uint32_t>(k)));
    }
    return step;  // all cells
  };
  for (loops::BufferId id : args.buffers) {
    Value* count = strides(id);
    if (p.buffers[id].space != loops::Buffer::Space::Shared) continue;
    memory[id].base = entry.CreateGEP(memory_type_of(p.buffers[id].dtype), memory[id].base,
                                      entry.CreateMul(here.block, count));
  }
  for (loops::BufferId id : args.local) {
    auto* count = llvm::cast<llvm::ConstantInt>(strides(id));
    memory[id].base = entry.CreateAlloca(
        llvm::ArrayType::get(memory_type_of(p.buffers[id].dtype), count->getZExtValue()));
  }
  if (args.stops) {
    here.phase = entry.CreateAlloca(b.getInt64Ty());
    b.CreateStore(i64(0), here.phase);
  }
  thread = &here;
  // After a failure in an earlier launch, there is nothing to do.
  leave_if_failed_before(i64(-1), i64(-1));
  values[s.index] = uniform(here.block);
  block(s.body);
  flush_stores();
  b.CreateRetVoid();
  entry.CreateBr(start);
  thread = nullptr;
  return fn;
}

void Emitter::thread_loop(const loops::Loop& s) {
  flush_stores();
  std::vector<Iteration> around = std::exchange(path, {});
  bool lane = s.axis.kind == loops::Axis::Kind::Lane, warps = thread->launch->warps;
  const int64_t lanes_of = loops::kLanes;
  Value* number = lane    ? b.CreateAnd(thread->id, i64(lanes_of - 1))
                  : warps ? b.CreateLShr(thread->id, i64(5))
                          : thread->id;
  int64_t there = lane ? lanes_of : thread->launch->threads / (warps ? lanes_of : 1);
  const auto* last = llvm::dyn_cast<llvm::ConstantInt>(scalar(s.hi));
  EIN_CHECK(last, "a loop over threads whose length is not known");
  if (thread->phase && (lane || !warps)) {
    Value* now = b.CreateLoad(b.getInt64Ty(), thread->phase);
    b.CreateStore(b.CreateAdd(now, i64(1)), thread->phase);
  }
  BasicBlock* after = nullptr;
  if (last->getSExtValue() < there) {
    auto& c = mod.getContext();
    BasicBlock* mine = BasicBlock::Create(c, "mine", fn);
    after = BasicBlock::Create(c, "after", fn);
    b.CreateCondBr(b.CreateICmpSLT(number, i64(last->getSExtValue())), mine, after);
    b.SetInsertPoint(mine);
  }
  values[s.var] = uniform(number);
  block(s.body);
  flush_stores();
  if (after) {
    b.CreateBr(after);
    b.SetInsertPoint(after);
  }
  path = std::move(around);
}

void Emitter::barrier(loops::Scope scope) {
  flush_stores();
  if (scope == loops::Scope::Lane) {
    nvvm(b, llvm::Intrinsic::nvvm_bar_warp_sync, {b.getInt32(~0u)});
  } else {
    nvvm(b, llvm::Intrinsic::nvvm_barrier0);
  }
  leave_if_failed();
}

void Emitter::combine(const loops::Combine& s) {
  flush_stores();
  auto& c = mod.getContext();
  DType type = p.vars[s.acc].type;
  llvm::Type* kept = memory_type_of(type);
  Value* part = from_memory(b.CreateLoad(kept, memory_of(s.parts).base), type);
  auto tree = [&](Value* v, uint32_t count) {
    for (uint32_t half = count / 2; half > 0; half /= 2) {
      v = combine(s.op, v, shuffled(b, v, b.getInt32(half)), type);
    }
    return v;
  };
  part = tree(part, loops::kLanes);
  const uint32_t warps = thread->launch->threads / loops::kLanes;
  if (s.scope == loops::Scope::Lane || warps == 1) {
    part = shuffled(b, part, nullptr);
  } else {
    // The first lane of each warp stores its part. The first warp adds the parts up and stores the
    // sum behind them, where nobody writes before all have read it.
    auto* parts = llvm::ArrayType::get(kept, warps + 1);
    std::string name = std::string("exchange_") + name_of(type);
    llvm::GlobalVariable* exchange = mod.getNamedGlobal(fn->getName().str() + name);
    if (!exchange) {
      exchange = new llvm::GlobalVariable(mod, parts, false, llvm::GlobalValue::InternalLinkage,
                                          llvm::UndefValue::get(parts), fn->getName() + name,
                                          nullptr, llvm::GlobalValue::NotThreadLocal, kShared);
      exchange->setAlignment(llvm::Align(16));
    }
    auto cell = [&](Value* i) { return b.CreateInBoundsGEP(kept, exchange, i); };
    auto only = [&](Value* condition, const std::function<void()>& code) {
      BasicBlock* in = BasicBlock::Create(c, "some", fn);
      BasicBlock* after = BasicBlock::Create(c, "all", fn);
      b.CreateCondBr(condition, in, after);
      b.SetInsertPoint(in);
      code();
      b.CreateBr(after);
      b.SetInsertPoint(after);
    };
    Value* lane = b.CreateAnd(thread->id, i64(loops::kLanes - 1));
    Value* warp = b.CreateLShr(thread->id, i64(5));
    only(b.CreateICmpEQ(lane, i64(0)), [&] { b.CreateStore(to_memory(part, type), cell(warp)); });
    nvvm(b, llvm::Intrinsic::nvvm_barrier0);
    only(b.CreateICmpEQ(warp, i64(0)), [&] {
      Value* mine = b.CreateSelect(b.CreateICmpSLT(lane, i64(warps)), lane, i64(0));
      Value* sum = tree(from_memory(b.CreateLoad(kept, cell(mine)), type), warps);
      only(b.CreateICmpEQ(lane, i64(0)),
           [&] { b.CreateStore(to_memory(sum, type), cell(i64(warps))); });
    });
    nvvm(b, llvm::Intrinsic::nvvm_barrier0);
    part = from_memory(b.CreateLoad(kept, cell(i64(warps))), type);
  }
  leave_if_failed();
  Cell acc = cells.at(s.acc);
  assign(s.acc, combine(s.op, b.CreateLoad(acc.at->getAllocatedType(), acc.at), part, type));
}

namespace {

Value* phase_now(llvm::IRBuilder<>& b, Value* id, bool warps, llvm::AllocaInst* phase) {
  Value* now = b.CreateLoad(b.getInt64Ty(), phase);
  if (!warps) return now;
  return b.CreateOr(now, b.CreateShl(b.CreateLShr(id, b.getInt64(5)), b.getInt64(kWarpBits)));
}

}  // namespace

void Emitter::fail(loops::SiteId site, const std::vector<Val>& recorded) {
  auto* type = llvm::ArrayType::get(b.getInt64Ty(), NativeFailure::kMaxValues);
  Value* array = entry.CreateAlloca(type);
  for (size_t k = 0; k < NativeFailure::kMaxValues; ++k) {
    b.CreateStore(k < recorded.size() ? recorded[k].v : i64(0),
                  b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), array, k));
  }
  Value* phase = phase_now(b, thread->id, thread->launch->warps, thread->phase);
  b.CreateCall(fail_function(mod), {thread->record, thread->serial, thread->block, phase,
                                    thread->id, site_number(site), array});
}

// When a thread has failed, the others stop after the part of the work in which it failed: what
// they would compute from its values has no meaning.
void Emitter::leave_if_failed() {
  if (!thread->phase) return;
  leave_if_failed_before(thread->block,
                         phase_now(b, thread->id, thread->launch->warps, thread->phase));
}

// Usually nothing has failed, and a single word says so.
void Emitter::leave_if_failed_before(Value* block_number, Value* phase) {
  auto& c = mod.getContext();
  Value* set = b.CreateLoad(b.getInt64Ty(), word_at(b, thread->record, DeviceFailure::Set), true);
  BasicBlock* look = BasicBlock::Create(c, "look", fn);
  BasicBlock* go_on = BasicBlock::Create(c, "go", fn);
  b.CreateCondBr(b.CreateICmpNE(set, i64(0)), look, go_on,
                 llvm::MDBuilder(c).createBranchWeights(1, 1 << 20));
  b.SetInsertPoint(look);
  leave_unless_zero(
      b.CreateCall(failed_function(mod), {thread->record, thread->serial, block_number, phase}));
  b.CreateBr(go_on);
  b.SetInsertPoint(go_on);
}

}  // namespace ein::codegen
