// Writes out short loops of known length, so that LLVM's search for equal expressions finds what
// does not change between iterations. Iterations of a parallel loop do not read what the others
// write, so their stores are delayed to the end of the loop; otherwise no load could be reused
// after a store.
#include <algorithm>

#include "base/match.h"
#include "codegen/emit.h"
#include "loops/walk.h"

namespace ein::codegen {

using llvm::Value;

namespace {

struct Size {
  const loops::Program& p;

  int64_t expr(loops::ExprId e) const {
    return match(
        p.exprs[e].node, [](const loops::FloatConst&) -> int64_t { return 0; },
        [](const loops::IntConst&) -> int64_t { return 0; },
        [](const loops::Param&) -> int64_t { return 0; },
        [](const loops::Get&) -> int64_t { return 0; },
        [&](const loops::Apply& n) {
          // Elementary functions are long formulas.
          return (core::info(n.op).cls == core::OpClass::Real ? 40 : 1) + all(n.args);
        },
        [&](const loops::Overflows& n) { return 1 + all(n.args); },
        [&](const loops::Load& n) { return 1 + all(n.at); });
  }
  int64_t all(const std::vector<loops::ExprId>& es) const {
    int64_t sum = 0;
    for (loops::ExprId e : es) sum += expr(e);
    return sum;
  }
  int64_t block(const loops::Block& body) const {
    int64_t sum = 0;
    for (const loops::Stmt& s : body) {
      sum += match(
          s.node, [&](const loops::Let& n) { return expr(n.value); },
          [&](const loops::Declare& n) { return expr(n.init); },
          [&](const loops::Assign& n) { return expr(n.value); },
          [&](const loops::Store& n) { return 1 + all(n.at) + expr(n.value); },
          [&](const loops::Update& n) { return 2 + all(n.at) + expr(n.value); },
          [&](const loops::Fold& n) { return 1 + expr(n.value); },
          [&](const loops::If& n) { return 1 + block(n.then) + block(n.otherwise); },
          [&](const loops::Loop& n) { return loop(n); },
          [](const loops::Check&) -> int64_t { return 8; },
          [](const loops::Invoke&) -> int64_t { return 8; },
          [&](const auto&) -> int64_t { return p.tuning.unrolled_nodes + 1; });
    }
    return sum;
  }
  int64_t loop(const loops::Loop& n) const {
    auto count = loops::trips(p, n);
    int64_t once = block(n.body), lanes = n.axis.width > 1 ? 2 : 1;
    if (!count || *count > p.tuning.unrolled_iterations) return 10 + once * lanes;
    return once * *count;
  }
};

}  // namespace

bool Emitter::unrolls(const loops::Loop& s, Value* lo, Value* hi) const {
  const auto *from = llvm::dyn_cast<llvm::ConstantInt>(lo),
             *to = llvm::dyn_cast<llvm::ConstantInt>(hi);
  if (!from || !to || s.poll || s.leave || !s.state.empty() || mask) return false;
  int64_t count = to->getSExtValue() - from->getSExtValue();
  return count <= p.tuning.unrolled_iterations &&
         Size{p}.block(s.body) * count <= p.tuning.unrolled_nodes;
}

void Emitter::unrolled_loop(const loops::Loop& s, Value* lo, Value* hi) {
  int64_t from = llvm::cast<llvm::ConstantInt>(lo)->getSExtValue();
  int64_t to = llvm::cast<llvm::ConstantInt>(hi)->getSExtValue();
  bool parallel = s.axis.kind == loops::Axis::Kind::Parallel;
  std::vector<RunningSum> sums = begin_sums(float_sums(s), false);
  for (int64_t i = from; i < to; ++i) {
    if (parallel) path.push_back({&s, i});
    values[s.var] = uniform(i64(s.downward ? from + to - 1 - i : i));
    block(s.body);
    if (parallel) path.pop_back();
  }
  end_sums(sums);
  if (path.empty()) flush_stores();
}

// Whether this very iteration has stored to the buffer.
bool Emitter::meets_waiting(loops::BufferId buffer) const {
  return std::any_of(waiting.begin(), waiting.end(), [&](const Waiting& w) {
    if (w.buffer != buffer) return false;
    for (size_t k = 0; k < std::min(w.from.size(), path.size()); ++k) {
      if (w.from[k].loop != path[k].loop) return true;
      if (w.from[k].number != path[k].number) return false;  // another iteration: independent
    }
    return true;
  });
}

void Emitter::flush_stores() {
  for (const Waiting& w : waiting) touch(b.CreateAlignedStore(w.value, w.at, w.align), w.buffer);
  waiting.clear();
}

}  // namespace ein::codegen
