// Range inference: the largest box in which every access is in bounds (decisions.md, 9).
//
// Every unwritten range is a pair of placeholders. All accesses of the clause, and of the locals
// lifted out of it, are collected with what holds around them. A bare index takes the extent it
// stands on; every other slot gives two needs, form ≥ 0, which narrow at most one index each:
//   - a slot with one index narrows that index, or, when the index has a written range that depends
//     on another one (`sum[k in 0..=i](x[k])`), the index its range depends on;
//   - a slot with several narrows the one without a bare slot and without a written range.
// A need that a gate or condition already guarantees narrows nothing. Reads of the family itself
// never bound a left index. Reads of other families of its recurrence do so only when nothing else
// gives the range, and clauses that read no member give the extent (decisions.md, 14). This is
// repeated until nothing changes, because narrowing one range may widen another.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "sema/ranges/problem.h"
#include "sema/ranges/ranges.h"
#include "sema/state/definition_state.h"
#include "sema/state/on_demand.h"
#include "sema/state/range_state.h"
#include "sema/state/values.h"

namespace ein::sema {

Variable* Problem::variable(const core::Facts& facts, uint32_t slot) {
  if (slot < prefix || slot >= facts.slots.size() || !facts.slots[slot].lo) return nullptr;
  const auto* p = core::get_if<core::ParamRef>(s.m, facts.slots[slot].lo);
  if (!p) return nullptr;
  auto it = variables.find(p->param);
  return it == variables.end() ? nullptr : &it->second;
}

bool Problem::seeks(const core::Facts& facts) {
  for (uint32_t slot = prefix; slot < facts.slots.size(); ++slot) {
    if (variable(facts, slot)) return true;
  }
  return false;
}

core::Range Problem::range(const core::Facts& facts, uint32_t slot) {
  if (slot >= facts.slots.size() || !facts.slots[slot].lo) return {};
  if (const Variable* v = variable(facts, slot)) return v->now;
  core::Range r = resolve(s, facts.slots[slot]);
  if (!has_unsolved(s, r.lo) && !has_unsolved(s, r.hi)) return r;
  return {};
}

bool Problem::fixed_by_base(FamilyId family, size_t position) const {
  Definition& d = *s.definitions.owner.at(family);
  if (&d == clause.site->definition || position < d.carries.size()) return false;
  size_t p = position - d.carries.size();
  for (size_t i = 0; i < d.clauses.size(); ++i) {
    if (i < d.outs.size() && d.outs[i]) continue;
    const std::vector<LeftSlot>& slots = left_side(s, d, d.clauses[i]).slots;
    // A clause with a written range or a literal may reach beyond what is known so far.
    if (p < slots.size() && (slots[p].slot->range || !slots[p].name)) return false;
  }
  return true;
}

namespace {

core::AffineForm minus(Sema& s, CoreId a, CoreId b) {
  return core::affine_form(s.m, core::sub(s.m, a, b));
}

std::vector<uint32_t> slots_in(const Sema& s, const core::AffineForm& form) {
  std::vector<uint32_t> out;
  for (const auto& t : form.terms) {
    if (uint32_t n = core::slot_of(s.m, t.atom); n != ~0u) out.push_back(n);
  }
  return out;
}

// The least value of `form` over all indices but `keep` (~0u: all): each is replaced by the end of
// its range, innermost first, because inner ranges may mention outer indices.
std::optional<core::AffineForm> least_over(Problem& p, core::AffineForm form,
                                           const core::Facts& facts, const Variable* keep) {
  for (;;) {
    IndexTerm deepest;
    for (const auto& t : form.terms) {
      uint32_t n = core::slot_of(p.s.m, t.atom);
      if (n == ~0u) {
        if (p.s.m[t.atom].free != 0) return std::nullopt;  // i % n, a gather
        continue;
      }
      if (keep && p.variable(facts, n) == keep) continue;
      if (!deepest.atom || n > deepest.slot) deepest = {t.atom, n};
    }
    if (!deepest.atom) return form;
    core::Range r = p.range(facts, deepest.slot);
    int64_t c = core::coefficient(form, deepest.atom);
    CoreId end = c > 0 ? r.lo : r.hi;
    if (!end) return std::nullopt;
    if (c < 0) end = core::sub(p.s.m, end, core::int_lit(p.s.m, 1));
    CoreId whole = core::from_form(p.s.m, form);
    CoreId rest = core::sub(p.s.m, whole, core::mul(p.s.m, core::int_lit(p.s.m, c), deepest.atom));
    form = core::affine_form(
        p.s.m, core::add(p.s.m, rest, core::mul(p.s.m, core::int_lit(p.s.m, c), end)));
  }
}

// form ≥ 0 with one variable left: the bound it gives.
void narrow(Problem& p, Variable& v, const core::AffineForm& form, const core::Facts& facts,
            core::Range& now) {
  Sema& s = p.s;
  int64_t a = 0;
  core::AffineForm rest{{}, form.constant};
  for (const auto& t : form.terms) {
    uint32_t n = core::slot_of(s.m, t.atom);
    if (n != ~0u && p.variable(facts, n) == &v) {
      a = t.coef;
    } else {
      rest.terms.push_back(t);
    }
  }
  if (a == 0) return;
  CoreId r = core::from_form(s.m, rest);
  CoreId step = core::int_lit(s.m, std::abs(a));
  if (a > 0) {  // v ≥ ceil(-r / a)
    CoreId low = core::neg(s.m, r);
    if (a > 1) {
      low = core::apply(s.m, core::Op::Div, {core::add(s.m, low, core::int_lit(s.m, a - 1)), step});
    }
    now.lo = greatest(s.m, now.lo, low);
  } else {  // v < floor(r / |a|) + 1
    CoreId high = core::apply(s.m, core::Op::Div, {core::add(s.m, r, step), step});
    now.hi = least(s.m, now.hi, high);
  }
}

// The index that a need narrows, if any (see the top of this file). Sets `ambiguous` when there are
// two candidates.
Variable* target(Problem& p, const Need& need, bool& ambiguous) {
  std::vector<uint32_t> slots = need.slots;
  auto open = [&](bool only_unbared, const std::vector<uint32_t>& list) {
    std::vector<Variable*> out;
    for (uint32_t n : list) {
      Variable* v = p.variable(need.facts, n);
      if (v && !(only_unbared && v->bared())) out.push_back(v);
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  };
  bool single = slots.size() == 1;
  std::vector<Variable*> found = open(!single, slots);
  if (found.empty()) {
    // Written ranges may depend on an index: follow them outwards.
    core::AffineForm form = need.form;
    for (int depth = 0; depth < 8 && found.empty(); ++depth) {
      bool moved = false;
      for (uint32_t n : slots_in(p.s, form)) {
        if (p.variable(need.facts, n)) continue;
        core::Range r = p.range(need.facts, n);
        CoreId atom = core::slot(p.s.m, n);
        int64_t c = core::coefficient(form, atom);
        CoreId end = c > 0 ? r.lo : r.hi;
        if (!end || c == 0) return nullptr;
        CoreId rest = core::sub(p.s.m, core::from_form(p.s.m, form),
                                core::mul(p.s.m, core::int_lit(p.s.m, c), atom));
        form = core::affine_form(
            p.s.m, core::add(p.s.m, rest, core::mul(p.s.m, core::int_lit(p.s.m, c), end)));
        moved = true;
        break;
      }
      found = open(!single, slots_in(p.s, form));
      if (!moved) break;
    }
  }
  ambiguous = found.size() > 1;
  return found.size() == 1 ? found[0] : nullptr;
}

// True when the gates and conditions around the access already guarantee the need.
bool guaranteed(Problem& p, const Need& need, const Variable* v) {
  core::Facts facts = need.facts;
  for (uint32_t n = 0; n < facts.slots.size(); ++n) {
    Variable* x = p.variable(need.facts, n);
    facts.slots[n] = x && x == v ? v->bare_range : p.range(need.facts, n);
    if (x) {
      facts.nonnegative.push_back(core::affine_form(p.s.m, core::slot(p.s.m, n)));
      if (!facts.slots[n].hi) facts.slots[n] = {};
    }
  }
  return core::proves_nonnegative(p.s.m, need.form, facts);
}

void collect_slot(Problem& p, FamilyId family, size_t position, CoreId e, CoreId access,
                  const core::Facts& facts) {
  Sema& s = p.s;
  if (!p.seeks(facts)) return;
  CoreId extent = resolve(s, s.m[family].coords[position].extent);
  if (!extent) return;  // an error in its definition was reported
  core::AffineForm form = core::affine_form(s.m, e);
  std::vector<uint32_t> slots = slots_in(s, form);
  if (slots.empty()) return;
  bool own = p.own_group(family);
  uint32_t bare = core::slot_of(s.m, e);
  Variable* v = bare != ~0u ? p.variable(facts, bare) : nullptr;
  if (has_unsolved(s, extent)) return;
  if (own && v && v->left && p.fixed_by_base(family, position)) {
    v->group.push_back({extent, family, position, access, false});
  }
  if (own && !(v && !v->left)) return;
  if (v) {
    // Without a condition nothing bounds the index itself.
    bool weak = !facts.nonnegative.empty() || !facts.nonzero.empty();
    if (weak) {
      core::Facts conditions = facts;
      for (auto& r : conditions.slots) r = {};
      core::AffineForm upper = minus(s, extent, e);
      upper.constant -= 1;
      weak = core::proves_nonnegative(s.m, upper, conditions);
    }
    v->bares.push_back({extent, family, position, access, weak});
    return;
  }
  for (const auto& t : form.terms) {
    if (core::slot_of(s.m, t.atom) == ~0u && s.m[t.atom].free != 0) return;  // not affine
  }
  core::AffineForm upper = minus(s, extent, e);
  upper.constant -= 1;
  p.needs.push_back({form, facts, slots, family, position, access});
  p.needs.push_back({upper, facts, slots, family, position, access});
}

void add_variables(Problem& p) {
  Sema& s = p.s;
  std::erase_if(s.ranges.unknowns,
                [&](const Unknown& u) { return s.ranges.solved.count(u.lo) > 0; });
  for (const Unknown& u : s.ranges.unknowns) {
    Variable v;
    v.unknown = u;
    v.left = u.left;
    p.variables.emplace(u.lo, std::move(v));
  }
}

// Whether a range in the clause is sought. If none is, it never will be again.
bool seeks(Problem& p, const core::Clause& local) {
  std::unordered_set<CoreId> seen;
  std::function<bool(CoreId)> visit = [&](CoreId e) {
    if (!has_unsolved(p.s, e) || !seen.insert(e).second) return false;
    if (const auto* placeholder = core::get_if<core::ParamRef>(p.s.m, e)) {
      return p.variables.contains(placeholder->param);
    }
    bool found = false;
    core::for_each_child(p.s.m, e, [&](CoreId child) { found = found || visit(child); });
    return found;
  };
  return visit(local.body) || std::any_of(local.box.begin(), local.box.end(),
                                          [&](const auto& r) { return visit(r.lo); });
}

void solve(Problem& p) {
  Sema& s = p.s;
  CoreId zero = core::int_lit(s.m, 0);
  for (auto& [id, v] : p.variables) {
    const Bare* strong = nullptr;
    for (const Bare& b : v.bares) {
      if (!b.weak && !strong) strong = &b;
    }
    if (!strong && !v.bares.empty()) strong = &v.bares[0];
    if (strong) v.bare_range = {zero, strong->extent};
    v.now = strong ? v.bare_range : core::Range{zero, {}};
  }
  for (int round = 0; round < 10; ++round) {
    std::map<Variable*, core::Range> next;
    for (auto& [id, v] : p.variables) next[&v] = v.bared() ? v.bare_range : core::Range{zero, {}};
    for (const Need& need : p.needs) {
      bool ambiguous = false;
      Variable* v = target(p, need, ambiguous);
      if (ambiguous) p.ambiguous = &need;
      if (!v || guaranteed(p, need, v)) continue;
      auto form = least_over(p, need.form, need.facts, v);
      if (!form) continue;
      narrow(p, *v, *form, need.facts, next[v]);
      if (std::find(v->narrowed_by.begin(), v->narrowed_by.end(), &need) == v->narrowed_by.end()) {
        v->narrowed_by.push_back(&need);
      }
    }
    bool changed = false;
    for (auto& [v, r] : next) {
      changed |= v->now.lo != r.lo || v->now.hi != r.hi;
      v->now = r;
    }
    if (!changed) return;
  }
}

}  // namespace

void collect(Problem& p, const core::Clause& clause) {
  Sema& s = p.s;
  auto wanted = [](const core::Node& n) {
    return std::holds_alternative<core::Access>(n) || std::holds_alternative<core::Request>(n) ||
           std::holds_alternative<core::Reduce>(n);
  };
  core::for_each_with_facts(s.m, clause, wanted, [&](CoreId e, const core::Facts& facts) {
    const core::Node& node = s.m[e].node;
    auto each = [&](FamilyId family, const std::vector<CoreId>& at) {
      for (size_t i = 0; i < at.size(); ++i) collect_slot(p, family, i, at[i], e, facts);
    };
    if (const auto* a = std::get_if<core::Access>(&node)) {
      each(a->family, a->at);
    } else if (const auto* r = std::get_if<core::Request>(&node)) {
      each(r->num, r->num_at);
      each(r->den, r->den_at);
    } else if (const auto* reduce = std::get_if<core::Reduce>(&node)) {
      for (const core::Range& range : reduce->over) {
        if (const auto* lo = core::get_if<core::ParamRef>(s.m, range.lo)) {
          if (auto it = p.variables.find(lo->param); it != p.variables.end()) {
            it->second.present = true;
          }
        }
      }
    }
  });
}

void infer_ranges(Sema& s, ClauseOut& clause,
                  const std::function<std::vector<CoreId>()>& fallbacks) {
  if (clause.bad) return;
  Problem p{s, clause, {}, {}, nullptr, 0};
  if (clause.body.kind == Value::Kind::Table) {
    add_variables(p);
    for (CoreId cell : clause.body.cells) collect(p, core::Clause{{}, cell, {}});
    solve(p);
    report_and_record(p);
    return;
  }
  if (clause.body.kind != Value::Kind::Data) return;
  p.prefix = clause.body.depth - static_cast<uint32_t>(clause.box.size());
  add_variables(p);
  core::Clause whole;
  whole.box.resize(p.prefix);
  Site& site = *clause.site;
  for (size_t i = 0; i < p.prefix && i < site.slots.size(); ++i) whole.box[i] = site.slots[i].range;
  whole.box.insert(whole.box.end(), clause.box.begin(), clause.box.end());
  whole.body = clause.body.body;
  if (clause.gate) {
    CoreId no = clause.otherwise ? clause.otherwise->body
                                 : (clause.body.typing == Typing::Fixed
                                        ? zero(s.m, clause.body.type)
                                        : core::number(s.m, 0, clause.body.type));
    whole.body = core::apply(s.m, core::Op::Select, {clause.gate, whole.body, no});
    // A gate that is constant leaves only one side of the Select, but both sides were written and
    // both give ranges.
    if (core::get_if<core::BoolLit>(s.m, clause.gate)) {
      core::Clause written = whole;
      written.body = clause.body.body;
      collect(p, written);
    }
  }
  for (const Left& l : clause.left) {
    Variable* v = l.index ? p.left_variable(*l.index) : nullptr;
    if (v) v->present = true;
  }
  collect(p, whole);
  for (core::Clause sibling : clause.siblings) {
    sibling.box.insert(sibling.box.begin(), whole.box.begin(), whole.box.begin() + p.prefix);
    collect(p, sibling);
  }
  std::erase_if(site.lifted, [&](const core::Clause& local) { return !seeks(p, local); });
  for (const core::Clause& local : site.lifted) collect(p, local);
  for (const Hint& h : clause.hints) {
    const Left& l = clause.left[h.left];
    CoreId extent = resolve(s, h.extent);
    Variable* v = p.left_variable(*l.index);
    if (!v || has_unsolved(s, extent)) continue;
    if (v->bares.empty()) v->bares.push_back({extent, {}, 0, clause.body.body, false});
  }
  std::optional<std::vector<CoreId>> fallback;  // asks all clauses, so only when it matters
  for (size_t i = 0; i < clause.left.size(); ++i) {
    const Index* index = clause.left[i].index;
    Variable* v = index ? p.left_variable(*index) : nullptr;
    if (!v || v->bared() || v->group.empty()) continue;
    if (!fallback) fallback = fallbacks ? fallbacks() : std::vector<CoreId>{};
    if (i >= fallback->size() || !(*fallback)[i]) v->bares = v->group;
  }
  solve(p);
  for (size_t i = 0; i < clause.left.size(); ++i) {
    const Index* index = clause.left[i].index;
    Variable* v = index ? p.left_variable(*index) : nullptr;
    if (!v || v->now.hi || v->bared()) continue;
    if (!fallback) fallback = fallbacks ? fallbacks() : std::vector<CoreId>{};
    if (i < fallback->size() && (*fallback)[i]) v->now = {core::int_lit(s.m, 0), (*fallback)[i]};
  }
  report_and_record(p);
  for (core::Range& r : clause.box) r = resolve(s, r);
  for (core::Coord& c : clause.coords) c.extent = resolve(s, c.extent);
}

}  // namespace ein::sema
