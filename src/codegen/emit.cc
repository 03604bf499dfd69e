// Kernels and statements.
#include "codegen/emit.h"

#include <llvm/IR/Verifier.h>

#include <cstddef>
#include <optional>

#include "base/check.h"
#include "base/match.h"

namespace ein::codegen {

using llvm::BasicBlock;
using llvm::Value;

namespace {

// The buffers (number, then where their extents begin) and sites that a kernel refers to.
llvm::Constant* table_of(llvm::Module& mod, const KernelNames& names,
                         const std::vector<uint32_t>& first_dim) {
  std::vector<uint64_t> entries;
  for (loops::BufferId b : names.buffers) {
    entries.push_back(b.v);
    entries.push_back(first_dim[b.v]);
  }
  for (loops::SiteId s : names.sites) entries.push_back(s.v);
  auto* data = llvm::ConstantDataArray::get(mod.getContext(), entries);
  auto* table = new llvm::GlobalVariable(mod, data->getType(), true,
                                         llvm::GlobalValue::PrivateLinkage, data, "names");
  return table;
}

// A call in generated code: of a kernel, with the table of its names if it has one; or of a part of
// the entry function. `kernel`: the kernel to which its time counts.
struct Called {
  llvm::Function* code;
  llvm::Constant* table = nullptr;
  std::optional<uint64_t> kernel = {};
  std::optional<uint64_t> skipped_before =
      {};  // it is called if the first kernel to run is this one or an earlier one
};

// Emits the calls one after the other, until one fails.
void emit_calls(llvm::Function* run, const Called* begin, const Called* end) {
  auto& c = run->getContext();
  auto* pointer = llvm::PointerType::getUnqual(c);
  llvm::IRBuilder<> b(BasicBlock::Create(c, "entry", run));
  BasicBlock* failed = BasicBlock::Create(c, "failed", run);
  auto field = [&](Value* base, uint64_t number) {
    return b.CreateLoad(pointer, b.CreateConstInBoundsGEP1_64(pointer, base, number));
  };
  Value* context = run->getArg(0);
  Value* times = field(context, offsetof(NativeContext, times) / sizeof(void*));
  Value* timed = b.CreateIsNotNull(times);
  auto* ended_type = llvm::FunctionType::get(b.getVoidTy(), {pointer, b.getInt64Ty()}, false);
  for (const Called* call = begin; call != end; ++call) {
    std::vector<Value*> args{context};
    if (call->table) args.push_back(call->table);
    BasicBlock* next = BasicBlock::Create(c, "next", run);
    if (call->skipped_before) {
      Value* at = b.CreateConstInBoundsGEP1_64(
          b.getInt64Ty(), context, offsetof(NativeContext, first_kernel) / sizeof(int64_t));
      Value* runs =
          b.CreateICmpSLE(b.CreateLoad(b.getInt64Ty(), at), b.getInt64(*call->skipped_before));
      BasicBlock* due = BasicBlock::Create(c, "due", run);
      b.CreateCondBr(runs, due, next);
      b.SetInsertPoint(due);
    }
    Value* status = b.CreateCall(call->code, args);
    b.CreateCondBr(b.CreateICmpEQ(status, b.getInt32(0)), next, failed);
    b.SetInsertPoint(next);
    if (!call->kernel) continue;
    BasicBlock* note = BasicBlock::Create(c, "note", run);
    BasicBlock* go_on = BasicBlock::Create(c, "go", run);
    b.CreateCondBr(timed, note, go_on);
    b.SetInsertPoint(note);
    Value* table = field(context, offsetof(NativeContext, functions) / sizeof(void*));
    Value* ended = field(table, static_cast<uint64_t>(NativeFn::KernelEnded));
    b.CreateCall(ended_type, ended, {times, b.getInt64(*call->kernel)})->setDoesNotThrow();
    b.CreateBr(go_on);
    b.SetInsertPoint(go_on);
  }
  b.CreateRet(b.getInt32(0));
  b.SetInsertPoint(failed);
  b.CreateRet(b.getInt32(1));
}

// The entry function. A program may have thousands of kernels, and LLVM's time grows faster than
// the length of a function, so no function makes more than `most` calls.
void emit_entry(llvm::Function* run, std::vector<Called> calls, size_t most) {
  while (calls.size() > most) {
    std::vector<Called> parts;
    for (size_t i = 0; i < calls.size(); i += most) {
      auto* part = llvm::Function::Create(run->getFunctionType(), llvm::Function::InternalLinkage,
                                          "part", run->getParent());
      part->addFnAttr(llvm::Attribute::NoUnwind);
      part->addFnAttr(llvm::Attribute::NoInline);
      emit_calls(part, calls.data() + i, calls.data() + std::min(i + most, calls.size()));
      parts.push_back({part});
    }
    calls = std::move(parts);
  }
  emit_calls(run, calls.data(), calls.data() + calls.size());
}

}  // namespace

void emit_program(const loops::Program& p, llvm::Module& mod, Target target) {
  auto& c = mod.getContext();
  std::vector<uint32_t> first_dim;
  uint32_t dims = 0;
  for (const loops::Buffer& buffer : p.buffers) {
    first_dim.push_back(dims);
    dims += static_cast<uint32_t>(buffer.dims.size());
  }
  std::vector<llvm::Function*> functions;
  for (const loops::Function& f : p.functions) {
    functions.push_back(Emitter(p, mod, first_dim).declare_function(f));
  }
  for (size_t i = 0; i < p.functions.size(); ++i) {
    Emitter e(p, mod, first_dim);
    e.functions = functions;
    e.target = target;
    e.function(p.functions[i], functions[i]);
  }
  auto* type =
      llvm::FunctionType::get(llvm::Type::getInt32Ty(c), {llvm::PointerType::getUnqual(c)}, false);
  auto* run = llvm::Function::Create(type, llvm::Function::ExternalLinkage, kEntryName, mod);
  struct Alike {
    size_t count = 0;
    llvm::Function* code = nullptr;
  };
  std::unordered_map<std::string, Alike> alike;
  std::vector<std::string> shapes;
  std::vector<KernelNames> names(p.kernels.size());
  for (size_t i = 0; i < p.kernels.size(); ++i) {
    shapes.push_back(shape_of(p, p.kernels[i], names[i]));
    ++alike[shapes[i]].count;
  }
  std::vector<Called> calls;
  uint64_t begun = 0;  // how many kernels have begun, each with its continuations
  for (size_t i = 0; i < p.kernels.size(); ++i) {
    const loops::Kernel& k = p.kernels[i];
    if (!k.continues) ++begun;
    llvm::Function*& f = alike[shapes[i]].code;
    bool serves_many = alike[shapes[i]].count > 1;
    if (!f) {
      Emitter e(p, mod, first_dim);
      e.functions = functions;
      e.target = target;
      if (serves_many) e.names = &names[i];
      f = e.kernel(k, "k" + std::to_string(i) + "_" + k.name);
    }
    llvm::Constant* table = serves_many ? table_of(mod, names[i], first_dim) : nullptr;
    calls.push_back({f, table, begun - 1});
    if (p.resumable) calls.back().skipped_before = i;
  }
  emit_entry(run, std::move(calls), static_cast<size_t>(p.tuning.entry_calls));
}

llvm::Function* Emitter::kernel(const loops::Kernel& k, const std::string& name) {
  auto& c = mod.getContext();
  std::vector<llvm::Type*> args(names ? 2 : 1, b.getPtrTy());
  auto* type = llvm::FunctionType::get(b.getInt32Ty(), args, false);
  fn = llvm::Function::Create(type, llvm::Function::InternalLinkage, name, mod);
  fn->addFnAttr(llvm::Attribute::NoUnwind);
  fn->addFnAttr(llvm::Attribute::NoInline);
  context = fn->getArg(0);
  if (names) table = fn->getArg(1);
  note_aliases(k);
  BasicBlock* first = BasicBlock::Create(c, "entry", fn);
  BasicBlock* start = BasicBlock::Create(c, "start", fn);
  entry.SetInsertPoint(first);
  b.SetInsertPoint(start);
  llvm::FastMathFlags flags;
  flags.setAllowContract(!p.exact);  // a·b + c may be a single instruction; nothing else is relaxed
  b.setFastMathFlags(flags);
  block(k.body);
  b.CreateRet(b.getInt32(0));
  entry.CreateBr(start);
  return fn;
}

void Emitter::block(const loops::Block& body) {
  for (const loops::Stmt& s : body) stmt(s);
}

void Emitter::stmt(const loops::Stmt& s) {
  match(
      s.node, [&](const loops::Let& n) { values[n.var] = expr(n.value); },
      [&](const loops::Declare& n) { declare(n); },
      [&](const loops::Assign& n) { assign(n.var, lanes(n.value)); },
      [&](const loops::Store& n) { store(n); }, [&](const loops::Update& n) { update(n); },
      [&](const loops::Fold& n) { fold(n); }, [&](const loops::If& n) { branch(n); },
      [&](const loops::Loop& n) { loop(n); }, [&](const loops::Check& n) { check(n); },
      [&](const loops::Contract& n) { contract(n); }, [&](const loops::Invoke& n) { invoke(n); },
      [&](const loops::Fetch& n) { fetch(n); }, [&](const loops::Launch& n) { launch(n); },
      [&](const loops::Barrier& n) { barrier(n.scope); },
      [&](const loops::Combine& n) { combine(n); }, [&](const loops::Touch& n) { touch_host(n); });
}

void Emitter::declare(const loops::Declare& s) {
  Value* init = lanes(s.init);
  cells[s.var] = {entry.CreateAlloca(init->getType()), width > 1};
  b.CreateStore(init, cells[s.var].at);
}

void Emitter::assign(loops::VarId var, Value* v) {
  Cell cell = cells.at(var);
  EIN_CHECK(cell.lanes == (width > 1), "a variable is assigned in other lanes than its own");
  if (mask) v = b.CreateSelect(mask, v, b.CreateLoad(cell.at->getAllocatedType(), cell.at));
  b.CreateStore(v, cell.at);
}

void Emitter::branch(const loops::If& s) {
  Val cond = expr(s.cond);
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(cond.v)) {
    return block(known->isOne() ? s.then : s.otherwise);
  }
  flush_stores();
  // Stores are not delayed across a branch.
  std::vector<Iteration> around = std::exchange(path, {});
  branch_on(s, cond);
  path = std::move(around);
}

void Emitter::branch_on(const loops::If& s, Val cond) {
  auto& c = mod.getContext();
  auto side = [&](Value* enter, Value* new_mask, const loops::Block& body) {
    if (body.empty()) return;
    BasicBlock* in = BasicBlock::Create(c, "side", fn);
    BasicBlock* after = BasicBlock::Create(c, "join", fn);
    b.CreateCondBr(enter, in, after);
    b.SetInsertPoint(in);
    Value* outside = mask;
    mask = new_mask;
    block(body);
    mask = outside;
    b.CreateBr(after);
    b.SetInsertPoint(after);
  };
  if (!cond.uniform()) {
    Value* then = mask ? b.CreateAnd(mask, cond.v) : cond.v;
    side(any(then), then, s.then);
    Value* otherwise = b.CreateNot(cond.v);
    if (mask) otherwise = b.CreateAnd(mask, otherwise);
    if (!s.otherwise.empty()) side(any(otherwise), otherwise, s.otherwise);
    return;
  }
  BasicBlock* then = BasicBlock::Create(c, "then", fn);
  BasicBlock* after = BasicBlock::Create(c, "join", fn);
  BasicBlock* otherwise = s.otherwise.empty() ? after : BasicBlock::Create(c, "else", fn);
  b.CreateCondBr(cond.v, then, otherwise);
  b.SetInsertPoint(then);
  block(s.then);
  b.CreateBr(after);
  if (!s.otherwise.empty()) {
    b.SetInsertPoint(otherwise);
    block(s.otherwise);
    b.CreateBr(after);
  }
  b.SetInsertPoint(after);
}

void Emitter::check(const loops::Check& s) {
  auto& c = mod.getContext();
  Val ok = expr(s.ok);
  Value* lane = nullptr;  // the first lane that fails
  Value* fails = nullptr;
  Value* failing = nullptr;
  if (ok.uniform()) {
    fails = b.CreateNot(ok.v);
    failing = width > 1 ? full_mask() : nullptr;
  } else {
    failing = b.CreateNot(ok.v);
    if (mask) failing = b.CreateAnd(failing, mask);
    fails = any(failing);
  }
  std::vector<Val> recorded;
  for (loops::ExprId v : s.values) recorded.push_back(expr(v));
  BasicBlock* stop = BasicBlock::Create(c, "stop", fn);
  BasicBlock* go_on = BasicBlock::Create(c, "go", fn);
  b.CreateCondBr(fails, stop, go_on, llvm::MDBuilder(c).createBranchWeights(1, 1 << 20));
  b.SetInsertPoint(stop);
  if (thread) {
    fail(s.site, recorded);
    leave();
    b.SetInsertPoint(go_on);
    return;
  }
  Value* record = failure();
  b.CreateStore(site_number(s.site), record);
  EIN_CHECK(recorded.size() <= NativeFailure::kMaxValues, "too many values in a check");
  for (size_t k = 0; k < recorded.size(); ++k) {
    Value* v = recorded[k].v;
    if (!recorded[k].uniform()) {
      if (!lane) {
        Value* bits = b.CreateBitCast(failing, b.getIntNTy(width));
        lane = b.CreateIntrinsic(llvm::Intrinsic::cttz, {bits->getType()}, {bits, b.getFalse()});
      }
      v = b.CreateExtractElement(lanes(recorded[k], DType::I64), lane);
    }
    Value* at = b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), record,
                                             offsetof(NativeFailure, values) / sizeof(int64_t) + k);
    b.CreateStore(v, at);
  }
  leave();
  b.SetInsertPoint(go_on);
}

Value* Emitter::combine(core::ReduceOp op, Value* acc, Value* v, DType type) {
  using R = core::ReduceOp;
  switch (op) {
    case R::Sum: return apply(core::Op::Add, {acc, v}, type, type);
    case R::Prod: return apply(core::Op::Mul, {acc, v}, type, type);
    case R::Max: return b.CreateSelect(beats(true, v, acc, type), v, acc);
    case R::Min: return b.CreateSelect(beats(false, v, acc, type), v, acc);
    case R::All: return b.CreateAnd(acc, v);
    case R::Any: return b.CreateOr(acc, v);
    case R::ArgMax:
    case R::ArgMin:
    case R::Collect: break;
  }
  EIN_UNREACHABLE("argmax has no combination");
}

void Emitter::fold(const loops::Fold& s) {
  DType type = p.vars[s.acc].type;
  Cell cell = cells.at(s.acc);
  Value* acc = b.CreateLoad(cell.at->getAllocatedType(), cell.at);
  Value* v = lanes(s.value);
  if (!s.arg) {
    assign(s.acc, combine(s.op, acc, v, type));
    return;
  }
  Cell where = cells.at(s.arg);
  Value* at = b.CreateLoad(where.at->getAllocatedType(), where.at);
  Value* index = lanes(s.index);
  Value* first = b.CreateICmpSLT(at, llvm::Constant::getNullValue(at->getType()));
  Value* wins = b.CreateOr(first, beats(s.op == core::ReduceOp::ArgMax, v, acc, type));
  assign(s.acc, b.CreateSelect(wins, v, acc));
  assign(s.arg, b.CreateSelect(wins, index, at));
}

void Emitter::contract(const loops::Contract& s) {
  EIN_CHECK(width == 1, "a contraction in lanes");
  flush_stores();
  std::vector<Value*> shape;
  const std::vector<loops::Contract::Index>* sets[] = {&s.batch, &s.m, &s.n, &s.k};
  for (const auto* set : sets) shape.push_back(i64(static_cast<int64_t>(set->size())));
  for (const auto* set : sets) {
    for (const auto& index : *set) {
      for (loops::ExprId e : {index.extent, index.a, index.b, index.out}) {
        shape.push_back(e ? scalar(e) : i64(0));
      }
    }
  }
  Value* array = entry.CreateAlloca(llvm::ArrayType::get(b.getInt64Ty(), shape.size()));
  for (size_t i = 0; i < shape.size(); ++i) {
    b.CreateStore(shape[i], b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), array, i));
  }
  auto address = [&](const loops::Contract::Operand& o, DType type, uint32_t operand) {
    Value* at = offset(o.buffer, o.at).v;
    guard_contraction(array, operand, o.buffer, at);
    return b.CreateGEP(memory_type_of(type), memory_of(o.buffer).base, at);
  };
  Value* a = address(s.a, s.operands, 1);
  Value* x = address(s.b, s.operands, 2);
  Value* out = address(s.out, s.type, 3);
  if (s.factor >= 0) {
    call(s.type == DType::F64 ? NativeFn::Factor64 : NativeFn::Factor32,
         {array, a, x, out, i64(s.factor)}, b.getVoidTy());
    return;
  }
  NativeFn kernel = s.operands == DType::F64   ? NativeFn::Contract64
                    : s.operands == DType::F16 ? NativeFn::ContractF16
                    : s.operands == DType::F32 ? NativeFn::Contract32
                    : s.drops_subnormals       ? NativeFn::DotBf16
                                               : NativeFn::ContractBf16;
  call(kernel, {array, a, x, out}, b.getVoidTy());
}

}  // namespace ein::codegen
