// Computes sums over the same steps in one loop: the gradients of the nine cells of a matrix, or of
// several parameters, read the same values at every step. Loops over few cells that contain long
// reductions are written out first, so that the cells' reductions are adjacent.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "loops/copy.h"
#include "loops/effects.h"
#include "loops/linear.h"
#include "loops/walk.h"

namespace ein::loops {
namespace {

struct Fusion {
  Program& p;
  Lets lets = {};  // of the whole kernel

  // ---- cells written out -----------------------------------------------------------------------

  bool long_reduction(const Stmt& s) const {
    const auto* n = std::get_if<Loop>(&s.node);
    return n && n->axis.kind == Axis::Kind::Reduce && !trips(p, *n);
  }

  // The number of cells of nested loops that contain only reductions and stores; 0 if they contain
  // anything else.
  int64_t cells(const Loop& n) const {
    auto count = trips(p, n);
    if (n.axis.kind != Axis::Kind::Parallel || !count || *count > p.tuning.fused_cells) return 0;
    int64_t most = 0;
    for (const Stmt& s : n.body) {
      if (std::holds_alternative<Check>(s.node) || std::holds_alternative<Contract>(s.node))
        return 0;
      const auto* inner = std::get_if<Loop>(&s.node);
      if (inner && inner->axis.kind != Axis::Kind::Reduce) {
        int64_t theirs = cells(*inner);
        if (theirs == 0) return 0;
        most = std::max(most, theirs);
      }
      if (long_reduction(s)) most = std::max<int64_t>(most, 1);
    }
    return most * *count > p.tuning.fused_cells ? 0 : most * *count;
  }

  void write_out(Block& block) {
    Block out;
    for (Stmt& s : block) {
      const auto* n = std::get_if<Loop>(&s.node);
      if (!n || cells(*n) == 0) {
        out.push_back(std::move(s));
        continue;
      }
      for (int64_t i = *constant(p, n->lo); i < *constant(p, n->hi); ++i) {
        Block cell = Copier{p}.at(*n, i);
        lets.merge(lets_of(cell));
        write_out(cell);
        std::move(cell.begin(), cell.end(), std::back_inserter(out));
      }
    }
    block = std::move(out);
  }

  // ---- one pass for several --------------------------------------------------------------------

  bool alike(const Stmt& a, const Stmt& b) const {
    if (!long_reduction(a) || !long_reduction(b)) return false;
    const auto &x = std::get<Loop>(a.node), &y = std::get<Loop>(b.node);
    return x.axis.width == y.axis.width &&
           x.folds.size() + y.folds.size() <= static_cast<size_t>(p.tuning.fused_sums) &&
           Sums{p, lets}.equal(x.lo, y.lo) && Sums{p, lets}.equal(x.hi, y.hi);
  }

  // Moves the loop at j into the one at i, together with the statements in between that it needs.
  // False if that is not allowed.
  bool merge(Block& block, size_t i, size_t j) {
    Effects other = effects(p, block[j]), first = effects(p, block[i]);
    if (other.may_stop() || first.may_stop() || !other.stores.empty()) return false;
    if (meet(other.loads, first.stores)) return false;
    auto along = moves_along(p, block, j, i);
    if (!along) return false;
    auto& into = std::get<Loop>(block[i].node);
    auto& from = std::get<Loop>(block[j].node);
    ExprId step = p.exprs.add({Get{into.var}, DType::I64});
    Block body = Copier{p}.block(from.body, {{from.var, step}});
    std::move(body.begin(), body.end(), std::back_inserter(into.body));
    into.folds.insert(into.folds.end(), from.folds.begin(), from.folds.end());
    move_up(block, j, i, *along);
    return true;
  }

  bool sums_only(const Block& block) const {
    return std::all_of(block.begin(), block.end(), [&](const Stmt& s) {
      return std::holds_alternative<Let>(s.node) || std::holds_alternative<Declare>(s.node) ||
             std::holds_alternative<Store>(s.node) || long_reduction(s);
    });
  }

  size_t loops_in(const Block& block) const {
    return static_cast<size_t>(std::count_if(block.begin(), block.end(), [&](const Stmt& s) {
      return std::holds_alternative<Loop>(s.node);
    }));
  }

  void run(Block& block) {
    write_out(block);
    for (size_t i = 0; i < block.size(); ++i) {
      for (size_t j = i + 1; j < block.size(); ++j) {
        if (!alike(block[i], block[j])) continue;
        if (!merge(block, i, j)) continue;
        // The loop at i is further down now, behind the statements that were moved.
        while (!long_reduction(block[i])) ++i;
        j = i;
      }
    }
  }
};

}  // namespace

Program fuse_sums(Program p) {
  std::vector<Kernel> out;
  for (Kernel& k : p.kernels) {
    Fusion fusion{p, lets_of(k.body)};
    fusion.run(k.body);
    // A kernel that only computes sums may join the kernel before it.
    if (!out.empty() && fusion.sums_only(out.back().body) && fusion.sums_only(k.body)) {
      Block both = out.back().body;
      both.insert(both.end(), k.body.begin(), k.body.end());
      size_t apart = fusion.loops_in(both);
      fusion.lets.merge(lets_of(both));
      fusion.run(both);
      if (fusion.loops_in(both) < apart) {
        out.back().body = std::move(both);
        continue;
      }
    }
    out.push_back(std::move(k));
  }
  p.kernels = std::move(out);
  return p;
}

}  // namespace ein::loops
