#include "plan/follow.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/build.h"
#include "core/rewrite.h"
#include "core/steps.h"
#include "optimise/classify.h"
#include "optimise/members.h"
#include "optimise/operands.h"
#include "plan/ends.h"

namespace ein::plan {
namespace {

using namespace core;

using StepPositions = std::map<FamilyId, uint32_t>;

struct Follower {
  FamilyId family;
  uint32_t position = 0;
  std::set<FamilyId> reads;  // members of the recurrence, and followers before it
};

void for_each_access(const Module& m, FamilyId id, const std::function<void(const Access&)>& f) {
  for_each_body(m, id, [&](ExprId body) {
    for_each_node(m, body, [&](ExprId e) {
      if (const auto* a = get_if<Access>(m, e)) f(*a);
    });
  });
}

const Sequence* sequence_at(const Schedule& order, size_t i) {
  return i < order.steps.size() ? std::get_if<Sequence>(&order.steps[i]) : nullptr;
}

struct FollowerSearch {
  Module& m;
  const Schedule& order;
  const size_t at;  // where the recurrence is in the schedule
  const Sequence& q;
  const Tuning& tuning;
  // By first family: whether the recurrence is small, see is_small.
  std::map<FamilyId, bool>& small;
  StepPositions steps = {};      // of members and followers: the coordinate that counts the steps
  std::set<FamilyId> late = {};  // known only when the recurrence is done

  // Whether a read at `index` reads the step given by slot `position`, or an earlier one.
  bool is_there(ExprId index, uint32_t position) {
    ExprId now = slot(m, position);
    auto back = const_int(m, q.downward ? sub(m, index, now) : sub(m, now, index));
    return back && *back >= 0;
  }

  std::optional<Follower> along(FamilyId id, uint32_t position) {
    Follower out{id, position, {}};
    bool legal = true;
    ExprId extent = m[id].coords[position].extent;
    for_each_access(m, id, [&](const Access& a) {
      legal &= !late.contains(a.family);
      if (a.family == id) return;  // it is itself a recurrence, in the same direction
      auto found = steps.find(a.family);
      if (found == steps.end()) return;
      legal &= m[a.family].coords[found->second].extent == extent &&
               is_there(a.at[found->second], position);
      out.reads.insert(a.family);
    });
    return legal && !out.reads.empty() ? std::optional(std::move(out)) : std::nullopt;
  }

  bool reads_steps(FamilyId id) {
    bool found = false;
    for_each_access(m, id, [&](const Access& a) {
      found |= steps.contains(a.family) || late.contains(a.family);
    });
    return found;
  }

  std::optional<Follower> computed(FamilyId id) {
    const Family& f = m[id];
    std::optional<Follower> found;
    for (uint32_t k = 0; k < f.rank() && !found; ++k) {
      if (f.kind == Family::Kind::Defined && f.with.empty()) found = along(id, k);
    }
    return found;
  }

  bool is_small(const Sequence& s) {
    auto [it, fresh] = small.try_emplace(s.members[0].family, false);
    if (fresh) { it->second = optimise::members_of(m, s, 1, tuning, Overflow::Wraps).has_value(); }
    return it->second;
  }

  // A recurrence of one family may follow if both recurrences are small and have independent
  // members: then the steps of both are computed in registers. Otherwise following could turn one
  // product over all steps into a product in each step.
  std::optional<Follower> recurrent(const Sequence& other) {
    if (other.members.size() != 1 || other.downward != q.downward) return std::nullopt;
    if (!is_small(q) || !is_small(other)) return std::nullopt;
    return along(other.members[0].family, other.members[0].position);
  }

  // Finds followers in the order of the schedule.
  std::vector<Follower> run() {
    for (const auto& member : q.members) steps[member.family] = member.position;
    std::vector<Follower> out;
    for (size_t i = at + 1; i < order.steps.size(); ++i) {
      const auto* c = std::get_if<Compute>(&order.steps[i]);
      std::optional<Follower> found = c ? computed(c->family) : recurrent(*sequence_at(order, i));
      if (!found && !c) {
        for (FamilyId f : families_of({order.steps[i]})) late.insert(f);
        continue;
      }
      if (found) {
        steps[found->family] = found->position;
        out.push_back(std::move(*found));
      } else if (reads_steps(c->family)) {
        late.insert(c->family);
      }
    }
    return out;
  }
};

// The size of a family in bytes. Unknown extents count as 1.
int64_t known_bytes(const Module& m, FamilyId id) {
  int64_t bytes = static_cast<int64_t>(size_of(m[id].dtype));
  for (const Coord& c : m[id].coords) {
    auto extent = const_int(m, c.extent);
    if (!extent) continue;
    if (*extent <= 0) return 0;
    if (__builtin_mul_overflow(bytes, *extent, &bytes)) return INT64_MAX;
  }
  return bytes;
}

// Finds values that are computed before a recurrence, but could be computed in the step that reads
// them.
struct LeaderSearch {
  Module& m;
  const Schedule& order;
  const size_t at;  // where the recurrence is in the schedule
  const Sequence& q;
  const std::vector<FamilyId>& wanted;
  const Tuning& tuning;
  std::map<FamilyId, bool>& small;
  FollowerSearch steps = {m, order, at, q, tuning, small};
  struct Read {
    FamilyId reader;
    std::vector<ExprId> index;
  };
  std::map<FamilyId, std::vector<Read>> reads = {};

  // Whether all readers are in the recurrence, or before it and computed in its steps like `id`,
  // and none of them reads a step later than its own.
  bool read_by_step(FamilyId id, uint32_t position) {
    ExprId extent = m[id].coords[position].extent;
    return std::all_of(reads[id].begin(), reads[id].end(), [&](const Read& r) {
      auto reader = steps.steps.find(r.reader);
      return reader != steps.steps.end() && m[r.reader].coords[reader->second].extent == extent &&
             steps.is_there(r.index[position], reader->second);
    });
  }

  // A single product over all steps is much faster than one product in each step.
  bool is_product(FamilyId id) {
    const Family f = m[id];
    uint64_t coords = f.rank() >= 64 ? ~0ull : optimise::bit(f.rank()) - 1;
    return std::any_of(f.clauses.begin(), f.clauses.end(), [&](const Clause& c) {
      return optimise::classify(m, c, coords, tuning).has_value();
    });
  }

  bool may_lead(FamilyId id) {
    const Family& f = m[id];
    return f.kind == Family::Kind::Defined && f.with.empty() && !reads[id].empty() &&
           known_bytes(m, id) >= tuning.ahead_bytes && !is_product(id) &&
           std::find(wanted.begin(), wanted.end(), id) == wanted.end();
  }

  // Goes backward through the schedule, so that readers come before what they read.
  std::vector<Follower> run() {
    for (const auto& member : q.members) steps.steps[member.family] = member.position;
    for (FamilyId reader : families_of(order.steps)) {
      for_each_access(m, reader, [&](const Access& a) {
        reads[a.family].push_back({reader, a.at});
      });
    }
    std::vector<Follower> out;
    for (size_t i = at; i-- > 0;) {
      const auto* c = std::get_if<Compute>(&order.steps[i]);
      if (!c || !may_lead(c->family)) continue;
      for (uint32_t k = 0; k < m[c->family].rank(); ++k) {
        if (!read_by_step(c->family, k)) continue;
        steps.steps[c->family] = k;
        out.push_back({c->family, k, {}});
        break;
      }
    }
    return out;
  }
};

// The followers that depend on a family of `few`, and the followers that these need.
std::vector<Follower> useful(const std::vector<Follower>& all, const std::set<FamilyId>& few) {
  std::set<FamilyId> reach = few, needed;
  auto touches = [](const Follower& f, const std::set<FamilyId>& set) {
    return std::any_of(f.reads.begin(), f.reads.end(), [&](FamilyId r) { return set.contains(r); });
  };
  for (const Follower& f : all) {
    if (touches(f, reach)) reach.insert(f.family);
  }
  for (size_t i = all.size(); i-- > 0;) {
    if (!reach.contains(all[i].family) && !needed.contains(all[i].family)) continue;
    needed.insert(all[i].family);
    needed.insert(all[i].reads.begin(), all[i].reads.end());
  }
  std::vector<Follower> out;
  for (const Follower& f : all) {
    if (needed.contains(f.family)) out.push_back(f);
  }
  return out;
}

std::optional<size_t> runs_in(const Schedule& order, FamilyId member) {
  for (size_t i = 0; i < order.steps.size(); ++i) {
    const Sequence* q = sequence_at(order, i);
    if (!q) continue;
    bool here = std::any_of(q->members.begin(), q->members.end(),
                            [&](const auto& s) { return s.family == member; });
    if (here) return i;
  }
  return std::nullopt;
}

bool ends_early(Module& m, const Schedule& order, const std::vector<FamilyId>& wanted, size_t at) {
  const Sequence& q = *sequence_at(order, at);
  return find_end(m, q, {}, read_later(m, order, wanted, q)).has_value();
}

struct Following {
  Module& m;
  const std::vector<FamilyId>& wanted;
  const Tuning& tuning;
  Schedule order;
  std::map<FamilyId, bool> small = {};
  std::unordered_map<FamilyId, Ring> rings = find_rings(m, order, wanted);

  // Members of the recurrence that must keep all their steps only because something reads them.
  std::set<FamilyId> kept_whole(const Sequence& q) {
    std::set<FamilyId> out;
    for (const auto& member : q.members) {
      FamilyId f = member.family;
      bool shown = std::find(wanted.begin(), wanted.end(), f) != wanted.end();
      if (!shown && !rings.contains(f)) out.insert(f);
    }
    return out;
  }

  // Makes the followers run along, and returns those of `whole` that then keep few steps. Changes
  // nothing if there are none.
  std::set<FamilyId> attempt(size_t at, const std::vector<Follower>& followers,
                             const std::set<FamilyId>& whole) {
    const Sequence q = *sequence_at(order, at);
    Lockstep lock{q.members, q.downward};
    for (const Follower& f : followers) lock.members.push_back({f.family, f.position});
    m.locksteps.push_back(std::move(lock));
    Schedule next = schedule(m, wanted);
    std::set<FamilyId> few;
    auto there = next.cycle ? std::nullopt : runs_in(next, q.members[0].family);
    bool same = there && (!ends_early(m, order, wanted, at) || ends_early(m, next, wanted, *there));
    if (same) {
      auto kept = find_rings(m, next, wanted);
      for (FamilyId f : whole) {
        if (kept.contains(f)) few.insert(f);
      }
      if (!few.empty()) rings = std::move(kept);
    }
    if (few.empty()) {
      m.locksteps.pop_back();
    } else {
      order = std::move(next);
    }
    return few;
  }

  void follow(size_t at) {
    const Sequence q = *sequence_at(order, at);
    const std::set<FamilyId> whole = kept_whole(q);
    if (whole.empty()) return;
    const std::vector<Follower> all = FollowerSearch{m, order, at, q, tuning, small}.run();
    std::vector<Follower> some = useful(all, whole);
    if (some.empty()) return;
    const Schedule before = order;
    const auto rings_before = rings;
    std::set<FamilyId> few = attempt(at, some, whole);
    std::vector<Follower> fewer = useful(all, few);
    if (few.empty() || fewer.size() == some.size()) return;
    // Some followers turned out to be useless: try again without them.
    m.locksteps.pop_back();
    order = before;
    rings = rings_before;
    attempt(at, fewer, few);
  }

  void lead(size_t at) {
    const Sequence q = *sequence_at(order, at);
    std::vector<Follower> leaders = LeaderSearch{m, order, at, q, wanted, tuning, small}.run();
    if (leaders.empty()) return;
    std::set<FamilyId> families;
    for (const Follower& f : leaders) families.insert(f.family);
    attempt(at, leaders, families);
  }

  void recurrence(FamilyId member) {
    if (auto at = runs_in(order, member)) follow(*at);
    if (auto at = runs_in(order, member)) lead(*at);
  }
};

}  // namespace

Schedule follow_steps(Module& m, const std::vector<FamilyId>& wanted, const Tuning& tuning,
                      Schedule order) {
  std::vector<FamilyId> first;
  for (size_t i = 0; i < order.steps.size(); ++i) {
    if (const Sequence* q = sequence_at(order, i)) first.push_back(q->members[0].family);
  }
  // For every recurrence the search looks at everything after it, so it is skipped in very long
  // programs.
  constexpr size_t kMost = 1'000'000;
  if (first.empty() || first.size() * order.steps.size() > kMost) return order;
  Following following{m, wanted, tuning, std::move(order)};
  for (FamilyId member : first) following.recurrence(member);
  return following.order;
}

}  // namespace ein::plan
