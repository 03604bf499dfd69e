// Sums of floats that stay accurate. Adding a million cells one after the other loses about as many
// digits as that number has. So a loop that sums takes kBlock cells at a time (in lanes: vectors)
// and adds each block to a total that keeps track of its own rounding errors. The start of the loop
// decides which cells form a block, so the bits of a sum are always the same.
//
// The error of a sum of n cells is then at most 20·log2(n) units times the sum of the magnitudes, a
// unit being half of the last place (docs/reference.md promises this, tests/numeric/sums.py
// measures it); usually it is a few units.
#include <utility>

#include "codegen/emit.h"
#include "loops/walk.h"

namespace ein::codegen {

using llvm::BasicBlock;
using llvm::Value;

namespace {

constexpr int64_t kBlock = 32;  // affects the bits of sums, so it is not in tuning.def

bool one_block(Value* lo, Value* hi, int64_t step) {
  const auto* from = llvm::dyn_cast<llvm::ConstantInt>(lo);
  const auto* to = llvm::dyn_cast<llvm::ConstantInt>(hi);
  return from && to && to->getSExtValue() - from->getSExtValue() <= kBlock * step;
}

}  // namespace

std::vector<loops::VarId> Emitter::float_sums(const loops::Loop& s) const {
  using Kind = loops::Axis::Kind;
  if (s.axis.kind != Kind::Reduce && s.axis.kind != Kind::Seq) return {};
  std::set<loops::VarId> own;
  std::vector<loops::VarId> out;
  loops::for_each_stmt(s.body, [&](const loops::Stmt& stmt) {
    if (const auto* d = std::get_if<loops::Declare>(&stmt.node)) own.insert(d->var);
    const auto* f = std::get_if<loops::Fold>(&stmt.node);
    const auto* c = std::get_if<loops::Combine>(&stmt.node);
    if (!f && !c) return;
    loops::VarId acc = f ? f->acc : c->acc;
    bool sums = (f ? f->op : c->op) == core::ReduceOp::Sum && is_float(p.vars[acc].type);
    if (sums && own.insert(acc).second) out.push_back(acc);
  });
  return out;
}

std::vector<Emitter::RunningSum> Emitter::begin_sums(const std::vector<loops::VarId>& sums,
                                                     bool in_blocks) {
  std::vector<RunningSum> out;
  for (loops::VarId v : sums) {
    Cell around = cells.at(v);
    llvm::Type* type = around.at->getAllocatedType();
    RunningSum sum{v, around, summed.insert(v).second};
    // Inside another loop that sums the same variable, this loop's cells are first added up on
    // their own.
    if (!sum.outermost) {
      cells[v] = {entry.CreateAlloca(type), around.lanes};
      b.CreateStore(llvm::Constant::getNullValue(type), cells[v].at);
    }
    if (in_blocks) {
      sum.total = entry.CreateAlloca(type);
      sum.lost = entry.CreateAlloca(type);
      b.CreateStore(llvm::Constant::getNullValue(type), sum.total);
      b.CreateStore(llvm::Constant::getNullValue(type), sum.lost);
    }
    out.push_back(sum);
  }
  return out;
}

// total + lost + part: the rounding error of this sum becomes the next `lost`. If the errors were
// merely added up, that sum would itself lose digits after some hundred thousand blocks. If the
// total is not finite, nothing is known about the error.
void Emitter::add_block(const RunningSum& sum) {
  llvm::IRBuilderBase::FastMathFlagGuard guard(b);
  b.clearFastMathFlags();
  llvm::Type* type = sum.total->getAllocatedType();
  Value* total = b.CreateLoad(type, sum.total);
  Value* part = b.CreateLoad(type, cells.at(sum.var).at);
  Value* both = b.CreateFAdd(total, part);
  Value* of_part = b.CreateFSub(both, total);
  Value* of_total = b.CreateFSub(both, of_part);
  Value* rest = b.CreateFAdd(b.CreateFSub(total, of_total), b.CreateFSub(part, of_part));
  Value* lost = b.CreateFAdd(b.CreateLoad(type, sum.lost), rest);
  Value* all = b.CreateFAdd(both, lost);
  Value* left = b.CreateFSub(lost, b.CreateFSub(all, both));
  Value* known = b.CreateFCmpORD(left, left);
  b.CreateStore(b.CreateSelect(known, all, both), sum.total);
  b.CreateStore(b.CreateSelect(known, left, llvm::Constant::getNullValue(type)), sum.lost);
  b.CreateStore(llvm::Constant::getNullValue(type), cells.at(sum.var).at);
}

// After `done` iterations: whether a block has just been completed.
void Emitter::after_block(const std::vector<RunningSum>& sums, Value* done) {
  if (sums.empty()) return;
  auto& c = mod.getContext();
  BasicBlock* full = BasicBlock::Create(c, "full", fn);
  BasicBlock* go_on = BasicBlock::Create(c, "go", fn);
  b.CreateCondBr(b.CreateICmpEQ(b.CreateURem(done, i64(kBlock)), i64(0)), full, go_on);
  b.SetInsertPoint(full);
  for (const RunningSum& sum : sums) add_block(sum);
  b.CreateBr(go_on);
  b.SetInsertPoint(go_on);
}

void Emitter::add_blocks(const RunningSum& sum) {
  llvm::Type* type = sum.total->getAllocatedType();
  Value* part = b.CreateLoad(type, cells.at(sum.var).at);
  Value* both = b.CreateFAdd(b.CreateLoad(type, sum.total), part);
  b.CreateStore(b.CreateFAdd(both, b.CreateLoad(type, sum.lost)), cells.at(sum.var).at);
}

void Emitter::end_sums(const std::vector<RunningSum>& sums) {
  for (const RunningSum& sum : sums) {
    if (sum.outermost) {
      summed.erase(sum.var);
      continue;
    }
    llvm::Type* type = sum.around.at->getAllocatedType();
    Value* part = b.CreateLoad(type, cells.at(sum.var).at);
    cells[sum.var] = sum.around;
    Value* before = b.CreateLoad(type, sum.around.at);
    b.CreateStore(b.CreateFAdd(before, part), sum.around.at);
  }
}

void Emitter::counted_sums(const std::vector<loops::VarId>& vars, Value* lo, Value* hi,
                           int64_t step, const char* name,
                           const std::function<void(Value*)>& body) {
  if (vars.empty()) return counted(lo, hi, step, name, body);
  if (one_block(lo, hi, step)) {
    flush_stores();
    std::vector<RunningSum> sums = begin_sums(vars, false);
    counted(lo, hi, step, name, body);
    return end_sums(sums);
  }
  auto& c = mod.getContext();
  flush_stores();
  std::vector<Iteration> outside = std::exchange(path, {});
  std::vector<RunningSum> sums = begin_sums(vars, true);
  BasicBlock* before = b.GetInsertBlock();
  BasicBlock* head = BasicBlock::Create(c, "block", fn);
  BasicBlock* more = BasicBlock::Create(c, "more", fn);
  BasicBlock* last = BasicBlock::Create(c, "last", fn);
  BasicBlock* several = BasicBlock::Create(c, "several", fn);
  BasicBlock* after = BasicBlock::Create(c, "summed", fn);
  b.CreateBr(head);
  b.SetInsertPoint(head);
  llvm::PHINode* first = b.CreatePHI(b.getInt64Ty(), 2, "first");
  first->addIncoming(lo, before);
  Value* next = b.CreateAdd(first, i64(kBlock * step), "", false, true);
  Value* goes_on = b.CreateICmpSLT(next, hi);
  counted(first, b.CreateSelect(goes_on, next, hi), step, name, body);
  b.CreateCondBr(goes_on, more, last);
  b.SetInsertPoint(more);
  for (const RunningSum& sum : sums) add_block(sum);
  first->addIncoming(next, b.GetInsertBlock());
  b.CreateBr(head);
  b.SetInsertPoint(last);
  b.CreateCondBr(b.CreateICmpEQ(first, lo), after, several);
  b.SetInsertPoint(several);
  for (const RunningSum& sum : sums) add_blocks(sum);
  b.CreateBr(after);
  b.SetInsertPoint(after);
  end_sums(sums);
  path = std::move(outside);
}

}  // namespace ein::codegen
