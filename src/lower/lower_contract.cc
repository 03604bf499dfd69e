// Contractions: every index (batch, m, n or k) moves each operand by a fixed number of elements,
// which is read off the affine addresses.
#include "base/check.h"
#include "core/rewrite.h"
#include "lower/lowering.h"

namespace ein::lower {

using core::ExprId;

// Lowers a move between ranks. Its step is the step of a loop around: a coordinate of both
// families, or a fixed address of the one whose cells move.
void Lowering::move(core::FamilyId id, const plan::Contraction& x) {
  const core::Access read = std::get<core::Access>(m[x.a].node);
  const auto* cells = core::get_if<core::Reduce>(m, x.reduce);
  const uint32_t first = cells ? cells->first : core::kMaxSlots;
  loops::Site site{loops::Site::Kind::Move, text(m[id].name)};
  site.move.number = x.moved;
  site.move.from = read.family;
  Value step = integer(0);
  for (uint32_t k = 0; k < read.at.size(); ++k) {
    uint32_t slot = core::slot_of(m, read.at[k]);
    if (slot != ~0u && slot >= first) continue;  // the move takes all addresses of this coordinate
    EIN_CHECK(site.move.from_step == loops::Site::Moving::kNone,
              "a move within two loops of steps");
    site.move.from_step = k;
    if (slot != ~0u) site.move.to_step = slot;
    // Without a loop around, the move is done for every step.
    bool all = slot != ~0u && !slots[slot].expr;
    step = all ? integer(-1) : bind(lower(read.at[k]), "step");
  }
  loops::BufferId from = buffers.at(read.family);
  emit(top(), {loops::Fetch{buffers.at(id), step.expr, p.sites.add(std::move(site)), from}});
}

void Lowering::contract(core::FamilyId id, const core::Clause& c, const plan::Contraction& x) {
  if (x.moved >= 0) return move(id, x);
  const core::Reduce r = std::get<core::Reduce>(m[x.reduce].node);
  // For each coordinate of a family, how many elements lie between neighbouring cells.
  auto strides = [&](core::FamilyId family) {
    const std::vector<ExprId>& dims = p.buffers[buffers.at(family)].dims;
    std::vector<ExprId> out(dims.size());
    ExprId step = core::int_lit(m, 1);
    const std::vector<uint32_t>& order = plan.families.at(family).order;
    for (size_t k = dims.size(); k-- > 0;) {
      out[order.empty() ? k : order[k]] = step;
      step = core::mul(m, step, dims[k]);
    }
    return out;
  };
  auto range_of = [&](uint32_t slot) {
    return slot < r.first ? clamped(id, c, slot) : r.over[slot - r.first];
  };
  // How many elements an access moves when `slot` increases by one.
  auto step_of = [&](core::FamilyId family, const std::vector<ExprId>& at, uint32_t slot) {
    std::vector<ExprId> stride = strides(family);
    ExprId sum = core::int_lit(m, 0), here = core::slot(m, slot);
    for (size_t k = 0; k < at.size(); ++k) {
      int64_t coef = core::coefficient(core::affine_form(m, at[k]), here);
      sum = core::add(m, sum, core::mul(m, core::int_lit(m, coef), stride[k]));
    }
    return sum;
  };

  const core::Access a = std::get<core::Access>(m[x.a].node);
  const core::Access b = std::get<core::Access>(m[x.b].node);
  std::vector<ExprId> out_at = core::slots_from(m, 0, m[id].rank());

  loops::Contract out;
  out.type = m[id].dtype;
  out.operands = m[a.family].dtype;
  out.drops_subnormals = plan.operands == DType::BF16 && out.operands == DType::BF16;
  out.factor = x.factor;
  auto add_set = [&](const std::vector<uint32_t>& from, std::vector<loops::Contract::Index>& into) {
    for (uint32_t s : from) {
      loops::Contract::Index index;
      if (band_now) {
        auto [lo, hi] = ends_in_band(id, s, range_of(s));
        index.extent = bind(op(core::Op::Sub, {hi, lo}, DType::I64), "n").expr;
      } else {
        core::Range range = range_of(s);
        index.extent = bind(lower(core::sub(m, range.hi, range.lo)), "n").expr;
      }
      auto step = [&](core::FamilyId family, const std::vector<ExprId>& at) -> loops::ExprId {
        ExprId e = step_of(family, at, s);
        if (core::const_int(m, e) == 0) return {};
        return bind(lower(e), "step").expr;
      };
      index.a = step(a.family, a.at);
      index.b = step(b.family, b.at);
      index.out = step(id, out_at);
      into.push_back(index);
    }
  };
  add_set(x.batch, out.batch);
  add_set(x.m, out.m);
  add_set(x.n, out.n);
  add_set(x.k, out.k);
  // The addresses of the operands with every index at the start of its range.
  for (const auto* set : {&x.batch, &x.m, &x.n, &x.k}) {
    for (uint32_t s : *set) {
      Value lo = band_now ? ends_in_band(id, s, range_of(s)).first : lower(range_of(s).lo);
      slots[s] = bind(lo, "lo");
      slots[s].depth = top();  // values computed from it are valid in this scope only
    }
  }
  auto operand = [&](ExprId access, core::FamilyId family, const std::vector<ExprId>& at) {
    std::vector<Value> start;
    for (ExprId e : at) start.push_back(bind(lower(e), "i"));
    to_window(access, family, start);
    to_stored(family, start);
    for (Value& v : start) v = bind(v, "i");
    return loops::Contract::Operand{buffers.at(family), exprs_of(start)};
  };
  out.a = operand(x.a, a.family, a.at);
  out.b = operand(x.b, b.family, b.at);
  out.out = operand({}, id, out_at);
  emit(top(), {std::move(out)});
  for (const auto* set : {&x.batch, &x.m, &x.n, &x.k}) {
    for (uint32_t s : *set) slots[s] = {};
  }
}

Value Lowering::is_small(core::FamilyId id, const core::Clause& c, const plan::Contraction& x,
                         int64_t most) {
  const core::Reduce r = std::get<core::Reduce>(m[x.reduce].node);
  ExprId work = core::int_lit(m, 1);
  for (const auto* set : {&x.batch, &x.m, &x.n, &x.k}) {
    for (uint32_t s : *set) {
      core::Range range = s < r.first ? clamped(id, c, s) : r.over[s - r.first];
      work = core::mul(m, work, core::sub(m, range.hi, range.lo));
    }
  }
  return bind(lower(core::apply(m, core::Op::Le, {work, core::int_lit(m, most)})));
}

}  // namespace ein::lower
