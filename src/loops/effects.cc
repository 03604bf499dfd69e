#include "loops/effects.h"

#include "loops/walk.h"

namespace ein::loops {

Effects effects(const Program& p, const Stmt& stmt) {
  Effects out;
  auto look = [&](const Stmt& s) {
    for_each_expr(s, [&](ExprId e) {
      for_each_node(p, e, [&](const Node& n) {
        if (const auto* g = std::get_if<Get>(&n)) out.reads.insert(g->var);
        if (const auto* l = std::get_if<Load>(&n)) out.loads.insert(l->buffer);
      });
    });
    match(
        s.node, [&](const Let& n) { out.binds.insert(n.var); },
        [&](const Declare& n) { out.binds.insert(n.var); },
        [&](const Assign& n) { out.changes.insert(n.var); },
        [&](const Store& n) { out.stores.insert(n.buffer); },
        [&](const Update& n) { out.stores.insert(n.buffer); },
        [&](const Fold& n) {
          out.changes.insert(n.acc);
          if (n.arg.valid()) out.changes.insert(n.arg);
        },
        [](const If&) {},
        [&](const Loop& n) {
          out.binds.insert(n.var);
          out.polls |= n.poll.valid();
        },
        [&](const Check&) { out.checks = true; },
        [&](const Contract& n) {
          out.loads.insert({n.a.buffer, n.b.buffer});
          out.stores.insert(n.out.buffer);
        },
        [&](const Invoke& n) {
          out.binds.insert(n.var);
          out.checks = true;
        },
        [&](const Fetch& n) {
          out.stores.insert(n.buffer);
          if (n.from.valid()) out.loads.insert(n.from);
          out.checks = true;
        },
        [&](const Launch& n) { out.binds.insert(n.index); }, [](const Barrier&) {},
        [&](const Combine& n) {
          out.changes.insert(n.acc);
          out.loads.insert(n.parts);
        },
        [&](const Touch& n) {
          out.loads.insert(n.loads.begin(), n.loads.end());
          out.stores.insert(n.stores.begin(), n.stores.end());
        });
  };
  look(stmt);
  for_each_block(stmt, [&](const Block& b) { for_each_stmt(b, look); });
  if (std::holds_alternative<Loop>(stmt.node) || std::holds_alternative<If>(stmt.node) ||
      std::holds_alternative<Launch>(stmt.node)) {
    for (VarId v : out.binds) out.reads.erase(v), out.changes.erase(v);
    out.binds.clear();
  }
  return out;
}

Effects effects(const Program& p, const Block& kernel) {
  Effects out;
  for (const Stmt& s : kernel) {
    Effects e = effects(p, s);
    out.loads.merge(e.loads);
    out.stores.merge(e.stores);
    out.checks |= e.checks;
    out.polls |= e.polls;
  }
  return out;
}

std::optional<std::set<size_t>> moves_along(const Program& p, const Block& block, size_t from,
                                            size_t to) {
  Effects moving = effects(p, block[from]), first = effects(p, block[to]);
  std::set<VarId> needs = moving.reads, changed = first.changes;
  needs.insert(moving.changes.begin(), moving.changes.end());
  // Of the statements that move; of those they pass.
  std::set<BufferId> loads, stores = first.stores;
  std::set<size_t> along;
  for (size_t k = from; k-- > to + 1;) {
    Effects e = effects(p, block[k]);
    if (e.may_stop()) return {};  // reads after a check rely on the check
    if (meet(moving.loads, e.stores) || meet(moving.stores, e.stores) ||
        meet(moving.stores, e.loads)) {
      return {};
    }
    stores.insert(e.stores.begin(), e.stores.end());
    changed.insert(e.changes.begin(), e.changes.end());
    if (!meet(e.binds, needs)) {
      if (meet(moving.changes, e.reads)) return {};
      continue;
    }
    bool plain = std::holds_alternative<Let>(block[k].node) ||
                 std::holds_alternative<Declare>(block[k].node);
    if (!plain) return {};
    needs.insert(e.reads.begin(), e.reads.end());
    loads.insert(e.loads.begin(), e.loads.end());
    along.insert(k);
  }
  if (meet(needs, changed) || meet(loads, stores)) return {};
  return along;
}

void move_up(Block& block, size_t from, size_t to, const std::set<size_t>& along) {
  Block out;
  for (size_t k = 0; k < to; ++k) out.push_back(std::move(block[k]));
  for (size_t k : along) out.push_back(std::move(block[k]));
  for (size_t k = to; k < block.size(); ++k) {
    if (k != from && !along.contains(k)) out.push_back(std::move(block[k]));
  }
  block = std::move(out);
}

}  // namespace ein::loops
