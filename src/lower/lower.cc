#include "lower/lower.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/match.h"
#include "core/rewrite.h"
#include "lower/lowering.h"

namespace ein::lower {

using core::ExprId;
using core::FamilyId;
using core::Op;

namespace {

bool is_literal(const core::Module& m, ExprId e) {
  const core::Node& n = m[e].node;
  return std::holds_alternative<core::FloatLit>(n) || std::holds_alternative<core::IntLit>(n) ||
         std::holds_alternative<core::BoolLit>(n);
}

loops::Buffer::Space space_of(const core::Module& m, const core::Family& f, bool wanted) {
  switch (f.kind) {
    case core::Family::Kind::Input: return loops::Buffer::Space::Input;
    case core::Family::Kind::Table:
      if (std::all_of(f.cells.begin(), f.cells.end(), [&](ExprId e) { return is_literal(m, e); })) {
        return loops::Buffer::Space::Constant;
      }
      break;
    case core::Family::Kind::Defined: break;
  }
  return wanted ? loops::Buffer::Space::Output : loops::Buffer::Space::Temp;
}

// Rounds up to an odd number of cache lines: rows that are a power of two apart would all fall into
// the same few places of the cache.
ExprId padded(core::Module& m, ExprId extent, DType type) {
  const int64_t line = 64 / static_cast<int64_t>(size_of(type));
  ExprId lines = core::apply(
      m, Op::Div, {core::add(m, extent, core::int_lit(m, line - 1)), core::int_lit(m, line)});
  ExprId odd = core::apply(m, Op::BitOr, {lines, core::int_lit(m, 1)});
  return core::mul(m, odd, core::int_lit(m, line));
}

std::string name_of_step(const core::Module& m, const core::Step& s) {
  return match(
      s, [&](const core::Compute& c) { return text(m[c.family].name); },
      [&](const core::Sequence& q) { return text(m[q.members[0].family].name) + "_steps"; });
}

}  // namespace

loops::Program lower(plan::Plan& plan) {
  loops::Program p;
  p.tuning = plan.tuning;
  p.resumable = plan.resumable;
  Lowering l{plan, plan.module, p, {}, {}, {}, {}, {}};
  for (uint32_t i = 0; i < plan.module.families.size(); ++i) {
    FamilyId id(i);
    auto it = plan.families.find(id);
    if (it == plan.families.end()) continue;
    const core::Family& f = plan.module[id];
    std::vector<ExprId> dims;
    for (const core::Coord& c : f.coords) dims.push_back(c.extent);
    if (auto ring = plan.rings.find(id); ring != plan.rings.end()) {
      dims[ring->second.position] = core::int_lit(plan.module, ring->second.kept);
    }
    if (auto stream = plan.streams.find(id); stream != plan.streams.end()) {
      dims[0] = core::int_lit(plan.module, stream->second.window);
    }
    auto space = space_of(plan.module, f, it->second.wanted);
    if (it->second.storage == plan::Storage::Register) continue;
    if (it->second.storage == plan::Storage::Row) {
      uint32_t shared = plan.groups[plan.group_of.at(id)].shared;
      for (uint32_t k = 0; k < shared; ++k) dims[k] = core::int_lit(plan.module, 1);
      space = loops::Buffer::Space::Row;
    }
    if (it->second.storage == plan::Storage::Band) {
      const plan::Band& band = plan.bands[plan.band_of.at(id)];
      for (uint32_t k = 0; k < band.outer; ++k) dims[k] = core::int_lit(plan.module, 1);
      if (band.is_row(id)) {
        dims[band.outer] = core::apply(plan.module, Op::Min, {band.rows, band.height});
      }
      space = loops::Buffer::Space::Row;
    }
    if (const auto& order = it->second.order; !order.empty()) {
      std::vector<ExprId> own = dims;
      for (size_t k = 0; k < order.size(); ++k) dims[k] = own[order[k]];
      dims.back() = padded(plan.module, dims.back(), f.dtype);
    }
    std::vector<std::optional<int64_t>> known;
    for (ExprId d : dims) {
      auto n = core::const_int(plan.module, d);
      known.push_back(n ? std::optional(std::max<int64_t>(0, *n)) : n);
    }
    l.buffers[id] = p.buffers.add({text(f.name), id, f.dtype, std::move(dims), space, known});
  }
  for (const core::Step& s : plan.schedule.steps) {
    l.step_number = static_cast<uint32_t>(&s - plan.schedule.steps.data());
    Scope& kernel = l.push(Scope::Kind::Kernel);
    kernel.facts.entry = core::entry_facts(plan.module);
    l.steps({s}, {});
    loops::Block body = std::move(l.pop()->block);
    if (!body.empty()) p.kernels.push_back({name_of_step(plan.module, s), std::move(body)});
  }
  // Functions may call further ones, so the list grows.
  for (size_t i = 0; i < l.functions.size(); ++i) l.function(l.functions[i]);
  return p;
}

void Lowering::steps(const std::vector<core::Step>& list, const Fixed& fixed) {
  for (const core::Step& s : list) {
    match(
        s,
        [&](const core::Compute& c) {
          auto in = plan.band_of.find(c.family);
          if (in == plan.band_of.end()) return members({c.family}, fixed);
          const plan::Band& b = plan.bands[in->second];
          if (b.members[0] == c.family) band(b);  // the first member lowers the whole band
        },
        [&](const core::Sequence& q) {
          bool by_diagonals = !in_sequence && plan.by_diagonals.contains(q.members[0].family);
          bool by_rows = !in_sequence && plan.by_rows.contains(q.members[0].family);
          if (by_rows) return rows(q);
          auto many = plan.ensembles.find(q.members[0].family);
          if (!in_sequence && many != plan.ensembles.end()) return ensemble(q, many->second);
          by_diagonals ? diagonals(q) : sequence(q, fixed);
        });
  }
}

// One family after the other; the first member of a group lowers the whole group.
void Lowering::members(const std::vector<FamilyId>& list, const Fixed& fixed) {
  for (FamilyId id : list) {
    auto in = plan.group_of.find(id);
    if (in == plan.group_of.end()) {
      compute(id, fixed);
    } else if (const plan::Group& g = plan.groups[in->second]; g.members[0] == id) {
      group(g, fixed);
    }
  }
}

void Lowering::group(const plan::Group& g, const Fixed& fixed) {
  Fixed inner = fixed;
  // For each member, its coordinates without a loop so far.
  std::vector<std::vector<uint32_t>> free;
  for (FamilyId id : g.members) {
    auto& at = inner[id];
    at.resize(m[id].rank());
    free.emplace_back();
    for (uint32_t k = 0; k < at.size(); ++k) {
      if (!at[k].at.expr) free.back().push_back(k);
    }
  }
  auto was_running = running;
  running.insert(g.members.begin(), g.members.end());
  std::vector<loops::VarId> vars;
  const uint32_t shared = g.shared - (band_now ? band_now->plan->outer : 0);
  for (uint32_t i = 0; i < shared; ++i) {
    const core::Coord coord = m[g.members[0]].coords[free[0][i]];
    core::Range all{core::int_lit(m, 0), coord.extent};
    auto [lo, hi] = ends_in_band(g.members[0], free[0][i], all);
    for (size_t j = 1; j < g.members.size(); ++j) {  // up to the longest of them
      Value end = ends_in_band(g.members[j], free[j][i], all).second;
      if (end.expr != hi.expr) hi = op(Op::Max, {hi, end}, DType::I64);
    }
    vars.push_back(variable(coord.name ? text(coord.name) : "i", DType::I64));
    Scope& s = push(Scope::Kind::Loop);
    s.lo = lo;
    s.hi = hi;
    for (size_t j = 0; j < g.members.size(); ++j) {
      inner[g.members[j]][free[j][i]] = {get(vars.back(), top()), coord.extent};
    }
  }
  for (FamilyId id : g.members) compute(id, inner);
  for (uint32_t i = shared; i-- > 0;) {
    auto s = pop();
    loops::Axis axis{loops::Axis::Kind::Parallel, 1};
    if (i + 1 == shared && g.width > 1) axis = {loops::Axis::Kind::Vector, g.width};
    emit(top(),
         {loops::Loop{vars[i], s->lo.expr, s->hi.expr, axis, false, {}, std::move(s->block), {}}});
  }
  for (FamilyId id : g.members) staged.erase(id);
  running = std::move(was_running);
}

void Lowering::compute(FamilyId id, const Fixed& fixed) {
  const core::Family& f = m[id];
  if (f.kind == core::Family::Kind::Input) return;
  if (f.kind == core::Family::Kind::Table) return table(id);
  std::vector<Running> at(f.rank());
  if (auto it = fixed.find(id); it != fixed.end()) at = it->second;
  for (size_t c = 0; c < f.clauses.size(); ++c) clause(id, c, at);
}

void Lowering::table(FamilyId id) {
  loops::BufferId buffer = buffers.at(id);
  if (p.buffers[buffer].space == loops::Buffer::Space::Constant) return;
  const core::Family f = m[id];
  slots.assign(core::kMaxSlots, {});
  statement = f.span;
  clause_depth = top();
  std::vector<int64_t> extents;
  for (const core::Coord& c : f.coords) {
    auto n = core::const_int(m, c.extent);
    EIN_CHECK(n, "an array literal has a symbolic extent");
    extents.push_back(*n);
  }
  for (size_t i = 0; i < f.cells.size(); ++i) {
    count_uses(f.cells[i]);
    Value v = lower(f.cells[i]);
    std::vector<loops::ExprId> at(extents.size());
    auto rest = static_cast<int64_t>(i);
    for (size_t k = extents.size(); k-- > 0;) {
      at[k] = integer(rest % extents[k]).expr;
      rest /= extents[k];
    }
    emit(top(), {loops::Store{buffer, at, v.expr}});
    std::vector<Value> place;
    for (loops::ExprId k : at) place.push_back({k, top()});
    if (traps(id)) trap_cell(id, bind(v), place);
  }
}

// The clause's range along k, cut to the family's extent unless it is proven to lie inside.
core::Range Lowering::clamped(FamilyId id, const core::Clause& c, uint32_t k) {
  core::Range r = c.box[k];
  ExprId zero = core::int_lit(m, 0), extent = m[id].coords[k].extent;
  const core::Facts& facts = scopes[0]->facts;
  if (!core::proves_le(m, zero, r.lo, facts)) r.lo = core::apply(m, Op::Max, {r.lo, zero});
  if (!core::proves_le(m, r.hi, extent, facts)) r.hi = core::apply(m, Op::Min, {r.hi, extent});
  return r;
}

// Whether the clause has cells at the place of the loops around. An invalid expression means
// always.
Value Lowering::inside(FamilyId id, const core::Clause& c, const std::vector<Running>& fixed) {
  Value cond;
  auto also = [&](Value v) { cond = cond.expr ? op(Op::And, {cond, v}, DType::Bool) : v; };
  for (uint32_t k = 0; k < fixed.size(); ++k) {
    if (!fixed[k].at.expr) continue;
    // The loop stays within the extent, unless it is the longer one of another member.
    bool within = fixed[k].count == m[id].coords[k].extent;
    core::Range r = within ? c.box[k] : clamped(id, c, k);
    if (const auto* least = core::get_if<core::Apply>(m, r.hi); least && least->op == Op::Min) {
      if (least->args[0] == fixed[k].count) {
        r.hi = least->args[1];
      } else if (least->args[1] == fixed[k].count) {
        r.hi = least->args[0];
      }
    }
    if (core::const_int(m, r.lo) != 0) also(compare(Op::Ge, fixed[k].at, lower(r.lo)));
    if (r.hi != fixed[k].count) also(compare(Op::Lt, fixed[k].at, lower(r.hi)));
  }
  return cond;
}

void Lowering::clause(FamilyId id, size_t number, const std::vector<Running>& fixed) {
  const core::Clause c = m[id].clauses[number];
  const plan::ClausePlan& how = plan.families.at(id).clauses[number];
  slots.assign(core::kMaxSlots, {});
  statement = c.span;
  Value cond = inside(id, c, fixed);
  Scope& guard = push(Scope::Kind::Guard);
  clause_depth = top();
  guard.facts.slots.assign(c.box.size(), {});
  std::vector<uint32_t> free, order;
  for (uint32_t k = 0; k < fixed.size(); ++k) {
    core::Range r = clamped(id, c, k);
    ExprId next = core::add(m, r.lo, core::int_lit(m, 1));
    bool runs = fixed[k].at.expr.valid();
    if (!runs) free.push_back(k);
    // A coordinate with one address needs no loop.
    if (runs || next == r.hi) {
      slots[k] = runs ? fixed[k].at : lower(r.lo);
      slots[k].depth = top();
      guard.facts.slots[k] = r;
    }
  }
  count_uses(c.body);
  for (uint32_t k : free) {
    if (!slots[k].expr && how.axes[k] != plan::AxisKind::Vector) order.push_back(k);
  }
  std::vector<loops::Axis> axes(order.size(), {loops::Axis::Kind::Parallel, 1});
  for (uint32_t k : free) {
    if (slots[k].expr || how.axes[k] != plan::AxisKind::Vector) continue;
    order.push_back(k);
    axes.push_back({loops::Axis::Kind::Vector, how.width});
  }
  Value cell;  // the only cell, if there are no loops
  auto cells = [&] {
    loops_over(id, c, order, axes, [&] {
      Value v = lower(c.body);
      if (order.empty()) cell = v = bind(v);
      store(id, v);
    });
  };
  if (how.scatters) {
    scatter(id, number, std::get<core::Reduce>(m[c.body].node), free);
  } else if (!how.contraction) {
    cells();
  } else if (!how.small_contraction) {
    contract(id, c, *how.contraction);
  } else {
    Value small = is_small(id, c, *how.contraction, *how.small_contraction);
    loops::If out{small.expr, {}, {}};
    push(Scope::Kind::Branch);
    cells();
    out.then = std::move(pop()->block);
    push(Scope::Kind::Branch);
    contract(id, c, *how.contraction);
    out.otherwise = std::move(pop()->block);
    emit(top(), {std::move(out)});
  }
  if (traps(id)) trap(id, c, free);
  loops::Block body = std::move(pop()->block);
  if (cond.expr) {
    emit(top(), {loops::If{cond.expr, std::move(body), {}}});
    return;
  }
  for (loops::Stmt& s : body) emit(top(), std::move(s));
  if (!cell.expr || !running.contains(id)) return;
  Cell& now = staged[id] = {{cell.expr, std::min(cell.depth, top())}, {}};
  for (const Running& r : fixed) now.at.push_back(r.at.expr);
}

void Lowering::loops_over(FamilyId id, const core::Clause& c, const std::vector<uint32_t>& coords,
                          const std::vector<loops::Axis>& axes, const std::function<void()>& body) {
  std::vector<loops::VarId> vars;
  for (uint32_t k : coords) {
    core::Range r = clamped(id, c, k);
    bool some = some_rows && some_rows->coordinate == k && running.contains(id);
    auto [lo, hi] =
        some ? std::pair(integer(0), integer(some_rows->count)) : ends_in_band(id, k, r);
    const core::Coord& coord = m[id].coords[k];
    vars.push_back(variable(coord.name ? text(coord.name) : "i", DType::I64));
    Scope& s = push(Scope::Kind::Loop);
    s.lo = lo;
    s.hi = hi;
    s.facts.slots[k] = r;
    slots[k] = get(vars.back(), top());
    if (some) slots[k] = bind(op(Op::Add, {some_rows->from, slots[k]}, DType::I64));
  }
  body();
  for (size_t i = coords.size(); i-- > 0;) {
    slots[coords[i]] = {};
    auto s = pop();
    emit(top(), {loops::Loop{
                    vars[i], s->lo.expr, s->hi.expr, axes[i], false, {}, std::move(s->block), {}}});
  }
}

void Lowering::store(FamilyId id, Value value) {
  if (plan.families.at(id).storage == plan::Storage::Register) return;
  std::vector<Value> at(slots.begin(), slots.begin() + m[id].rank());
  to_stored(id, at);
  if (band_now && band_now->plan->totals.contains(id)) {
    emit(top(), {loops::Update{buffers.at(id), exprs_of(at), value.expr}});
  } else {
    emit(top(), {loops::Store{buffers.at(id), exprs_of(at), value.expr}});
  }
}

void Lowering::to_window(ExprId access, FamilyId id, std::vector<Value>& at) {
  if (!plan.streams.contains(id)) return;
  auto row = plan.window_rows.find(access);
  EIN_CHECK(row != plan.window_rows.end(), "a row of a stream that is not in its window");
  Value in_window = lower(row->second);
  at[0] = {in_window.expr, std::max(in_window.depth, at[0].depth)};
}

bool Lowering::traps(FamilyId id) const {
  return plan.trap && id.v < plan.first_made && is_float(m[id].dtype);
}

void Lowering::trap(FamilyId id, const core::Clause& c, const std::vector<uint32_t>& free) {
  if (plan.families.at(id).storage == plan::Storage::Register) return;
  std::vector<uint32_t> open;
  for (uint32_t k : free) {
    if (!slots[k].expr) open.push_back(k);
  }
  std::vector<loops::Axis> axes(open.size(), {loops::Axis::Kind::Parallel, 1});
  loops_over(id, c, open, axes, [&] {
    std::vector<Value> at(slots.begin(), slots.begin() + m[id].rank()), stored = at;
    to_stored(id, stored);
    loops::ExprId load = make(loops::Load{buffers.at(id), exprs_of(stored)}, m[id].dtype);
    trap_cell(id, bind({load, top()}), at);
  });
}

// The values of the check: the address, then 0 for NaN, 1 for infinite and 2 for minus infinite.
void Lowering::trap_cell(FamilyId id, Value value, const std::vector<Value>& at) {
  Value none = zero(m[id].dtype);
  value.depth = top();
  Value fine = compare(Op::Eq, op(Op::Sub, {value, value}, m[id].dtype), none);
  Value above = op(Op::Select, {compare(Op::Gt, value, none), integer(1), integer(2)}, DType::I64);
  Value nan = compare(Op::Ne, value, value);
  std::vector<Value> values = at;
  values.push_back(op(Op::Select, {nan, integer(0), above}, DType::I64));
  loops::Site site{loops::Site::Kind::NotFinite, text(m[id].name), 0, statement};
  site.statement = statement;
  emit(top(), {loops::Check{fine.expr, p.sites.add(std::move(site)), exprs_of(values)}});
}

void Lowering::to_stored(FamilyId id, std::vector<Value>& at) {
  if (plan.families.at(id).storage == plan::Storage::Row) {
    uint32_t shared = plan.groups[plan.group_of.at(id)].shared;
    for (uint32_t k = 0; k < shared; ++k) at[k] = {integer(0).expr, at[k].depth};
  }
  if (plan.families.at(id).storage == plan::Storage::Band) {
    const plan::Band& b = *band_now->plan;
    for (uint32_t k = 0; k < b.outer; ++k) at[k] = {integer(0).expr, at[k].depth};
    Value& row = at[b.outer];
    bool first = row.expr == band_now->from.expr;
    if (b.is_row(id)) { row = first ? integer(0) : op(Op::Sub, {row, band_now->from}, DType::I64); }
  }
  if (auto ring = plan.rings.find(id); ring != plan.rings.end()) {
    Value& step = at[ring->second.position];
    int64_t kept = ring->second.kept;
    step = kept == 1 ? Value{integer(0).expr, step.depth}
                     : op(Op::Mod, {step, integer(kept)}, DType::I64);
  }
  const std::vector<uint32_t>& order = plan.families.at(id).order;
  if (order.empty()) return;
  std::vector<Value> own = at;
  for (size_t k = 0; k < order.size(); ++k) at[k] = own[order[k]];
}

// A routed sum: zeros, then one pass over the coordinates that are not routed and the binders,
// which adds each body to the address it is routed to. The additions to one address happen in the
// order of the binders, as in the reference.
void Lowering::scatter(FamilyId id, size_t number, const core::Reduce& original,
                       const std::vector<uint32_t>& free) {
  const core::Clause c = m[id].clauses[number];
  std::vector<uint32_t> open;
  for (uint32_t k : free) {
    if (!slots[k].expr) open.push_back(k);
  }
  std::vector<loops::Axis> parallel(open.size(), {loops::Axis::Kind::Parallel, 1});
  uint32_t lanes = plan.families.at(id).clauses[number].clear_width;
  bool contiguous = !open.empty() && open.back() + 1 == m[id].rank();
  if (contiguous && lanes > 1) parallel.back() = {loops::Axis::Kind::Vector, lanes};
  loops_over(id, c, open, parallel, [&] { store(id, zero(m[id].dtype)); });

  core::Reduce r = original;
  std::vector<core::Route> routes;
  for (const core::Route& route : r.routes) {
    if (std::find(open.begin(), open.end(), route.slot) != open.end()) {
      routes.push_back(route);
      std::erase(open, route.slot);
    } else {  // this coordinate is fixed here, so the route becomes a condition
      ExprId cond = core::apply(m, Op::Eq, {route.to, core::slot(m, route.slot)});
      r.gate = core::both(m, r.gate, cond);
    }
  }
  r.routes.clear();
  std::vector<loops::Axis> unrouted(open.size(), {loops::Axis::Kind::Parallel, 1});
  const plan::ClausePlan& how = plan.families.at(id).clauses[number];
  if (!open.empty() && how.axes[open.back()] == plan::AxisKind::Vector) {
    unrouted.back() = {loops::Axis::Kind::Vector, how.width};
  }
  loops_over(id, c, open, unrouted, [&] {
    binders(r, 1, {}, [&](ExprId gate) {
      std::vector<loops::ExprId> conds;
      auto enter = [&](Value cond) -> Scope& {
        Scope& s = push(Scope::Kind::Branch);
        conds.push_back(cond.expr);
        return s;
      };
      if (gate) core::assume(m, gate, enter(lower(gate)).facts);
      std::vector<Value> at(slots.begin(), slots.begin() + m[id].rank());
      for (const core::Route& route : routes) {
        core::Range box = clamped(id, c, route.slot);
        Value to = bind(lower(route.to), "to");
        at[route.slot] = to;
        enter(op(Op::And, {compare(Op::Ge, to, lower(box.lo)), compare(Op::Lt, to, lower(box.hi))},
                 DType::Bool));
      }
      Value v = lower(r.body);
      to_stored(id, at);
      emit(top(), {loops::Update{buffers.at(id), exprs_of(at), v.expr}});
      while (!conds.empty()) {
        auto s = pop();
        emit(top(), {loops::If{conds.back(), std::move(s->block), {}}});
        conds.pop_back();
      }
    });
  });
}

}  // namespace ein::lower
