// Recurrences: step by step, by diagonals, by rows, and by members.
#include <algorithm>
#include <utility>

#include "lower/lowering.h"

namespace ein::lower {

using core::ExprId;
using core::FamilyId;
using core::Op;

// How many steps the longest member has.
ExprId Lowering::count_of(const core::Sequence& q) {
  ExprId count;
  for (const auto& member : q.members) {
    ExprId extent = m[member.family].coords[member.position].extent;
    count = count ? core::apply(m, Op::Max, {count, extent}) : extent;
  }
  return count;
}

// Diagonal t has the cells (i, t − i). A table that is too narrow for diagonals runs row by row.
void Lowering::diagonals(const core::Sequence& q) {
  const auto& inner = std::get<core::Sequence>(q.body[0]);
  ExprId rows = count_of(q), columns = count_of(inner);
  Value wide = bind(op(Op::Min, {lower(rows), lower(columns)}, DType::I64));
  loops::If choice{compare(Op::Ge, wide, integer(plan.tuning.diagonal_cells)).expr, {}, {}};
  push(Scope::Kind::Branch);
  ExprId last = core::sub(m, core::add(m, rows, columns), core::int_lit(m, 1));
  Value lo = integer(0), hi = bind(lower(last));
  loops::VarId t = variable("t", DType::I64), i = variable("i", DType::I64);
  Scope& steps_scope = push(Scope::Kind::Loop);
  steps_scope.lo = lo;
  steps_scope.hi = hi;
  Value at = get(t, top());
  Value first =
      op(Op::Add, {op(Op::Sub, {at, lower(columns)}, DType::I64), integer(1)}, DType::I64);
  Value from = bind(op(Op::Max, {first, integer(0)}, DType::I64));
  Value end = op(Op::Add, {at, integer(1)}, DType::I64);
  Value to = bind(op(Op::Min, {end, lower(rows)}, DType::I64));
  Scope& cells = push(Scope::Kind::Loop);
  cells.lo = from;
  cells.hi = to;
  Value row = get(i, top());
  Value column = bind(op(Op::Sub, {at, row}, DType::I64), "j");
  auto was_running = running;
  Fixed fixed;
  uint32_t lanes = plan.by_diagonals.at(q.members[0].family);
  for (const auto& member : q.members) {
    running.insert(member.family);
    fixed[member.family].resize(2);
    fixed[member.family][member.position] = {row, rows};
  }
  for (const auto& member : inner.members) {
    fixed[member.family][member.position] = {column, columns};
  }
  in_sequence = true;
  steps(inner.body, fixed);
  for (FamilyId id : core::families_of(inner.body)) staged.erase(id);
  in_sequence = false;
  running = std::move(was_running);
  loops::Loop diagonal{i,     from.expr, to.expr, {loops::Axis::Kind::Vector, lanes},
                       false, {},        {},      {}};
  diagonal.body = std::move(pop()->block);
  emit(top(), {std::move(diagonal)});
  loops::Loop loop{t, lo.expr, hi.expr, {}, q.downward, {}, {}, {}};
  loops::Site site{loops::Site::Kind::Step, text(m[q.members[0].family].name),
                   q.members[0].position};
  site.step = step_number;
  site.by_diagonals = true;
  loop.poll = p.sites.add(std::move(site));
  loop.body = std::move(pop()->block);
  emit(top(), {std::move(loop)});
  choice.then = std::move(pop()->block);
  push(Scope::Kind::Branch);
  sequence(q, {});
  choice.otherwise = std::move(pop()->block);
  emit(top(), {std::move(choice)});
}

// A part is some neighbouring rows (plan::RowsPlan), or the rows left over at the end. Threads
// share the parts in pieces: between two pieces the caller may stop the run.
void Lowering::rows(const core::Sequence& q) {
  FamilyId first = q.members[0].family;
  const uint32_t last = m[first].rank() - 2;
  auto times = [&](Value a, Value b) { return op(Op::Mul, {a, b}, DType::I64); };
  auto over = [&](Value a, Value b) { return op(Op::Div, {a, b}, DType::I64); };
  auto rest = [&](Value a, Value b) { return op(Op::Mod, {a, b}, DType::I64); };
  auto plus = [&](Value a, Value b) { return op(Op::Add, {a, b}, DType::I64); };
  auto enter = [&](const std::string& name, Value lo, Value hi) {
    loops::VarId var = variable(name, DType::I64);
    Scope& s = push(Scope::Kind::Loop);
    s.lo = lo;
    s.hi = hi;
    return std::pair(var, get(var, top()));
  };
  auto leave = [&](loops::VarId var, loops::Axis axis, loops::SiteId poll) {
    auto s = pop();
    emit(top(),
         {loops::Loop{var, s->lo.expr, s->hi.expr, axis, false, {}, std::move(s->block), poll}});
  };
  const loops::Axis parallel{loops::Axis::Kind::Parallel, 1};

  std::vector<Value> extents;
  for (uint32_t k = 0; k <= last; ++k) {
    Value extent = lower(m[first].coords[k].extent);
    extents.push_back(bind(op(Op::Max, {extent, integer(0)}, DType::I64)));
  }
  const plan::RowsPlan& how = plan.by_rows.at(first);
  Value together = integer(how.together), one = integer(1);
  // How many parts of a table have all their rows.
  Value whole = bind(over(extents[last], together));
  Value few = integer(how.together - 1);
  Value per_table = bind(over(plus(extents[last], few), together));
  Value parts = per_table;
  for (uint32_t k = 0; k < last; ++k) parts = times(parts, extents[k]);
  parts = bind(parts);
  Value steps = op(Op::Max, {lower(count_of(q)), one}, DType::I64);
  Value piece = bind(plus(over(integer(how.steps), steps), integer(how.parts)));
  Value pieces = bind(over(plus(parts, op(Op::Sub, {piece, one}, DType::I64)), piece));

  auto [number, at_piece] = enter("piece", integer(0), pieces);
  Value begin = bind(times(at_piece, piece));
  Value end = bind(op(Op::Min, {plus(begin, piece), parts}, DType::I64));
  auto [part_var, at_part] = enter("part", begin, end);
  Fixed fixed;
  for (const auto& member : q.members) fixed[member.family].resize(last + 2);
  auto fix = [&](uint32_t k, Value at) {
    for (const auto& member : q.members) {
      fixed[member.family][k] = {at, m[first].coords[k].extent};
    }
  };
  Value within = at_part;  // its number within its table
  if (last > 0) {
    Value table = bind(over(at_part, per_table));
    within = bind(rest(at_part, per_table));
    for (uint32_t k = last; k-- > 0;) {
      fix(k, k == 0 ? table : bind(rest(table, extents[k])));
      if (k > 0) table = bind(over(table, extents[k]));
    }
  }
  // The caller does not watch the steps of a part.
  bool was_in_sequence = std::exchange(in_sequence, true);
  loops::If choice{compare(Op::Lt, within, whole).expr, {}, {}};
  push(Scope::Kind::Branch);
  some_rows = {last, bind(times(within, together)), how.together};
  sequence(q, fixed);
  some_rows.reset();
  choice.then = std::move(pop()->block);
  push(Scope::Kind::Branch);
  auto [row, at_row] = enter("row", bind(times(whole, together)), extents[last]);
  fix(last, at_row);
  sequence(q, fixed);
  leave(row, parallel, {});
  choice.otherwise = std::move(pop()->block);
  emit(top(), {std::move(choice)});
  in_sequence = was_in_sequence;
  leave(part_var, parallel, {});
  loops::Site site{loops::Site::Kind::Rows, text(m[first].name)};
  site.step = step_number;
  leave(number, {}, p.sites.add(std::move(site)));
}

// Threads share the members in pieces: between two pieces the caller may stop the run.
void Lowering::ensemble(const core::Sequence& q, const plan::EnsemblePlan& how) {
  const FamilyId first = q.members[0].family;
  auto plus = [&](Value a, Value b) { return op(Op::Add, {a, b}, DType::I64); };
  auto over = [&](Value a, Value b) { return op(Op::Div, {a, b}, DType::I64); };
  const core::Coord coord = m[first].coords[how.along.at(first)];
  Value count = bind(op(Op::Max, {lower(coord.extent), integer(0)}, DType::I64));
  Value steps = op(Op::Max, {lower(count_of(q)), integer(1)}, DType::I64);
  Value vectors = plus(over(integer(how.steps), steps), integer(how.parts));
  Value piece = bind(op(Op::Mul, {vectors, integer(how.width)}, DType::I64));
  Value last = op(Op::Sub, {plus(count, piece), integer(1)}, DType::I64);
  Value pieces = bind(over(last, piece));

  loops::VarId number = variable("piece", DType::I64);
  Scope& outer = push(Scope::Kind::Loop);
  outer.lo = integer(0);
  outer.hi = pieces;
  Value begin = bind(op(Op::Mul, {get(number, top()), piece}, DType::I64));
  Value end = bind(op(Op::Min, {plus(begin, piece), count}, DType::I64));
  loops::VarId var = variable(coord.name ? text(coord.name) : "i", DType::I64);
  Scope& inner = push(Scope::Kind::Loop);
  inner.lo = begin;
  inner.hi = end;
  Fixed fixed;
  for (const auto& [id, k] : how.along) {
    fixed[id].resize(m[id].rank());
    fixed[id][k] = {get(var, top()), m[id].coords[k].extent};
  }
  // The caller does not watch the steps of a member.
  bool was_in_sequence = std::exchange(in_sequence, true);
  sequence(q, fixed);
  in_sequence = was_in_sequence;
  auto members = pop();
  emit(top(), {loops::Loop{var,
                           members->lo.expr,
                           members->hi.expr,
                           {loops::Axis::Kind::Vector, how.width},
                           false,
                           {},
                           std::move(members->block),
                           {}}});
  loops::Site site{loops::Site::Kind::Rows, text(m[first].name)};
  site.step = step_number;
  auto all = pop();
  emit(top(), {loops::Loop{number,
                           all->lo.expr,
                           all->hi.expr,
                           {},
                           false,
                           {},
                           std::move(all->block),
                           p.sites.add(std::move(site))}});
}

void Lowering::sequence(const core::Sequence& q, const Fixed& fixed) {
  ExprId count = count_of(q);
  Value lo = integer(0), hi = lower(count);
  auto found = plan.ends.find({q.members[0].family, q.members[0].position});
  const plan::End* end = found == plan.ends.end() ? nullptr : &found->second;
  Ended ended;
  if (end) {
    ended = {variable("stop", DType::Bool), variable("last", DType::I64),
             variable("left", DType::I64)};
    Value all = q.downward ? lo : op(Op::Sub, {hi, integer(1)}, DType::I64);
    emit(top(), {loops::Declare{ended.stop, integer(0, DType::Bool).expr}});
    emit(top(), {loops::Declare{ended.last, bind(all).expr}});
    if (end->delay > 0) emit(top(), {loops::Declare{ended.left, integer(end->delay).expr}});
  }
  const core::Coord& named = m[q.members[0].family].coords[q.members[0].position];
  loops::VarId t = variable(named.name ? text(named.name) : "t", DType::I64);
  Scope& s = push(Scope::Kind::Loop);
  s.lo = lo;
  s.hi = hi;
  auto was_running = running;
  Fixed inner = fixed;
  for (const auto& member : q.members) {
    running.insert(member.family);
    auto& at = inner[member.family];
    at.resize(m[member.family].rank());
    at[member.position] = {get(t, top()), count};
  }
  bool outermost_one = !in_sequence;
  in_sequence = true;
  fetch(q, t);
  steps(q.body, inner);
  if (end) note_end(*end, inner, get(t, top()), ended);
  for (FamilyId id : core::families_of(q.body)) staged.erase(id);
  in_sequence = !outermost_one;
  loops::Loop loop{t, lo.expr, hi.expr, {}, q.downward, {}, {}, {}};
  if (end) loop.leave = make(loops::Get{ended.stop}, DType::Bool);
  if (outermost_one) {
    loops::Site site{loops::Site::Kind::Step, text(m[q.members[0].family].name),
                     q.members[0].position};
    site.step = step_number;
    loop.poll = p.sites.add(std::move(site));
  }
  running = std::move(was_running);
  loop.body = std::move(pop()->block);
  emit(top(), {std::move(loop)});
  if (end) fill_end(*end, q, fixed, ended);
}

// Moves the windows of the inputs that stream for this outermost Sequence.
void Lowering::fetch(const core::Sequence& q, loops::VarId t) {
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    FamilyId id(i);
    auto stream = plan.streams.find(id);
    if (stream == plan.streams.end() || !stream->second.first.contains(plan::key(q))) continue;
    ExprId first = stream->second.first.at(plan::key(q));
    const uint32_t around = top();
    push(Scope::Kind::Guard);  // in the clauses, slot 0 may be another coordinate
    slots.assign(core::kMaxSlots, {});
    slots[0] = get(t, top());
    count_uses(first);
    Value row = bind(lower(first), "row");
    loops::Block made = std::move(pop()->block);
    for (loops::Stmt& s : made) emit(around, std::move(s));
    loops::Site site{loops::Site::Kind::Fetch, text(m[id].name)};
    emit(around, {loops::Fetch{buffers.at(id), row.expr, p.sites.add(std::move(site))}});
  }
}

}  // namespace ein::lower
