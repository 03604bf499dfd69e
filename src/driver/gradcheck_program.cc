#include "driver/gradcheck_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <unordered_map>

#include "autodiff/custom.h"
#include "autodiff/sweep.h"
#include "core/build.h"
#include "core/normal.h"
#include "core/prove.h"
#include "core/rewrite.h"

namespace ein {
namespace {

using core::Access;
using core::Apply;
using core::Clause;
using core::Coord;
using core::Expr;
using core::ExprId;
using core::Facts;
using core::Family;
using core::FamilyId;
using core::Module;
using core::Node;
using core::Op;
using core::Reduce;
using core::ReduceOp;
using core::Request;

// The request that a clause consists of, under at most one gate.
const Request* whole_request(const Module& m, const Clause& c, ExprId& gate) {
  gate = {};
  ExprId body = c.body;
  if (const auto* a = get_if<Apply>(m, body); a && a->op == Op::Select) {
    gate = a->args[0];
    body = a->args[1];
  }
  return get_if<Request>(m, body);
}

struct Unreachable {
  FamilyId in;
  ExprId node;
};

// Gives every node that `wanted` names, where it is part of a larger expression, a family of its
// own. Returns those that could not get one.
std::vector<Unreachable> isolate(Module& m, const std::function<bool(const Node&)>& wanted,
                                 const std::function<std::string(ExprId)>& name) {
  std::vector<Unreachable> out;
  std::set<ExprId> given_up;
  size_t families = m.families.size();
  for (uint32_t i = 0; i < families; ++i) {
    FamilyId id(i);
    for (size_t c = 0; c < m[id].clauses.size(); ++c) {
      for (bool again = true; again;) {
        again = false;
        const Clause clause = m[id].clauses[c];
        if (m[id].clauses.size() == 1 && wanted(m[clause.body].node)) break;
        ExprId found;
        Facts where;
        bool same = true;  // wherever it stands
        for_each_with_facts(m, clause, wanted, [&](ExprId e, const Facts& facts) {
          if (found ? e != found : given_up.contains(e)) return;
          if (!found) where = facts;
          found = e;
          same = same && where.holds == facts.holds && same_ranges(m, e, where.slots, facts.slots);
        });
        if (!found) continue;
        again = true;
        if (!same) {
          given_up.insert(found);
          out.push_back({id, found});
          continue;
        }
        ExprId read = hoist(m, name(found), found, all_of(m, where.holds), where,
                            coordinate_names(m[id]), m[found].span);
        if (!read) {
          given_up.insert(found);
          out.push_back({id, found});
          continue;
        }
        m.families[get_if<Access>(m, read)->family].generated = false;  // its values are looked at
        m.families[id].clauses[c].body =
            rewrite(m, clause.body, [&](ExprId x) { return x == found ? read : x; });
      }
    }
  }
  return out;
}

// A family over the coordinates of `like` with `body` where its last clause computes (`gate`), −1
// elsewhere.
std::string add_address(Module& m, FamilyId like, ExprId gate, ExprId body) {
  Family f = m[like];
  f.name = fresh_name(m, text(f.name) + "_at");
  f.dtype = DType::I64;
  f.generated = false;
  ExprId none = int_lit(m, -1);
  for (Clause& c : f.clauses) c.body = none;
  f.clauses.back().body = gate ? apply(m, Op::Select, {gate, body, none}) : body;
  Symbol name = f.name;
  m.families.add(std::move(f));
  return text(name);
}

Derivative describe(Module& m, FamilyId holder) {
  ExprId gate;
  const Clause clause = m[holder].clauses.back();
  const Request r = *whole_request(m, clause, gate);
  Derivative d;
  d.holder = d.name = text(m[holder].name);
  d.of = text(m[r.num].name);
  d.wrt = text(m[r.den].name);
  d.request = fmt::format("@{} / @{}", d.of, d.wrt);
  d.span = clause.span;
  for (FamilyId f : {holder, r.num, r.den}) {
    m.families[f].generated = false;  // their values are looked at
  }
  for (ExprId e : r.num_at) d.num_at.push_back(add_address(m, holder, gate, e));
  for (ExprId e : r.den_at) d.den_at.push_back(add_address(m, holder, gate, e));
  return d;
}

// A rule marked `#[surrogate]` on the path from denominator to numerator.
bool passes_surrogate(const Module& m, const std::string& of, const std::string& wrt) {
  if (m.surrogates.empty()) return false;
  autodiff::Sweep sweep{
      {m.find(intern(of))}, {m.find(intern(wrt))}, {}, autodiff::tangent_families(m)};
  for (FamilyId f : autodiff::cone(m, sweep)) {
    bool found = false;
    for_each_body(m, f, [&](ExprId body) {
      for_each_node_called(m, body, [&](ExprId e) {
        found |= autodiff::is_rule(m, e) && std::find(m.surrogates.begin(), m.surrogates.end(),
                                                      m[e].span) != m.surrogates.end();
      });
    });
    if (found) return true;
  }
  return false;
}

}  // namespace

std::vector<Derivative> derivatives_of(Module& m, const std::vector<std::string>& only) {
  std::set<FamilyId> written;  // requests that are a statement of their own
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    const Family& f = m[FamilyId(i)];
    if (f.clauses.size() == 1 && get_if<Request>(m, f.clauses[0].body)) written.insert(FamilyId(i));
  }
  auto is_request = [](const Node& n) { return std::holds_alternative<Request>(n); };
  std::vector<Unreachable> unreachable = isolate(m, is_request, [&](ExprId e) {
    const Request& r = *get_if<Request>(m, e);
    return fmt::format("d_{}_d_{}", text(m[r.num].name), text(m[r.den].name));
  });
  std::vector<Derivative> out;
  for (uint32_t i = 0, n = static_cast<uint32_t>(m.families.size()); i < n; ++i) {
    FamilyId id(i);
    ExprId gate;
    if (m[id].clauses.empty() || !whole_request(m, m[id].clauses.back(), gate)) continue;
    bool kept = only.empty() || std::find(only.begin(), only.end(), text(m[id].name)) != only.end();
    if (!kept) continue;
    Derivative d = describe(m, id);
    if (!written.contains(id)) d.name = d.request;
    if (passes_surrogate(m, d.of, d.wrt)) d.why_not = "not compared: depends on a surrogate rule";
    out.push_back(std::move(d));
  }
  for (const Unreachable& u : unreachable) {
    if (!only.empty()) break;
    const Request r = *get_if<Request>(m, u.node);
    Derivative d;
    d.of = text(m[r.num].name);
    d.wrt = text(m[r.den].name);
    d.name = d.request = fmt::format("@{} / @{}", d.of, d.wrt);
    d.span = m[u.node].span;
    d.why_not =
        fmt::format("not compared: it is inside a reduction of `{}` whose range is not fixed",
                    text(m[u.in].name));
    out.push_back(std::move(d));
  }
  return out;
}

Derivative claimed_derivative(Module& m, const std::string& value, const std::string& of,
                              const std::string& wrt) {
  FamilyId holder = m.find(intern(value)), num = m.find(intern(of)), den = m.find(intern(wrt));
  Derivative d;
  d.request = fmt::format("@{} / @{}", of, wrt);
  d.of = of;
  d.wrt = wrt;
  if (m[holder].rank() != m[num].rank() + m[den].rank()) {
    d.why_not = fmt::format("`{}` has {} coordinates; the derivative of `{}` by `{}` has {}", value,
                            m[holder].rank(), of, wrt, m[num].rank() + m[den].rank());
    return d;
  }
  d.holder = d.name = value;
  d.span = m[holder].span;
  for (FamilyId f : {holder, num, den}) m.families[f].generated = false;
  Family like = m[holder];  // one clause, whatever the value's own are
  like.kind = Family::Kind::Defined;
  like.cells.clear();
  like.clauses.assign(1, {});
  for (const Coord& c : like.coords) like.clauses[0].box.push_back({int_lit(m, 0), c.extent});
  like.clauses[0].body = int_lit(m, 0);
  like.dtype = DType::I64;
  like.file = nullptr;
  like.name = fresh_name(m, value + "_cells");
  FamilyId cells = m.families.add(std::move(like));
  for (uint32_t k = 0; k < m[holder].rank(); ++k) {
    auto& at = k < m[num].rank() ? d.num_at : d.den_at;
    at.push_back(add_address(m, cells, {}, slot(m, k)));
  }
  if (passes_surrogate(m, of, wrt)) d.why_not = "not compared: depends on a surrogate rule";
  return d;
}

namespace {

// A family over coordinates `own` that sums `body` over `over`; in `body` the slots are `own`, then
// `over`.
FamilyId add_sum(Module& m, const std::string& name, const std::vector<Coord>& own,
                 const std::vector<Coord>& over, DType dtype, ExprId body) {
  Family f;
  f.name = fresh_name(m, name);
  f.dtype = dtype;
  f.coords = own;
  Clause c;
  for (const Coord& k : own) c.box.push_back({int_lit(m, 0), k.extent});
  Reduce r{ReduceOp::Sum, static_cast<uint32_t>(own.size()), {}, {}, {}, {}, body};
  for (const Coord& k : over) {
    r.over.push_back({int_lit(m, 0), k.extent});
    r.names.push_back(k.name);
  }
  c.body = reduce(m, std::move(r));
  f.clauses.push_back(std::move(c));
  return m.families.add(std::move(f));
}

}  // namespace

Paired paired(Module asked, const std::string& of, const std::string& wrt) {
  Paired out{std::move(asked)};
  Module& m = out.module;
  FamilyId num = m.find(intern(of)), den = m.find(intern(wrt));
  const std::vector<Coord> n = m[num].coords, d = m[den].coords;
  uint32_t rank_n = m[num].rank(), rank_d = m[den].rank();
  DType type = m[num].dtype;
  auto input = [&](const std::string& base, const std::vector<Coord>& coords) {
    Family f;
    f.name = fresh_name(m, base);
    f.kind = Family::Kind::Input;
    f.dtype = type;
    f.coords = coords;
    return m.families.add(std::move(f));
  };
  FamilyId v = input("pair_v", d), w = input("pair_w", n);
  // J v, then its product with w.
  ExprId jv =
      mul(m, request(m, {num, slots_from(m, 0, rank_n), den, slots_from(m, rank_n, rank_d)}),
          access(m, v, slots_from(m, rank_n, rank_d)));
  FamilyId moved = add_sum(m, "pair_jv", n, d, type, jv);
  auto dot = [&](const char* name, FamilyId a, FamilyId b, const std::vector<Coord>& over) {
    auto rank = static_cast<uint32_t>(over.size());
    ExprId body =
        mul(m, access(m, a, slots_from(m, 0, rank)), access(m, b, slots_from(m, 0, rank)));
    return text(m[add_sum(m, name, {}, over, type, body)].name);
  };
  ExprId vj = mul(m, access(m, w, slots_from(m, rank_d, rank_n)),
                  request(m, {num, slots_from(m, rank_d, rank_n), den, slots_from(m, 0, rank_d)}));
  FamilyId pulled = add_sum(m, "pair_vj", d, n, type, vj);
  out.v = text(m[v].name);
  out.w = text(m[w].name);
  out.left = dot("pair_left", moved, w, n);
  out.right = dot("pair_right", pulled, v, d);
  return out;
}

std::vector<std::string> hold_stopped(Module& m, bool& all) {
  auto is_stop = [](const Node& n) {
    const auto* a = std::get_if<Apply>(&n);
    return a && a->op == Op::Stop;
  };
  all = isolate(m, is_stop, [](ExprId) { return "held"; }).empty();
  std::vector<std::string> out;
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    Family& f = m.families[FamilyId(i)];
    bool stops = false;
    for_each_body(m, FamilyId(i), [&](ExprId body) {
      for_each_node(m, body, [&](ExprId e) { stops |= is_stop(m[e].node); });
    });
    if (!stops) continue;
    f.generated = false;
    out.push_back(text(f.name));
  }
  return out;
}

std::string shift_of(const std::string& family) { return family + " (shift)"; }

Shifted shifted(Module asked, const std::vector<std::string>& families,
                const std::vector<std::string>& held) {
  Shifted out{std::move(asked), {}};
  Module& m = out.module;
  for (const std::string& name : held) {
    Family& f = m.families[m.find(intern(name))];
    f.kind = Family::Kind::Input;
    f.clauses.clear();
  }
  std::unordered_map<FamilyId, FamilyId> instead;  // by family: the one to read instead
  for (const std::string& name : families) {
    FamilyId id = m.find(intern(name));
    Family shift;
    shift.name = intern(shift_of(name));
    shift.kind = Family::Kind::Input;
    shift.dtype = m[id].dtype;
    shift.coords = m[id].coords;
    FamilyId by = m.families.add(std::move(shift));
    std::vector<ExprId> here;
    for (uint32_t k = 0; k < m[id].rank(); ++k) here.push_back(slot(m, k));
    ExprId added = access(m, by, here);
    if (m[id].kind == Family::Kind::Defined) {
      for (Clause& c : m.families[id].clauses) c.body = add(m, c.body, added);
      continue;
    }
    Family moved;
    moved.name = fresh_name(m, name + "_moved");
    out.moved[name] = text(moved.name);
    moved.dtype = m[id].dtype;
    moved.coords = m[id].coords;
    Clause c;
    for (const Coord& k : moved.coords) c.box.push_back({int_lit(m, 0), k.extent});
    c.body = add(m, access(m, id, here), added);
    moved.clauses.push_back(std::move(c));
    instead[id] = m.families.add(std::move(moved));
  }
  if (instead.empty()) return out;
  auto other = [&](FamilyId f) {
    auto it = instead.find(f);
    return it == instead.end() ? f : it->second;
  };
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    FamilyId id(i);
    if (std::any_of(instead.begin(), instead.end(), [&](auto& p) { return p.second == id; })) {
      continue;
    }
    rewrite_family(m, id, [&](ExprId e) {
      return rewrite(m, e, [&](ExprId x) {
        const Expr node = m[x];
        if (const auto* a = std::get_if<Access>(&node.node); a && other(a->family) != a->family) {
          return access(m, other(a->family), a->at, node.span);
        }
        if (const auto* r = std::get_if<Request>(&node.node)) {
          return request(m, {other(r->num), r->num_at, other(r->den), r->den_at}, node.span);
        }
        return x;
      });
    });
  }
  return out;
}

}  // namespace ein
