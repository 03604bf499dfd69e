#include "device/block.h"

#include <algorithm>

#include "base/check.h"
#include "core/build.h"
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

bool splits(const loops::Program& p, const Loop& n) {
  bool ok = n.axis.kind == Axis::Kind::Reduce && !n.leave && n.state.empty() && !n.folds.empty();
  loops::for_each_stmt(n.body, [&](const Stmt& s) {
    if (const auto* f = std::get_if<loops::Fold>(&s.node)) ok &= !f->arg.valid();
    // A variable that is declared outside may only change in the order of the program.
    if (const auto* a = std::get_if<loops::Assign>(&s.node))
      ok &= std::count(n.folds.begin(), n.folds.end(), a->var) == 0;
  });
  loops::for_each_node(p, n.body, [&](const loops::Node& node) {
    const auto* get = std::get_if<loops::Get>(&node);
    ok &= !get || std::count(n.folds.begin(), n.folds.end(), get->var) == 0;
  });
  for (VarId v : n.folds) {
    bool folded = false;
    loops::for_each_stmt(n.body, [&](const Stmt& s) {
      const auto* f = std::get_if<loops::Fold>(&s.node);
      folded |= f && f->acc == v;
    });
    ok &= folded;
  }
  return ok;
}

core::ReduceOp fold_of(const Loop& n, VarId acc) {
  std::optional<core::ReduceOp> op;
  loops::for_each_stmt(n.body, [&](const Stmt& s) {
    const auto* f = std::get_if<loops::Fold>(&s.node);
    if (f && f->acc == acc) op = f->op;
  });
  EIN_CHECK(op, "an accumulator that nothing is folded into");
  return *op;
}

ExprId start_of(Mapping& m, core::ReduceOp op, DType type) {
  core::ExprId e = core::identity(m.plan.module, op, type);
  const core::Node& node = m.plan.module[e].node;
  if (const auto* f = std::get_if<core::FloatLit>(&node)) {
    return m.p.exprs.add({loops::FloatConst{f->value}, type});
  }
  if (const auto* b = std::get_if<core::BoolLit>(&node)) {
    return m.p.exprs.add({loops::IntConst{b->value}, type});
  }
  return m.p.exprs.add({loops::IntConst{std::get<core::IntLit>(node).value}, type});
}

void Together::meet(const loops::Effects& e, Block& to) {
  auto shared = [&](const std::set<BufferId>& all) {
    std::set<BufferId> out;
    for (BufferId b : all) {
      if (m.p.buffers[b].space != Buffer::Space::Local) out.insert(b);
    }
    return out;
  };
  std::set<BufferId> loads = shared(e.loads), stores = shared(e.stores);
  if (loops::meet(loads, stored) || loops::meet(stores, stored) || loops::meet(stores, loaded)) {
    to.push_back({loops::Barrier{warp ? loops::Scope::Lane : loops::Scope::Threads}});
    loaded.clear();
    stored.clear();
  }
  loaded.merge(loads);
  stored.merge(stores);
}

Stmt Together::over_threads(VarId thread, int64_t count, Block code) const {
  Axis axis{warp ? Axis::Kind::Lane : Axis::Kind::Thread};
  return {Loop{thread, m.integer(0), m.integer(count), axis, false, {}, std::move(code)}};
}

void Together::one_thread(Block code, Block& to) {
  to.push_back(over_threads(m.variable("thread", DType::I64), 1, std::move(code)));
}

bool Together::block(const Block& from, Block& to) {
  return std::all_of(from.begin(), from.end(), [&](const Stmt& s) { return stmt(s, to); });
}

bool Together::stmt(const Stmt& s, Block& to) {
  if (const auto* n = std::get_if<Loop>(&s.node)) return loop(*n, to);
  if (const auto* n = std::get_if<loops::If>(&s.node)) return branch(*n, to);
  m.why = not_on_device(m.p, {s}, own);
  if (!m.why.empty()) return false;
  loops::Effects e = loops::effects(m.p, s);
  meet(e, to);
  if (!e.stores.empty()) {
    one_thread({s}, to);
    return true;
  }
  if (const auto* n = std::get_if<loops::Declare>(&s.node)) own.insert(n->var);
  to.push_back(s);
  return true;
}

bool Together::loop(const Loop& n, Block& to) {
  if (is_parallel(n)) return parallel(n, to);
  if (!splits(m.p, n) ||
      !std::all_of(n.folds.begin(), n.folds.end(), [&](VarId v) { return own.contains(v); })) {
    return steps(n, to);
  }
  Nest nest = m.nest_of(n, Axis::Kind::Reduce);
  std::vector<ExprId> lengths;
  ExprId total = m.count(nest, to, lengths);
  return reduce(nest, lengths, m.integer(0), total, n.folds, to);
}

// Thread t takes the terms t, t + threads, and so on, so that neighbouring threads read
// neighbouring cells. Where a term may stop the program, each thread takes consecutive terms
// instead, so that the failure found first is the first in program order.
bool Together::reduce(const Nest& nest, const std::vector<ExprId>& lengths, ExprId first,
                      ExprId count, const std::vector<VarId>& into, Block& to) {
  const Loop& outer = *nest.loops[0];
  std::set<VarId> changed(outer.folds.begin(), outer.folds.end());
  m.why = not_on_device(m.p, {Stmt{outer}}, changed);
  if (!m.why.empty()) return false;
  loops::Effects e = loops::effects(m.p, Stmt{outer});
  meet(e, to);
  VarId thread = m.variable("thread", DType::I64), turn = m.variable("turn", DType::I64);
  ExprId all = m.integer(threads), me = m.get(thread);
  Block code;
  ExprId turns, number;
  if (e.checks) {
    ExprId each = m.let(code, "each", m.up(count, threads));
    ExprId begin = m.let(code, "begin", m.times(me, each));
    turns = m.op(Op::Min, each, m.minus(count, begin));
    number = m.plus(begin, m.get(turn));
  } else {
    turns = m.op(Op::Div, m.minus(m.plus(count, m.integer(threads - 1)), me), all);
    number = m.plus(m.times(m.get(turn), all), me);
  }
  loops::Renaming by;
  std::vector<VarId> parts;
  for (VarId v : outer.folds) {
    DType type = m.p.vars[v].type;
    parts.push_back(m.variable("part", type));
    code.push_back({loops::Declare{parts.back(), start_of(m, fold_of(outer, v), type)}});
    by[v] = m.get(parts.back());
  }
  Block term;
  ExprId at = m.let(term, "number", m.plus(first, number));
  m.place(term, nest, lengths, at);
  term.insert(term.end(), nest.body->begin(), nest.body->end());
  in_a_thread(term);
  term = loops::Copier{m.p}.block(term, by);
  code.push_back(
      {Loop{turn, m.integer(0), turns, {Axis::Kind::Reduce}, false, parts, std::move(term)}});
  std::vector<BufferId> kept;
  for (VarId v : parts) {
    kept.push_back(m.scratch("part", m.p.vars[v].type, {}, Buffer::Space::Local));
    code.push_back({loops::Store{kept.back(), {}, m.get(v)}});
  }
  to.push_back(over_threads(thread, threads, std::move(code)));
  for (size_t k = 0; k < kept.size(); ++k) {
    to.push_back({loops::Combine{fold_of(outer, outer.folds[k]), into[k], kept[k],
                                 warp ? loops::Scope::Lane : loops::Scope::Threads}});
  }
  return true;
}

bool Together::parallel(const Loop& n, Block& to) {
  m.why = not_on_device(m.p, {Stmt{n}});
  if (!m.why.empty()) return false;
  meet(loops::effects(m.p, Stmt{n}), to);
  Nest nest = m.nest_of(n, Axis::Kind::Parallel);
  std::vector<ExprId> lengths;
  ExprId total = m.count(nest, to, lengths);
  VarId thread = m.variable("thread", DType::I64), turn = m.variable("turn", DType::I64);
  auto known = loops::constant(m.p, total);
  bool once = known && *known <= threads;
  Block code, cell;
  ExprId number = m.get(thread);
  if (!once) {
    number = m.let(code, "number", m.plus(m.times(m.get(turn), m.integer(threads)), number));
  }
  m.place(cell, nest, lengths, number);
  cell.insert(cell.end(), nest.body->begin(), nest.body->end());
  in_a_thread(cell);
  if (once) {
    to.push_back(over_threads(thread, *known, std::move(cell)));
    return true;
  }
  code.push_back({loops::If{m.op(Op::Lt, number, total, DType::Bool), std::move(cell), {}}});
  to.push_back({Loop{turn,
                     m.integer(0),
                     m.up(total, threads),
                     {},
                     false,
                     {},
                     {over_threads(thread, threads, std::move(code))}}});
  return true;
}

// A loop over steps, or a sum that must be added in order: every thread runs all of its iterations.
bool Together::steps(const Loop& n, Block& to) {
  loops::Effects e = loops::effects(m.p, Stmt{n});
  meet(e, to);
  std::set<BufferId> before_loads = loaded, before_stores = stored;
  loaded.clear();
  stored.clear();
  Loop out = n;
  out.axis.width = 1;
  out.poll = {};
  out.grain = out.steps = out.team = {};
  out.body.clear();
  out.state.clear();
  if (!block(n.body, out.body)) return false;
  if (!e.stores.empty()) {
    out.body.push_back({loops::Barrier{warp ? loops::Scope::Lane : loops::Scope::Threads}});
    loaded.clear();
    stored.clear();
  }
  if (!block(n.state, out.state)) return false;
  loaded.merge(before_loads);
  stored.merge(before_stores);
  for (VarId v : n.folds) {
    if (own.contains(v)) continue;
    m.why = "a value that steps leave to each other";
    return false;
  }
  to.push_back({std::move(out)});
  return true;
}

bool Together::branch(const loops::If& n, Block& to) {
  m.why = not_on_device(m.p, n.cond);
  if (!m.why.empty()) return false;
  loops::Effects condition = loops::effects(m.p, Stmt{loops::If{n.cond, {}, {}}});
  meet(condition, to);
  loops::If out{n.cond, {}, {}};
  std::set<BufferId> before_loads = loaded, before_stores = stored;
  if (!block(n.then, out.then)) return false;
  std::swap(before_loads, loaded);
  std::swap(before_stores, stored);
  if (!block(n.otherwise, out.otherwise)) return false;
  loaded.merge(before_loads);
  stored.merge(before_stores);
  to.push_back({std::move(out)});
  return true;
}

}  // namespace ein::device
