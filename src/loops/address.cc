#include "loops/address.h"

#include <algorithm>

namespace ein::loops {

namespace {

ExprId meant(const Program& p, const Lets& lets, ExprId e) {
  const auto* g = std::get_if<Get>(&p.exprs[e].node);
  auto it = g ? lets.find(g->var) : lets.end();
  return it == lets.end() ? e : meant(p, lets, it->second);
}

std::optional<Index> still(const Linear& sum, VarId step, const std::set<VarId>& moving) {
  Index out{{}, sum.constant};
  for (const auto& [node, factor] : sum.terms) {
    const auto* get = std::get_if<Get>(&node);
    if (get && (get->var == step || moving.contains(get->var))) return {};
    out.terms.emplace_back(get, get ? get->var.v : std::get<Param>(node).index, factor);
  }
  std::sort(out.terms.begin(), out.terms.end());
  return out;
}

}  // namespace

std::set<VarId> bound_in(const Loop& n) {
  std::set<VarId> out;
  for_each_stmt(n.body, [&](const Stmt& s) {
    if (const auto* x = std::get_if<Declare>(&s.node)) out.insert(x->var);
    if (const auto* x = std::get_if<Invoke>(&s.node)) out.insert(x->var);
    if (const auto* x = std::get_if<Loop>(&s.node)) out.insert(x->var);
  });
  return out;
}

std::optional<Address> address_in(const Program& p, const Lets& lets, VarId step,
                                  const std::set<VarId>& moving, const std::vector<ExprId>& at) {
  Sums sums{p, lets};
  Address out;
  for (size_t k = 0; k < at.size(); ++k) {
    ExprId e = meant(p, lets, at[k]);
    auto sum = sums.of(e);
    if (auto index = sum ? still(*sum, step, moving) : std::nullopt) {
      out.cell.push_back(std::move(*index));
      continue;
    }
    const auto* mod = std::get_if<Apply>(&p.exprs[e].node);
    if (mod && mod->op == core::Op::Mod) {
      auto by = constant(p, mod->args[1]);
      if (!by) return {};
      out.ring = *by;
      e = mod->args[0];
    }
    auto offset = sums.offset(e, step);
    if (!offset || out.axis) return {};
    out.axis = k;
    out.offset = *offset;
  }
  return out;
}

}  // namespace ein::loops
