#include "autodiff/forward.h"

#include <algorithm>

#include "autodiff/custom.h"
#include "base/check.h"
#include "core/build.h"
#include "core/rewrite.h"

namespace ein::autodiff {

using namespace core;

namespace {

// The tangent of the denominator itself at an address: `value` (one when invalid)
// where the gates hold.
struct Seed {
  ExprId value;
  std::vector<ExprId> gates;
};

// `front`: the slots of the sweep's extra coordinates (those of the denominator, or of the
// directions). Binders in a direction's expressions are numbered from `depth`.
Seed seed_at(Module& m, const Sweep& sweep, const std::optional<Along>& along,
             const std::vector<ExprId>& at, const std::vector<ExprId>& front, uint32_t depth) {
  Seed out;
  if (!along) {
    std::vector<uint32_t> carried = free_coordinates(m, sweep, sweep.den());
    for (size_t k = 0; k < carried.size(); ++k) {
      ExprId here = front[k], there = at[carried[k]];
      if (m[there].free == 0) std::swap(here, there);  // so that it reads `s == 19`
      out.gates.push_back(apply(m, Op::Eq, {there, here}));
    }
    return out;
  }
  std::vector<ExprId> with = at;
  with.insert(with.end(), front.begin(), front.end());
  if (along->gate) conjuncts(m, substitute(m, along->gate, with, depth), out.gates);
  out.value = substitute(m, along->value, with, depth);
  if (const auto* one = get_if<FloatLit>(m, out.value); one && one->value == 1) out.value = {};
  return out;
}

class Forward {
 public:
  Forward(Module& m, const Sweep& sweep, const std::optional<Along>& along, Tangents& out)
      : m_(m), sweep_(sweep), along_(along), out_(out) {
    if (along) {
      extra_ = along->coords;
    } else {
      for (uint32_t k : free_coordinates(m, sweep, sweep.den()))
        extra_.push_back(m[sweep.den()].coords[k]);
    }
  }

  void run() {
    std::set<FamilyId> members = cone(m_, sweep_);
    for (FamilyId id : members) {
      clauses_[id] = linear_clauses(m_, sweep_, members, id, out_.problem);
      check_slots(id);
    }
    if (out_.problem) return;
    for (FamilyId id : moving(members)) out_.family[id] = declare(id);
    for (const auto& [id, tangent] : out_.family) define(id);
  }

 private:
  void check_slots(FamilyId id) {
    for (const LinearClause& c : clauses_[id]) {
      for (const Term& t : c.terms) {
        if (m_[id].rank() + extra_.size() + t.over.size() > kMaxSlots && !out_.problem)
          out_.problem = Problem{id, {"values with this many coordinates", t.span, true}};
      }
    }
  }

  // The families whose tangent is not structurally zero. The denominator is one of them only when
  // its own definition brings the tangent back.
  std::set<FamilyId> moving(const std::set<FamilyId>& members) const {
    std::set<FamilyId> out;
    for (bool again = true; again;) {
      again = false;
      for (FamilyId id : members) {
        if (out.contains(id)) continue;
        for (const LinearClause& c : clauses_.at(id)) {
          bool moves = std::any_of(c.terms.begin(), c.terms.end(), [&](const Term& t) {
            return t.family == sweep_.den() || out.contains(t.family);
          });
          if (moves) again |= out.insert(id).second;
        }
      }
    }
    return out;
  }

  FamilyId declare(FamilyId id) {
    Family f;
    const std::string& name = text(m_[id].name);
    f.name = fresh_name(m_, along_ ? "d_" + name + "_along_" + along_->name
                                   : "d_" + name + "_d_" + text(m_[sweep_.den()].name));
    f.dtype = tangent_type(m_, id);
    f.generated = f.tangent = true;
    f.span = m_[id].span;
    f.coords = m_[id].coords;
    add_coords(f.coords, extra_);
    return m_.families.add(std::move(f));
  }

  // Defines what is read first (except in cycles), so that it is known where its tangent is gated.
  void define(FamilyId id) {
    if (!out_.family.contains(id) || !visited_.insert(id).second) return;
    for (const LinearClause& c : clauses_[id]) {
      for (const Term& t : c.terms) define(t.family);
    }
    FamilyId tangent = out_.family[id];
    uint32_t rank = m_[id].rank();
    for (const LinearClause& c : clauses_[id]) {
      std::vector<Contribution> parts;
      if (id == sweep_.den()) parts.push_back(own_seed(rank));
      for (const Term& t : c.terms) {
        if (t.family == sweep_.den() || out_.family.contains(t.family))
          parts.push_back(contribution(id, t));
      }
      Clause clause{c.box, sum(m_, std::move(parts), tangent_type(m_, id)), m_[id].span};
      for (const Coord& e : extra_) clause.box.push_back({int_lit(m_, 0), e.extent});
      m_.families[tangent].clauses.push_back(std::move(clause));
    }
    solve_sum(m_, tangent);
    if (m_[tangent].clauses.size() != 1) return;
    ExprId solved = m_[tangent].clauses[0].body;
    if (const auto* lit = get_if<FloatLit>(m_, solved)) constant_[id] = lit->value;
    if (ExprId gate = support(m_, tangent, support_, out_.family)) support_[id] = gate;
  }

  std::vector<ExprId> extra_slots(uint32_t rank) {
    std::vector<ExprId> out;
    for (uint32_t k = 0; k < extra_.size(); ++k) out.push_back(slot(m_, rank + k));
    return out;
  }

  Contribution own_seed(uint32_t rank) {
    std::vector<ExprId> here;
    for (uint32_t k = 0; k < rank; ++k) here.push_back(slot(m_, k));
    auto depth = rank + static_cast<uint32_t>(extra_.size());
    Seed seed = seed_at(m_, sweep_, along_, here, extra_slots(rank), depth);
    DType type = tangent_type(m_, sweep_.den());
    ExprId value = seed.value ? cast(m_, seed.value, type) : float_lit(m_, 1, type);
    return {false, true, gated(m_, all_of(m_, seed.gates), value)};
  }

  // What a term of `id` adds to its tangent. The sweep's coordinates stand between those of the
  // family and the term's binders.
  Contribution contribution(FamilyId id, const Term& t) {
    uint32_t rank = m_[id].rank();
    auto first = rank + static_cast<uint32_t>(extra_.size());
    auto inner = static_cast<uint32_t>(t.over.size());
    std::vector<ExprId> with;
    for (uint32_t k = 0; k < rank; ++k) with.push_back(slot(m_, k));
    for (uint32_t k = 0; k < inner; ++k) with.push_back(slot(m_, first + k));
    auto put = [&](ExprId e) { return e ? substitute(m_, e, with, first + inner) : e; };

    Reduce r{ReduceOp::Sum, first, {}, t.names, {}, {}, {}};
    for (const Range& range : t.over) r.over.push_back({put(range.lo), put(range.hi)});
    std::vector<ExprId> at, gates;
    for (ExprId e : t.at) at.push_back(put(e));
    conjuncts(m_, put(t.gate), gates);  // first: what is read below may rely on it
    Coef coef = t.coef;
    coef.num = put(coef.num);
    coef.den = put(coef.den);
    DType type = tangent_type(m_, id);
    ExprId by;
    auto tangent = out_.family.find(t.family);
    if (tangent == out_.family.end()) {
      Seed seed = seed_at(m_, sweep_, along_, at, extra_slots(rank), first + inner);
      gates.insert(gates.end(), seed.gates.begin(), seed.gates.end());
      by = seed.value;
    } else {
      std::vector<ExprId> address = at, extra = extra_slots(rank);
      address.insert(address.end(), extra.begin(), extra.end());
      if (auto it = support_.find(t.family); it != support_.end()) {
        // Where the tangent is gated out, so is what it passes on: 0 · inf never arises.
        std::vector<ExprId> support;
        conjuncts(m_, substitute(m_, it->second, address, first + inner), support);
        for (ExprId c : support) {
          if (std::find(gates.begin(), gates.end(), c) == gates.end()) gates.push_back(c);
        }
      }
      auto constant = constant_.find(t.family);
      if (constant != constant_.end()) {
        coef.scale *= constant->second;  // a number, not worth a read
      } else {
        by = access(m_, tangent->second, std::move(address));
      }
    }
    r.gate = all_of(m_, gates);
    bool negative = false;
    r.body = weighted(m_, coef, by ? cast(m_, by, type) : by, type, negative);
    return {negative, false, reduce(m_, std::move(r), t.span)};
  }

  Module& m_;
  const Sweep& sweep_;
  const std::optional<Along>& along_;
  Tangents& out_;
  std::vector<Coord> extra_;  // beyond a family's own: the denominator's, or the direction's
  std::map<FamilyId, std::vector<LinearClause>> clauses_;
  std::map<FamilyId, ExprId> support_;   // where a family's tangent is not gated out
  std::map<FamilyId, double> constant_;  // tangents that are the same number everywhere
  std::set<FamilyId> visited_;
};

}  // namespace

Tangents push_forward(Module& m, const Sweep& sweep, const std::optional<Along>& along) {
  Tangents out;
  out.along = along.has_value();
  Forward(m, sweep, along, out).run();
  return out;
}

ExprId derivative(Module& m, const Sweep& sweep, const Tangents& tangents, FamilyId num,
                  const std::vector<ExprId>& num_at, const std::vector<ExprId>& den_at) {
  std::vector<ExprId> front = den_at;
  if (!tangents.along) {
    front.clear();
    for (uint32_t k : free_coordinates(m, sweep, sweep.den())) front.push_back(den_at[k]);
  }
  if (auto it = tangents.family.find(num); it != tangents.family.end()) {
    std::vector<ExprId> at = num_at;
    at.insert(at.end(), front.begin(), front.end());
    return access(m, it->second, std::move(at));
  }
  if (num != sweep.den()) return {};
  EIN_CHECK(!tangents.along, "the direction itself is no request");
  Seed seed = seed_at(m, sweep, {}, num_at, front, 0);  // a value with respect to itself
  return gated(m, all_of(m, seed.gates), float_lit(m, 1, m[num].dtype));
}

}  // namespace ein::autodiff
