// Recurrences that end (plan/ends.h): the loop stops after the step that sets the flag, and later
// cells that something reads are filled in after the loop.
#include <algorithm>

#include "lower/lowering.h"

namespace ein::lower {

using core::FamilyId;
using core::Op;

// Sets `stop` to true, and `last` to this step, when all cells of the flag are true, or `delay`
// steps later.
void Lowering::note_end(const plan::End& end, const Fixed& fixed, Value t, const Ended& ended) {
  const core::Family f = m[end.flag];
  std::vector<Running> known(f.rank());
  if (auto it = fixed.find(end.flag); it != fixed.end()) known = it->second;
  known[end.position].at = t;
  std::vector<uint32_t> free;
  for (uint32_t k = 0; k < f.rank(); ++k) {
    if (!known[k].at.expr) free.push_back(k);
  }
  loops::VarId all;
  if (!free.empty()) {
    all = variable("all", DType::Bool);
    emit(top(), {loops::Declare{all, integer(1, DType::Bool).expr}});
  }
  std::vector<loops::VarId> vars;
  for (uint32_t k : free) {
    Value lo = integer(0), hi = lower(f.coords[k].extent);
    vars.push_back(variable(f.coords[k].name ? text(f.coords[k].name) : "i", DType::I64));
    Scope& s = push(Scope::Kind::Loop);
    s.lo = lo;
    s.hi = hi;
    known[k].at = get(vars.back(), top());
  }
  std::vector<Value> at;
  for (const Running& r : known) at.push_back({r.at.expr, top()});
  to_stored(end.flag, at);
  Value set{make(loops::Load{buffers.at(end.flag), exprs_of(at)}, DType::Bool), top()};
  if (!free.empty()) emit(top(), {loops::Fold{core::ReduceOp::All, all, set.expr, {}, {}}});
  for (size_t i = free.size(); i-- > 0;) {
    auto s = pop();
    emit(top(), {loops::Loop{vars[i],
                             s->lo.expr,
                             s->hi.expr,
                             {loops::Axis::Kind::Reduce, 1},
                             false,
                             {all},
                             std::move(s->block),
                             {}}});
  }
  if (!free.empty()) set = get(all, top());
  loops::Block then;
  then.push_back({loops::Assign{ended.stop, integer(1, DType::Bool).expr}});
  then.push_back({loops::Assign{ended.last, t.expr}});
  if (end.delay > 0) {
    auto step = [&](Op o, loops::ExprId a, loops::ExprId b) {
      return make(loops::Apply{o, {a, b}}, DType::I64);
    };
    loops::ExprId seen = make(loops::Get{ended.left}, DType::I64), one = integer(1).expr;
    loops::ExprId over = make(loops::Apply{Op::Lt, {seen, integer(1).expr}}, DType::Bool);
    loops::If wait{over, std::move(then), {}};
    wait.otherwise.push_back({loops::Assign{ended.left, step(Op::Sub, seen, one)}});
    then = {};
    then.push_back({std::move(wait)});
  }
  emit(top(), {loops::If{set.expr, std::move(then), {}}});
}

// Fills in the steps after `last` that something reads; of a ring, those that it holds at the end.
void Lowering::fill_end(const plan::End& end, const core::Sequence& q, const Fixed& fixed,
                        const Ended& ended) {
  for (const plan::End::Fill& fill : end.fills) {
    const core::Clause c = m[fill.family].clauses[fill.clause];
    Value last = get(ended.last, top()),
          extent = lower(m[fill.family].coords[fill.position].extent);
    Value lo = q.downward ? integer(0) : op(Op::Add, {last, integer(1)}, DType::I64);
    Value hi = q.downward ? last : extent;
    auto ring = plan.rings.find(fill.family);
    bool few = ring != plan.rings.end() && ring->second.position == fill.position;
    if (few && q.downward) hi = op(Op::Min, {hi, integer(ring->second.kept)}, DType::I64);
    if (few && !q.downward) {
      Value held = op(Op::Sub, {extent, integer(ring->second.kept)}, DType::I64);
      lo = op(Op::Max, {lo, held}, DType::I64);
    }
    slots.assign(core::kMaxSlots, {});
    statement = c.span;
    std::vector<Running> known(c.box.size());
    if (auto it = fixed.find(fill.family); it != fixed.end()) known = it->second;
    Value cond = inside(fill.family, c, known);
    lo = bind(lo);
    hi = bind(hi);
    Scope& guard = push(Scope::Kind::Guard);
    clause_depth = top();
    guard.facts.slots.assign(c.box.size(), {});
    std::vector<uint32_t> free;
    for (uint32_t k = 0; k < c.box.size(); ++k) {
      if (k == fill.position) continue;
      if (known[k].at.expr) {
        slots[k] = {known[k].at.expr, top()};
        guard.facts.slots[k] = clamped(fill.family, c, k);
      } else {
        free.push_back(k);
      }
    }
    loops::VarId t = variable("t", DType::I64);
    Scope& steps = push(Scope::Kind::Loop);
    steps.lo = lo;
    steps.hi = hi;
    steps.facts.slots[fill.position] = c.box[fill.position];
    slots[fill.position] = get(t, top());
    std::vector<loops::Axis> axes(free.size(), {loops::Axis::Kind::Parallel, 1});
    loops_over(fill.family, c, free, axes, [&] {
      Value v;
      if (fill.constant) {
        v = lower(fill.constant);
      } else {
        std::vector<Value> at(slots.begin(), slots.begin() + m[fill.family].rank());
        at[fill.position] = {last.expr, top()};
        to_stored(fill.family, at);
        v = {make(loops::Load{buffers.at(fill.family), exprs_of(at)}, m[fill.family].dtype), top()};
      }
      store(fill.family, v);
    });
    auto s = pop();
    // A step of a ring may have the same place in memory as the step that is copied.
    loops::Axis axis{few ? loops::Axis::Kind::Seq : loops::Axis::Kind::Parallel, 1};
    emit(top(), {loops::Loop{t, s->lo.expr, s->hi.expr, axis, false, {}, std::move(s->block), {}}});
    loops::Block body = std::move(pop()->block);
    if (cond.expr) {
      emit(top(), {loops::If{cond.expr, std::move(body), {}}});
    } else {
      for (loops::Stmt& stmt : body) emit(top(), std::move(stmt));
    }
  }
}

}  // namespace ein::lower
