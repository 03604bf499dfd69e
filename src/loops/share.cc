// Which loops threads share: the outermost that are parallel, in lanes or reductions, outside and
// inside sequential ones. The number of iterations in a chunk follows from the work in one, which
// is estimated from the loop's body and the extents of the loops inside, so chunks are the same on
// every machine and for every number of threads.
#include <algorithm>
#include <functional>
#include <set>

#include "base/match.h"
#include "core/cost.h"
#include "loops/loops.h"

namespace ein::loops {
namespace {

constexpr int64_t kUnknown = 16;  // iterations of a loop whose bounds are not known outside
constexpr int64_t kCall = 16;     // operations of a function

constexpr int64_t kMany = 1 << 20;  // more than that needs no exact count

struct Sharing {
  Program& p;
  int64_t chunk_work;
  std::set<VarId> visible = {};  // outside the loop looked at

  ExprId integer(int64_t v) { return p.exprs.add({IntConst{v}, DType::I64}); }
  ExprId op(core::Op o, ExprId a, ExprId b) { return p.exprs.add({Apply{o, {a, b}}, DType::I64}); }
  ExprId times(ExprId a, ExprId b) { return op(core::Op::Mul, a, b); }

  int64_t cost(ExprId e) const {
    const auto* a = std::get_if<Apply>(&p.exprs[e].node);
    if (!a) return std::holds_alternative<Load>(p.exprs[e].node) ? 1 : 0;
    auto sum = static_cast<int64_t>(core::cost(a->op));
    for (ExprId x : a->args) sum += cost(x);
    return sum;
  }

  bool known_outside(ExprId e) const {
    return match(
        p.exprs[e].node, [](const FloatConst&) { return true; },
        [](const IntConst&) { return true; }, [](const Param&) { return true; },
        [&](const Get& n) { return visible.contains(n.var); },
        [&](const Apply& n) {
          return std::all_of(n.args.begin(), n.args.end(),
                             [&](ExprId a) { return known_outside(a); });
        },
        [](const Overflows&) { return false; }, [](const Load&) { return false; });
  }

  // Constant operations, and those that depend on extents.
  struct Work {
    int64_t constant = 0;
    std::vector<ExprId> more = {};
  };

  Work work(const Block& body) {
    Work out;
    auto add = [&](Work w) {
      out.constant += w.constant;
      out.more.insert(out.more.end(), w.more.begin(), w.more.end());
    };
    for (const Stmt& s : body) {
      match(
          s.node, [&](const Let& n) { out.constant += cost(n.value); },
          [&](const Declare& n) { out.constant += cost(n.init); },
          [&](const Assign& n) { out.constant += cost(n.value); },
          [&](const Store& n) { out.constant += 1 + cost(n.value); },
          [&](const Update& n) { out.constant += 2 + cost(n.value); },
          [&](const Fold& n) { out.constant += 1 + cost(n.value); },
          [&](const If& n) {
            add(work(n.then));
            add(work(n.otherwise));
          },
          [&](const Loop& n) { add(repeated(n)); }, [&](const Check&) { out.constant += 1; },
          [&](const Contract&) { out.constant += kMany; },
          [&](const Invoke&) { out.constant += kCall; });
    }
    return out;
  }

  Work repeated(const Loop& n) {
    Work once = work(n.body);
    const auto* lo = std::get_if<IntConst>(&p.exprs[n.lo].node);
    const auto* hi = std::get_if<IntConst>(&p.exprs[n.hi].node);
    bool known = known_outside(n.lo) && known_outside(n.hi);
    if ((lo && hi) || !known) {
      int64_t count = lo && hi ? std::max<int64_t>(0, hi->value - lo->value) : kUnknown;
      Work out{std::min(once.constant, kMany) * std::min(count, kMany), {}};
      for (ExprId e : once.more) out.more.push_back(times(e, integer(count)));
      return out;
    }
    ExprId count = op(core::Op::Max, op(core::Op::Sub, n.hi, n.lo), integer(0));
    ExprId sum = integer(once.constant);
    for (ExprId e : once.more) sum = op(core::Op::Add, sum, e);
    return {0, {times(count, sum)}};
  }

  // Iterations for about as much work as a chunk should have, in whole vectors.
  ExprId grain(const Loop& n) {
    Work w = work(n.body);
    int64_t lanes = n.axis.width;
    if (w.more.empty()) {
      return integer((chunk_work / (std::max<int64_t>(w.constant, 1) * lanes) + 1) * lanes);
    }
    ExprId sum = integer(w.constant + 1);
    for (ExprId e : w.more) sum = op(core::Op::Add, sum, e);
    sum = op(core::Op::Max, sum, integer(1));  // a product of extents may have wrapped
    ExprId vectors = op(core::Op::Div, integer(chunk_work / lanes), sum);
    return times(op(core::Op::Add, vectors, integer(1)), integer(lanes));
  }

  // May a reduction be split? Not when it reads its own accumulator, and not when the first of
  // equal candidates is to be found.
  bool splits(const Loop& n) const {
    bool ok = true;
    std::function<void(ExprId)> expr = [&](ExprId e) {
      match(
          p.exprs[e].node, [](const FloatConst&) {}, [](const IntConst&) {}, [](const Param&) {},
          [&](const Get& g) { ok &= std::count(n.folds.begin(), n.folds.end(), g.var) == 0; },
          [&](const Apply& a) { std::for_each(a.args.begin(), a.args.end(), expr); },
          [&](const Overflows& o) { std::for_each(o.args.begin(), o.args.end(), expr); },
          [&](const Load& l) { std::for_each(l.at.begin(), l.at.end(), expr); });
    };
    std::function<void(const Block&)> block = [&](const Block& body) {
      for (const Stmt& s : body) {
        if (const auto* f = std::get_if<Fold>(&s.node)) ok &= !f->arg.valid();
        if (const auto* i = std::get_if<If>(&s.node)) {
          expr(i->cond);
          block(i->then);
          block(i->otherwise);
        }
        if (const auto* l = std::get_if<Loop>(&s.node)) block(l->body);
      }
    };
    block(n.body);
    return ok;
  }

  void block(Block& body) {
    std::vector<VarId> bound;
    for (Stmt& s : body) {
      if (auto* n = std::get_if<Let>(&s.node); n && visible.insert(n->var).second) {
        bound.push_back(n->var);
      }
      if (auto* n = std::get_if<If>(&s.node)) {
        block(n->then);
        block(n->otherwise);
      }
      if (auto* n = std::get_if<Loop>(&s.node)) loop(*n);
    }
    for (VarId v : bound) visible.erase(v);
  }

  void loop(Loop& n) {
    if (n.axis.kind == Axis::Kind::Seq) {
      bool fresh = visible.insert(n.var).second;
      block(n.body);
      if (fresh) visible.erase(n.var);
      return;
    }
    if (n.axis.kind == Axis::Kind::Reduce && !splits(n)) return;
    const auto* lo = std::get_if<IntConst>(&p.exprs[n.lo].node);
    const auto* hi = std::get_if<IntConst>(&p.exprs[n.hi].node);
    ExprId chunk = grain(n);
    const auto* constant = std::get_if<IntConst>(&p.exprs[chunk].node);
    // One chunk, whatever the extents: nothing to share.
    if (lo && hi && constant && hi->value - lo->value <= constant->value) return;
    n.grain = chunk;
  }
};

}  // namespace

Program share_loops(Program p) {
  // Where integers are checked, the first failure must be the reference's first: nothing is shared.
  for (const Site& s : p.sites) {
    if (s.kind == Site::Kind::Overflow) return p;
  }
  for (Kernel& k : p.kernels) Sharing{p, p.tuning.chunk_work}.block(k.body);
  return p;
}

}  // namespace ein::loops
