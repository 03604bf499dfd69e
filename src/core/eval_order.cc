#include "core/eval_order.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "core/rewrite.h"

namespace ein::core {
namespace {

std::vector<FamilyId> families_read(const Module& m, FamilyId id) {
  std::vector<FamilyId> out;
  std::unordered_set<FamilyId> seen;
  for_each_body(m, id, [&](ExprId body) {
    for_each_node(m, body, [&](ExprId e) {
      const auto* a = get_if<Access>(m, e);
      if (a && seen.insert(a->family).second) out.push_back(a->family);
    });
  });
  return out;
}

// The inputs whose shapes the extents in `e` come from.
void add_sources(const Module& m, ExprId e, std::vector<FamilyId>& out) {
  for_each_node(m, e, [&](ExprId x) {
    const auto* p = get_if<ParamRef>(m, x);
    if (p && m.params[p->param].source) out.push_back(m.params[p->param].source);
  });
}

// What has to be there for `id`: what it reads, what is computed along with it, and its extents.
std::vector<FamilyId> families_needed(const Module& m, FamilyId id) {
  const Family& f = m[id];
  std::vector<FamilyId> out = families_read(m, id);
  out.insert(out.end(), f.with.begin(), f.with.end());
  for (const Coord& c : f.coords) add_sources(m, c.extent, out);
  for (const Clause& c : f.clauses) {
    for (const Range& r : c.box) {
      add_sources(m, r.lo, out);
      add_sources(m, r.hi, out);
    }
  }
  for_each_body(m, id, [&](ExprId body) { add_sources(m, body, out); });
  return out;
}

// Tarjan's strongly connected components, with a stack of its own: programs may be long.
class Components {
 public:
  explicit Components(const Module& m) : m_(m) {}

  void visit(FamilyId root) {
    if (nodes_.contains(root)) return;
    open(root);
    while (!path_.empty()) {
      FamilyId id = path_.back();
      Node& node = nodes_.at(id);
      if (node.next < node.reads.size()) {
        FamilyId read = node.reads[node.next++];
        auto it = nodes_.find(read);
        if (it == nodes_.end()) {
          open(read);
        } else if (it->second.waits) {
          node.low = std::min(node.low, it->second.number);
        }
        continue;
      }
      path_.pop_back();
      if (!path_.empty()) {
        Node& reader = nodes_.at(path_.back());
        reader.low = std::min(reader.low, node.low);
      }
      if (node.low == node.number) close(id);
    }
  }

  std::vector<EvalGroup> groups;

 private:
  struct Node {
    std::vector<FamilyId> reads;
    size_t next = 0;  // to be looked at
    size_t number = 0, low = 0;
    bool waits = true;  // for its group
  };

  void open(FamilyId id) {
    Node node{families_read(m_, id)};
    node.number = node.low = nodes_.size();
    nodes_.emplace(id, std::move(node));
    path_.push_back(id);
    waiting_.push_back(id);
  }

  void close(FamilyId first) {
    EvalGroup group;
    for (FamilyId id; id != first;) {
      id = waiting_.back();
      waiting_.pop_back();
      nodes_.at(id).waits = false;
      group.members.push_back(id);
    }
    std::reverse(group.members.begin(), group.members.end());
    const auto& reads = nodes_.at(first).reads;
    group.cyclic =
        group.members.size() > 1 || std::find(reads.begin(), reads.end(), first) != reads.end();
    groups.push_back(std::move(group));
  }

  const Module& m_;
  std::unordered_map<FamilyId, Node> nodes_;
  std::vector<FamilyId> path_, waiting_;
};

// A read of `to` at its coordinate `q`, from the cell whose coordinate `p` is `distance` less.
struct Move {
  FamilyId from, to;
  uint32_t p, q;
  int64_t distance;
};

std::optional<std::pair<uint32_t, int64_t>> slot_and_distance(const Module& m, ExprId e) {
  if (const auto* s = get_if<Slot>(m, e)) return {{s->n, 0}};
  const auto* sum = get_if<Affine>(m, e);
  if (!sum || sum->terms.size() != 1 || sum->terms[0].coef != 1) return std::nullopt;
  const auto* s = get_if<Slot>(m, sum->terms[0].atom);
  if (!s) return std::nullopt;
  return {{s->n, sum->constant}};
}

std::vector<Move> moves_in(const Module& m, const EvalGroup& group) {
  std::unordered_set<FamilyId> inside(group.members.begin(), group.members.end());
  std::vector<Move> out;
  for (FamilyId from : group.members) {
    for_each_body(m, from, [&](ExprId body) {
      for_each_node(m, body, [&](ExprId e) {
        const auto* a = get_if<Access>(m, e);
        if (!a || !inside.contains(a->family)) return;
        for (uint32_t q = 0; q < a->at.size(); ++q) {
          auto found = slot_and_distance(m, a->at[q]);
          if (!found || found->first >= m[from].rank()) continue;
          out.push_back({from, a->family, found->first, q, found->second});
        }
      });
    });
  }
  return out;
}

// Steps go along the first coordinate that a read moves along, preferably of a family that reads
// itself; families that are read in the same step go along.
void guess_walks(const Module& m, EvalGroup& group) {
  std::vector<Move> moves = moves_in(m, group);
  auto moving = [](const Move& x) { return x.distance != 0; };
  auto itself = [&](const Move& x) { return moving(x) && x.from == x.to && x.p == x.q; };
  auto seed = std::find_if(moves.begin(), moves.end(), itself);
  if (seed == moves.end()) seed = std::find_if(moves.begin(), moves.end(), moving);
  if (seed == moves.end()) return;
  group.downward = seed->distance > 0;
  std::map<FamilyId, uint32_t> along = {{seed->from, seed->p}};
  for (bool changed = true; changed;) {
    changed = false;
    for (const Move& x : moves) {
      auto from = along.find(x.from), to = along.find(x.to);
      if (from != along.end() && to == along.end() && from->second == x.p) {
        changed = along.emplace(x.to, x.q).second;
      } else if (to != along.end() && from == along.end() && to->second == x.q) {
        changed = along.emplace(x.from, x.p).second;
      }
    }
  }
  for (FamilyId id : group.members) {
    if (auto it = along.find(id); it != along.end()) group.walks.push_back({id, it->second});
  }
}

}  // namespace

std::vector<EvalGroup> eval_order(const Module& m, const std::vector<FamilyId>& wanted) {
  std::vector<FamilyId> needed = wanted;
  if (needed.empty()) {
    for (uint32_t i = 0; i < m.families.size(); ++i) needed.push_back(FamilyId(i));
  }
  std::unordered_set<FamilyId> seen(needed.begin(), needed.end());
  for (size_t i = 0; i < needed.size(); ++i) {
    for (FamilyId id : families_needed(m, needed[i])) {
      if (seen.insert(id).second) needed.push_back(id);
    }
  }
  std::sort(needed.begin(),
            needed.end());  // in the order of the program, where nothing else decides
  Components found(m);
  for (FamilyId id : needed) found.visit(id);
  for (EvalGroup& group : found.groups) {
    if (group.cyclic) guess_walks(m, group);
  }
  return std::move(found.groups);
}

}  // namespace ein::core
