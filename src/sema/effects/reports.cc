#include "sema/effects/reports.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/groups.h"
#include "core/rewrite.h"
#include "sema/names/names.h"
#include "sema/ranges/ranges.h"
#include "sema/state/definition_state.h"
#include "sema/state/report.h"
#include "sema/state/values.h"

namespace ein::sema {
namespace {

using core::DType;
using core::Op;
using core::ReduceOp;

// A coordinate that a recurrence runs along.
struct Step {
  FamilyId family;
  uint32_t position = 0;
  bool downward = false;
};

// Which slots of a clause are steps: a coordinate of a recurrence, and what carries it into the
// blocks and functions of a step.
class Steps {
 public:
  explicit Steps(Sema& s) : s_(s) { note(core::schedule(s.m, {}).steps); }

  const Step* of(FamilyId family, uint32_t slot) const {
    if (const Step* own = find(family, slot)) return own;
    const Definitions& d = s_.definitions;
    if (auto it = d.watched.find(family); it != d.watched.end()) {
      const std::vector<uint32_t>& carries = it->second.carries;
      return slot < carries.size() ? at(it->second.site, carries[slot]) : nullptr;
    }
    if (auto it = d.owner.find(family); it != d.owner.end()) {
      const Definition& own = *it->second;
      return slot < own.carries.size() ? at(own.scope->env.site, own.carries[slot]) : nullptr;
    }
    // An argument of a function: it has the slots around the call by their names.
    auto made = d.made_at.find(family);
    if (made == d.made_at.end() || made->second.empty()) return nullptr;
    const Site* site = made->second[0];
    for (uint32_t n = 0; n < site->slots.size(); ++n) {
      Symbol name = site->slots[n].name;
      if (name && name == s_.m[family].coords[slot].name) return at(site, n);
    }
    return nullptr;
  }

 private:
  void note(const std::vector<core::Step>& steps) {
    for (const core::Step& step : steps) {
      const auto* q = std::get_if<core::Sequence>(&step);
      if (!q) continue;
      for (const auto& [family, position] : q->members) {
        steps_[{family, position}] = {family, position, q->downward};
      }
      note(q->body);
    }
  }
  const Step* find(FamilyId family, size_t position) const {
    auto it = steps_.find({family, static_cast<uint32_t>(position)});
    return it == steps_.end() ? nullptr : &it->second;
  }
  // Of a slot in the clause of a site: its own, or one of a clause around it.
  const Step* at(const Site* site, uint32_t slot) const {
    while (site && site->definition) {
      const Definition& d = *site->definition;
      if (slot < d.scope->env.depth) {
        site = d.scope->env.site;
        continue;
      }
      size_t own = slot - d.scope->env.depth;
      for (const Definition* part : d.leaves) {
        if (const Step* step = find(part->family, part->carries.size() + own)) return step;
      }
      return d.family ? find(d.family, d.carries.size() + own) : nullptr;
    }
    return nullptr;
  }

  Sema& s_;
  std::map<std::pair<FamilyId, uint32_t>, Step> steps_;
};

// Who uses a value: families that keep their names, or are shown, and read it.
class Users {
 public:
  explicit Users(Sema& s) : s_(s) {
    for (uint32_t i = 0; i < s.m.families.size(); ++i) {
      core::for_each_body(s.m, FamilyId(i), [&](CoreId body) {
        core::for_each_node(s.m, body, [&](CoreId e) {
          if (const auto* a = core::get_if<core::Access>(s.m, e)) read(a->family, i);
          if (const auto* r = core::get_if<core::Request>(s.m, e)) read(r->num, i), read(r->den, i);
        });
      });
    }
    for (const core::Effect& e : s.m.effects) {
      shown_.insert(e.cond);
      for (const core::Piece& p : e.pieces) shown_.insert(p.value);
    }
  }

  // No list: the report does not depend on any. An empty one: there is none.
  std::optional<std::vector<FamilyId>> of(FamilyId family) const {
    auto watched = s_.definitions.watched.find(family);
    std::vector<FamilyId> todo = {family};
    if (watched != s_.definitions.watched.end()) todo = at(watched->second.site);
    if (todo.empty()) return std::nullopt;
    std::set<FamilyId> seen(todo.begin(), todo.end());
    std::vector<FamilyId> out;
    for (size_t i = 0; i < todo.size(); ++i) {
      if (!s_.m[todo[i]].generated || shown_.contains(todo[i])) {
        out.push_back(todo[i]);
        continue;
      }
      auto readers = readers_.find(todo[i]);
      if (readers == readers_.end()) continue;
      for (FamilyId reader : readers->second) {
        if (seen.insert(reader).second) todo.push_back(reader);
      }
    }
    return out;
  }

 private:
  void read(FamilyId family, uint32_t reader) { readers_[family].insert(FamilyId(reader)); }
  // What the clause around a place defines; nothing for a statement of the top level.
  static std::vector<FamilyId> at(const Site* site) {
    for (; site && site->definition; site = site->definition->scope->env.site) {
      const Definition& d = *site->definition;
      std::vector<FamilyId> out;
      if (d.family) out.push_back(d.family);
      for (const Definition* part : d.leaves) {
        if (part->family) out.push_back(part->family);
      }
      if (!out.empty()) return out;
    }
    return {};
  }

  Sema& s_;
  std::map<FamilyId, std::set<FamilyId>> readers_;
  std::set<FamilyId> shown_;
};

// The cells that one line is about, renumbered: slots 0 … are the steps, then those reduced.
struct Cells {
  std::vector<Step> steps;
  std::vector<core::Coord> coords;  // of the steps
  Box box;                          // of the steps
  std::vector<core::Range> over;
  std::vector<Symbol> names;
  CoreId value, cond;  // `cond`: which cells there are; invalid: all

  auto rank() const { return static_cast<uint32_t>(coords.size()); }
};

uint64_t needed_slots(const core::Module& m, const Marked& found) {
  uint64_t needed = m[found.value].free | (found.cond ? m[found.cond].free : 0);
  for (size_t k = found.binders.size(); k-- > 0;) {
    if (!((needed >> (found.box.size() + k)) & 1)) continue;
    needed |= m[found.binders[k].range.lo].free | m[found.binders[k].range.hi].free;
  }
  return needed;
}

Cells cells_of(Sema& s, const Marked& found, const Steps& steps) {
  Cells out;
  const core::Family& f = s.m[found.family];
  auto rank = static_cast<uint32_t>(found.box.size());
  auto slots = rank + static_cast<uint32_t>(found.binders.size());
  uint64_t needed = needed_slots(s.m, found);
  std::vector<CoreId> with(slots);
  std::vector<uint32_t> rest;
  for (uint32_t n = 0; n < slots; ++n) {
    if (!((needed >> n) & 1)) continue;
    const Step* step = n < rank ? steps.of(found.family, n) : nullptr;
    if (!step) {
      rest.push_back(n);
      continue;
    }
    with[n] = core::slot(s.m, out.rank());
    out.steps.push_back(*step);
    out.coords.push_back(
        {f.coords[n].name ? f.coords[n].name : intern("step"), f.coords[n].extent});
    out.box.push_back(found.box[n]);
  }
  uint32_t next = out.rank();
  for (uint32_t n : rest) {
    core::Range r = n < rank ? found.box[n] : found.binders[n - rank].range;
    out.over.push_back(
        {core::substitute(s.m, r.lo, with, next), core::substitute(s.m, r.hi, with, next)});
    out.names.push_back(n < rank ? f.coords[n].name : found.binders[n - rank].name);
    with[n] = core::slot(s.m, next++);
  }
  out.value = core::substitute(s.m, found.value, with, next);
  if (found.cond) out.cond = core::substitute(s.m, found.cond, with, next);
  return out;
}

// Makes the families and the line of one report.
class Line {
 public:
  Line(Sema& s, const Dbg& dbg, Cells cells) : s_(s), m_(s.m), dbg_(dbg), c_(std::move(cells)) {}

  core::Effect effect() {
    core::Effect out;
    out.error = true;
    out.span = dbg_.span;
    hold_value();
    CoreId on = c_.over.empty() ? c_.cond : CoreId{};
    if (!c_.over.empty()) {
      cells_ = add("cells", DType::I64, reduce(ReduceOp::Sum, number(1), c_.cond));
      if (c_.cond) on = more(cells_);
    }
    bool some = on || !c_.coords.empty();  // it may print no line, or several
    if (some) {
      FamilyId gate = add("on", DType::Bool, on ? on : core::bool_lit(m_, true));
      open(gate, c_.rank());
      out.end.clear();
    }
    say(fmt::format("{}: dbg({})", place(), dbg_.text));
    for (uint32_t k = 0; k < c_.rank(); ++k) {
      say(fmt::format("{}{} = ", k == 0 ? " at " : ", ", text(c_.coords[k].name)));
      show(add("step", DType::I64, core::slot(m_, k)));
    }
    say(": ");
    if (c_.over.empty()) {
      show(add("value", type(), there(c_.value)));
    } else if (type() == DType::Bool) {
      say_cells();
      show(add("true", DType::I64,
               reduce(ReduceOp::Sum, number(1), core::both(m_, c_.cond, c_.value))));
      say(" true");
    } else {
      numbers();
    }
    if (some) {
      say("\n");
      close();
    }
    out.pieces = std::move(pieces_);
    lock();
    return out;
  }

 private:
  DType type() const { return m_[c_.value].type; }
  CoreId number(int64_t n) { return core::int_lit(m_, n); }
  CoreId more(FamilyId count) { return core::apply(m_, Op::Gt, {read(count), number(0)}); }

  std::string place() const {
    if (!s_.program.sources) return "program";
    LineCol at = s_.program.sources->position(dbg_.span.file, dbg_.span.begin);
    return fmt::format("{}:{}", s_.program.sources->name(dbg_.span.file), at.line);
  }

  // A value where there is one, and zero elsewhere.
  CoreId there(CoreId value) {
    if (!c_.cond) return value;
    return core::apply(m_, Op::Select, {c_.cond, value, zero(m_, m_[value].type)});
  }

  // A family over the steps. Other steps have zeros.
  FamilyId add(const std::string& name, DType type, CoreId body) {
    if (dbg_.every > 1 && c_.rank() > 0) {
      CoreId rest = core::apply(m_, Op::Mod, {core::slot(m_, c_.rank() - 1), number(dbg_.every)});
      CoreId now = core::apply(m_, Op::Eq, {rest, number(0)});
      body = core::apply(m_, Op::Select, {now, body, zero(m_, type)});
    }
    return add_over(name, type, c_.coords, c_.box, body);
  }
  FamilyId add_over(const std::string& name, DType type, const std::vector<core::Coord>& coords,
                    const Box& box, CoreId body) {
    core::Family f;
    f.name = fresh_family_name(s_.names, "dbg_" + name);
    f.dtype = type;
    f.generated = true;
    f.coords = coords;
    f.span = dbg_.span;
    Box all;
    for (const core::Coord& c : coords) all.push_back({number(0), c.extent});
    f.clauses.push_back({box, body, dbg_.span});
    for (Box& rest : subtract(m_, all, box)) {
      f.clauses.push_back({std::move(rest), zero(m_, type), dbg_.span});
    }
    made_.push_back(m_.families.add(std::move(f)));
    return made_.back();
  }
  CoreId read(FamilyId family) {
    std::vector<CoreId> at;
    for (uint32_t k = 0; k < m_[family].rank(); ++k) at.push_back(core::slot(m_, k));
    return core::access(m_, family, std::move(at));
  }
  CoreId reduce(ReduceOp op, CoreId body, CoreId gate) {
    return reduce_over(op, c_.over, body, gate);
  }
  CoreId reduce_over(ReduceOp op, const std::vector<core::Range>& over, CoreId body, CoreId gate) {
    core::Reduce r;
    r.op = op;
    r.first = c_.rank();
    r.over = over;
    r.names = c_.names;
    r.gate = gate;
    r.body = body;
    return core::reduce(m_, std::move(r), dbg_.span);
  }

  // A value that takes work gets a family, which the statistics read.
  void hold_value() {
    bool plain = core::get_if<core::Access>(m_, c_.value) || c_.over.empty();
    for (const core::Range& r : c_.over) plain |= !closed(m_, r.lo) || !closed(m_, r.hi);
    if (plain) return;
    std::vector<core::Coord> coords = c_.coords;
    std::vector<core::Coord> inner;
    Box box = c_.box;
    for (size_t k = 0; k < c_.over.size(); ++k) {
      inner.push_back({c_.names[k] ? c_.names[k] : intern("i"), c_.over[k].hi});
      box.push_back(c_.over[k]);
    }
    core::add_coords(coords, inner);
    c_.value = read(add_over("value", type(), coords, box, there(c_.value)));
  }

  void say(std::string words) { pieces_.push_back({std::move(words), {}, {}}); }
  void show(FamilyId family, const std::string& format = {}) {
    pieces_.push_back({{}, family, format});
  }
  void open(FamilyId gate, uint32_t rank) {
    pieces_.push_back({{}, gate, {}, core::Piece::Join::Open, rank});
  }
  void close() { pieces_.push_back({{}, {}, {}, core::Piece::Join::Close}); }
  template <class F>
  void where(const std::string& name, CoreId cond, const F& inside) {
    open(add(name, DType::Bool, cond), 0);
    inside();
    close();
  }

  void say_cells() {
    std::vector<std::string> names;
    for (Symbol name : c_.names) names.push_back(name ? text(name) : "_");
    show(cells_);
    say(fmt::format(" cells [{}], ", fmt::join(names, ", ")));
  }

  void numbers() {
    CoreId fine;
    FamilyId bad;
    CoreId counted = read(cells_);
    if (is_float(type())) {
      CoreId same = core::sub(m_, c_.value, c_.value);
      fine = core::apply(m_, Op::Eq, {same, zero(m_, type())});
      CoreId not_fine = core::both(m_, c_.cond, core::negate(m_, fine));
      bad = add("bad", DType::I64, reduce(ReduceOp::Sum, number(1), not_fine));
      counted = core::sub(m_, counted, read(bad));
    }
    CoreId gate = core::both(m_, c_.cond, fine);
    say_cells();
    CoreId some = core::apply(m_, Op::Gt, {counted, number(0)});
    auto of_some = [&](CoreId v) {
      return core::apply(m_, Op::Select, {some, v, zero(m_, m_[v].type)});
    };
    std::string format = is_float(type()) ? ".6g" : "";
    where("some", some, [&] {
      show(add("low", type(), of_some(reduce(ReduceOp::Min, c_.value, gate))), format);
      say("..");
      show(add("high", type(), of_some(reduce(ReduceOp::Max, c_.value, gate))), format);
      CoreId sum = reduce(ReduceOp::Sum, core::cast(m_, c_.value, DType::F64), gate);
      CoreId cells = core::cast(m_, counted, DType::F64);
      say(", mean ");
      show(add("mean", DType::F64, of_some(core::apply(m_, Op::Div, {sum, cells}))), ".6g");
    });
    where("none", core::apply(m_, Op::Eq, {counted, number(0)}),
          [&] { say(is_float(type()) ? "none finite" : "none"); });
    if (bad)
      where("any", more(bad),
            [&] { say_first(bad, core::both(m_, c_.cond, core::negate(m_, fine))); });
  }

  // The first cell that is not finite: along one coordinate after the other.
  void say_first(FamilyId bad, CoreId gate) {
    say(", ");
    show(bad);
    say(" not finite: the first, at ");
    std::vector<core::Range> over = c_.over;
    for (uint32_t k = 0; k < over.size(); ++k) {
      CoreId least = reduce_over(ReduceOp::Min, over, core::slot(m_, c_.rank() + k), gate);
      CoreId found = core::apply(m_, Op::Select, {more(bad), least, number(0)});
      FamilyId at = add("at", DType::I64, found);
      say(fmt::format("{}{} = ", k == 0 ? "" : ", ", c_.names[k] ? text(c_.names[k]) : "_"));
      show(at);
      over[k] = {read(at), core::add(m_, read(at), number(1))};
    }
    say(", is ");
    CoreId value = reduce_over(ReduceOp::Max, over, c_.value, gate);
    show(add("first", type(), core::apply(m_, Op::Select, {more(bad), value, zero(m_, type())})));
  }

  // The statistics run along with the recurrence, so that it need not keep its steps for them.
  void lock() {
    if (c_.steps.empty()) return;
    core::Lockstep lock{{{c_.steps[0].family, c_.steps[0].position}}, c_.steps[0].downward};
    for (FamilyId f : made_) lock.members.push_back({f, 0});
    m_.locksteps.push_back(std::move(lock));
    if (core::schedule(m_, {}).cycle) m_.locksteps.pop_back();
  }

  Sema& s_;
  core::Module& m_;
  const Dbg& dbg_;
  Cells c_;
  FamilyId cells_;
  std::vector<FamilyId> made_;
  std::vector<core::Piece> pieces_;
};

void warn_unused(Sema& s, const Dbg& dbg) {
  if (!s.warned.insert({dbg.span.begin, dbg.span.end}).second) return;
  s.diags.warning(Code::W0201, "this `dbg` reports nothing")
      .primary(dbg.span, "its value is not used")
      .help(
          "`dbg(e)` reports when its value is computed; as a statement, `dbg(e);`, it always does");
}

}  // namespace

void make_reports(Sema& s, std::vector<Marked> found) {
  if (s.definitions.dbgs.empty()) return;
  const Steps steps(s);
  const Users users(s);
  std::stable_sort(found.begin(), found.end(), [&](const Marked& a, const Marked& b) {
    const Span &x = s.definitions.dbgs[a.dbg].span, &y = s.definitions.dbgs[b.dbg].span;
    return std::tie(x.file.v, x.begin, a.dbg) < std::tie(y.file.v, y.begin, b.dbg);
  });
  std::set<std::pair<uint32_t, uint32_t>> places;  // a place may be elaborated more than once
  for (const Marked& one : found) {
    const Span& at = s.definitions.dbgs[one.dbg].span;
    places.insert({at.file.v, at.begin});
  }
  for (const Dbg& dbg : s.definitions.dbgs) {
    if (!places.contains({dbg.span.file.v, dbg.span.begin})) warn_unused(s, dbg);
  }
  std::vector<core::Effect> reports;
  // What stands in several clauses, or was elaborated more than once, is reported once.
  std::map<std::tuple<uint32_t, uint32_t, std::string, CoreId, CoreId>, size_t> seen;
  for (const Marked& one : found) {
    const Dbg& dbg = s.definitions.dbgs[one.dbg];
    auto used_by = users.of(one.family);
    if (used_by && used_by->empty()) {
      warn_unused(s, dbg);
      continue;
    }
    Cells cells = cells_of(s, one, steps);
    auto [it, fresh] = seen.try_emplace(
        {dbg.span.file.v, dbg.span.begin, dbg.text, cells.value, cells.cond}, reports.size());
    if (fresh) reports.push_back(Line(s, dbg, std::move(cells)).effect());
    core::Effect& report = reports[it->second];
    if (used_by) report.users.insert(report.users.end(), used_by->begin(), used_by->end());
    // One that is always made is used by what it shows.
    for (size_t k = 0; !used_by && k < report.pieces.size(); ++k) {
      if (report.pieces[k].value) report.users.push_back(report.pieces[k].value);
    }
  }
  s.m.effects.insert(s.m.effects.begin(), std::make_move_iterator(reports.begin()),
                     std::make_move_iterator(reports.end()));
}

}  // namespace ein::sema
