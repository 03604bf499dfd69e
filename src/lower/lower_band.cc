// Bands (plan/bands.h): a loop over the front coordinates, inside it a loop over bands, and inside
// that the members, each over the rows of the band.
#include <utility>

#include "core/rewrite.h"
#include "lower/lowering.h"

namespace ein::lower {

using core::ExprId;
using core::FamilyId;
using core::Op;

std::pair<Value, Value> Lowering::ends_in_band(FamilyId id, uint32_t slot,
                                               const core::Range& range) {
  Value lo = lower(range.lo), hi = lower(range.hi);
  if (!band_now) return {lo, hi};
  const plan::Band& b = *band_now->plan;
  auto part = b.parts.find(id);
  uint32_t row = part != b.parts.end() ? part->second : b.is_row(id) ? b.outer : ~0u;
  if (slot == row) return {band_now->from, band_now->to};
  if (!b.cut.contains({id, slot})) return {lo, hi};
  Value end = op(Op::Min, {hi, band_now->to}, DType::I64);
  if (band_now->finite.expr) end = op(Op::Select, {band_now->finite, end, hi}, DType::I64);
  return {lo, bind(op(Op::Max, {lo, end}, DType::I64), "end")};
}

// Sets a total to zero.
void Lowering::clear_total(FamilyId id, const Fixed& fixed) {
  const core::Clause c = m[id].clauses[0];
  const plan::ClausePlan& how = plan.families.at(id).clauses[0];
  slots.assign(core::kMaxSlots, {});
  push(Scope::Kind::Guard).facts.slots.assign(c.box.size(), {});
  std::vector<uint32_t> open;
  std::vector<loops::Axis> axes;
  for (uint32_t k = 0; k < m[id].rank(); ++k) {
    if (const Value at = fixed.at(id)[k].at; at.expr) {
      slots[k] = at;
      slots[k].depth = top();
      continue;
    }
    open.push_back(k);
    bool lanes = how.axes[k] == plan::AxisKind::Vector && k + 1 == m[id].rank();
    axes.push_back(
        {lanes ? loops::Axis::Kind::Vector : loops::Axis::Kind::Parallel, lanes ? how.width : 1});
  }
  loops_over(id, c, open, axes, [&] { store(id, zero(m[id].dtype)); });
  loops::Block made = std::move(pop()->block);
  for (loops::Stmt& s : made) emit(top(), std::move(s));
}

// Whether the operands that must be finite are. A finite number times zero is zero, so the sum of
// these products is zero exactly if all numbers are finite.
Value Lowering::all_finite(const plan::Band& b, const Fixed& fixed) {
  Value out;
  for (const auto& [id, operand] : b.finite) {
    const core::Clause c = m[id].clauses[0];
    const core::Reduce r = std::get<core::Reduce>(m[c.body].node);
    const DType type = m[operand].type;
    slots.assign(core::kMaxSlots, {});
    scopes.back()->facts.slots.assign(core::kMaxSlots, {});
    for (uint32_t k = 0; k < b.outer; ++k) {
      slots[k] = fixed.at(id)[k].at;
      scopes.back()->facts.slots[k] = clamped(id, c, k);
    }
    loops::VarId sum = variable("zeros", type);
    emit(top(), {loops::Declare{sum, zero(type).expr}});
    std::vector<std::pair<uint32_t, loops::VarId>> over;
    const core::Access read = std::get<core::Access>(m[operand].node);
    for (ExprId at : read.at) {  // in the order of its cells in memory
      uint32_t s = core::slot_of(m, at);
      if (s < b.outer) continue;
      bool coordinate = s < m[id].rank();
      core::Range range = coordinate ? clamped(id, c, s) : r.over[s - r.first];
      Value lo = lower(range.lo), hi = lower(range.hi);
      over.push_back({s, variable("i", DType::I64)});
      Scope& scope = push(Scope::Kind::Loop);
      scope.lo = lo;
      scope.hi = hi;
      scope.facts.slots[s] = range;
      slots[s] = get(over.back().second, top());
    }
    Value zeros = op(Op::Mul, {lower(operand), zero(type)}, type);
    emit(top(), {loops::Fold{core::ReduceOp::Sum, sum, zeros.expr, {}, {}}});
    for (size_t i = over.size(); i-- > 0;) {
      slots[over[i].first] = {};
      auto s = pop();
      uint32_t lanes = i + 1 == over.size() ? plan::lanes_for(type) : 1;
      loops::Axis axis{loops::Axis::Kind::Reduce, lanes};
      emit(top(), {loops::Loop{over[i].second,
                               s->lo.expr,
                               s->hi.expr,
                               axis,
                               false,
                               {sum},
                               std::move(s->block),
                               {}}});
    }
    Value fine = compare(Op::Eq, get(sum, top()), zero(type));
    out = out.expr ? op(Op::And, {out, fine}, DType::Bool) : fine;
  }
  return out.expr ? bind(out, "finite") : out;
}

void Lowering::band(const plan::Band& b) {
  auto times = [&](Value x, Value y) { return op(Op::Mul, {x, y}, DType::I64); };
  auto over = [&](Value x, Value y) { return op(Op::Div, {x, y}, DType::I64); };
  auto rest = [&](Value x, Value y) { return op(Op::Mod, {x, y}, DType::I64); };
  auto enter = [&](const char* name, Value hi) {
    loops::VarId var = variable(name, DType::I64);
    Scope& s = push(Scope::Kind::Loop);
    s.lo = integer(0);
    s.hi = hi;
    return std::pair(var, get(var, top()));
  };
  auto leave = [&](loops::VarId var, loops::Axis::Kind kind) {
    auto s = pop();
    emit(top(),
         {loops::Loop{var, s->lo.expr, s->hi.expr, {kind, 1}, false, {}, std::move(s->block), {}}});
  };
  const FamilyId first = b.members[0];
  Value fronts = integer(1);
  std::vector<Value> extents;
  for (uint32_t k = 0; k < b.outer; ++k) {
    Value extent = op(Op::Max, {lower(m[first].coords[k].extent), integer(0)}, DType::I64);
    extents.push_back(bind(extent));
    fronts = times(fronts, extents.back());
  }
  Value rows = bind(lower(b.rows)), height = bind(lower(b.height));
  Value up = op(Op::Sub, {op(Op::Add, {rows, height}, DType::I64), integer(1)}, DType::I64);
  Value bands = bind(op(Op::Max, {over(up, height), integer(0)}, DType::I64), "bands");
  // Totals must be added up in order. Without totals, threads share the bands, too.
  const bool in_order = !b.totals.empty();

  auto [var, at] = enter("front", bind(in_order ? fronts : times(fronts, bands)));
  Value front = in_order ? at : bind(over(at, bands));
  Value number = in_order ? Value{} : bind(rest(at, bands));
  Fixed fixed;
  for (FamilyId id : b.members) fixed[id].resize(m[id].rank());
  for (uint32_t k = b.outer; k-- > 0;) {
    Value here = k == 0 ? front : bind(rest(front, extents[k]));
    for (FamilyId id : b.members) fixed[id][k] = {here, m[first].coords[k].extent};
    if (k > 0) front = bind(over(front, extents[k]));
  }
  for (const auto& [id, binder] : b.totals) clear_total(id, fixed);
  Value finite = all_finite(b, fixed);
  loops::VarId step;
  if (in_order) std::tie(step, number) = enter("band", bands);
  Value from = bind(times(number, height), "from");
  Value end = op(Op::Add, {from, height}, DType::I64);
  Value to = bind(op(Op::Min, {end, rows}, DType::I64), "to");
  band_now = {&b, from, to, finite};
  for (FamilyId id : b.members) {
    auto total = b.totals.find(id);
    if (total != b.totals.end() && total->second != ~0u) total_rows = total->second;
    members({id}, fixed);
    total_rows.reset();
  }
  band_now.reset();
  if (in_order) leave(step, loops::Axis::Kind::Seq);
  leave(var, loops::Axis::Kind::Parallel);
}

}  // namespace ein::lower
