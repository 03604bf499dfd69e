#include "plan/ends.h"

#include <algorithm>
#include <utility>

#include "core/build.h"
#include "core/prove.h"
#include "core/rewrite.h"

namespace ein::plan {
namespace {

using namespace core;

struct Finder {
  Module& m;
  const Sequence& q;
  const Outer& outer;
  std::map<FamilyId, uint32_t> position = {};  // which coordinate counts the steps, by member
  FamilyId flag = {};
  uint32_t flag_position = 0;
  // The first step at which the flag may be true; going downward, the exclusive bound of those
  // steps.
  ExprId first = {};
  // Conditions that hold wherever the flag is true and that no step changes, in terms of the flag's
  // coordinates. They come from a recurrence that runs within the steps of another one.
  std::vector<ExprId> given = {};
  std::map<FamilyId, std::optional<int64_t>> settled = {};

  ExprId step_before(uint32_t p) {
    ExprId one = int_lit(m, 1);
    return q.downward ? add(m, slot(m, p), one) : sub(m, slot(m, p), one);
  }

  const std::vector<uint32_t>& around(FamilyId id) const {
    static const std::vector<uint32_t> none;
    auto it = outer.find(id);
    return it == outer.end() ? none : it->second;
  }

  // Whether `a` reads the flag at the step before the reader's own, and at the same steps of the
  // Sequences around.
  bool reads_flag(FamilyId reader, const Access& a) {
    if (a.family != flag || a.at[flag_position] != step_before(position.at(reader))) return false;
    const auto &mine = around(reader), &theirs = around(flag);
    for (size_t d = 0; d < theirs.size(); ++d) {
      if (d >= mine.size() || slot_of(m, a.at[theirs[d]]) != mine[d]) return false;
    }
    return true;
  }

  // The clause's body at a step after all cells of the flag have become true, simplified.
  ExprId when_set(FamilyId reader, const Clause& c) {
    uint32_t p = position.at(reader);
    Facts facts = clause_facts(m, c);
    ExprId one = int_lit(m, 1);
    if (q.downward) {
      facts.slots[p].hi = sub(m, first, one);
    } else {
      facts.slots[p].lo = add(m, first, one);
    }
    std::map<ExprId, bool> known;
    const auto &mine = around(reader), &theirs = around(flag);
    for (ExprId cond : given) {
      if (mine.size() < theirs.size()) break;
      std::vector<ExprId> with(m[flag].rank());
      for (size_t d = 0; d < theirs.size(); ++d) with[theirs[d]] = slot(m, mine[d]);
      ExprId here = substitute(m, cond, with, static_cast<uint32_t>(c.box.size()));
      const auto* no = get_if<Apply>(m, here);
      bool negated = no && no->op == Op::Not;
      known[negated ? no->args[0] : here] = !negated;
    }
    return rewrite(m, c.body, [&](ExprId e) {
      if (m[e].type != DType::Bool) return e;
      if (auto it = known.find(e); it != known.end()) return bool_lit(m, it->second);
      if (const auto* a = get_if<Access>(m, e)) {
        return reads_flag(reader, *a) ? bool_lit(m, true) : e;
      }
      if (const auto* r = get_if<Reduce>(m, e); r && r->op == ReduceOp::All) {
        const auto* body = get_if<BoolLit>(m, r->body);
        return body && body->value ? bool_lit(m, true) : e;
      }
      const auto* a = get_if<Apply>(m, e);
      bool asks = a && info(a->op).cls == OpClass::Compare && m[a->args[0]].type == DType::I64 &&
                  m[e].free == uint64_t{1} << p;
      if (!asks) return e;
      if (proves(m, e, facts)) return bool_lit(m, true);
      return refutes(m, e, facts) ? bool_lit(m, false) : e;
    });
  }

  bool is(ExprId e, bool value) const {
    const auto* b = get_if<BoolLit>(m, e);
    return b && b->value == value;
  }

  // The bound of a box at which its steps begin.
  ExprId begin(const Clause& c, uint32_t p) const { return q.downward ? c.box[p].hi : c.box[p].lo; }
  bool runs_to_the_end(const Clause& c, uint32_t p, FamilyId id) const {
    return q.downward ? const_int(m, c.box[p].lo) == 0 : c.box[p].hi == m[id].coords[p].extent;
  }
  bool from_the_start(const Clause& c, uint32_t p, FamilyId id) const {
    return q.downward ? c.box[p].hi == m[id].coords[p].extent : const_int(m, c.box[p].lo) == 0;
  }
  // For a flag's clause `if cond { … } else { false }` whose condition no step changes: its parts.
  std::vector<ExprId> conditions_of(const Clause& c) const {
    uint64_t outside = 0;
    for (uint32_t k : around(flag)) outside |= uint64_t{1} << k;
    std::vector<ExprId> out;
    const auto* a = get_if<Apply>(m, c.body);
    if (a && a->op == Op::Select && is(a->args[2], false) && !(m[a->args[0]].free & ~outside)) {
      conjuncts(m, a->args[0], out);
    }
    return out;
  }
  // Whether all steps of the clause come before step `at`.
  bool before(const Clause& c, uint32_t p, ExprId at) {
    Facts facts;
    facts.entry = entry_facts(m);
    return q.downward ? proves_le(m, at, c.box[p].lo, facts) : proves_le(m, c.box[p].hi, at, facts);
  }

  // Whether the flag stays true once it is true. Also finds the first step at which it may be.
  bool stays_set() {
    const Family f = m[flag];
    if (f.kind != Family::Kind::Defined) return false;
    position.try_emplace(flag, flag_position);
    std::vector<const Clause*> others;
    first = {};
    for (const Clause& c : f.clauses) {
      bool to_the_end = runs_to_the_end(c, flag_position, flag);
      if (to_the_end && is(c.body, false) && from_the_start(c, flag_position, flag)) continue;
      ExprId known = std::exchange(first, begin(c, flag_position));
      auto were = std::exchange(given, conditions_of(c));
      bool stays = to_the_end && is(when_set(flag, c), true) &&
                   (!known || (known == first && were == given));
      if (stays) continue;
      first = known;
      given = were;
      others.push_back(&c);
    }
    return first && std::all_of(others.begin(), others.end(),
                                [&](const Clause* c) { return before(*c, flag_position, first); });
  }

  bool repeats(FamilyId id, ExprId body) {
    const auto* a = get_if<Access>(m, body);
    if (!a || a->family != id) return false;
    uint32_t p = position.at(id);
    for (uint32_t k = 0; k < a->at.size(); ++k) {
      if (k == p ? a->at[k] != step_before(p) : slot_of(m, a->at[k]) != k) return false;
    }
    return true;
  }

  bool is_constant(ExprId e) const {
    return get_if<FloatLit>(m, e) || get_if<IntLit>(m, e) || get_if<BoolLit>(m, e);
  }

  // How many steps after the one that sets the flag the family stops changing; nothing if it may
  // change for ever. `fills` receives the clauses that cover such steps.
  std::optional<int64_t> settles(FamilyId id, std::vector<End::Fill>* fills = nullptr) {
    // Nothing until it is known, which also ends cycles.
    auto [it, fresh] = settled.try_emplace(id);
    if (!fresh && !fills) return it->second;
    uint32_t p = position.at(id);
    const Family f = m[id];
    if (f.kind != Family::Kind::Defined) return std::nullopt;
    if (f.coords[p].extent != m[flag].coords[flag_position].extent) return std::nullopt;
    ExprId one = int_lit(m, 1);
    ExprId next = q.downward ? sub(m, first, one) : add(m, first, one);
    int64_t after = 0;
    for (size_t i = 0; i < f.clauses.size(); ++i) {
      const Clause& c = f.clauses[i];
      if (before(c, p, next)) continue;
      if (!runs_to_the_end(c, p, id)) return std::nullopt;
      ExprId body = when_set(id, c);
      bool constant = is_constant(body);
      if (!constant && !repeats(id, body) && !settles(body, p, after)) return std::nullopt;
      if (fills) fills->push_back({id, i, p, constant ? body : ExprId{}});
    }
    settled[id] = after;
    return after;
  }

  // The same for an expression: it may depend on steps only by reading members at fixed distances.
  bool settles(ExprId e, uint32_t p, int64_t& after) {
    if (!mentions_slot(m, e, p)) return true;
    if (get_if<Slot>(m, e)) return false;
    const auto* read = get_if<Access>(m, e);
    if (!read) {
      bool ok = true;
      for_each_child(m, e, [&](ExprId child) { ok = ok && settles(child, p, after); });
      return ok;
    }
    const Access a = *read;
    auto member = position.find(a.family);
    if (member == position.end()) return false;
    for (uint32_t k = 0; k < a.at.size(); ++k) {
      if (k != member->second && mentions_slot(m, a.at[k], p)) return false;
    }
    ExprId at = a.at[member->second], now = slot(m, p);
    auto back = const_int(m, q.downward ? sub(m, at, now) : sub(m, now, at));
    auto theirs = back && *back >= 0 ? settles(a.family) : std::nullopt;
    if (!theirs) return false;
    after = std::max(after, *theirs + *back);
    return true;
  }

  std::optional<End> run(const std::vector<FamilyId>& inside,
                         const std::set<FamilyId>& read_later) {
    End out{flag, flag_position, {}};
    if (!stays_set()) return std::nullopt;
    for (FamilyId id : inside) {
      if (!read_later.contains(id)) continue;
      auto after = settles(id, &out.fills);
      if (!after) return std::nullopt;
      out.delay = std::max(out.delay, *after);
    }
    return out;
  }
};

}  // namespace

std::set<FamilyId> read_later(const Module& m, const Schedule& order,
                              const std::vector<FamilyId>& wanted, const Sequence& q) {
  std::vector<FamilyId> inside = families_of(q.body);
  std::set<FamilyId> own(inside.begin(), inside.end());
  std::set<FamilyId> later(wanted.begin(), wanted.end());
  for (FamilyId reader : families_of(order.steps)) {
    if (own.contains(reader)) continue;
    for_each_body(m, reader, [&](ExprId body) {
      for_each_node(m, body, [&](ExprId e) {
        if (const auto* a = get_if<Access>(m, e)) later.insert(a->family);
      });
    });
  }
  return later;
}

std::optional<End> find_end(Module& m, const Sequence& q, const Outer& outer,
                            const std::set<FamilyId>& read_later) {
  Finder finder{m, q, outer};
  for (const auto& member : q.members) finder.position[member.family] = member.position;
  const std::map<FamilyId, uint32_t> members = finder.position;
  std::vector<FamilyId> inside = families_of(q.body);
  bool nested = false;
  for (FamilyId id : inside) {
    if (!members.contains(id)) return std::nullopt;
    nested |= !finder.around(id).empty();
  }
  std::set<std::pair<FamilyId, uint32_t>> flags;
  for (FamilyId id : inside) {
    ExprId before = finder.step_before(members.at(id));
    for_each_body(m, id, [&](ExprId body) {
      for_each_node(m, body, [&](ExprId e) {
        const auto* a = get_if<Access>(m, e);
        if (!a || m[e].type != DType::Bool) return;
        auto member = members.find(a->family);
        for (uint32_t k = 0; k < a->at.size(); ++k) {
          bool step =
              a->at[k] == before && (member == members.end() ? !nested : member->second == k);
          if (step) flags.insert({a->family, k});
        }
      });
    });
  }
  for (const auto& [flag, position] : flags) {
    finder.position = members;
    finder.given.clear();
    finder.settled.clear();
    finder.flag = flag;
    finder.flag_position = position;
    if (auto end = finder.run(inside, read_later)) return end;
  }
  return std::nullopt;
}

}  // namespace ein::plan
