#include "autodiff/custom.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "autodiff/linearise.h"
#include "core/build.h"
#include "core/rewrite.h"

namespace ein::autodiff {

using namespace core;

bool is_rule(const Module& m, ExprId e) {
  const auto* a = get_if<Apply>(m, e);
  return a && a->op == Op::Rule;
}

ExprId rule_value(const Module& m, ExprId e) { return get_if<Apply>(m, e)->args[0]; }

bool has_rules(const Module& m) {
  bool found = false;
  auto look = [&](ExprId body) {
    for_each_node(m, body, [&](ExprId e) { found |= is_rule(m, e); });
  };
  for (const Function& f : m.functions) {
    if (f.body) look(f.body);
  }
  for (uint32_t i = 0; i < m.families.size() && !found; ++i) for_each_body(m, FamilyId(i), look);
  return found;
}

std::set<FamilyId> tangent_families(const Module& m) {
  std::set<FamilyId> out;
  std::unordered_map<ExprId, bool> seen;
  // Outside of rules: the walk does not enter one.
  std::function<bool(ExprId)> bare = [&](ExprId e) {
    if (auto it = seen.find(e); it != seen.end()) return it->second;
    const auto* apply = get_if<Apply>(m, e);
    const auto* read = get_if<Access>(m, e);
    bool found = (apply && apply->op == Op::Tangent) || (read && out.contains(read->family));
    if (!apply || apply->op != Op::Rule) {
      for_each_child(m, e, [&](ExprId c) { found = found || bare(c); });
    }
    return seen[e] = found;
  };
  for (bool again = true; again;) {
    again = false;
    seen.clear();
    for (uint32_t i = 0; i < m.families.size(); ++i) {
      if (out.contains(FamilyId(i))) continue;
      bool found = false;
      for_each_body(m, FamilyId(i), [&](ExprId body) { found = found || bare(body); });
      again |= found && out.insert(FamilyId(i)).second;
    }
  }
  return out;
}

bool has_rule(const Module& m, FamilyId family) {
  const std::vector<Clause>& clauses = m[family].clauses;
  return !clauses.empty() && std::all_of(clauses.begin(), clauses.end(),
                                         [&](const Clause& c) { return is_rule(m, c.body); });
}

DType tangent_type(const Module& m, FamilyId family) {
  if (is_float(m[family].dtype) || !has_rule(m, family)) return m[family].dtype;
  return m[get_if<Apply>(m, m[family].clauses[0].body)->args[1]].type;
}

void drop_rules(Module& m) {
  std::set<FamilyId> tangents = tangent_families(m);
  auto values = [&](ExprId e) {
    return rewrite(m, e, [&](ExprId x) { return is_rule(m, x) ? rule_value(m, x) : x; });
  };
  for (Function& f : m.functions) {
    if (f.body) f.body = values(f.body);
  }
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    FamilyId f(i);
    if (tangents.contains(f)) {
      for (Clause& c : m.families[f].clauses) c.body = number(m, 0, m[f].dtype);
      m.families[f].generated = true;
      continue;
    }
    rewrite_family(m, f, values);
  }
}

}  // namespace ein::autodiff
