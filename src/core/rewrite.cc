#include "core/rewrite.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "base/check.h"
#include "base/match.h"
#include "core/build.h"
#include "core/total.h"

namespace ein::core {
namespace {

using Map = std::function<ExprId(ExprId)>;

// `on_reduce`: what else changes in a reduction; empty for nothing.
ExprId map_all(Module& m, ExprId e, const Map& f, const std::function<Reduce(Reduce)>& on_reduce) {
  auto list = [&](const std::vector<ExprId>& in) {
    std::vector<ExprId> out;
    out.reserve(in.size());
    for (ExprId x : in) out.push_back(f(x));
    return out;
  };
  const Expr& expr = m[e];  // stays where it is while `f` adds nodes (base/id.h)
  return match(
      expr.node, [&](const FloatLit&) { return e; }, [&](const IntLit&) { return e; },
      [&](const BoolLit&) { return e; }, [&](const Slot&) { return e; },
      [&](const ParamRef&) { return e; },
      [&](const Affine& n) {
        bool changed = false;
        std::vector<ExprId> atoms;
        for (const auto& t : n.terms) {
          atoms.push_back(f(t.atom));
          changed |= atoms.back() != t.atom;
        }
        if (!changed) return e;
        ExprId sum = int_lit(m, n.constant);
        for (size_t i = 0; i < atoms.size(); ++i) {
          sum = add(m, sum, mul(m, int_lit(m, n.terms[i].coef), atoms[i]));
        }
        return sum;
      },
      [&](const Apply& n) {
        std::vector<ExprId> args = list(n.args);
        if (args == n.args) return e;
        if (n.op == Op::Cast) return cast(m, args[0], expr.type, expr.span);
        return apply(m, n.op, std::move(args), expr.span);
      },
      [&](const Access& n) {
        std::vector<ExprId> at = list(n.at);
        return at == n.at ? e : access(m, n.family, std::move(at), expr.span);
      },
      [&](const Reduce& n) {
        Reduce out = n;
        bool changed = false;
        auto replace = [&](ExprId& x) {
          ExprId by = f(x);
          changed |= by != x;
          x = by;
        };
        for (Range& r : out.over) {
          replace(r.lo);
          replace(r.hi);
        }
        for (Route& r : out.routes) replace(r.to);
        if (out.gate) replace(out.gate);
        replace(out.body);
        if (!changed && !on_reduce) return e;
        if (!on_reduce) return reduce(m, std::move(out), expr.span);
        return reduce(m, on_reduce(std::move(out)), expr.span);
      },
      [&](const Request& n) {
        Request out{n.num, list(n.num_at), n.den, list(n.den_at)};
        return request(m, std::move(out), expr.span);
      },
      [&](const Call& n) {
        std::vector<ExprId> args = list(n.args);
        return args == n.args ? e : call(m, n.function, std::move(args), expr.span);
      },
      [&](const Arg&) { return e; });
}

// A set of nodes. Most expressions are small, and a table for each would cost more than the walk.
class Seen {
 public:
  bool add(ExprId e) {
    if (!many_.empty()) return many_.insert(e).second;
    for (size_t i = 0; i < count_; ++i) {
      if (few_[i] == e) return false;
    }
    if (count_ < std::size(few_)) {
      few_[count_++] = e;
      return true;
    }
    many_.insert(few_, few_ + count_);
    return many_.insert(e).second;
  }

 private:
  ExprId few_[16];
  size_t count_ = 0;
  std::unordered_set<ExprId> many_;
};

ExprId memoised(ExprId e, std::unordered_map<ExprId, ExprId>& memo,
                const std::function<ExprId(ExprId)>& visit) {
  if (auto it = memo.find(e); it != memo.end()) return it->second;
  ExprId out = visit(e);
  memo.emplace(e, out);
  return out;
}

}  // namespace

void for_each_child(const Module& m, ExprId e, const std::function<void(ExprId)>& f) {
  match(
      m[e].node, [](const FloatLit&) {}, [](const IntLit&) {}, [](const BoolLit&) {},
      [](const Slot&) {}, [](const ParamRef&) {},
      [&](const Affine& n) {
        for (const auto& t : n.terms) f(t.atom);
      },
      [&](const Apply& n) {
        for (ExprId a : n.args) f(a);
      },
      [&](const Access& n) {
        for (ExprId a : n.at) f(a);
      },
      [&](const Reduce& n) {
        for (const Range& r : n.over) {
          f(r.lo);
          f(r.hi);
        }
        if (n.gate) f(n.gate);
        for (const Route& r : n.routes) f(r.to);
        f(n.body);
      },
      [&](const Request& n) {
        for (ExprId a : n.num_at) f(a);
        for (ExprId a : n.den_at) f(a);
      },
      [&](const Call& n) {
        for (ExprId a : n.args) f(a);
      },
      [](const Arg&) {});
}

void for_each_node(const Module& m, ExprId e, const std::function<void(ExprId)>& f) {
  struct Walk {
    const Module& m;
    const std::function<void(ExprId)>& f;
    Seen seen;
    void visit(ExprId x) {
      if (!seen.add(x)) return;
      for_each_child(m, x, [this](ExprId child) { visit(child); });
      f(x);
    }
  };
  Walk{m, f, {}}.visit(e);
}

ExprId map_children(Module& m, ExprId e, const Map& f) { return map_all(m, e, f, {}); }

ExprId rewrite(Module& m, ExprId e, const Map& f) {
  std::unordered_map<ExprId, ExprId> memo;
  std::function<ExprId(ExprId)> visit = [&](ExprId x) {
    return memoised(x, memo, [&](ExprId y) { return f(map_children(m, y, visit)); });
  };
  return visit(e);
}

ExprId substitute(Module& m, ExprId e, const std::vector<ExprId>& with, uint32_t first_binder) {
  // Binders inside `e` are numbered from with.size() on, so the whole substitution is one map from
  // slots to expressions and needs no environment.
  int64_t shift = static_cast<int64_t>(first_binder) - static_cast<int64_t>(with.size());
  bool identity =
      shift == 0 && std::none_of(with.begin(), with.end(), [](ExprId x) { return x.valid(); });
  if (identity) return e;
  auto moved = [&](uint32_t n) { return static_cast<uint32_t>(static_cast<int64_t>(n) + shift); };
  auto becomes = [&](uint32_t s) {  // how many slots become this one
    size_t count = s >= first_binder ? 1 : 0;
    for (uint32_t n = 0; n < with.size(); ++n) count += with[n] ? slot_of(m, with[n]) == s : n == s;
    return count;
  };
  auto on_reduce = [&](Reduce r) {
    r.first = moved(r.first);
    std::vector<Route> routes;
    for (Route& route : r.routes) {
      ExprId target =
          route.slot < with.size() && with[route.slot] ? with[route.slot] : slot(m, route.slot);
      uint32_t s = slot_of(m, target);
      // If the coordinate is no longer a slot, or shares its slot with another one, the route is
      // ambiguous. It becomes an ordinary gate, which means the same.
      if (s == ~0u || becomes(s) > 1) {
        r.gate = both(m, r.gate, apply(m, Op::Eq, {route.to, target}));
      } else {
        routes.push_back({s, route.to});
      }
    }
    r.routes = std::move(routes);
    return r;
  };
  std::unordered_map<ExprId, ExprId> memo;
  std::function<ExprId(ExprId)> visit = [&](ExprId x) {
    return memoised(x, memo, [&](ExprId y) {
      if (const auto* s = get_if<Slot>(m, y)) {
        if (s->n >= with.size()) return slot(m, moved(s->n), m[y].span);
        return with[s->n] ? with[s->n] : y;
      }
      return map_all(m, y, visit, on_reduce);
    });
  };
  return visit(e);
}

ExprId substitute_slot(Module& m, ExprId e, uint32_t slot, ExprId by) {
  if (!mentions_slot(m, e, slot)) return e;
  std::vector<ExprId> with(slot + 1);
  with[slot] = by;
  return substitute(m, e, with, slot + 1);
}

ExprId substitute_params(Module& m, ExprId e, const std::unordered_map<ParamId, ExprId>& with) {
  return rewrite(m, e, [&](ExprId x) {
    const auto* p = get_if<ParamRef>(m, x);
    if (!p) return x;
    auto it = with.find(p->param);
    return it == with.end() ? x : it->second;
  });
}

bool has_reduce(const Module& m, ExprId e) {
  bool found = false;
  for_each_node(m, e, [&](ExprId x) { found |= get_if<Reduce>(m, x) != nullptr; });
  return found;
}

bool reads_values(const Module& m, ExprId e) {
  bool found = false;
  for_each_node(m, e, [&](ExprId x) { found |= get_if<Access>(m, x) != nullptr; });
  return found;
}

bool mentions_slot(const Module& m, ExprId e, uint32_t slot) {
  return e && ((m[e].free >> slot) & 1) != 0;
}

void for_each_node_called(const Module& m, ExprId e, const std::function<void(ExprId)>& f) {
  std::set<FunctionId> seen;
  std::function<void(ExprId)> visit = [&](ExprId body) {
    for_each_node(m, body, [&](ExprId x) {
      f(x);
      const auto* called = get_if<Call>(m, x);
      if (!called || !seen.insert(called->function).second) return;
      if (ExprId inner = m.functions[called->function].body) visit(inner);
    });
  };
  visit(e);
}

ExprId with_arguments(Module& m, ExprId body, const std::vector<ExprId>& args) {
  return rewrite(m, body, [&](ExprId e) {
    const auto* a = get_if<Arg>(m, e);
    return a ? args[a->n] : e;
  });
}

bool may_fail(const Module& m, ExprId e) {
  bool found = false;
  for_each_node(m, e, [&](ExprId x) {
    const auto* read = get_if<Access>(m, x);
    const auto* called = get_if<Call>(m, x);
    found |= (read && !read->at.empty()) || (called && m.functions[called->function].recursive);
    const auto* a = get_if<Apply>(m, x);
    bool divides = a && (a->op == Op::Div || a->op == Op::Mod) && is_int(m[x].type);
    bool shifts = a && (a->op == Op::Shl || a->op == Op::Shr);
    if (!divides && !shifts) return;
    auto by = shifts ? shift_amount(m, *a) : const_int(m, a->args[1]);
    found |= !by || (divides ? *by == 0 : !shifts_within(m[x].type, *by));
  });
  return found;
}

void for_each_body(const Module& m, FamilyId family, const std::function<void(ExprId)>& f) {
  for (const Clause& c : m[family].clauses) f(c.body);
  for (ExprId c : m[family].cells) f(c);
}

void rewrite_family(Module& m, FamilyId id, const Map& f) {
  Family& family = m.families[id];
  for (Coord& c : family.coords) c.extent = f(c.extent);
  for (Clause& c : family.clauses) {
    for (Range& r : c.box) r = {f(r.lo), f(r.hi)};
    c.body = f(c.body);
  }
  for (ExprId& c : family.cells) c = f(c);
}

void rewrite_all(Module& m, const Map& f) {
  for (uint32_t i = 0; i < m.families.size(); ++i) rewrite_family(m, FamilyId(i), f);
  m.constraints.rewrite(f);
}

size_t node_count(const Module& m) {
  std::unordered_set<ExprId> seen;
  std::function<void(ExprId)> visit = [&](ExprId x) {
    if (!seen.insert(x).second) return;
    for_each_child(m, x, visit);
  };
  for (uint32_t i = 0; i < m.families.size(); ++i) for_each_body(m, FamilyId(i), visit);
  return seen.size();
}

}  // namespace ein::core
