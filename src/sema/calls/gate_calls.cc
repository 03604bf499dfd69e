// A gate over a coordinate call restricts that coordinate inside the callee (decisions.md, 17).
// Which slots of the body address the gated coordinate is learnt as the body is elaborated: those
// that are alone on it in an access to an argument (which is a family of this call alone), and
// those alone on a coordinate of a local that such a slot became. As soon as a definition of the
// body is complete, every reduction in it over such a slot gets the gate, and the family is zero
// where the gate fails. A recurrence is gated when all of it is there, because it reads itself: its
// slots are found by iteration. Any other use of the coordinate is an error.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sema/calls/coords.h"
#include "sema/expressions/expressions.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

constexpr int kNone = -1;
using Roles = std::vector<int>;  // per coordinate: which coordinate of the gate it is

struct Gating {
  Sema& s;
  GatedCall& call;
  std::map<FamilyId, Roles>& roles = call.roles;

  bool gated(int role) const {
    return call.names.count(call.gate.coords[static_cast<size_t>(role)].name) > 0;
  }

  void fail(const std::string& why) {
    if (!call.bad) {
      s.diags
          .error(Code::E0316, fmt::format("this `where` cannot be applied inside {}: {}",
                                          quoted(call.fn->name.symbol), why))
          .primary(call.span, "")
          .label(call.fn->name.span, "the function")
          .help("put the `where` on the argument before the call, or on the result after it");
    }
    call.bad = true;
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
    return cell(s.m, call.gate, addresses, depth);
  }

  // The gate at the addresses that a reduction reads; invalid when it does not run over the
  // coordinate.
  CoreId condition_of(const core::Reduce& r) {
    auto n = static_cast<uint32_t>(r.over.size());
    auto binds = [&](CoreId e) {
      uint32_t slot = core::slot_of(s.m, e);
      return slot != ~0u && slot >= r.first && slot < r.first + n;
    };
    std::vector<CoreId> addresses(call.gate.coords.size());
    bool over = false;
    auto look = [&](CoreId root) {
      if (!root) return;
      core::for_each_node(s.m, root, [&](CoreId e) {
        const auto* a = core::get_if<core::Access>(s.m, e);
        auto it = a ? roles.find(a->family) : roles.end();
        if (it == roles.end() || call.bad) return;
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
    if (!over || call.bad) return {};
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
    std::vector<CoreId> addresses(call.gate.coords.size());
    bool over = false;
    for (uint32_t n = 0; n < own.size(); ++n) {
      if (own[n] == kNone) continue;
      over |= gated(own[n]);
      addresses[static_cast<size_t>(own[n])] = core::slot(s.m, n);
    }
    if (!over || call.bad) return body;
    CoreId cond = at(addresses, rank);
    if (!cond) return body;
    return core::apply(s.m, core::Op::Select, {cond, body, zero(s.m, type)});
  }

  // The families of one definition, or of a recurrence: learns, then applies.
  void define(const std::vector<FamilyId>& made) {
    for (FamilyId id : made) roles[id] = Roles(s.m[id].coords.size(), kNone);
    for (bool changed = true; changed && !call.bad;) {
      changed = false;
      for (FamilyId id : made) {
        Roles own = roles[id];
        for (const core::Clause& c : s.m[id].clauses) changed |= learn(c.body, s.m[id].rank(), own);
        roles[id] = own;
      }
    }
    if (call.bad) return;
    for (FamilyId id : made) {
      core::Family& f = s.m.families[id];
      for (core::Clause& c : f.clauses) c.body = apply(c.body, roles[id], f.rank(), f.dtype);
    }
  }
};

}  // namespace

void gate_argument(Sema& s, GatedCall& call, FamilyId family, size_t prefix) {
  const core::Family& f = s.m[family];
  Roles own(f.coords.size(), kNone);
  for (size_t p = prefix; p < own.size(); ++p) {
    for (size_t c = 0; c < call.gate.coords.size(); ++c) {
      if (call.gate.coords[c].name == f.coords[p].name) own[p] = static_cast<int>(c);
    }
  }
  call.roles[family] = std::move(own);
}

void gate_family(Sema& s, const Env& env, FamilyId family) {
  if (s.m[family].kind != core::Family::Kind::Defined) return;
  for (GatedCall* call = env.gated; call; call = call->outer) {
    if (call->recurrences > 0) {
      call->waiting.push_back(family);
    } else {
      Gating{s, *call}.define({family});
    }
  }
}

void begin_gated_recurrence(const Env& env) {
  for (GatedCall* call = env.gated; call; call = call->outer) ++call->recurrences;
}

void end_gated_recurrence(Sema& s, const Env& env) {
  for (GatedCall* call = env.gated; call; call = call->outer) {
    if (--call->recurrences == 0) Gating{s, *call}.define(std::exchange(call->waiting, {}));
  }
}

Value gate_result(Sema& s, Env& env, GatedCall& call, Value result) {
  Gating gating{s, call};
  return map_leaves(result, [&](const Value& leaf, const std::string&) {
    Value v = moved(s.m, as_data(s, env, leaf), env.depth);
    if (v.poison()) return v;
    auto rank = env.depth + static_cast<uint32_t>(v.coords.size());
    Roles own(rank, kNone);
    gating.learn(v.body, rank, own);
    if (!call.bad) v.body = gating.apply(v.body, own, rank, v.type);
    return call.bad ? Value{} : v;
  });
}

}  // namespace ein::sema
