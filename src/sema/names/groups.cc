// Which definitions of a scope read each other.
#include "base/components.h"
#include "sema/names/names.h"
#include "sema/names/trees.h"
#include "sema/state/name_state.h"

namespace ein::sema {

void find_groups(Sema& s, Scope& scope) {
  std::vector<Definition*> all;
  std::unordered_map<const Definition*, uint32_t> place;
  for (Definition& d : scope.definitions) {
    place.emplace(&d, static_cast<uint32_t>(all.size()));
    all.push_back(&d);
  }
  std::vector<std::vector<uint32_t>> reads(all.size()), edges(all.size());
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
  for (const std::vector<uint32_t>& members : components(edges)) {
    int group = static_cast<int>(s.names.groups.size());
    for (uint32_t m : members) all[m]->group = group;
    bool recurrent = false;
    for (uint32_t m : members) {
      for (uint32_t r : reads[m]) recurrent |= all[r]->group == group;
    }
    std::vector<Definition*>& out = s.names.groups.emplace_back();
    for (uint32_t m : members) {  // in source order
      all[m]->recurrent = recurrent;
      out.push_back(all[m]);
    }
    scope.order.insert(scope.order.end(), out.begin(), out.end());
  }
}

}  // namespace ein::sema
