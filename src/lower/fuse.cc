// Sums over the same steps, taken in one pass: the gradients by the nine cells of a matrix, or by
// several parameters, read the same values of every step. Loops over few cells that hold long
// reductions are written out first, so that the cells' reductions stand next to each other.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "lower/copy.h"
#include "lower/walk.h"

namespace ein::loops {
namespace {

constexpr int64_t kMostCells = 16;
constexpr size_t kMostFolds = 16;  // accumulators that stay in registers

struct Fusion {
  Program& p;
  std::unordered_map<VarId, ExprId> lets = {};  // all of the kernel

  void note_lets(const Block& block) {
    for_each_stmt(block, [&](const Stmt& s) {
      if (const auto* n = std::get_if<Let>(&s.node)) lets[n->var] = n->value;
    });
  }

  // ---- cells written out -----------------------------------------------------------------------

  std::optional<int64_t> constant(ExprId e) const {
    const auto* n = std::get_if<IntConst>(&p.exprs[e].node);
    return n ? std::optional(n->value) : std::nullopt;
  }
  std::optional<int64_t> trips(const Loop& n) const {
    auto lo = constant(n.lo), hi = constant(n.hi);
    return lo && hi ? std::optional(std::max<int64_t>(0, *hi - *lo)) : std::nullopt;
  }

  bool long_reduction(const Stmt& s) const {
    const auto* n = std::get_if<Loop>(&s.node);
    return n && n->axis.kind == Axis::Kind::Reduce && !trips(*n);
  }

  // The cells of nested loops that hold nothing but reductions and stores; 0: something else.
  int64_t cells(const Loop& n) const {
    auto count = trips(n);
    if (n.axis.kind != Axis::Kind::Parallel || !count || *count > kMostCells) return 0;
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
    return most * *count > kMostCells ? 0 : most * *count;
  }

  void write_out(Block& block) {
    Block out;
    for (Stmt& s : block) {
      const auto* n = std::get_if<Loop>(&s.node);
      if (!n || cells(*n) == 0) {
        out.push_back(std::move(s));
        continue;
      }
      for (int64_t i = *constant(n->lo); i < *constant(n->hi); ++i) {
        ExprId here = p.exprs.add({IntConst{i}, DType::I64});
        Block cell = Copier{p}.block(n->body, {{n->var, here}});
        note_lets(cell);
        write_out(cell);
        std::move(cell.begin(), cell.end(), std::back_inserter(out));
      }
    }
    block = std::move(out);
  }

  // ---- one pass for several --------------------------------------------------------------------

  // What a statement reads and writes, its blocks included.
  struct Effects {
    std::set<VarId> reads, binds, changes;
    std::set<BufferId> loads, stores;
    bool may_stop = false;
  };

  Effects effects(const Stmt& stmt) const {
    Effects out;
    auto look = [&](const Stmt& s) {
      for_each_expr(s, [&](ExprId e) {
        for_each_node(p, e, [&](const Node& n) {
          if (const auto* g = std::get_if<Get>(&n)) out.reads.insert(g->var);
          if (const auto* l = std::get_if<Load>(&n)) out.loads.insert(l->buffer);
        });
      });
      match(
          s.node, [&](const Let& n) { out.binds.insert(n.var); },
          [&](const Declare& n) { out.binds.insert(n.var); },
          [&](const Assign& n) { out.changes.insert(n.var); },
          [&](const Store& n) { out.stores.insert(n.buffer); },
          [&](const Update& n) { out.stores.insert(n.buffer); },
          [&](const Fold& n) {
            out.changes.insert(n.acc);
            if (n.arg.valid()) out.changes.insert(n.arg);
          },
          [](const If&) {},
          [&](const Loop& n) {
            out.binds.insert(n.var);
            out.may_stop |= n.poll.valid();
          },
          [&](const Check&) { out.may_stop = true; },
          [&](const Contract& n) {
            out.loads.insert({n.a.buffer, n.b.buffer});
            out.stores.insert(n.out.buffer);
          },
          [&](const Invoke& n) {
            out.binds.insert(n.var);
            out.may_stop = true;
          });
    };
    look(stmt);
    for_each_block(stmt, [&](const Block& b) { for_each_stmt(b, look); });
    // What it binds and changes inside is its own affair.
    if (std::holds_alternative<Loop>(stmt.node) || std::holds_alternative<If>(stmt.node)) {
      for (VarId v : out.binds) out.reads.erase(v), out.changes.erase(v);
      out.binds.clear();
    }
    return out;
  }

  bool equal(ExprId a, ExprId b) const {
    auto value = [&](ExprId e) {
      for (;;) {
        const auto* g = std::get_if<Get>(&p.exprs[e].node);
        auto it = g ? lets.find(g->var) : lets.end();
        if (it == lets.end()) return e;
        e = it->second;
      }
    };
    a = value(a), b = value(b);
    if (a == b) return true;
    const Expr &x = p.exprs[a], &y = p.exprs[b];
    if (x.type != y.type || x.node.index() != y.node.index()) return false;
    auto all = [&](const std::vector<ExprId>& s, const std::vector<ExprId>& t) {
      return std::equal(s.begin(), s.end(), t.begin(), t.end(),
                        [&](ExprId c, ExprId d) { return equal(c, d); });
    };
    return match(
        x.node, [](const FloatConst&) { return false; },
        [&](const IntConst& n) { return n.value == std::get<IntConst>(y.node).value; },
        [&](const Param& n) { return n.index == std::get<Param>(y.node).index; },
        [&](const Get& n) { return n.var == std::get<Get>(y.node).var; },
        [&](const Apply& n) {
          const auto& o = std::get<Apply>(y.node);
          return n.op == o.op && all(n.args, o.args);
        },
        [](const Overflows&) { return false; }, [](const Load&) { return false; });
  }

  bool alike(const Stmt& a, const Stmt& b) const {
    if (!long_reduction(a) || !long_reduction(b)) return false;
    const auto &x = std::get<Loop>(a.node), &y = std::get<Loop>(b.node);
    return x.axis.width == y.axis.width && x.folds.size() + y.folds.size() <= kMostFolds &&
           equal(x.lo, y.lo) && equal(x.hi, y.hi);
  }

  static bool meet(const auto& a, const auto& b) {
    return std::any_of(a.begin(), a.end(), [&](const auto& x) { return b.contains(x); });
  }

  // Moves the loop at j into the one at i, with what it needs from between; false: it may not.
  bool merge(Block& block, size_t i, size_t j) {
    Effects other = effects(block[j]), first = effects(block[i]);
    if (other.may_stop || first.may_stop || !other.stores.empty()) return false;
    std::set<VarId> needs = other.reads;
    needs.insert(other.changes.begin(), other.changes.end());
    std::set<BufferId> loads = other.loads, stores = first.stores;
    std::set<VarId> changed = first.changes;
    std::set<size_t> moved;
    for (size_t k = j; k-- > i + 1;) {
      Effects e = effects(block[k]);
      if (e.may_stop) return false;  // reads behind a check rely on it
      stores.insert(e.stores.begin(), e.stores.end());
      changed.insert(e.changes.begin(), e.changes.end());
      if (!meet(e.binds, needs)) continue;
      bool plain = std::holds_alternative<Let>(block[k].node) ||
                   std::holds_alternative<Declare>(block[k].node);
      if (!plain) return false;
      needs.insert(e.reads.begin(), e.reads.end());
      loads.insert(e.loads.begin(), e.loads.end());
      moved.insert(k);
    }
    if (meet(needs, changed) || meet(loads, stores)) return false;
    auto& into = std::get<Loop>(block[i].node);
    auto& from = std::get<Loop>(block[j].node);
    ExprId step = p.exprs.add({Get{into.var}, DType::I64});
    Block body = Copier{p}.block(from.body, {{from.var, step}});
    std::move(body.begin(), body.end(), std::back_inserter(into.body));
    into.folds.insert(into.folds.end(), from.folds.begin(), from.folds.end());
    Block out;
    for (size_t k = 0; k < i; ++k) out.push_back(std::move(block[k]));
    for (size_t k : moved) out.push_back(std::move(block[k]));
    for (size_t k = i; k < block.size(); ++k) {
      if (k != j && !moved.contains(k)) out.push_back(std::move(block[k]));
    }
    block = std::move(out);
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
        // The loop is further down now, behind what was moved.
        while (!long_reduction(block[i])) ++i;
        j = i;
      }
    }
  }
};

}  // namespace

void fuse_sums(Program& p) {
  std::vector<Kernel> out;
  for (Kernel& k : p.kernels) {
    Fusion fusion{p};
    fusion.note_lets(k.body);
    fusion.run(k.body);
    // A kernel that does nothing but sums may join the one before.
    if (!out.empty() && fusion.sums_only(out.back().body) && fusion.sums_only(k.body)) {
      Block both = out.back().body;
      both.insert(both.end(), k.body.begin(), k.body.end());
      size_t apart = fusion.loops_in(both);
      fusion.note_lets(both);
      fusion.run(both);
      if (fusion.loops_in(both) < apart) {
        out.back().body = std::move(both);
        continue;
      }
    }
    out.push_back(std::move(k));
  }
  p.kernels = std::move(out);
}

}  // namespace ein::loops
