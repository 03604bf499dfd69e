#include "core/print_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "core/rewrite.h"

namespace ein::core {

std::vector<FamilyId> needed_for(const Module& m, const std::vector<FamilyId>& roots) {
  std::set<FamilyId> out;
  std::vector<FamilyId> todo = roots;
  auto visit = [&](ExprId e) {
    for_each_node(m, e, [&](ExprId x) {
      if (const auto* a = get_if<Access>(m, x)) todo.push_back(a->family);
      if (const auto* p = get_if<ParamRef>(m, x)) todo.push_back(m.params[p->param].source);
    });
  };
  while (!todo.empty()) {
    FamilyId id = todo.back();
    todo.pop_back();
    if (!out.insert(id).second) continue;
    const Family& f = m[id];
    for_each_body(m, id, visit);
    for (const Coord& c : f.coords) visit(c.extent);
    for (const Clause& c : f.clauses) {
      for (const Range& r : c.box) {
        visit(r.lo);
        visit(r.hi);
      }
    }
    todo.insert(todo.end(), f.with.begin(), f.with.end());
  }
  return {out.begin(), out.end()};
}

bool shows(const Module& m, const Effect& e, const std::set<FamilyId>& values) {
  std::vector<FamilyId> shown{e.cond};
  for (const Piece& p : e.pieces) shown.push_back(p.value);
  return std::any_of(shown.begin(), shown.end(), [&](FamilyId id) {
    if (!id || values.contains(id)) return id.valid();
    bool found = false;
    auto visit = [&](ExprId body) {
      for_each_node(m, body, [&](ExprId x) {
        const auto* a = get_if<Access>(m, x);
        found |= a && values.contains(a->family);
      });
    };
    if (m[id].generated) for_each_body(m, id, visit);
    return found;
  });
}

std::set<FunctionId> called_functions(const Module& m, const std::vector<FamilyId>& families) {
  std::set<FunctionId> out;
  std::function<void(ExprId)> visit = [&](ExprId body) {
    if (!body) return;  // it had an error
    for_each_node(m, body, [&](ExprId e) {
      const auto* call = get_if<Call>(m, e);
      if (call && out.insert(call->function).second) visit(m.functions[call->function].body);
    });
  };
  for (FamilyId id : families) for_each_body(m, id, visit);
  std::erase_if(out, [&](FunctionId f) { return !m.functions[f].body; });
  return out;
}

std::vector<FamilyId> reading_order(const Module& m, const std::vector<FamilyId>& wanted) {
  std::vector<FamilyId> out;
  std::set<FamilyId> done;
  std::function<void(FamilyId)> place = [&](FamilyId id) {
    if (!done.insert(id).second) return;
    auto visit = [&](ExprId e) {
      for_each_node(m, e, [&](ExprId x) {
        if (const auto* a = get_if<Access>(m, x); a && m[a->family].generated) place(a->family);
      });
    };
    for_each_body(m, id, visit);
    out.push_back(id);
  };
  for (FamilyId id : wanted) {
    if (!m[id].generated) place(id);
  }
  for (FamilyId id : wanted) place(id);
  return out;
}

void part_names(Module& m) {
  std::set<Symbol> taken;
  for (const Family& f : m.families) taken.insert(f.name);
  for (Function& f : m.functions) {
    const std::string base = text(f.name);
    for (int n = 1; !taken.insert(f.name).second; ++n) {
      f.name = intern(n == 1 ? base + "_of" : fmt::format("{}_of_{}", base, n));
    }
  }
}

}  // namespace ein::core
