// Marks the loops that threads share: the outermost ones that are parallel, vector or reduce,
// whether outside of sequential loops or inside them. How many iterations make a chunk depends on
// the work of one, which is estimated from the loop's body and the extents of the loops inside. So
// the chunks are the same on every machine and for every number of threads. A loop over steps that
// contains several such loops is run by a team.
#include <algorithm>
#include <set>

#include "base/match.h"
#include "core/cost.h"
#include "loops/loops.h"
#include "loops/team.h"
#include "loops/walk.h"

namespace ein::loops {
namespace {

constexpr int64_t kMany = 1 << 20;  // operations above which the exact count does not matter

struct Sharing {
  Program& p;
  const Tuning tuning = p.tuning;
  std::set<VarId> visible = {};  // variables from outside of the loop

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

  // An estimate of operations: a constant number, plus numbers that depend on extents.
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
          [&](const Invoke&) { out.constant += tuning.call_work; },
          [&](const Fetch&) { out.constant += kMany; },
          [&](const Launch&) { out.constant += kMany; }, [](const Barrier&) {},
          [](const Combine&) {}, [](const Touch&) {});
    }
    return out;
  }

  Work repeated(const Loop& n) {
    Work once = work(n.body);
    auto constant_count = trips(p, n);
    bool known = known_outside(n.lo) && known_outside(n.hi);
    if (constant_count || !known) {
      int64_t count = constant_count.value_or(tuning.guessed_iterations);
      Work out{std::min(once.constant, kMany) * std::min(count, kMany), {}};
      for (ExprId e : once.more) out.more.push_back(times(e, integer(count)));
      return out;
    }
    ExprId count = op(core::Op::Max, op(core::Op::Sub, n.hi, n.lo), integer(0));
    ExprId sum = integer(once.constant);
    for (ExprId e : once.more) sum = op(core::Op::Add, sum, e);
    return {0, {times(count, sum)}};
  }

  // How many iterations have about as much work as a chunk should have, in whole vectors.
  ExprId grain(const Loop& n) {
    Work w = work(n.body);
    int64_t lanes = n.axis.width;
    if (w.more.empty()) {
      return integer((tuning.chunk_work / (std::max<int64_t>(w.constant, 1) * lanes) + 1) * lanes);
    }
    ExprId sum = integer(w.constant + 1);
    for (ExprId e : w.more) sum = op(core::Op::Add, sum, e);
    sum = op(core::Op::Max, sum, integer(1));  // the product of extents may have overflowed
    ExprId vectors = op(core::Op::Div, integer(tuning.chunk_work / lanes), sum);
    return times(op(core::Op::Add, vectors, integer(1)), integer(lanes));
  }

  // Whether a reduction may be split. Not if it reads its own accumulator, and not if it must find
  // the first of equal candidates.
  bool splits(const Loop& n) const {
    bool ok = true;
    for_each_stmt(n.body, [&](const Stmt& s) {
      if (const auto* f = std::get_if<Fold>(&s.node)) ok &= !f->arg.valid();
    });
    for_each_node(p, n.body, [&](const Node& node) {
      const auto* get = std::get_if<Get>(&node);
      ok &= !get || std::count(n.folds.begin(), n.folds.end(), get->var) == 0;
    });
    return ok;
  }

  // How many threads the loops in a block have work for, as far as the extents are known outside of
  // it (`visible`), and how many such loops there are.
  struct Width {
    ExprId most;
    int loops = 0;
  };
  ExprId larger(ExprId a, ExprId b) {
    auto x = constant(p, a), y = constant(p, b);
    return x && y ? integer(std::max(*x, *y)) : op(core::Op::Max, a, b);
  }
  ExprId quotient(ExprId a, ExprId b) {
    auto x = constant(p, a), y = constant(p, b);
    return x && y ? integer(*x / *y) : op(core::Op::Div, a, b);
  }
  ExprId width_of(const Loop& n) {
    if (!known_outside(n.lo) || !known_outside(n.hi) || !known_outside(n.grain)) {
      return integer(kMany);
    }
    auto count = trips(p, n);
    return quotient(count ? integer(*count) : op(core::Op::Sub, n.hi, n.lo), n.grain);
  }
  ExprId width_of(const Contract& n) {
    ExprId product = integer(1);
    for (const auto* set : {&n.batch, &n.m, &n.n, &n.k}) {
      for (const Contract::Index& i : *set) {
        if (!known_outside(i.extent)) return integer(kMany);
        auto x = constant(p, product), y = constant(p, i.extent);
        product = x && y ? integer(std::min(*x, kMany * kMany) * std::min(*y, kMany))
                         : times(product, i.extent);
      }
    }
    return quotient(product, integer(2 * tuning.chunk_work));
  }
  void widths(const Block& body, Width& out) {
    for_each_stmt(body, [&](const Stmt& s) {
      const auto* loop = std::get_if<Loop>(&s.node);
      const auto* contract = std::get_if<Contract>(&s.node);
      if (contract) out.most = larger(out.most, width_of(*contract));
      if (loop && loop->grain) out.most = larger(out.most, width_of(*loop));
      // A contraction counts as two loops: it packs its operands first.
      out.loops += contract ? 2 : loop && loop->grain;
    });
  }

  // Marks the outermost loop over steps that a team can run. If each step has just one shared loop,
  // that loop is shared by itself.
  void team(Loop& n) {
    if (!fits_a_team(p, n)) return;
    Width width{integer(1)};
    widths(n.body, width);
    auto known = constant(p, width.most);
    if (width.loops < 2 || (known && *known <= 1)) return;
    for_each_stmt(n.body, [](Stmt& s) {
      if (auto* inner = std::get_if<Loop>(&s.node)) inner->team = {};
    });
    n.team = width.most;
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
      return team(n);
    }
    if (n.axis.kind == Axis::Kind::Reduce && !splits(n)) return;
    ExprId chunk = grain(n);
    auto count = trips(p, n), in_chunk = constant(p, chunk);
    // It is a single chunk whatever the extents are: nothing to share.
    if (count && in_chunk && *count <= *in_chunk) return;
    n.grain = chunk;
  }
};

}  // namespace

Program share_loops(Program p) {
  // With checked integers the reference's first failure must come first, so nothing is shared.
  for (const Site& s : p.sites) {
    if (s.kind == Site::Kind::Overflow) return p;
  }
  for (Kernel& k : p.kernels) Sharing{p}.block(k.body);
  return p;
}

}  // namespace ein::loops
