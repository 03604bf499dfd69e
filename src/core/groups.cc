#include "core/groups.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

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

void collect(Module& m, FamilyId id, Graph& out) {
  const Family family = m[id];
  auto wanted = [](const Node& n) {
    return std::holds_alternative<Access>(n) || std::holds_alternative<Request>(n);
  };
  auto note = [&](ExprId e, const Facts& facts) {
    const Node node = m[e].node;
    if (const auto* a = std::get_if<Access>(&node)) {
      out.push_back({id, a->family, e, a->at, facts});
    } else if (const auto* r = std::get_if<Request>(&node)) {
      out.push_back({id, r->num, e, r->num_at, facts});
      out.push_back({id, r->den, e, r->den_at, facts});
    }
  };
  for (const Clause& c : family.clauses) for_each_with_facts(m, c, wanted, note);
  for (ExprId cell : family.cells) { for_each_with_facts(m, Clause{{}, cell, {}}, wanted, note); }
}

// Strongly connected components in dependency order (what is read comes first).
std::vector<std::vector<FamilyId>> components(const std::vector<FamilyId>& families,
                                              const Graph& reads) {
  std::map<FamilyId, std::vector<FamilyId>> next;
  std::set<FamilyId> members(families.begin(), families.end());
  for (const Read& r : reads) {
    if (members.contains(r.reader) && members.contains(r.read)) next[r.reader].push_back(r.read);
  }
  std::map<FamilyId, int> index, low;
  std::vector<FamilyId> stack;
  std::set<FamilyId> on_stack;
  std::vector<std::vector<FamilyId>> out;
  // Tarjan with an explicit stack: a chain of definitions may be as long as the program.
  struct Frame {
    FamilyId family;
    size_t edge;
  };
  for (FamilyId root : families) {
    if (index.contains(root)) continue;
    std::vector<Frame> frames{{root, 0}};
    while (!frames.empty()) {
      FamilyId f = frames.back().family;
      if (frames.back().edge == 0 && !index.contains(f)) {
        int n = static_cast<int>(index.size());
        index[f] = low[f] = n;
        stack.push_back(f);
        on_stack.insert(f);
      }
      const auto& edges = next[f];
      if (frames.back().edge < edges.size()) {
        FamilyId to = edges[frames.back().edge++];
        if (!index.contains(to)) {
          frames.push_back({to, 0});
        } else if (on_stack.contains(to)) {
          low[f] = std::min(low[f], index[to]);
        }
        continue;
      }
      if (low[f] == index[f]) {
        std::vector<FamilyId> component;
        for (bool more = true; more;) {
          FamilyId top = stack.back();
          stack.pop_back();
          on_stack.erase(top);
          component.push_back(top);
          more = top != f;
        }
        std::sort(component.begin(), component.end());
        out.push_back(std::move(component));
      }
      frames.pop_back();
      if (!frames.empty()) {
        FamilyId parent = frames.back().family;
        low[parent] = std::min(low[parent], low[f]);
      }
    }
  }
  return out;
}

class Scheduler {
 public:
  explicit Scheduler(Module& m) : m_(m) {}

  // The steps for `families`, of which some coordinates (`fixed_`) already run in sequence.
  bool order(const std::vector<FamilyId>& families, const Graph& reads, std::vector<Step>& out) {
    std::set<FamilyId> read_themselves;
    for (const Read& r : reads) {
      if (r.reader == r.read) read_themselves.insert(r.reader);
    }
    for (const auto& component : components(families, reads)) {
      if (component.size() == 1 && !read_themselves.contains(component[0])) {
        out.push_back(Compute{component[0]});
        continue;
      }
      if (!sequence(component, reads, out)) return false;
    }
    return true;
  }

  std::optional<Cycle> cycle;

 private:
  using Positions = std::map<FamilyId, uint32_t>;

  // Chooses one coordinate per member and a direction such that no read goes against it.
  bool sequence(const std::vector<FamilyId>& component, const Graph& all, std::vector<Step>& out) {
    std::set<FamilyId> members(component.begin(), component.end());
    Graph inner;
    for (const Read& r : all) {
      if (members.contains(r.reader) && members.contains(r.read)) inner.push_back(r);
    }
    std::vector<FamilyId> connected = connect(component, inner);
    for (bool downward : {false, true}) {
      Positions positions;
      bool found = assign(connected, 0, inner, downward, positions, [&] {
        return try_positions(component, inner, downward, positions, out);
      });
      if (found) return true;
    }
    if (!cycle) {
      cycle = Cycle{component, {}};
      for (const Read& r : inner) cycle->reads.push_back(r.node);
    }
    return false;
  }

  bool try_positions(const std::vector<FamilyId>& component, const Graph& inner, bool downward,
                     const Positions& positions, std::vector<Step>& out) {
    Graph rest;
    for (const Read& r : inner) {
      if (!carried(r, positions, downward, 1)) rest.push_back(r);
    }
    if (rest.size() == inner.size()) return false;  // nothing is carried: no progress
    Sequence s;
    s.downward = downward;
    for (FamilyId f : component) {
      s.members.push_back({f, positions.at(f)});
      fixed_[f].insert(positions.at(f));
    }
    bool ok = order(component, rest, s.body);
    for (FamilyId f : component) fixed_[f].erase(positions.at(f));
    if (ok) {
      cycle.reset();
      out.push_back(std::move(s));
    }
    return ok;
  }

  // Members in an order in which each (after the first) shares a read with an earlier one, so that
  // a wrong choice of coordinate is noticed at once.
  static std::vector<FamilyId> connect(const std::vector<FamilyId>& component, const Graph& inner) {
    std::vector<FamilyId> order{component[0]};
    std::set<FamilyId> in{component[0]};
    for (size_t i = 0; i < order.size(); ++i) {
      for (const Read& r : inner) {
        FamilyId other;
        if (r.reader == order[i]) other = r.read;
        if (r.read == order[i]) other = r.reader;
        if (other && in.insert(other).second) order.push_back(other);
      }
    }
    return order;
  }

  bool assign(const std::vector<FamilyId>& order, size_t i, const Graph& inner, bool downward,
              Positions& positions, const std::function<bool()>& done) {
    if (i == order.size()) return done();
    FamilyId f = order[i];
    for (uint32_t p = 0; p < m_[f].rank(); ++p) {
      if (fixed_[f].contains(p)) continue;
      positions[f] = p;
      bool legal = std::all_of(inner.begin(), inner.end(), [&](const Read& r) {
        if (r.reader != f && r.read != f) return true;
        if (!positions.contains(r.reader) || !positions.contains(r.read)) return true;
        return carried(r, positions, downward, 0);
      });
      if (legal && assign(order, i + 1, inner, downward, positions, done)) return true;
      positions.erase(f);
    }
    return false;
  }

  // The read lies at least `by` steps before its reader.
  bool carried(const Read& r, const Positions& positions, bool downward, int64_t by) {
    ExprId here = slot(m_, positions.at(r.reader));
    ExprId there = r.at[positions.at(r.read)];
    ExprId distance = downward ? sub(m_, there, here) : sub(m_, here, there);
    return proves_le(m_, int_lit(m_, by), distance, r.facts);
  }

  Module& m_;
  std::map<FamilyId, std::set<uint32_t>> fixed_;
};

}  // namespace

Schedule schedule(Module& m, const std::vector<FamilyId>& wanted) {
  std::vector<FamilyId> families = wanted;
  if (families.empty()) {
    for (uint32_t i = 0; i < m.families.size(); ++i) families.push_back(FamilyId(i));
  }
  std::set<FamilyId> seen(families.begin(), families.end());
  Graph reads;
  auto need = [&](FamilyId f) {
    if (seen.insert(f).second) families.push_back(f);
  };
  std::function<void(ExprId)> need_params = [&](ExprId e) {
    for_each_node(m, e, [&](ExprId x) {
      if (const auto* p = get_if<ParamRef>(m, x); p && m.params[p->param].source) {
        need(m.params[p->param].source);
      }
    });
  };
  for (size_t i = 0; i < families.size(); ++i) {
    size_t before = reads.size();
    collect(m, families[i], reads);
    for (size_t k = before; k < reads.size(); ++k) need(reads[k].read);
    for (const Coord& c : m[families[i]].coords) need_params(c.extent);
    for (const Clause& c : m[families[i]].clauses) {
      for (const Range& r : c.box) {
        need_params(r.lo);
        need_params(r.hi);
      }
      need_params(c.body);
    }
    for (ExprId cell : m[families[i]].cells) need_params(cell);
  }
  std::sort(families.begin(), families.end());
  Scheduler scheduler(m);
  Schedule out;
  if (!scheduler.order(families, reads, out.steps)) out.cycle = scheduler.cycle;
  return out;
}

}  // namespace ein::core
