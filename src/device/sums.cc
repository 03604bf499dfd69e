// Sums over a whole kernel: every block adds up consecutive terms, then a single block adds up the
// partial results. The number of partial results depends only on the number of terms.
#include <algorithm>

#include "device/block.h"
#include "device/code.h"
#include "loops/copy.h"

namespace ein::device {

using core::Op;
using loops::Axis;
using loops::Block;
using loops::Buffer;
using loops::BufferId;
using loops::ExprId;
using loops::Loop;
using loops::Stmt;
using loops::VarId;

namespace {

// Statements after a sum may run in its last launch if they contain no loops.
bool is_short(const Block& rest) {
  bool ok = !rest.empty();
  loops::for_each_stmt(rest, [&](const Stmt& s) { ok &= !std::holds_alternative<Loop>(s.node); });
  return ok;
}

}  // namespace

bool Mapping::sum(Block& out, const Loop& n, const Block& before, const Block& rest,
                  bool& took_rest) {
  Nest nest = nest_of(n, Axis::Kind::Reduce);
  loops::Effects touched = loops::effects(p, Stmt{n});
  bool rows = std::any_of(touched.loads.begin(), touched.loads.end(),
                          [&](BufferId b) { return p.buffers[b].space == Buffer::Space::Row; });
  if (rows || !touched.stores.empty()) {
    why = "a sum that stores";
    return false;
  }
  // The initial value of each accumulator, if nothing changes it between its declaration and here.
  std::map<VarId, ExprId> begins;
  for (const Stmt& s : before) {
    if (const auto* d = std::get_if<loops::Declare>(&s.node)) begins[d->var] = d->init;
    for (VarId v : loops::effects(p, s).changes) begins.erase(v);
  }
  Block first;
  std::vector<ExprId> lengths;
  ExprId total = count(nest, first, lengths);
  ExprId most = op(Op::Min, integer(kSumParts), up(total, kSumCells));
  ExprId blocks = let(first, "blocks", op(Op::Max, integer(1), most));
  ExprId each = let(first, "each", op(Op::Div, minus(plus(total, blocks), integer(1)), blocks));
  VarId index = variable("block", DType::I64);
  auto declare = [&](Block& to, Together& together) {
    std::vector<VarId> accs;
    for (VarId v : n.folds) {
      DType type = p.vars[v].type;
      accs.push_back(variable(p.vars[v].name, type));
      to.push_back({loops::Declare{accs.back(), start_of(*this, fold_of(n, v), type)}});
      together.own.insert(accs.back());
    }
    return accs;
  };
  // First launch: the partial results.
  Together together{*this, false, kThreads};
  Block part;
  std::vector<VarId> accs = declare(part, together);
  ExprId from = let(part, "from", times(get(index), each));
  ExprId here = let(part, "here", op(Op::Max, integer(0), op(Op::Min, each, minus(total, from))));
  if (!together.reduce(nest, lengths, from, here, accs, part)) return false;
  std::vector<BufferId> parts;
  Block stores;
  for (VarId v : accs) {
    DType type = p.vars[v].type;
    parts.push_back(scratch(p.vars[v].name + "_parts", type, {kSumParts}, Buffer::Space::Temp));
    stores.push_back({loops::Store{parts.back(), {get(index)}, get(v)}});
  }
  together.one_thread(std::move(stores), part);
  first.push_back(launch("parts of a sum", index, blocks, kThreads, false, std::move(part)));
  VarId step = variable("part", DType::I64), one = variable("block", DType::I64);
  bool along = is_short(rest) && std::all_of(n.folds.begin(), n.folds.end(), [&](VarId v) {
                 return begins.contains(v) && not_on_device(p, begins.at(v)).empty();
               });
  Loop over{step, integer(0), blocks, {Axis::Kind::Reduce}, false, n.folds, {}};
  for (size_t k = 0; k < n.folds.size(); ++k) {
    ExprId load = p.exprs.add({loops::Load{parts[k], {get(step)}}, p.vars[n.folds[k]].type});
    over.body.push_back({loops::Fold{fold_of(n, n.folds[k]), n.folds[k], load, {}, {}}});
  }
  Nest of_parts{{&over}, {}, &over.body};
  if (along) {  // the accumulators start from the program's initial values
    Together last{*this, false, kThreads};
    Block whole;
    std::vector<VarId> totals;
    loops::Renaming by;
    for (VarId v : n.folds) {
      totals.push_back(variable(p.vars[v].name, p.vars[v].type));
      whole.push_back({loops::Declare{totals.back(), begins.at(v)}});
      last.own.insert(totals.back());
      by[v] = get(totals.back());
    }
    Block copy = loops::Copier{p}.block(rest, by);
    if (last.reduce(of_parts, {blocks}, integer(0), blocks, totals, whole) &&
        last.block(copy, whole)) {
      took_rest = true;
      out.insert(out.end(), first.begin(), first.end());
      out.push_back(launch("sum of parts", one, integer(1), kThreads, false, std::move(whole)));
      return true;
    }
  }
  // The host adds the total to its own variable.
  Together last{*this, false, kThreads};
  Block whole;
  std::vector<VarId> totals = declare(whole, last);
  if (!last.reduce(of_parts, {blocks}, integer(0), blocks, totals, whole)) return false;
  Block results;
  std::vector<Stmt> folds;
  for (size_t k = 0; k < n.folds.size(); ++k) {
    VarId v = n.folds[k];
    BufferId total_of = scratch(p.vars[v].name + "_total", p.vars[v].type, {}, Buffer::Space::Temp);
    results.push_back({loops::Store{total_of, {}, get(totals[k])}});
    ExprId load = p.exprs.add({loops::Load{total_of, {}}, p.vars[v].type});
    folds.push_back({loops::Fold{fold_of(n, v), v, load, {}, {}}});
  }
  last.one_thread(std::move(results), whole);
  out.insert(out.end(), first.begin(), first.end());
  out.push_back(launch("sum of parts", one, integer(1), kThreads, false, std::move(whole)));
  out.insert(out.end(), folds.begin(), folds.end());
  return true;
}

}  // namespace ein::device
