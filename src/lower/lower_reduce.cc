// Reductions: an accumulator, loops over the binders, a fold.
#include <algorithm>

#include "base/check.h"
#include "core/bound.h"
#include "core/rewrite.h"
#include "core/total.h"
#include "lower/lowering.h"

namespace ein::lower {

using core::ExprId;
using core::Op;
using core::ReduceOp;

namespace {

// The parts of a gate, in order. The first `movable` of them, those before the first part that
// could stop the program, may be tested earlier than written.
struct Parts {
  std::vector<ExprId> all;
  size_t movable = 0;
};

Parts parts_of(core::Module& m, const core::Reduce& r, const core::Facts& outside,
               core::Overflow overflow) {
  Parts out;
  core::conjuncts(m, r.gate, out.all);
  core::Facts facts = outside;
  core::enter(m, r, facts);
  while (out.movable < out.all.size() && core::total(m, out.all[out.movable], facts, overflow)) {
    core::assume(m, out.all[out.movable], facts);
    ++out.movable;
  }
  return out;
}

}  // namespace

void Lowering::binders(const core::Reduce& r, uint32_t lanes,
                       const std::vector<loops::VarId>& folds,
                       const std::function<void(ExprId)>& body) {
  Parts parts = parts_of(m, r, scopes.back()->facts, plan.overflow);
  std::vector<loops::VarId> vars;
  for (uint32_t i = 0; i < r.over.size(); ++i) {
    uint32_t slot = r.first + i;
    core::Range range = r.over[i];
    std::vector<ExprId> absorbed;
    for (size_t k = 0; k < parts.movable; ++k) {
      auto bound = core::bound_on(m, parts.all[k], slot);
      // The bound is then evaluated once whenever the loop runs, even if the loop has no cells.
      if (!bound || !core::total(m, parts.all[k], scopes.back()->facts, plan.overflow)) continue;
      if (bound->lo) range.lo = core::apply(m, Op::Max, {range.lo, bound->lo});
      if (bound->hi) range.hi = core::apply(m, Op::Min, {range.hi, bound->hi});
      absorbed.push_back(parts.all[k]);
    }
    for (ExprId cond : absorbed) {
      parts.movable -= 1;
      std::erase(parts.all, cond);
    }
    Value lo = lower(range.lo), hi = lower(range.hi);
    if (total_rows == slot) {  // the sum is over the rows of the band
      lo = op(Op::Max, {lo, band_now->from}, DType::I64);
      hi = op(Op::Min, {hi, band_now->to}, DType::I64);
    }
    std::string name = r.names[i] ? text(r.names[i]) : "k";
    vars.push_back(variable(name, DType::I64));
    Scope& s = push(Scope::Kind::Loop);
    s.lo = lo;
    s.hi = hi;
    s.facts.slots.resize(slot);
    s.facts.slots.push_back(range);
    for (ExprId cond : absorbed) core::assume(m, cond, s.facts);
    slots[slot] = get(vars.back(), top());
  }
  body(core::all_of(m, parts.all));
  for (size_t i = r.over.size(); i-- > 0;) {
    slots[r.first + i] = {};
    auto s = pop();
    loops::Axis axis{loops::Axis::Kind::Reduce, i + 1 == r.over.size() ? lanes : 1};
    if (folds.empty()) axis = {};
    emit(top(),
         {loops::Loop{vars[i], s->lo.expr, s->hi.expr, axis, false, folds, std::move(s->block)}});
  }
}

Value Lowering::reduce(ExprId e, const core::Reduce& original) {
  core::Reduce r = original;
  // If a routed sum is not a whole clause, its routes become conditions.
  for (const core::Route& route : r.routes) {
    ExprId cond = core::apply(m, Op::Eq, {route.to, core::slot(m, route.slot)});
    r.gate = core::both(m, r.gate, cond);
  }
  r.routes.clear();
  bool arg = r.op == ReduceOp::ArgMax || r.op == ReduceOp::ArgMin;
  DType type = m[r.body].type;
  // Sums and products of f16 and bf16 are computed in f32 and rounded at the end.
  bool half = type == DType::F16 || type == DType::BF16;
  bool longer = half && (r.op == ReduceOp::Sum || r.op == ReduceOp::Prod);
  DType kept = longer ? DType::F32 : type;
  bool adds = r.op == ReduceOp::Sum || r.op == ReduceOp::Prod;
  bool checked = plan.overflow == core::Overflow::Stops && adds && is_int(type);
  return at_scope(home(e), [&] {
    const bool stops = plan.stops.contains(e);
    auto width = plan.reduce_widths.find(e);
    uint32_t lanes = width == plan.reduce_widths.end() ? 1 : width->second;
    EIN_CHECK(!stops || lanes == 1, "a reduction that stops early is planned in lanes");
    loops::VarId acc = variable(core::name_of(r.op), kept), where;
    ExprId start = arg ? core::number(m, 0, type) : core::identity(m, r.op, type);
    ExprId first = longer ? core::identity(m, r.op, kept) : start;
    emit(top(), {loops::Declare{acc, lower(first).expr}});
    std::vector<loops::VarId> folds{acc};
    if (arg) {
      where = variable("at", DType::I32);
      emit(top(), {loops::Declare{where, integer(-1, DType::I32).expr}});
      folds.push_back(where);
    }
    // To a fold, −1 means that nothing has won yet. If the range may start below 0, indices are
    // counted from its start.
    bool below = arg && !core::proves_nonnegative(m, core::affine_form(m, r.over[0].lo),
                                                  scopes.back()->facts);
    Value from = below ? lower(r.over[0].lo) : Value{};
    binders(r, lanes, folds, [&](ExprId gate) {
      std::vector<loops::ExprId> conds;
      auto enter = [&](Value cond, ExprId fact) {
        core::assume(m, fact, push(Scope::Kind::Branch).facts);
        conds.push_back(cond.expr);
      };
      if (stops) {
        Value now = get(acc, top());
        enter(r.op == ReduceOp::All ? now : op(Op::Not, {now}, DType::Bool), {});
      }
      bool select = gate && !arg && cheap(r.body, scopes.back()->facts);
      if (gate && !select) enter(lower(gate), gate);
      Value v = lower(select ? core::apply(m, Op::Select, {gate, r.body, start}) : r.body);
      if (longer) v = op(Op::Cast, {v}, kept);
      if (checked) {
        std::vector<Value> operands{get(acc, top()), v};
        fits(r.op == ReduceOp::Sum ? Op::Add : Op::Mul, type, operands, statement);
        v = operands[1];
      }
      loops::Fold fold{r.op, acc, v.expr, {}, {}};
      if (arg) {
        fold.arg = where;
        Value place = slots[r.first];
        if (below) place = op(Op::Sub, {place, from}, DType::I64);
        fold.index = op(Op::Cast, {place}, DType::I32).expr;
      }
      emit(top(), {fold});
      while (!conds.empty()) {
        auto s = pop();
        emit(top(), {loops::If{conds.back(), std::move(s->block), {}}});
        conds.pop_back();
      }
    });
    Value out = get(arg ? where : acc, top());
    if (below) {
      Value none = op(Op::Lt, {out, integer(0, DType::I32)}, DType::Bool);
      Value there = op(Op::Add, {out, op(Op::Cast, {from}, DType::I32)}, DType::I32);
      out = op(Op::Select, {none, out, there}, DType::I32);
    }
    return longer ? op(Op::Cast, {out}, type) : out;
  });
}

}  // namespace ein::lower
