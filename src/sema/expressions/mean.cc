// `mean`: a sum divided by the number of cells it visits. Made and recognised here alone.
#include "sema/expressions/expressions.h"
#include "sema/ranges/ranges.h"
#include "sema/state/state.h"

namespace ein::sema {
namespace {

// How many cells a written range has: none when it ends before it begins. (An inferred range that
// does is an error.)
CoreId cells_in(Sema& s, const Env& env, const core::Range& range) {
  CoreId cells = core::sub(s.m, range.hi, range.lo);
  core::Facts facts = facts_at_entry(s.m);
  for (const SiteSlot& slot : env.site->slots) facts.slots.push_back(resolve(s, slot.range));
  for (const SiteSlot& slot : env.binders) facts.slots.push_back(resolve(s, slot.range));
  if (core::proves_le(s.m, resolve(s, range.lo), resolve(s, range.hi), facts)) return cells;
  return core::apply(s.m, core::Op::Max, {cells, core::int_lit(s.m, 0)});
}

}  // namespace

CoreId mean_of(Sema& s, const Env& env, CoreId sum, const core::Reduce& cells,
               const std::vector<bool>& written, Span span) {
  // A product of extents, or a sum of ones where ranges depend on each other or cells are gated:
  // here, or later by the gate of a call around this.
  bool box = !cells.gate && !env.gated;
  CoreId count = core::int_lit(s.m, 1);
  for (size_t i = 0; i < cells.over.size(); ++i) {
    const core::Range& range = cells.over[i];
    uint64_t free = s.m[range.lo].free | s.m[range.hi].free;
    box &= (free >> cells.first) == 0;
    count = core::mul(s.m, count,
                      written[i] ? cells_in(s, env, range) : core::sub(s.m, range.hi, range.lo));
  }
  if (!box) {
    core::Reduce ones = cells;
    ones.body = core::int_lit(s.m, 1);
    count = core::reduce(s.m, std::move(ones));
  }
  return quotient(s.m, sum, count, s.m[sum].type, span);
}

CoreId quotient(core::Module& m, CoreId sum, CoreId count, DType type, Span span) {
  return core::apply(m, core::Op::Div, {sum, core::cast(m, count, type)}, span);
}

Mean as_mean(const core::Module& m, const core::Expr& e) {
  const auto* div = std::get_if<core::Apply>(&e.node);
  if (!div || div->op != core::Op::Div) return {};
  const auto* sum = core::get_if<core::Reduce>(m, div->args[0]);
  const auto* cast = core::get_if<core::Apply>(m, div->args[1]);
  if (!sum || !cast || cast->op != core::Op::Cast) return {};
  const auto* ones = core::get_if<core::Reduce>(m, cast->args[0]);
  if (!ones || ones->first != sum->first || ones->over.size() != sum->over.size() ||
      ones->gate != sum->gate || core::const_int(m, ones->body) != 1) {
    return {};
  }
  for (size_t i = 0; i < ones->over.size(); ++i) {
    const core::Range &a = ones->over[i], &b = sum->over[i];
    if (a.lo != b.lo || a.hi != b.hi) return {};
  }
  return {sum, ones};
}

}  // namespace ein::sema
