// Loops that threads share. The body becomes a function that runs a chunk of the iterations and is
// called by the run-time library. Values from outside are passed in a closure on the caller's
// stack; buffers and extents come from the function's own context. A reduction stores one partial
// result for each chunk.
#include <set>

#include "base/check.h"
#include "codegen/emit.h"
#include "codegen/emit_team.h"
#include "loops/walk.h"

namespace ein::codegen {

using llvm::BasicBlock;
using llvm::Value;

namespace {

// The variables that a loop's body reads from outside.
std::vector<loops::VarId> captures(const loops::Program& p, const loops::Loop& loop) {
  std::set<loops::VarId> bound(loop.folds.begin(), loop.folds.end());
  bound.insert(loop.var);
  return loops::free_variables(p, loop.body, std::move(bound));
}

}  // namespace

void Emitter::shared_loop(const loops::Loop& s, Value* lo, Value* hi) {
  EIN_CHECK(width == 1 && !mask, "a loop in lanes is shared");
  Value* grain = scalar(s.grain);
  if (!in_sequence) return run_shared(s, lo, hi, grain);
  // This runs at every step, and if there is a single chunk, the call would cost more than the
  // work.
  alone_or_shared(s, lo, hi, grain, [&] { whole_loop(s, lo, hi); });
}

void Emitter::alone_or_shared(const loops::Loop& s, Value* lo, Value* hi, Value* grain,
                              const std::function<void()>& alone) {
  auto& c = mod.getContext();
  BasicBlock* here = BasicBlock::Create(c, "alone", fn);
  BasicBlock* call = BasicBlock::Create(c, "shared", fn);
  BasicBlock* after = BasicBlock::Create(c, "joined", fn);
  b.CreateCondBr(b.CreateICmpSLE(b.CreateSub(hi, lo), grain), here, call);
  b.SetInsertPoint(here);
  alone();
  b.CreateBr(after);
  b.SetInsertPoint(call);
  run_shared(s, lo, hi, grain);
  b.CreateBr(after);
  b.SetInsertPoint(after);
}

std::vector<Value*> Emitter::values_now(const std::vector<loops::VarId>& vars) {
  std::vector<Value*> out;
  for (loops::VarId v : vars) {
    auto cell = cells.find(v);
    out.push_back(cell == cells.end()
                      ? values.at(v).v
                      : b.CreateLoad(cell->second.at->getAllocatedType(), cell->second.at));
  }
  return out;
}

llvm::AllocaInst* Emitter::closure_of(const std::vector<Value*>& fields) {
  std::vector<llvm::Type*> types;
  for (Value* f : fields) types.push_back(f->getType());
  auto* type = llvm::StructType::get(mod.getContext(), types);
  llvm::AllocaInst* closure = entry.CreateAlloca(type);
  for (unsigned i = 0; i < fields.size(); ++i) {
    b.CreateStore(fields[i], b.CreateStructGEP(type, closure, i));
  }
  return closure;
}

void Emitter::run_shared(const loops::Loop& s, Value* lo, Value* hi, Value* grain) {
  if (!s.folds.empty()) {  // few enough partial results to fit on the stack
    Value* least = b.CreateSDiv(b.CreateSub(hi, lo), i64(kMaxChunks));
    Value* lanes_count = i64(s.axis.width);
    least = b.CreateMul(b.CreateAdd(b.CreateSDiv(least, lanes_count), i64(1)), lanes_count);
    grain = b.CreateSelect(b.CreateICmpSGT(grain, least), grain, least);
  }
  std::vector<loops::VarId> captured = captures(p, s);
  std::vector<Value*> fields = values_now(captured);
  std::vector<Value*> parts;
  for (loops::VarId v : s.folds) {
    parts.push_back(team ? team->parts.at({&s, v}) : partial_results(v));
    fields.push_back(parts.back());
  }
  if (table) fields.push_back(table);
  llvm::AllocaInst* closure = closure_of(fields);
  llvm::Function* body =
      chunk_of(s, captured, llvm::cast<llvm::StructType>(closure->getAllocatedType()));
  NativeFn how = team ? NativeFn::TeamLoop : NativeFn::Parallel;
  leave_unless_zero(call(how, {context, body, closure, lo, hi, grain}, b.getInt32Ty()));
  if (s.folds.empty()) return;
  if (team) meet();
  Value* steps = b.CreateSub(b.CreateAdd(b.CreateSub(hi, lo), grain), i64(1));
  Value* count = b.CreateSDiv(steps, grain);
  counted_sums(float_sums(s), i64(0), count, 1, "parts", [&](Value* i) {
    for (size_t k = 0; k < s.folds.size(); ++k) {
      DType type = p.vars[s.folds[k]].type;
      llvm::Type* element = memory_type_of(type);
      Value* part = from_memory(b.CreateLoad(element, b.CreateGEP(element, parts[k], i)), type);
      Cell cell = cells.at(s.folds[k]);
      Value* acc = b.CreateLoad(cell.at->getAllocatedType(), cell.at);
      b.CreateStore(combine(fold_of(s, s.folds[k]), acc, part, type), cell.at);
    }
  });
}

llvm::AllocaInst* Emitter::partial_results(loops::VarId v) {
  return entry.CreateAlloca(llvm::ArrayType::get(memory_type_of(p.vars[v].type), kMaxChunks + 1));
}

llvm::Function* Emitter::chunk_of(const loops::Loop& s, const std::vector<loops::VarId>& captured,
                                  llvm::StructType* closure) {
  auto& c = mod.getContext();
  std::vector<llvm::Type*> types{b.getPtrTy(), b.getPtrTy(), b.getInt64Ty(), b.getInt64Ty(),
                                 b.getInt64Ty()};
  auto* type = llvm::FunctionType::get(b.getInt32Ty(), types, false);
  Emitter sub(p, mod, first_dim);
  sub.target = target;
  sub.functions = functions;
  sub.written = written;
  sub.aliases = aliases;
  sub.in_sequence = true;  // loops inside are not shared again
  sub.fn =
      llvm::Function::Create(type, llvm::Function::InternalLinkage, fn->getName() + ".chunk", mod);
  sub.fn->addFnAttr(llvm::Attribute::NoUnwind);
  sub.fn->addFnAttr(llvm::Attribute::NoInline);
  sub.context = sub.fn->getArg(0);
  Value* with = sub.fn->getArg(1);
  BasicBlock* first = BasicBlock::Create(c, "entry", sub.fn);
  BasicBlock* start = BasicBlock::Create(c, "start", sub.fn);
  sub.entry.SetInsertPoint(first);
  sub.b.SetInsertPoint(start);
  sub.b.setFastMathFlags(b.getFastMathFlags());
  unsigned field = 0;
  auto load_field = [&] {
    Value* at = sub.entry.CreateStructGEP(closure, with, field);
    return sub.entry.CreateLoad(closure->getElementType(field++), at);
  };
  for (loops::VarId v : captured) sub.values[v] = uniform(load_field());
  std::vector<Value*> parts;
  for (loops::VarId v : s.folds) {
    parts.push_back(load_field());
    llvm::Constant* begin = start_of(fold_of(s, v), p.vars[v].type);
    sub.cells[v] = {sub.entry.CreateAlloca(begin->getType()), false};
    sub.b.CreateStore(begin, sub.cells[v].at);
  }
  if (table) {
    sub.names = names;
    sub.table = load_field();
  }
  sub.whole_loop(s, sub.fn->getArg(2), sub.fn->getArg(3));
  for (size_t k = 0; k < s.folds.size(); ++k) {
    Cell cell = sub.cells.at(s.folds[k]);
    DType fold_type = p.vars[s.folds[k]].type;
    Value* part = sub.b.CreateLoad(cell.at->getAllocatedType(), cell.at);
    Value* at = sub.b.CreateGEP(memory_type_of(fold_type), parts[k], sub.fn->getArg(4));
    sub.b.CreateStore(sub.to_memory(part, fold_type), at);
  }
  sub.b.CreateRet(sub.b.getInt32(0));
  sub.entry.CreateBr(start);
  return sub.fn;
}

}  // namespace ein::codegen
