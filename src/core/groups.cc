#include "core/groups.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>

#include "base/components.h"
#include "base/match.h"
#include "core/prove.h"
#include "core/rewrite.h"

namespace ein::core {
namespace {

// One read of a family in a clause of another (or the same) one.
struct Read {
  FamilyId reader, read;
  ExprId node;  // the Access or Request
  std::vector<ExprId> at;
  Facts facts;
};

using Graph = std::vector<Read>;
using Edges = std::vector<std::pair<FamilyId, FamilyId>>;  // reader, read

// The reads of one family inside its group, each with the facts known there.
void collect(Module& m, FamilyId id, const std::set<FamilyId>& members, Graph& out) {
  const Family family = m[id];
  auto wanted = [](const Node& n) {
    return std::holds_alternative<Access>(n) || std::holds_alternative<Request>(n);
  };
  auto note = [&](ExprId e, const Facts& facts) {
    const Node node = m[e].node;
    auto add = [&](FamilyId read, const std::vector<ExprId>& at) {
      if (members.contains(read)) out.push_back({id, read, e, at, facts});
    };
    if (const auto* a = std::get_if<Access>(&node)) {
      add(a->family, a->at);
    } else if (const auto* r = std::get_if<Request>(&node)) {
      add(r->num, r->num_at);
      add(r->den, r->den_at);
    }
  };
  for (const Clause& c : family.clauses) for_each_with_facts(m, c, wanted, note);
  for (ExprId cell : family.cells) for_each_with_facts(m, Clause{{}, cell, {}}, wanted, note);
}

// Strongly connected components in dependency order (what is read comes first).
std::vector<std::vector<FamilyId>> components(const std::vector<FamilyId>& families,
                                              const Edges& edges) {
  constexpr uint32_t kNew = ~0u;
  // Numbers only the families given: with very many groups, a table of all families for
  // each would be slow.
  std::unordered_map<FamilyId, uint32_t> number;
  number.reserve(families.size());
  for (uint32_t i = 0; i < families.size(); ++i) number[families[i]] = i;
  auto number_of = [&](FamilyId f) {
    auto it = number.find(f);
    return it == number.end() ? kNew : it->second;
  };
  std::vector<std::vector<uint32_t>> next(families.size());
  for (const auto& [reader, read] : edges) {
    uint32_t from = number_of(reader), to = number_of(read);
    if (from != kNew && to != kNew) next[from].push_back(to);
  }
  std::vector<std::vector<FamilyId>> out;
  for (const std::vector<uint32_t>& component : ein::components(next)) {
    std::vector<FamilyId>& members = out.emplace_back();
    for (uint32_t n : component) members.push_back(families[n]);
    std::sort(members.begin(), members.end());
  }
  return out;
}

class Scheduler {
 public:
  explicit Scheduler(Module& m) : m_(m) {
    for (const Lockstep& lock : m.locksteps) {
      for (const auto& member : lock.members)
        locked_[member.family] = {member.position, lock.downward};
    }
  }

  // The steps for all families. The facts around a read are worked out only inside groups.
  bool order(const std::vector<FamilyId>& families, const Edges& edges, std::vector<Step>& out) {
    return order(families, edges, out, [&](const std::set<FamilyId>& members) {
      tries_ = kTries;
      choices_ = kChoices * static_cast<int64_t>(members.size() + kTries);
      Graph inner;
      for (FamilyId f : members) collect(m_, f, members, inner);
      return inner;
    });
  }

  std::optional<Cycle> cycle;

 private:
  using Positions = std::map<FamilyId, uint32_t>;
  using Touching = std::unordered_map<FamilyId, std::vector<const Read*>>;
  struct Lock {
    uint32_t position;
    bool downward;
  };

  // For each family, the reads in which it is the reader or the one read, in order.
  static Touching reads_of(const Graph& reads) {
    Touching out;
    for (const Read& r : reads) {
      out[r.reader].push_back(&r);
      if (r.read != r.reader) out[r.read].push_back(&r);
    }
    return out;
  }

  // How these families have to run, if some of them are in a lockstep that is not running yet.
  const Lock* locked(const std::vector<FamilyId>& families) {
    for (FamilyId f : families) {
      auto it = locked_.find(f);
      if (it != locked_.end() && !fixed_[f].contains(it->second.position)) return &it->second;
    }
    return nullptr;
  }

  // `inside` gives the reads among the members of a group.
  template <class Inside>
  bool order(const std::vector<FamilyId>& families, const Edges& edges, std::vector<Step>& out,
             const Inside& inside) {
    std::set<FamilyId> read_themselves;
    for (const auto& [reader, read] : edges) {
      if (reader == read) read_themselves.insert(reader);
    }
    for (auto& component : components(families, edges)) {
      if (component.size() == 1 && !read_themselves.contains(component[0])) {
        out.push_back(Compute{component[0]});
        continue;
      }
      if (!sequence(component, inside({component.begin(), component.end()}), out)) return false;
    }
    return true;
  }

  // The same for a group some of whose coordinates (`fixed_`) already run in sequence.
  bool order_within(const std::vector<FamilyId>& families, const Graph& reads,
                    std::vector<Step>& out) {
    Edges edges;
    for (const Read& r : reads) edges.push_back({r.reader, r.read});
    return order(families, edges, out, [&](const std::set<FamilyId>& members) {
      Graph inner;
      for (const Read& r : reads) {
        if (members.contains(r.reader) && members.contains(r.read)) inner.push_back(r);
      }
      return inner;
    });
  }

  // Chooses one coordinate per member and a direction such that no read goes against it.
  bool sequence(const std::vector<FamilyId>& component, const Graph& inner,
                std::vector<Step>& out) {
    const Touching touching = reads_of(inner);
    for (bool downward : {false, true}) {
      const Lock* lock = locked(component);
      if (lock && lock->downward != downward) continue;
      auto extend = [&](Positions positions) {
        std::vector<FamilyId> first;
        for (const auto& [f, p] : positions) first.push_back(f);
        const std::vector<FamilyId> connected = connect(component, touching, first);
        return assign(connected, 0, touching, downward, positions,
                      [&] { return try_positions(component, inner, downward, positions, out); });
      };
      if (from_carried_reads(component, inner, downward, extend)) return true;
      // Families that run in step only because of a Lockstep may have no carried read.
      if (lock && extend({})) return true;
    }
    if (!cycle) {
      cycle = Cycle{component, {}};
      for (const Read& r : inner) cycle->reads.push_back(r.node);
    }
    return false;
  }

  // Starts `extend` from the two coordinates of every read that is carried along them, outer
  // coordinates of the reader first. Some read must be carried, or there is no progress. Starting
  // anywhere else, families with several coordinates that no read moves along would be tried in
  // exponentially many ways.
  template <class Extend>
  bool from_carried_reads(const std::vector<FamilyId>& component, const Graph& inner, bool downward,
                          const Extend& extend) {
    uint32_t rank = 0;
    for (FamilyId f : component) rank = std::max(rank, m_[f].rank());
    std::set<Positions> tried;
    auto from = [&](const Read& r, uint32_t p, bool by_constant) {
      for (uint32_t q : candidates(r.read)) {
        if ((r.reader == r.read && p != q) || !may_run_along(r.read, q)) continue;
        Positions positions{{r.reader, p}, {r.read, q}};
        if (by_constant != is_constant(r, positions) || !carried(r, positions, downward, 1)) {
          continue;
        }
        if (tried.insert(positions).second && extend(std::move(positions))) return true;
      }
      return false;
    };
    for (bool by_constant : {true, false}) {
      for (bool single : {false, true}) {  // along a coordinate with one address nothing is gained
        for (uint32_t p = 0; p < rank; ++p) {
          for (const Read& r : inner) {
            if (given_up()) return false;
            if (p >= m_[r.reader].rank() || single != has_one_address(r.reader, p)) continue;
            if (may_run_along(r.reader, p) && from(r, p, by_constant)) return true;
          }
        }
      }
    }
    return false;
  }

  bool try_positions(const std::vector<FamilyId>& component, const Graph& inner, bool downward,
                     const Positions& positions, std::vector<Step>& out) {
    Graph rest;
    for (const Read& r : inner) {
      if (!carried(r, positions, downward, 1)) rest.push_back(r);
    }
    // Without a carried read there is no progress, unless the families are in lockstep.
    if (rest.size() == inner.size() && !locked(component)) return false;
    Sequence s;
    s.downward = downward;
    for (FamilyId f : component) {
      s.members.push_back({f, positions.at(f)});
      fixed_[f].insert(positions.at(f));
    }
    bool ok = order_within(component, rest, s.body);
    for (FamilyId f : component) fixed_[f].erase(positions.at(f));
    if (ok) {
      cycle.reset();
      out.push_back(std::move(s));
    }
    return ok;
  }

  // The members, `first` ahead, ordered so that each shares a read with an earlier one where
  // possible (families in lockstep may share none). A wrong choice of coordinate is then
  // noticed at once.
  static std::vector<FamilyId> connect(const std::vector<FamilyId>& component,
                                       const Touching& touching,
                                       const std::vector<FamilyId>& first) {
    std::vector<FamilyId> order = first;
    std::set<FamilyId> in(first.begin(), first.end());
    size_t i = 0;
    auto add_neighbours = [&] {
      for (; i < order.size(); ++i) {
        auto reads = touching.find(order[i]);
        if (reads == touching.end()) continue;
        for (const Read* r : reads->second) {
          FamilyId other = r->read == order[i] ? r->reader : r->read;
          if (in.insert(other).second) order.push_back(other);
        }
      }
    };
    add_neighbours();
    for (FamilyId next : component) {
      if (in.insert(next).second) order.push_back(next);
      add_neighbours();
    }
    return order;
  }

  bool has_one_address(FamilyId f, uint32_t p) const {
    return const_int(m_, m_[f].coords[p].extent) == 1;
  }

  // The coordinates of a family, those with one address last: no read goes back along such a one,
  // so everything is legal there and nothing is gained.
  std::vector<uint32_t> candidates(FamilyId f) const {
    std::vector<uint32_t> out;
    for (bool single : {false, true}) {
      for (uint32_t p = 0; p < m_[f].rank(); ++p) {
        if (has_one_address(f, p) == single) out.push_back(p);
      }
    }
    return out;
  }

  bool may_run_along(FamilyId f, uint32_t p) {
    const Lock* lock = locked({f});
    return !fixed_[f].contains(p) && (!lock || lock->position == p);
  }

  // Extends `positions` to `order[i]` and all that follow it. Coordinates along which reads move by
  // constants come first: `t` also reads `i` in order where `t` is 1 and `i` is below 2, and such
  // accidents are common.
  bool assign(const std::vector<FamilyId>& order, size_t i, const Touching& touching, bool downward,
              Positions& positions, const std::function<bool()>& done) {
    if (i == order.size()) return --tries_ >= 0 && done();
    FamilyId f = order[i];
    auto all_reads = [&](auto&& holds) {
      auto reads = touching.find(f);
      return reads == touching.end() ||
             std::all_of(reads->second.begin(), reads->second.end(), [&](const Read* r) {
               return !positions.contains(r->reader) || !positions.contains(r->read) || holds(*r);
             });
    };
    auto go_on = [&] {
      return all_reads([&](const Read& r) { return carried(r, positions, downward, 0); }) &&
             assign(order, i + 1, touching, downward, positions, done);
    };
    if (positions.contains(f)) return go_on();
    for (bool by_constants : {true, false}) {
      for (uint32_t p : candidates(f)) {
        if (given_up()) return false;
        if (!may_run_along(f, p)) continue;
        --choices_;
        positions[f] = p;
        bool constants = all_reads([&](const Read& r) { return is_constant(r, positions); });
        if (constants == by_constants && go_on()) return true;
        positions.erase(f);
      }
    }
    return false;
  }

  ExprId distance(const Read& r, const Positions& positions, bool downward) {
    ExprId here = slot(m_, positions.at(r.reader));
    ExprId there = r.at[positions.at(r.read)];
    return downward ? sub(m_, there, here) : sub(m_, here, there);
  }

  bool is_constant(const Read& r, const Positions& positions) {
    return const_int(m_, distance(r, positions, false)).has_value();
  }

  // The read lies at least `by` steps before its reader.
  bool carried(const Read& r, const Positions& positions, bool downward, int64_t by) {
    return proves_le(m_, int_lit(m_, by), distance(r, positions, downward), r.facts);
  }

  Module& m_;
  std::map<FamilyId, std::set<uint32_t>> fixed_;
  std::map<FamilyId, Lock> locked_;
  // How many more ways to run a group are tried. A legal one is among the first, because wrong
  // coordinates are noticed early. Where coordinates have one address each nothing is ever noticed,
  // and there are exponentially many ways to fail.
  static constexpr int kTries = 256;
  int tries_ = kTries;
  // Coordinates of families that are still tried on the way there, for each member of the group: a
  // group without a legal order may notice it late every time.
  static constexpr int64_t kChoices = 64;
  int64_t choices_ = 0;
  bool given_up() const { return tries_ < 0 || choices_ < 0; }
};

void add_families(const std::vector<Step>& steps, std::vector<FamilyId>& out) {
  for (const Step& s : steps) {
    match(
        s, [&](const Compute& c) { out.push_back(c.family); },
        [&](const Sequence& q) { add_families(q.body, out); });
  }
}

}  // namespace

std::vector<FamilyId> families_of(const std::vector<Step>& steps) {
  std::vector<FamilyId> out;
  add_families(steps, out);
  return out;
}

Schedule schedule(Module& m, const std::vector<FamilyId>& wanted) {
  std::vector<FamilyId> families = wanted;
  if (families.empty()) {
    for (uint32_t i = 0; i < m.families.size(); ++i) families.push_back(FamilyId(i));
  }
  std::vector<bool> seen(m.families.size());
  for (FamilyId f : families) seen[f.v] = true;
  Edges edges;
  auto need = [&](FamilyId f) {
    if (!seen[f.v]) families.push_back(f);
    seen[f.v] = true;
  };
  FamilyId reader;
  const std::function<void(ExprId)> note = [&](ExprId e) {
    auto reads = [&](FamilyId f) {
      edges.push_back({reader, f});
      need(f);
    };
    if (const auto* a = get_if<Access>(m, e)) {
      reads(a->family);
    } else if (const auto* r = get_if<Request>(m, e)) {
      reads(r->num);
      reads(r->den);
    } else if (const auto* p = get_if<ParamRef>(m, e); p && m.params[p->param].source) {
      need(m.params[p->param].source);
    }
  };
  const std::function<void(ExprId)> note_all = [&](ExprId e) { for_each_node(m, e, note); };
  for (size_t i = 0; i < families.size(); ++i) {
    reader = families[i];
    for (FamilyId other : m[reader].with) need(other);
    for (const Coord& c : m[reader].coords) note_all(c.extent);
    for_each_body(m, reader, note_all);
    for (const Clause& c : m[reader].clauses) {
      for (const Range& r : c.box) {
        note_all(r.lo);
        note_all(r.hi);
      }
    }
  }
  // A circle of edges keeps the members that are computed at all in one group.
  for (const Lockstep& lock : m.locksteps) {
    std::vector<FamilyId> members;
    for (const auto& member : lock.members) {
      if (seen[member.family.v]) members.push_back(member.family);
    }
    for (size_t i = 0; i < members.size() && members.size() > 1; ++i) {
      edges.push_back({members[i], members[(i + 1) % members.size()]});
    }
  }
  std::sort(families.begin(), families.end());
  Scheduler scheduler(m);
  Schedule out;
  if (!scheduler.order(families, edges, out.steps)) out.cycle = scheduler.cycle;
  return out;
}

}  // namespace ein::core
