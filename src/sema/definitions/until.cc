// `until`: recurrences that end. From the first step whose condition holds, every later step repeats
// it. In Core that is a family like any other, the flag,
//   x_done[t] = x_done[t - 1] || condition
// and every clause that runs the steps of the group becomes
//   x[t] = if x_done[t - 1] { x[t - 1] } else { … }
// so derivatives, printed source and the reference evaluator need nothing new. Native code leaves
// the loop when the flag is set (plan/ends.h).
#include <fmt/format.h>

#include <algorithm>

#include "sema/builtins.h"
#include "sema/definitions/definitions.h"
#include "sema/expressions/expressions.h"
#include "sema/names/names.h"
#include "sema/names/trees.h"
#include "sema/ranges/ranges.h"
#include "sema/state/definition_state.h"
#include "sema/state/name_state.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

// ---- which index runs the steps ----------------------------------------------------------------

bool in_group(const Definition& d, Symbol name) {
  auto it = d.scope->values.find(name);
  return it != d.scope->values.end() && it->second->group == d.group;
}

// How a clause moves along one of its left indices when it reads the group.
struct Moves {
  bool back = false, ahead = false;
};

void note_move(const Sema& s, TreeId at, Symbol index, Moves& moves) {
  if (path_name(s.ast, at) == index || !free_names(s.ast, at).count(index)) return;
  const auto* sum = std::get_if<ast::Binary>(&s[at].node);
  bool plus = sum && sum->op == ast::BinaryOp::Add;
  (plus ? moves.ahead : moves.back) = true;
}

std::vector<Moves> moves_of(const Sema& s, const Definition& d, const ast::Let& l,
                            const LeftSide& left) {
  std::vector<Moves> out(left.slots.size());
  auto look = [&](TreeId e) {
    const auto* read = std::get_if<ast::Index>(&s[e].node);
    Symbol base = read ? rooted_name(s.ast, read->base) : Symbol{};  // `s.w[t - 1]` reads `s` too
    if (!base || !in_group(d, base)) return;
    for (TreeId at : read->at) {
      for (size_t p = 0; p < out.size(); ++p) {
        if (left.slots[p].name) note_move(s, at, left.slots[p].name, out[p]);
      }
    }
  };
  for_each_tree(s.ast, l.value, look);
  for_each_tree(s.ast, l.until, look);
  return out;
}

// Whether another clause gives this coordinate a fixed address, as `let x[0, i] = …` does.
bool fixed_elsewhere(Sema& s, const Definition& d, ast::StmtId clause, size_t p) {
  return std::any_of(d.clauses.begin(), d.clauses.end(), [&](ast::StmtId id) {
    if (id == clause || !let_of(s.ast, id)) return false;
    const std::vector<LeftSlot>& slots = left_side(s, d, id).slots;
    return p < slots.size() && !slots[p].name;
  });
}

// The left slot that runs the steps: the one that goes one way where the group is read. Of several,
// the first that another clause fixes, or the first.
std::optional<size_t> step_slot(Sema& s, const Definition& d, ast::StmtId clause,
                                const std::vector<Moves>& moves) {
  const LeftSide& left = left_side(s, d, clause);
  std::vector<size_t> found, named;
  for (size_t p = 0; p < left.slots.size(); ++p) {
    if (!left.slots[p].name) continue;
    named.push_back(p);
    if (moves[p].back != moves[p].ahead) found.push_back(p);
  }
  if (found.empty() && named.size() == 1) return named[0];  // read through a function
  if (found.empty()) return std::nullopt;
  for (size_t p : found) {
    if (fixed_elsewhere(s, d, clause, p)) return p;
  }
  return found[0];
}

// The same in another clause of the group: by the name of the index, or as above. None: the clause
// does not run the steps, like `let r[0, i] = …`.
std::optional<size_t> step_slot(Sema& s, const Definition& d, ast::StmtId clause,
                                const Ending& ending) {
  if (clause == ending.clause) return ending.step;
  const ast::Let* l = let_of(s.ast, clause);
  if (!l) return std::nullopt;
  const LeftSide& left = left_side(s, d, clause);
  for (size_t p = 0; p < left.slots.size(); ++p) {
    if (left.slots[p].name == ending.name) return p;
  }
  std::vector<Moves> moves = moves_of(s, d, *l, left);
  bool any =
      std::any_of(moves.begin(), moves.end(), [](const Moves& m) { return m.back != m.ahead; });
  return any ? step_slot(s, d, clause, moves) : std::nullopt;
}

// ---- what the condition depends on -------------------------------------------------------------

const ast::Block* block_of(const Sema& s, const ast::Let& l) {
  return std::get_if<ast::Block>(&s[l.value].node);
}

std::set<Symbol> locals_of(const Sema& s, const ast::Let& l) {
  std::set<Symbol> out;
  if (const ast::Block* block = block_of(s, l)) {
    for (ast::StmtId id : block->stmts) {
      const ast::Let* local = let_of(s.ast, id);
      for (size_t i = 0; local && i < local->names.size(); ++i) {
        out.insert(local->names[i].symbol);
      }
    }
  }
  return out;
}

// The names that the condition reads, directly and through locals of the block before it.
std::set<Symbol> names_of_condition(const Sema& s, const ast::Let& l) {
  std::set<Symbol> names = free_names(s.ast, l.until);
  const ast::Block* block = block_of(s, l);
  for (bool more = block != nullptr; more;) {
    size_t before = names.size();
    for (ast::StmtId id : block->stmts) {
      const ast::Let* local = let_of(s.ast, id);
      if (!local) continue;
      bool read = std::any_of(local->names.begin(), local->names.end(),
                              [&](const ast::Name& n) { return names.count(n.symbol) > 0; });
      if (!read) continue;
      std::set<Symbol> inside = free_names(s.ast, local->value);
      for (const ast::Slot& slot : local->slots) inside.erase(slot.name.symbol);
      names.merge(inside);
    }
    more = names.size() > before;
  }
  return names;
}

// A pack among the left slots counts as named when the clause spells it.
bool spells_pack(const Sema& s, const ast::Let& l, Symbol pack) {
  bool found = false;
  auto look = [&](TreeId e) {
    const auto* ref = std::get_if<ast::PackRef>(&s[e].node);
    found |= ref && ref->name.symbol == pack;
  };
  for_each_tree(s.ast, l.until, look);
  if (block_of(s, l)) for_each_tree(s.ast, l.value, look);
  return found;
}

// ---- the flag ----------------------------------------------------------------------------------

CoreId step_before(Sema& s, const Ending& ending, CoreId t) {
  CoreId one = core::int_lit(s.m, 1);
  return ending.downward ? core::add(s.m, t, one) : core::sub(s.m, t, one);
}

// The condition under which a step of `range` has one before it that may have ended the steps;
// invalid when that is always so.
CoreId has_before(Sema& s, const Ending& ending, CoreId t, const core::Range& range) {
  if (ending.downward) return core::apply(s.m, core::Op::Lt, {step_before(s, ending, t), range.hi});
  core::Facts facts = facts_at_entry(s.m);
  if (core::proves_le(s.m, core::int_lit(s.m, 1), range.lo, facts)) return {};
  return core::apply(s.m, core::Op::Gt, {t, range.lo});
}

// A family of the group's own, which the program does not name.
Definition& own_family(Sema& s, Definition& owner, const char* what,
                       std::vector<core::Coord> coords, DType type) {
  Definition& d = owner.scope->definitions.emplace_back();
  std::string name = text(owner.name.symbol) + what;
  d.name = {owner.scope->root ? fresh_family_name(s.names, name) : intern(name), owner.name.span};
  d.scope = owner.scope;
  d.state = Definition::State::Done;
  make_family(s, d, std::move(coords), type, owner.carries);
  s.m.families[d.family].generated = true;
  return d;
}

// A cell of such a family: the slots around it, a step, the named coordinates.
CoreId own_cell(Sema& s, const Definition& own, CoreId step, const std::vector<CoreId>& named) {
  std::vector<CoreId> at;
  for (uint32_t slot : own.carries) at.push_back(core::slot(s.m, slot));
  at.push_back(step);
  at.insert(at.end(), named.begin(), named.end());
  return core::access(s.m, own.family, std::move(at));
}

// Slots of the family's own coordinates in the scope around it.
struct OwnSlots {
  CoreId step;
  std::vector<CoreId> named;
};
OwnSlots own_slots(Sema& s, const Ending& ending) {
  uint32_t first = ending.owner->scope->env.depth;
  OwnSlots out{core::slot(s.m, first), {}};
  for (size_t i = 0; i < ending.named.size(); ++i) {
    out.named.push_back(core::slot(s.m, first + 1 + static_cast<uint32_t>(i)));
  }
  return out;
}

// All cells of such a family: `body` in the clause's box, `beside` at its steps outside of it, and
// `apart` at all other steps.
std::vector<core::Clause> clauses_over(Sema& s, const Ending& ending, const Definition& own,
                                       CoreId body, CoreId beside, CoreId apart) {
  const core::Family& f = s.m[own.family];
  Box all;
  for (size_t i = own.carries.size(); i < f.coords.size(); ++i) {
    all.push_back({core::int_lit(s.m, 0), resolve(s, f.coords[i].extent)});
  }
  Box steps = all;
  steps[0] = ending.box[0];
  Span span = s.ast[ending.clause].span;
  std::vector<core::Clause> out{{ending.box, body, span}};
  for (Box& rest : subtract(s.m, steps, ending.box)) out.push_back({std::move(rest), beside, span});
  for (Box& rest : subtract(s.m, all, steps)) out.push_back({std::move(rest), apart, span});
  return out;
}

}  // namespace

void reject_until(Sema& s, const Definition& d) {
  for (ast::StmtId id : d.clauses) {
    const ast::Let* l = let_of(s.ast, id);
    if (!l || !l->until || !s.warned.insert({s[l->until].span.begin, s[l->until].span.end}).second)
      continue;
    auto& e = s.diags.error(Code::E0408, fmt::format("{} is not a recurrence, so it cannot end",
                                                     quoted(d.name.symbol)));
    e.primary(s[l->until].span, "there are no steps that this could end");
    e.label(d.name.span, "no clause reads another step of it");
    e.help(
        fmt::format("a recurrence reads its own earlier steps: `let {0}[t in 1..100] = … {0}[t - "
                    "1] … until …`",
                    text(d.name.symbol)));
  }
}

void find_ending(Sema& s, const std::vector<Definition*>& group) {
  Definition* owner = nullptr;
  ast::StmtId clause;
  for (Definition* d : group) {
    for (ast::StmtId id : d->clauses) {
      const ast::Let* l = let_of(s.ast, id);
      if (!l || !l->until || id == clause) continue;
      if (!owner) {
        owner = d;
        clause = id;
        continue;
      }
      if (!s.warned.insert({s[l->until].span.begin, s[l->until].span.end}).second) continue;
      s.diags.error(Code::E0408, "a recurrence has one `until`, which all its families share")
          .primary(s[l->until].span, "a second condition")
          .label(s[let_of(s.ast, clause)->until].span, "the first one")
          .help("write one condition, joined by `&&` or `||`");
    }
  }
  if (!owner) return;
  const ast::Let& l = *let_of(s.ast, clause);
  const LeftSide& left = left_side(s, *owner, clause);
  if (left.bad) return;
  Span span = s[l.until].span;
  std::vector<Moves> moves = moves_of(s, *owner, l, left);
  auto step = step_slot(s, *owner, clause, moves);
  if (!step) {
    s.diags
        .error(Code::E0408, fmt::format("it is not clear which steps of {} this ends",
                                        quoted(owner->name.symbol)))
        .primary(span, "")
        .label(owner->name.span, "no index on the left goes one way where earlier cells are read")
        .help("`until` ends steps that read earlier ones, as in `x[t - 1]`");
    return;
  }
  const LeftSlot& slot = left.slots[*step];
  if (!slot.slot->range) {
    s.diags
        .error(Code::E0408,
               fmt::format("the steps of {} have no bound", quoted(owner->name.symbol)))
        .primary(slot.slot->span, "how many steps at most?")
        .label(span, "this ends them earlier, but the extents are known before the program runs")
        .help(fmt::format("give the index a range: `{} in 1..1000`", text(slot.name)));
    return;
  }
  std::set<Symbol> names = names_of_condition(s, l), locals = locals_of(s, l);
  bool of_step = names.count(slot.name) > 0 ||
                 std::any_of(names.begin(), names.end(),
                             [&](Symbol n) { return locals.count(n) > 0 || in_group(*owner, n); });
  if (!of_step) {
    s.diags.error(Code::E0408, "this condition is the same at every step")
        .primary(span, fmt::format("it reads neither {} nor a local of its step",
                                   quoted(owner->name.symbol)))
        .label(owner->name.span, "the recurrence that it would end")
        .help(fmt::format("compare what the step computes: `until abs({0}[{1}] - {0}[{1} - 1]) < "
                          "1e-6`",
                          text(owner->name.symbol), text(slot.name)));
    return;
  }
  Ending& ending = s.definitions.endings.emplace_back();
  ending.owner = owner;
  ending.clause = clause;
  ending.step = *step;
  ending.name = slot.name;
  ending.downward = moves[*step].ahead && !moves[*step].back;
  for (size_t p = 0; p < left.slots.size(); ++p) {
    const LeftSlot& other = left.slots[p];
    if (p == *step || !other.name) continue;
    bool pack = other.slot->kind == ast::Slot::Kind::Pack;
    if (pack ? spells_pack(s, l, other.slot->name.symbol) : names.count(other.name) > 0) {
      ending.named.push_back(p);
    }
  }
  for (Definition* d : group) d->ending = &ending;
}

void make_flag(Sema& s, Ending& ending) {
  // The flag of an array of records goes with its first leaf.
  if (!ending.owner->leaves.empty()) ending.owner = ending.owner->leaves[0];
  Definition& owner = *ending.owner;
  if (!owner.family || ending.flag) return;  // an error was reported
  const std::vector<core::Coord> all = s.m[owner.family].coords;
  std::vector<core::Coord> coords{all[owner.carries.size() + ending.step]};
  for (size_t p : ending.named) coords.push_back(all[owner.carries.size() + p]);
  ending.flag = &own_family(s, owner, "_done", std::move(coords), DType::Bool);
}

void note_end(Sema& s, Env& env, const Definition& d, ast::StmtId stmt, const LeftSide& left,
              ClauseOut& out) {
  if (!d.ending || !d.ending->flag || !reads_group(s, d, stmt)) return;
  const Ending& ending = *d.ending;
  auto step = step_slot(s, d, stmt, ending);
  if (!step) return;
  uint32_t first = env.depth - static_cast<uint32_t>(out.box.size());
  auto own = [&](size_t p) { return core::slot(s.m, first + static_cast<uint32_t>(p)); };
  const LeftSide& theirs = left_side(s, *ending.owner, ending.clause);
  // A clause without one of the named coordinates goes on until all of its cells have ended.
  core::Reduce all{core::ReduceOp::All, env.depth, {}, {}, {}, {}, {}};
  std::vector<CoreId> named;
  for (size_t i = 0; i < ending.named.size(); ++i) {
    Symbol name = theirs.slots[ending.named[i]].name;
    size_t p = stmt == ending.clause ? ending.named[i] : 0;
    while (p < left.slots.size() && left.slots[p].name != name) ++p;
    if (p < left.slots.size()) {
      named.push_back(own(p));
      continue;
    }
    const core::Family& flag = s.m[ending.flag->family];
    named.push_back(core::slot(s.m, env.depth + static_cast<uint32_t>(all.over.size())));
    all.over.push_back(
        {core::int_lit(s.m, 0), flag.coords[ending.flag->carries.size() + 1 + i].extent});
    all.names.push_back(name);
  }
  CoreId t = own(*step);
  all.body = own_cell(s, *ending.flag, step_before(s, ending, t), named);
  out.ended = core::both(s.m, has_before(s, ending, t, out.box[*step]),
                         all.over.empty() ? all.body : core::reduce(s.m, all));
  out.ended_depth = env.depth;
  out.step = *step;
  env.conds.push_back(core::negate(s.m, out.ended));
}

bool elaborate_until(Sema& s, Env& env, const Definition& d, TreeId until, ClauseOut& out) {
  if (!d.ending || !d.ending->flag) return !s.diags.has_errors();
  // An index that only the condition uses may still take over a coordinate of the value.
  std::vector<bool> used;
  for (const Left& l : out.left) used.push_back(l.index && l.index->used);
  Value v = condition(s, env, until);
  for (size_t i = 0; i < out.left.size(); ++i) {
    if (out.left[i].index) out.left[i].index->used = used[i];
  }
  if (v.poison()) return false;
  if (!v.scalar()) {
    s.diags.error(Code::E0408, "this condition has coordinates " + show_coords(s, v.coords))
        .primary(s[until].span, "one `bool` for each cell")
        .label(d.name.span, "the recurrence that it ends")
        .help("say whether all cells must satisfy it, `all[i](…)`, or only one, `any[i](…)`");
    return false;
  }
  out.until = v.body;
  out.siblings.push_back({out.box, v.body, s[until].span});
  return true;
}

void repeat_when_ended(Sema& s, const Definition& d, ClauseOut& out) {
  if (!out.ended) return;
  uint32_t first = d.scope->env.depth;
  CoreId ended =
      core::substitute(s.m, out.ended, std::vector<CoreId>(out.ended_depth), out.body.depth);
  std::vector<CoreId> at;
  for (uint32_t slot : d.carries) at.push_back(core::slot(s.m, slot));
  for (size_t p = 0; p < out.box.size(); ++p) {
    CoreId i = core::slot(s.m, first + static_cast<uint32_t>(p));
    at.push_back(p == out.step ? step_before(s, *d.ending, i) : i);
  }
  CoreId before = core::access(s.m, d.family, std::move(at));
  out.body.body = core::apply(s.m, core::Op::Select, {ended, before, out.body.body});
  if (out.gate) out.gate = core::apply(s.m, core::Op::Or, {ended, out.gate});
}

bool finish_flag(Sema& s, const Definition& d, const std::vector<core::Coord>& coords) {
  if (!d.ending || d.ending->owner != &d || !d.ending->flag) return true;
  Ending& ending = *d.ending;
  auto it = std::find(d.clauses.begin(), d.clauses.end(), ending.clause);
  const ClauseOut& out = *d.outs[static_cast<size_t>(it - d.clauses.begin())];
  Definition& flag = *ending.flag;
  uint32_t first = d.scope->env.depth;
  std::vector<CoreId> with(first + out.left.size());
  uint64_t known = (uint64_t{1} << first) - 1;
  auto place = [&](size_t from, size_t to) {
    with[first + from] = core::slot(s.m, first + static_cast<uint32_t>(to));
    known |= uint64_t{1} << (first + from);
    ending.box.push_back(out.box[from]);
    s.m.families[flag.family].coords[flag.carries.size() + to] = coords[from];
  };
  place(ending.step, 0);
  for (size_t i = 0; i < ending.named.size(); ++i) place(ending.named[i], i + 1);
  if (s.m[out.until].free & ~known) {
    unsupported(s, s[let_of(s.ast, ending.clause)->until].span,
                "an `until` that reads an index through a function value",
                "write the index in the condition");
    return false;
  }
  OwnSlots own = own_slots(s, ending);
  CoreId before = own_cell(s, flag, step_before(s, ending, own.step), own.named);
  before = core::both(s.m, has_before(s, ending, own.step, ending.box[0]), before);
  CoreId now = core::substitute(s.m, out.until, with,
                                first + 1 + static_cast<uint32_t>(ending.named.size()));
  CoreId body = core::apply(s.m, core::Op::Or, {before, now});
  // Beside the clause's cells there is nothing that could go on.
  std::vector<core::Clause> clauses =
      clauses_over(s, ending, flag, body, core::bool_lit(s.m, true), core::bool_lit(s.m, false));
  place_clauses(s, flag, std::move(clauses), DType::Bool);
  return true;
}

// ---- ran(x), last(x) ---------------------------------------------------------------------------

namespace {

// The family that counts the steps that ran.
Definition& counter_of(Sema& s, Ending& ending) {
  if (ending.counter) return *ending.counter;
  Definition& flag = *ending.flag;
  std::vector<core::Coord> coords = s.m[flag.family].coords;
  coords.erase(coords.begin(), coords.begin() + static_cast<ptrdiff_t>(flag.carries.size()));
  Definition& counter = own_family(s, *ending.owner, "_ran", std::move(coords), DType::I32);
  OwnSlots own = own_slots(s, ending);
  CoreId before = step_before(s, ending, own.step);
  CoreId count = own_cell(s, counter, before, own.named);
  CoreId one = core::int_lit(s.m, 1, DType::I32), none = core::int_lit(s.m, 0, DType::I32);
  CoreId body =
      core::apply(s.m, core::Op::Select,
                  {own_cell(s, flag, before, own.named), count, core::add(s.m, count, one)});
  if (CoreId cond = has_before(s, ending, own.step, ending.box[0])) {
    body = core::apply(s.m, core::Op::Select, {cond, body, one});
  }
  place_clauses(s, counter, clauses_over(s, ending, counter, body, none, none), DType::I32);
  // It counts along with the steps, so that nothing has to keep all of them for it.
  if (counter.carries.empty()) {
    s.m.locksteps.push_back({{{flag.family, 0}, {counter.family, 0}}, ending.downward});
  }
  ending.counter = &counter;
  return counter;
}

// The definition that the only argument names.
Definition* named_definition(Sema& s, Env& env, TreeId e) {
  Symbol name = path_name(s.ast, e);
  Definition* d = name && !find_index(env, name) ? find_definition(env, name) : nullptr;
  if (d) define(s, *d);
  return d;
}

bool takes_one(Sema& s, const Builtin& b, const ast::Call& call, Span span) {
  if (call.args.size() == 1) return true;
  s.diags
      .error(Code::E0205,
             fmt::format("`{}` takes one argument, not {}", b.spelling, call.args.size()))
      .primary(span, "");
  return false;
}

// `v` at one address of coordinate p.
Value at_address(Sema& s, const Env& env, const Value& v, size_t p, CoreId address, Span span) {
  Value out = v;
  std::vector<CoreId> at;
  uint32_t next = env.depth;
  for (size_t i = 0; i < v.coords.size(); ++i) {
    at.push_back(i == p ? address : core::slot(s.m, next++));
  }
  out.body = cell(s.m, v, at, next);
  out.coords.erase(out.coords.begin() + static_cast<ptrdiff_t>(p));
  out.depth = env.depth;
  out.span = span;
  return out;
}

bool being_defined(Sema& s, const Definition& d, const Builtin& b, Span span) {
  if (d.state == Definition::State::Done || d.state == Definition::State::Bad) return false;
  s.diags
      .error(Code::E0203, fmt::format("`{0}({1})` is used while {2} is being computed", b.spelling,
                                      text(d.name.symbol), quoted(d.name.symbol)))
      .primary(span, "known only after the last step")
      .label(d.name.span, "the recurrence")
      .help("use it outside of the recurrence");
  return true;
}

}  // namespace

Value elaborate_ran(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span) {
  if (!takes_one(s, b, call, span)) return {};
  Definition* d = named_definition(s, env, call.args[0]);
  if (d && d->state == Definition::State::Bad) return {};
  if (!d || !d->ending || !d->ending->flag) {
    Value v = d ? Value{} : elaborate(s, env, call.args[0]);
    if (!d && v.poison()) return {};
    auto& e = s.diags.error(Code::E0408, "`ran` needs the name of a recurrence with `until`");
    e.primary(s[call.args[0]].span, d ? "no clause of it has `until`" : "not such a name");
    if (d) e.label(d->name.span, "defined here");
    if (d) e.help("without `until` all steps run");
    return {};
  }
  if (being_defined(s, *d, b, span)) return {};
  Ending& ending = *d->ending;
  if (ending.owner->state == Definition::State::Bad) return {};
  Definition& counter = counter_of(s, ending);
  Value all = read_family(s.m, env, counter.family, counter.carries, span);
  CoreId last =
      ending.downward ? ending.box[0].lo : core::sub(s.m, ending.box[0].hi, core::int_lit(s.m, 1));
  return at_address(s, env, all, 0, last, span);
}

Value elaborate_last(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span) {
  if (!takes_one(s, b, call, span)) return {};
  Definition* d = named_definition(s, env, call.args[0]);
  if (d && being_defined(s, *d, b, span)) return {};
  Value whole = elaborate(s, env, call.args[0]);
  size_t step = 0;
  bool downward = false;
  if (d && d->ending && (d->family || !d->leaves.empty())) {
    downward = d->ending->downward;
    for (ast::StmtId id : d->clauses) {
      auto p = reads_group(s, *d, id) ? step_slot(s, *d, id, *d->ending) : std::nullopt;
      if (p) step = *p;
    }
  }
  return map_leaves(whole, [&](const Value& leaf, const std::string&) {
    Value v = as_data(s, env, leaf);
    if (v.poison()) return v;
    if (v.scalar()) {
      s.diags.error(Code::E0502, "a scalar has no last step")
          .primary(s[call.args[0]].span, "this is " + show_value(s, v));
      return Value{};
    }
    CoreId end = core::sub(s.m, v.coords[step].extent, core::int_lit(s.m, 1));
    return at_address(s, env, v, step, downward ? core::int_lit(s.m, 0) : end, span);
  });
}

}  // namespace ein::sema
