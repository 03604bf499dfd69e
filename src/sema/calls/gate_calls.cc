// A gate over a coordinate call restricts that coordinate inside the callee (decisions.md, 17). The
// gate is applied when the body has been elaborated, because only then is it known which slots
// address the gated coordinate: those that are alone on it in an access to an argument (which is a
// family of this call alone), and those alone on a coordinate of a local that such a slot became.
// In a recurrence the second kind is found by iteration. Every reduction over such a slot gets the
// gate, and every family over it is zero where the gate fails. Any other use of the coordinate is
// an error.
#include <fmt/format.h>

#include <algorithm>

#include "sema/calls/coords.h"
#include "sema/expressions/expressions.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

constexpr int kNone = -1;
using Roles = std::vector<int>;  // per coordinate: which coordinate of the gate it is

struct Gating {
  Sema& s;
  const CallGate& gate;
  const ast::Fn& fn;
  std::map<FamilyId, Roles> roles;
  bool bad = false;

  bool gated(int role) const {
    return gate.names.count(gate.gate.coords[static_cast<size_t>(role)].name) > 0;
  }

  void fail(const std::string& why) {
    if (!bad) {
      s.diags
          .error(Code::E0316, fmt::format("this `where` cannot be applied inside {}: {}",
                                          quoted(fn.name.symbol), why))
          .primary(gate.span, "")
          .label(fn.name.span, "the function")
          .help("put the `where` on the argument before the call, or on the result after it");
    }
    bad = true;
  }

  // Learns the roles of a body's own coordinates, its first `rank` slots, from the accesses in it.
  bool learn(CoreId body, uint32_t rank, Roles& own) {
    bool changed = false;
    core::for_each_node(s.m, body, [&](CoreId e) {
      const auto* a = core::get_if<core::Access>(s.m, e);
      auto it = a ? roles.find(a->family) : roles.end();
      if (it == roles.end()) return;
      for (size_t p = 0; p < a->at.size(); ++p) {
        int role = it->second[p];
        if (role == kNone) continue;
        uint32_t slot = core::slot_of(s.m, a->at[p]);
        if (slot == ~0u && gated(role)) {
          fail("it reads the masked coordinate at an offset or through data");
          return;
        }
        if (slot >= rank || own[slot] == role) continue;
        if (own[slot] != kNone && (gated(role) || gated(own[slot]))) {
          fail("it uses one index for two coordinates of the condition");
          return;
        }
        if (own[slot] != kNone) continue;
        own[slot] = role;
        changed = true;
      }
    });
    return changed;
  }

  // The gate at these addresses, one per coordinate of the gate; invalid after an error.
  CoreId at(const std::vector<CoreId>& addresses, uint32_t depth) {
    for (CoreId e : addresses) {
      if (e) continue;
      fail("it does not use all coordinates of the condition together");
      return {};
    }
    return cell(s.m, gate.gate, addresses, depth);
  }

  // The gate at the addresses that a reduction reads; invalid when it does not run over the
  // coordinate.
  CoreId condition_of(const core::Reduce& r) {
    auto n = static_cast<uint32_t>(r.over.size());
    auto binds = [&](CoreId e) {
      uint32_t slot = core::slot_of(s.m, e);
      return slot != ~0u && slot >= r.first && slot < r.first + n;
    };
    std::vector<CoreId> addresses(gate.gate.coords.size());
    bool over = false;
    auto look = [&](CoreId root) {
      if (!root) return;
      core::for_each_node(s.m, root, [&](CoreId e) {
        const auto* a = core::get_if<core::Access>(s.m, e);
        auto it = a ? roles.find(a->family) : roles.end();
        if (it == roles.end() || bad) return;
        bool here = false;
        for (size_t p = 0; p < a->at.size(); ++p) {
          int role = it->second[p];
          here |= role != kNone && gated(role) && binds(a->at[p]);
        }
        if (!here) return;
        over = true;
        for (size_t p = 0; p < a->at.size(); ++p) {
          int role = it->second[p];
          if (role == kNone) continue;
          if (gated(role) && !binds(a->at[p])) {
            return fail("a reduction does not run over all masked coordinates");
          }
          if (s.m[a->at[p]].level() >= static_cast<int32_t>(r.first + n)) {
            return fail("a reduction depends on other coordinates of the condition");
          }
          CoreId& known = addresses[static_cast<size_t>(role)];
          if (known && known != a->at[p]) {
            return fail("a reduction reads its operands at different cells of the condition");
          }
          known = a->at[p];
        }
      });
    };
    look(r.body);
    look(r.gate);
    if (!over || bad) return {};
    return at(addresses, r.first + n);
  }

  CoreId rewrite(CoreId e, std::unordered_map<CoreId, CoreId>& memo) {
    if (auto it = memo.find(e); it != memo.end()) return it->second;
    auto go = [&](CoreId x) { return rewrite(x, memo); };
    CoreId out;
    const core::Expr x = s.m[e];
    if (const auto* r = std::get_if<core::Reduce>(&x.node)) {
      out = with_gate(*r, condition_of(*r), x.span, memo);
    } else if (Mean mean = as_mean(s.m, x); mean.sum) {
      CoreId cond = condition_of(*mean.sum);
      CoreId sum =
          with_gate(*mean.sum, cond, s.m[std::get<core::Apply>(x.node).args[0]].span, memo);
      CoreId count = with_gate(*mean.count, cond, x.span, memo);
      out = quotient(s.m, sum, count, x.type, x.span);
    } else {
      out = core::map_children(s.m, e, go);
    }
    return memo[e] = out;
  }

  CoreId with_gate(core::Reduce r, CoreId cond, Span span,
                   std::unordered_map<CoreId, CoreId>& memo) {
    r.body = rewrite(r.body, memo);
    if (r.gate) r.gate = rewrite(r.gate, memo);
    if (cond) r.gate = core::both(s.m, cond, r.gate);
    return core::reduce(s.m, std::move(r), span);
  }

  // A body with its reductions gated, and zero where the gate fails for its own coordinates.
  CoreId apply(CoreId body, const Roles& own, uint32_t rank, DType type) {
    std::unordered_map<CoreId, CoreId> memo;
    body = rewrite(body, memo);
    std::vector<CoreId> addresses(gate.gate.coords.size());
    bool over = false;
    for (uint32_t n = 0; n < own.size(); ++n) {
      if (own[n] == kNone) continue;
      over |= gated(own[n]);
      addresses[static_cast<size_t>(own[n])] = core::slot(s.m, n);
    }
    if (!over || bad) return body;
    CoreId cond = at(addresses, rank);
    if (!cond) return body;
    return core::apply(s.m, core::Op::Select, {cond, body, zero(s.m, type)});
  }
};

}  // namespace

Value gate_call(Sema& s, Env& env, const CallGate& gate, uint32_t first, Value result,
                const ast::Fn& fn) {
  Gating g{s, gate, fn, {}, false};
  for (const CallGate::Source& source : gate.sources) {
    const core::Family& f = s.m[source.family];
    Roles own(f.coords.size(), kNone);
    for (size_t p = source.prefix; p < own.size(); ++p) {
      for (size_t c = 0; c < gate.gate.coords.size(); ++c) {
        if (gate.gate.coords[c].name == f.coords[p].name) own[p] = static_cast<int>(c);
      }
    }
    g.roles[source.family] = std::move(own);
  }
  std::vector<FamilyId> made;
  for (uint32_t i = first; i < s.m.families.size(); ++i) {
    if (s.m[FamilyId(i)].kind != core::Family::Kind::Defined) continue;
    made.push_back(FamilyId(i));
    g.roles[FamilyId(i)] = Roles(s.m[FamilyId(i)].coords.size(), kNone);
  }
  for (bool changed = true; changed && !g.bad;) {
    changed = false;
    for (FamilyId id : made) {
      Roles own = g.roles[id];
      for (const core::Clause& c : s.m[id].clauses) changed |= g.learn(c.body, s.m[id].rank(), own);
      g.roles[id] = own;
    }
  }
  std::vector<Value*> parts;
  if (result.kind == Value::Kind::Tuple) {
    for (Value& item : result.items) parts.push_back(&item);
  } else {
    parts.push_back(&result);
  }
  std::vector<Roles> owns;
  for (Value*& v : parts) {
    *v = moved(s.m, as_data(s, env, std::move(*v)), env.depth);
    if (v->poison()) return {};
    auto rank = env.depth + static_cast<uint32_t>(v->coords.size());
    g.learn(v->body, rank, owns.emplace_back(rank, kNone));
  }
  if (g.bad) return {};
  for (FamilyId id : made) {
    core::Family& f = s.m.families[id];
    for (core::Clause& c : f.clauses) c.body = g.apply(c.body, g.roles[id], f.rank(), f.dtype);
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    auto rank = static_cast<uint32_t>(owns[i].size());
    parts[i]->body = g.apply(parts[i]->body, owns[i], rank, parts[i]->type);
  }
  return g.bad ? Value{} : result;
}

}  // namespace ein::sema
