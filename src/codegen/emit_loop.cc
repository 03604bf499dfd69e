// Loops: plain loops, loops in lanes with a tail, and plain loops inside lanes whose lengths differ
// from lane to lane.
#include <cstddef>
#include <utility>

#include "base/check.h"
#include "codegen/emit.h"
#include "core/build.h"
#include "loops/walk.h"

namespace ein::codegen {

using llvm::BasicBlock;
using llvm::Value;

core::ReduceOp fold_of(const loops::Loop& s, loops::VarId accumulator) {
  std::optional<core::ReduceOp> op;
  loops::for_each_stmt(s.body, [&](const loops::Stmt& stmt) {
    const auto* f = std::get_if<loops::Fold>(&stmt.node);
    if (f && f->acc == accumulator) op = f->op;
  });
  EIN_CHECK(op, "an accumulator that is never folded");
  return *op;
}

llvm::Constant* Emitter::start_of(core::ReduceOp op, DType type) {
  core::Module scratch;
  core::ExprId e = core::identity(scratch, op, type);
  if (const auto* f = core::get_if<core::FloatLit>(scratch, e)) {
    return llvm::ConstantFP::get(type_of(type), f->value);
  }
  if (const auto* t = core::get_if<core::BoolLit>(scratch, e)) return b.getInt1(t->value);
  return llvm::ConstantInt::getSigned(type_of(type), core::get_if<core::IntLit>(scratch, e)->value);
}

void Emitter::loop(const loops::Loop& s) {
  if (s.team) return team_loop(s);
  bool by_threads =
      s.axis.kind == loops::Axis::Kind::Thread || s.axis.kind == loops::Axis::Kind::Lane;
  if (by_threads) return thread_loop(s);
  Val lo = expr(s.lo), hi = expr(s.hi);
  if (!lo.uniform() || !hi.uniform()) return ragged_loop(s, lo, hi);
  if (s.grain) return shared_loop(s, lo.v, hi.v);
  whole_loop(s, lo.v, hi.v);
}

void Emitter::whole_loop(const loops::Loop& s, Value* lo, Value* hi) {
  if (s.axis.width > 1 && width == 1) return lane_loop(s, lo, hi);
  plain_loop(s, lo, hi);
}

// for (i = lo; i < hi; i += step)
void Emitter::counted(Value* lo, Value* hi, int64_t step, const char* name,
                      const std::function<void(Value*)>& body, loops::ExprId leave) {
  auto& c = mod.getContext();
  flush_stores();
  // Stores are not delayed across the loop.
  std::vector<Iteration> around = std::exchange(path, {});
  BasicBlock* before = b.GetInsertBlock();
  BasicBlock* head = BasicBlock::Create(c, name, fn);
  BasicBlock* after = BasicBlock::Create(c, "after", fn);
  b.CreateCondBr(b.CreateICmpSLT(lo, hi), head, after);
  b.SetInsertPoint(head);
  llvm::PHINode* i = b.CreatePHI(b.getInt64Ty(), 2, name);
  i->addIncoming(lo, before);
  body(i);
  Value* next = b.CreateAdd(i, i64(step), "", false, true);
  Value* more = b.CreateICmpSLT(next, hi);
  if (leave) {
    flush_stores();
    more = b.CreateAnd(more, b.CreateNot(scalar(leave)));
  }
  i->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(more, head, after);
  b.SetInsertPoint(after);
  path = std::move(around);
}

void Emitter::plain_loop(const loops::Loop& s, Value* lo, Value* hi) {
  if (unrolls(s, lo, hi)) return unrolled_loop(s, lo, hi);
  // Downward loops count up, and the index is computed from the other end.
  Value* last = s.downward ? b.CreateSub(b.CreateAdd(lo, hi), i64(1)) : nullptr;
  bool around = in_sequence;
  bool in_pieces = s.poll && p.sites[s.poll].kind == loops::Site::Kind::Rows;  // few long ones
  in_sequence |= s.axis.kind == loops::Axis::Kind::Seq && !in_pieces;
  Value* steps = !s.poll ? nullptr : s.steps ? scalar(s.steps) : b.CreateSub(hi, lo);
  auto step = [&](Value* i) { return s.downward ? b.CreateSub(last, i) : i; };
  bool asks = s.poll || !s.state.empty();
  llvm::AllocaInst* reached = asks ? entry.CreateAlloca(b.getInt64Ty()) : nullptr;
  Value* from = s.poll && p.resumable ? resumed(s.poll, lo, last) : lo;
  if (reached) b.CreateStore(from, reached);
  auto body = [&](Value* i) {
    values[s.var] = uniform(step(i));
    if (s.poll) poll(s.poll, values[s.var].v, steps, &s.state);
    if (s.state.empty()) {
      block_in_parts(s.body);
    } else {
      block(s.body);  // parts are functions, so the variables would have to be in memory
    }
    if (reached) b.CreateStore(b.CreateAdd(i, i64(1)), reached);
  };
  if (s.leave) {
    counted(from, hi, 1, "loop", body, s.leave);
  } else {
    counted_sums(float_sums(s), from, hi, 1, "loop", body);
  }
  in_sequence = around;
  if (!reached || in_pieces) return;
  flush_stores();
  Value* next = step(b.CreateLoad(b.getInt64Ty(), reached));
  values[s.var] = uniform(next);
  block(s.state);
  flush_stores();
  if (s.poll) poll(s.poll, next, steps);
}

// Where to resume if the run was stopped in this loop; otherwise its beginning.
Value* Emitter::resumed(loops::SiteId site, Value* lo, Value* last) {
  auto field = [&](size_t offset) {
    return b.CreateLoad(b.getInt64Ty(), b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), context,
                                                                     offset / sizeof(int64_t)));
  };
  Value* at = field(offsetof(NativeContext, resumed_step));
  if (last) at = b.CreateSub(last, at);  // convert the step to the loop's count
  Value* here = b.CreateICmpEQ(field(offsetof(NativeContext, resumed_site)), site_number(site));
  return b.CreateSelect(here, at, lo);
}

void Emitter::poll(loops::SiteId site, Value* next, Value* steps, const loops::Block* state) {
  auto& c = mod.getContext();
  // Volatile, because another thread writes it while the loop runs.
  Value* wake =
      b.CreateLoad(b.getInt32Ty(), context_field(entry, offsetof(NativeContext, wake)), true);
  BasicBlock* ask = BasicBlock::Create(c, "ask", fn);
  BasicBlock* go_on = BasicBlock::Create(c, "go", fn);
  b.CreateCondBr(b.CreateICmpNE(wake, b.getInt32(0)), ask, go_on,
                 llvm::MDBuilder(c).createBranchWeights(1, 1 << 20));
  b.SetInsertPoint(ask);
  if (state) block(*state);
  flush_stores();
  call_back(site, next, steps, go_on);
}

void Emitter::fetch(const loops::Fetch& s) {
  flush_stores();
  call_back(s.site, expr(s.first).v, i64(0), BasicBlock::Create(mod.getContext(), "go", fn));
}

Value* Emitter::context_field(llvm::IRBuilder<>& at, size_t offset) {
  return at.CreateLoad(
      at.getPtrTy(), at.CreateConstInBoundsGEP1_64(at.getPtrTy(), context, offset / sizeof(void*)));
}

void Emitter::call_back(loops::SiteId site, Value* next, Value* steps, BasicBlock* go_on) {
  BasicBlock* stop = BasicBlock::Create(mod.getContext(), "stop", fn);
  auto* type = llvm::FunctionType::get(
      b.getInt32Ty(), {b.getPtrTy(), b.getInt64Ty(), b.getInt64Ty(), b.getInt64Ty()}, false);
  llvm::CallInst* answer = b.CreateCall(
      type, context_field(b, offsetof(NativeContext, poll)),
      {context_field(b, offsetof(NativeContext, state)), site_number(site), next, steps});
  answer->setDoesNotThrow();
  b.CreateCondBr(b.CreateICmpNE(answer, b.getInt32(0)), stop, go_on);
  b.SetInsertPoint(stop);
  b.CreateStore(site_number(site), failure());
  leave();
  b.SetInsertPoint(go_on);
}

void Emitter::lane_loop(const loops::Loop& s, Value* lo, Value* hi) {
  auto lanes_count = static_cast<int64_t>(s.axis.width);
  Value* length = b.CreateSub(hi, lo);
  Value* some = b.CreateICmpSGT(length, i64(0));
  Value* whole_part = b.CreateAnd(b.CreateSelect(some, length, i64(0)), i64(-lanes_count));
  Value* middle = b.CreateAdd(lo, whole_part);
  // During the vector part, accumulators have one partial result for each lane.
  std::vector<std::pair<loops::VarId, Cell>> outer;
  for (loops::VarId v : s.folds) {
    outer.push_back({v, cells.at(v)});
    auto* type =
        llvm::FixedVectorType::get(outer.back().second.at->getAllocatedType(), s.axis.width);
    cells[v] = {entry.CreateAlloca(type), true};
  }
  for (loops::VarId v : s.folds) {
    llvm::Constant* start = start_of(fold_of(s, v), p.vars[v].type);
    auto count = llvm::ElementCount::getFixed(s.axis.width);
    b.CreateStore(llvm::ConstantVector::getSplat(count, start), cells[v].at);
  }
  std::vector<loops::VarId> sums = float_sums(s);
  auto around = std::exchange(summed, {});  // the lanes' accumulators are new variables
  counted_sums(sums, lo, middle, lanes_count, "lanes", [&](Value* i) {
    width = s.axis.width;
    values[s.var] = {Val::Shape::Linear, i, i64(1)};
    block(s.body);
    width = 1;
  });
  summed = std::move(around);
  for (auto& [v, cell] : outer) {
    // A tree: the upper half is added to the lower half until one lane is left.
    Value* part = b.CreateLoad(cells[v].at->getAllocatedType(), cells[v].at);
    DType type = p.vars[v].type;
    for (uint32_t n = s.axis.width / 2; n > 0; n /= 2) {
      std::vector<int> low, high;
      for (uint32_t k = 0; k < n; ++k) {
        low.push_back(static_cast<int>(k));
        high.push_back(static_cast<int>(k + n));
      }
      part = combine(fold_of(s, v), b.CreateShuffleVector(part, low),
                     b.CreateShuffleVector(part, high), type);
    }
    part = b.CreateExtractElement(part, uint64_t{0});
    cells[v] = cell;
    Value* acc = b.CreateLoad(cell.at->getAllocatedType(), cell.at);
    b.CreateStore(combine(fold_of(s, v), acc, part, type), cell.at);
  }
  std::vector<RunningSum> rest = begin_sums(sums, false);
  counted(middle, hi, 1, "tail", [&](Value* i) {
    values[s.var] = uniform(i);
    block(s.body);
  });
  end_sums(rest);
}

// A loop inside lanes whose bounds differ from lane to lane: it runs while any lane has iterations
// left. If all lanes start together, the index stays uniform, and so do addresses computed from it.
void Emitter::ragged_loop(const loops::Loop& s, Val lo, Val hi) {
  EIN_CHECK(!s.downward && !s.leave && s.state.empty(),
            "a downward loop inside lanes, or one that is left or leaves something");
  flush_stores();
  std::vector<Iteration> around = std::exchange(path, {});
  auto& c = mod.getContext();
  Value* outside = mask;
  Value* end = lanes(hi, DType::I64);
  bool together = lo.uniform();
  Value* start = together ? lo.v : lanes(lo, DType::I64);
  std::vector<RunningSum> sums = begin_sums(float_sums(s), true);
  BasicBlock* before = b.GetInsertBlock();
  BasicBlock* head = BasicBlock::Create(c, "ragged", fn);
  BasicBlock* body = BasicBlock::Create(c, "body", fn);
  BasicBlock* after = BasicBlock::Create(c, "after", fn);
  b.CreateBr(head);
  b.SetInsertPoint(head);
  llvm::PHINode* i = b.CreatePHI(start->getType(), 2);
  i->addIncoming(start, before);
  llvm::PHINode* count = b.CreatePHI(b.getInt64Ty(), 2);
  count->addIncoming(i64(0), before);
  Value* active = b.CreateICmpSLT(together ? b.CreateVectorSplat(width, i) : i, end);
  if (outside) active = b.CreateAnd(active, outside);
  b.CreateCondBr(any(active), body, after);
  b.SetInsertPoint(body);
  mask = active;
  values[s.var] = together ? uniform(i) : varying(i);
  block(s.body);
  mask = outside;
  Value* next = b.CreateAdd(i, llvm::ConstantInt::get(i->getType(), 1));
  Value* done = b.CreateAdd(count, i64(1));
  after_block(sums, done);
  i->addIncoming(next, b.GetInsertBlock());
  count->addIncoming(done, b.GetInsertBlock());
  b.CreateBr(head);
  b.SetInsertPoint(after);
  for (const RunningSum& sum : sums) add_blocks(sum);
  end_sums(sums);
  path = std::move(around);
}

}  // namespace ein::codegen
