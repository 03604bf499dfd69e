// Which definitions of a scope read each other.
#include <algorithm>

#include "sema/names/names.h"
#include "sema/names/trees.h"
#include "sema/state/name_state.h"

namespace ein::sema {

// Tarjan's components of "reads", over the definitions of one scope. With an explicit stack: a
// chain of definitions may be as long as the program.
void find_groups(Sema& s, Scope& scope) {
  std::vector<Definition*> all;
  std::unordered_map<const Definition*, size_t> place;
  for (Definition& d : scope.definitions) {
    place.emplace(&d, all.size());
    all.push_back(&d);
  }
  std::vector<std::vector<size_t>> reads(all.size()), edges(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    for (ast::StmtId id : all[i]->clauses) {
      // The names of a tuple clause are elaborated together, so they belong together.
      if (const auto* l = std::get_if<ast::Let>(&s.ast[id].node); l && l->tuple) {
        for (const ast::Name& n : l->names) {
          auto it = scope.values.find(n.symbol);
          if (it != scope.values.end() && it->second->scope == &scope) {
            edges[i].push_back(place[it->second]);
          }
        }
      }
      for (Symbol name : clause_names(s, scope, s.ast[id])) {
        auto it = scope.values.find(name);
        if (it != scope.values.end() && it->second->scope == &scope) {
          reads[i].push_back(place[it->second]);
        }
      }
    }
    edges[i].insert(edges[i].end(), reads[i].begin(), reads[i].end());
  }
  constexpr size_t kNew = static_cast<size_t>(-1);
  std::vector<size_t> number(all.size(), kNew), low(all.size()), stack;
  struct Visit {
    size_t definition, edge;
  };
  std::vector<Visit> visits;
  size_t next = 0;
  auto open = [&](size_t d) {
    number[d] = low[d] = next++;
    stack.push_back(d);
    visits.push_back({d, 0});
  };
  auto close = [&](size_t d) {
    int group = static_cast<int>(s.names.groups.size());
    std::vector<size_t> members;
    do {
      members.push_back(stack.back());
      all[stack.back()]->group = group;
      stack.pop_back();
    } while (members.back() != d);
    std::sort(members.begin(), members.end());  // in source order
    bool recurrent = false;
    for (size_t m : members) {
      for (size_t r : reads[m]) recurrent |= all[r]->group == group;
    }
    std::vector<Definition*>& out = s.names.groups.emplace_back();
    for (size_t m : members) {
      all[m]->recurrent = recurrent;
      out.push_back(all[m]);
    }
    scope.order.insert(scope.order.end(), out.begin(), out.end());
  };
  for (size_t root = 0; root < all.size(); ++root) {
    if (number[root] != kNew) continue;
    open(root);
    while (!visits.empty()) {
      size_t d = visits.back().definition;
      if (visits.back().edge < edges[d].size()) {
        size_t to = edges[d][visits.back().edge++];
        if (number[to] == kNew) {
          open(to);
        } else if (all[to]->group < 0) {
          low[d] = std::min(low[d], number[to]);
        }
        continue;
      }
      if (low[d] == number[d]) close(d);
      visits.pop_back();
      if (!visits.empty()) {
        size_t parent = visits.back().definition;
        low[parent] = std::min(low[parent], low[d]);
      }
    }
  }
}

}  // namespace ein::sema
