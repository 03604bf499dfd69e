#include "optimise/contractions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>

#include "core/build.h"
#include "core/normal.h"
#include "core/product.h"
#include "core/prove.h"
#include "core/rewrite.h"
#include "core/simplify.h"
#include "core/total.h"
#include "optimise/operands.h"
#include "optimise/small_sums.h"

namespace ein::optimise {
namespace {

using namespace core;

constexpr double kUnknownExtent = 256;

struct Isolation : Operands {
  Reduce r;
  double worthwhile_work;  // multiplications below which plain loops are as fast
  Facts facts_around;      // outside of the reduction
  std::vector<Term> terms = {};
  std::vector<Term> outside = {};  // factors without binders
  std::vector<ExprId> outer_conds = {};
  bool masked = false;  // whether some condition became zeros in an operand

  double extent(uint32_t slot) const {
    const Range& range = facts.slots[slot];
    auto lo = const_int(m, range.lo), hi = const_int(m, range.hi);
    return lo && hi ? static_cast<double>(std::max<int64_t>(*hi - *lo, 1)) : kUnknownExtent;
  }

  double work(uint64_t slots) const {
    double out = 1;
    for (uint32_t s = 0; s < facts.slots.size(); ++s) {
      if (slots & bit(s)) out *= extent(s);
    }
    return out;
  }

  // The term with the fewest slots that has all of `slots`; −1 if there is none.
  int holder(uint64_t slots, int except) const {
    int best = -1;
    for (int i = 0; i < static_cast<int>(terms.size()); ++i) {
      uint64_t theirs = terms[static_cast<size_t>(i)].slots;
      if (i == except || (slots & ~theirs) != 0) continue;
      bool fewer =
          best < 0 || std::popcount(theirs) < std::popcount(terms[static_cast<size_t>(best)].slots);
      if (fewer) best = i;
    }
    return best;
  }

  static void absorb(Term& into, const Term& t) {
    into.product.num.insert(into.product.num.end(), t.product.num.begin(), t.product.num.end());
    into.product.den.insert(into.product.den.end(), t.product.den.begin(), t.product.den.end());
    into.conds.insert(into.conds.end(), t.conds.begin(), t.conds.end());
    into.slots |= t.slots;
  }

  // Assigns factors and conditions to terms. False if a condition or a binder belongs to none.
  bool split(const Product& p) {
    auto add = [&](ExprId e, bool below) {
      bool inside = m[e].free & binders;
      Term t;
      (below ? t.product.den : t.product.num).push_back(inside ? e : lift(m, r, e));
      t.slots = m[e].free;
      (inside ? terms : outside).push_back(std::move(t));
    };
    for (ExprId e : p.num) add(e, false);
    for (ExprId e : p.den) add(e, true);
    for (size_t i = 0; i < terms.size();) {
      int into = holder(terms[i].slots, static_cast<int>(i));
      if (into < 0) {
        ++i;
        continue;
      }
      absorb(terms[static_cast<size_t>(into)], terms[i]);
      terms.erase(terms.begin() + static_cast<ptrdiff_t>(i));
      i = 0;
    }
    uint64_t mentioned = 0;
    for (const Term& t : terms) mentioned |= t.slots;
    // A binder that nothing mentions multiplies the sum by its extent.
    if (binders & ~mentioned) return false;
    std::vector<ExprId> parts;
    conjuncts(m, r.gate, parts);
    for (ExprId cond : parts) {
      uint64_t slots = m[cond].free;
      if ((slots & binders) == 0) {
        outer_conds.push_back(lift(m, r, cond));
        continue;
      }
      int into = holder(slots, -1);
      if (into < 0) return false;
      terms[static_cast<size_t>(into)].conds.push_back(cond);
      masked = true;
    }
    return std::all_of(terms.begin(), terms.end(), [&](Term& t) { return guarded(t, parts); }) &&
           stand_outside();
  }

  // Factors without binders are moved outside of the sum. False if one may rely on a condition with
  // binders, which stays inside.
  bool stand_outside() {
    Facts around = facts_around;
    for (ExprId cond : outer_conds) assume(m, cond, around);
    return std::all_of(outside.begin(), outside.end(),
                       [&](const Term& t) { return total(m, value(t), around, Overflow::Wraps); });
  }

  // Each term is computed on its own, so a read that relies on a condition takes that condition
  // along.
  bool guarded(Term& t, const std::vector<ExprId>& conds) {
    if (total(m, value(t), facts, Overflow::Wraps)) return true;
    for (ExprId cond : conds) {
      bool own = (m[cond].free & ~t.slots) == 0 && (m[cond].free & binders) != 0;
      bool has = std::find(t.conds.begin(), t.conds.end(), cond) != t.conds.end();
      if (own && !has) t.conds.push_back(cond);
    }
    return total(m, value(t), facts, Overflow::Wraps);
  }

  // The sum over some binders as a family; invalid if it has no closed extents.
  ExprId sum_over(uint64_t over, ExprId body) {
    over &= m[body].free;
    if (over == 0) return hoisted(body, "_product");
    // The remaining binders become coordinates of the new family. The others are bound again, with
    // slots above all of those.
    Reduce inner{ReduceOp::Sum, static_cast<uint32_t>(facts.slots.size()), {}, {}, {}, {}, {}};
    std::vector<ExprId> with(facts.slots.size());
    for (uint32_t s = 0; s < facts.slots.size(); ++s) {
      if (!(over & bit(s))) continue;
      with[s] = slot(m, inner.first + static_cast<uint32_t>(inner.over.size()));
      inner.over.push_back(facts.slots[s]);
      inner.names.push_back(names[s]);
    }
    uint32_t above = inner.first + static_cast<uint32_t>(inner.over.size());
    if (above + 4 >= kMaxSlots) return {};
    inner.body = substitute(m, body, with, above);
    return hoisted(reduce(m, inner, span), "_sum");
  }

  uint64_t exclusive(size_t i, size_t j) const {  // binders that no other term has
    uint64_t others = 0;
    for (size_t k = 0; k < terms.size(); ++k) {
      if (k != i && k != j) others |= terms[k].slots;
    }
    return (terms[i].slots | terms[j].slots) & binders & ~others;
  }

  // Sums over binders that only one term has, then contracts pairs until two terms are left.
  bool reduce_terms() {
    for (size_t i = 0; i < terms.size(); ++i) {
      uint64_t alone = exclusive(i, i);
      if (alone == 0) continue;
      ExprId read = sum_over(alone, value(terms[i]));
      if (!read) return false;
      terms[i] = read_of(read);
    }
    while (terms.size() > 2) {
      size_t a = 0, b = 1;
      double least = INFINITY;
      for (size_t i = 0; i < terms.size(); ++i) {
        for (size_t j = i + 1; j < terms.size(); ++j) {
          double cost = work((terms[i].slots | terms[j].slots) & ~sequential);
          if (cost >= least) continue;
          least = cost;
          a = i;
          b = j;
        }
      }
      uint64_t over = exclusive(a, b);
      if (!make_plain(terms[a], terms[b])) return false;
      ExprId body = apply(m, Op::Mul, {terms[a].product.num[0], terms[b].product.num[0]});
      ExprId read = sum_over(over, body);
      if (!read) return false;
      terms[a] = read_of(read);
      terms.erase(terms.begin() + static_cast<ptrdiff_t>(b));
    }
    return true;
  }

  bool worthwhile(bool whole) const {
    uint64_t all = 0;
    for (const Term& t : terms) all |= t.slots & ~sequential;
    if (terms.size() < 2 || work(all) < worthwhile_work) return false;
    if (terms.size() > 2) return true;
    uint64_t a = terms[0].slots & ~sequential, b = terms[1].slots & ~sequential;
    bool contraction = (a & b & binders) && (a & ~b & ~binders) && (b & ~a & ~binders);
    DType stored = common(terms[0], terms[1]);
    bool as_it_is = whole && outside.empty() && outer_conds.empty() && plain(terms[0], stored) &&
                    plain(terms[1], stored) && exclusive(0, 0) == 0 && exclusive(1, 1) == 0 &&
                    !wants_order(terms[0]) && !wants_order(terms[1]);
    // If one of the two last terms has binders of its own, they are summed first: a sum of products
    // becomes a product of sums.
    bool factors = exclusive(0, 0) != 0 || exclusive(1, 1) != 0;
    return (contraction || factors) && !as_it_is;
  }

  // The expression that replaces the reduction; invalid if it stays.
  ExprId run(ExprId e, bool whole) {
    Product p = as_product(m, r.body);
    if (!split(p) || !worthwhile(whole)) return {};
    bool was_masked = masked;
    // Some factors are multiplied outside of the sum. If the sum has no cells, the result must be 0
    // whatever they are.
    bool moves = !outside.empty() || terms.size() > 2 || exclusive(0, 0) || exclusive(1, 1);
    if (!reduce_terms()) return {};
    if (!make_plain(terms[0], terms[1])) return {};
    for (Term& t : terms) {
      if (wants_order(t)) give_order(t);
    }
    ExprId body = apply(m, Op::Mul, {terms[0].product.num[0], terms[1].product.num[0]});
    // If only the operands changed, the sum stays in its clause.
    uint64_t everything = (bit(static_cast<uint32_t>(facts_around.slots.size())) - 1) | binders;
    bool same_cells = (terms[0].slots | terms[1].slots) == everything;
    if (whole && same_cells && !was_masked && !moves && !p.negative && outer_conds.empty()) {
      Reduce again = r;
      again.gate = {};
      again.body = body;
      return reduce(m, again, m[e].span);
    }
    ExprId out = sum_over(binders, body);
    if (!out) return {};
    if (p.negative) out = apply(m, Op::Neg, {out});
    for (const Term& t : outside) {
      for (ExprId f : t.product.num) out = apply(m, Op::Mul, {out, f});
      for (ExprId f : t.product.den) out = apply(m, Op::Div, {out, f});
    }
    if (was_masked) {
      Reduce again = r;
      again.gate = {};
      std::vector<ExprId> inner;
      std::vector<ExprId> parts;
      conjuncts(m, r.gate, parts);
      for (ExprId cond : parts) {
        if (m[cond].free & binders) inner.push_back(cond);
      }
      again.gate = all_of(m, inner);
      ExprId finite = apply(m, Op::Eq, {apply(m, Op::Sub, {out, out}), number(m, 0, type)});
      out = apply(m, Op::Select, {finite, out, reduce(m, again, m[e].span)});
    }
    if (moves) out = gated(m, has_cells(m, r.over, facts_around), out);
    return gated(m, all_of(m, outer_conds), out);
  }
};

// A sum over a rectangle, of f32 or f64.
bool is_rectangular(const Module& m, const Reduce& r) {
  DType type = m[r.body].type;
  if (r.op != ReduceOp::Sum || !r.routes.empty()) return false;
  if (type != DType::F32 && type != DType::F64) return false;
  return std::all_of(r.over.begin(), r.over.end(), [&](const Range& range) {
    return m[range.lo].free == 0 && m[range.hi].free == 0;
  });
}

// The families of the outermost Sequence around a family, and its coordinates that are steps of
// Sequences.
using Together = std::shared_ptr<const std::set<FamilyId>>;  // one set, shared by all of them
struct Around {
  Together together = std::make_shared<const std::set<FamilyId>>();
  uint64_t sequential = 0;
};
using Arounds = std::map<FamilyId, Around>;

void note_sequences(const std::vector<core::Step>& steps, Arounds& out) {
  std::function<void(const Sequence&, const Together&)> visit = [&](const Sequence& q,
                                                                    const Together& together) {
    for (const auto& member : q.members) {
      out[member.family].together = together;
      out[member.family].sequential |= bit(member.position);
    }
    for (const core::Step& s : q.body) {
      if (const auto* inner = std::get_if<Sequence>(&s)) visit(*inner, together);
    }
  };
  for (const core::Step& s : steps) {
    if (const auto* q = std::get_if<Sequence>(&s)) {
      std::vector<FamilyId> all = families_of({s});
      visit(*q, std::make_shared<const std::set<FamilyId>>(all.begin(), all.end()));
    }
  }
}

bool reads_any(const Module& m, ExprId e, const std::set<FamilyId>& families) {
  bool found = false;
  for_each_node(m, e, [&](ExprId x) {
    const auto* a = get_if<Access>(m, x);
    found |= a && families.contains(a->family);
  });
  return found;
}

// The clause's ranges without the cells that the conditions at a place exclude, for example the
// last step of a recurrence in its derivative.
Facts narrowed(Module& m, const Facts& top, const Facts& here) {
  Facts out = top;
  for (const AffineForm& form : here.nonnegative) {
    AffineForm rest{{}, form.constant};
    std::optional<Affine::Term> moving;
    bool single = true;
    for (const Affine::Term& t : form.terms) {
      if (m[t.atom].free == 0) {
        rest.terms.push_back(t);
        continue;
      }
      single &= !moving && slot_of(m, t.atom) != ~0u;
      moving = t;
    }
    if (!moving || !single) continue;
    uint32_t s = slot_of(m, moving->atom);
    if (s >= top.slots.size()) continue;
    Range& range = out.slots[s];
    if (moving->coef == -1) {  // slot ≤ rest
      ExprId end = add(m, from_form(m, rest), int_lit(m, 1));
      if (proves_le(m, end, range.hi, top)) range.hi = end;
    } else if (moving->coef == 1) {  // slot ≥ −rest
      ExprId begin = neg(m, from_form(m, rest));
      if (proves_le(m, range.lo, begin, top)) range.lo = begin;
    }
  }
  return out;
}

void isolate(Module& m, FamilyId id, size_t number, const Around& around, const Tuning& tuning,
             std::set<FamilyId>& ordered) {
  const Family& f = m[id];  // a reference, since there may be thousands of clauses
  Clause clause = f.clauses[number];
  Facts top = clause_facts(m, clause);
  struct Found {
    ExprId e;
    Facts facts;  // that hold at its place
    int places = 1;
  };
  std::vector<Found> found;
  auto wanted = [](const Node& n) { return std::holds_alternative<Reduce>(n); };
  for_each_with_facts(m, clause, wanted, [&](ExprId e, const Facts& facts) {
    if (facts.slots.size() != f.rank()) return;  // inside another reduction
    auto it = std::find_if(found.begin(), found.end(), [&](const Found& x) { return x.e == e; });
    if (it != found.end()) {
      ++it->places;
    } else {
      found.push_back({e, facts});
    }
  });
  for (const auto& [e, facts, places] : found) {
    const Reduce r = std::get<Reduce>(m[e].node);
    if (!is_rectangular(m, r) || is_small(m, clause, r, tuning)) continue;
    bool anywhere = total(m, e, top, Overflow::Wraps);
    Facts ranges = anywhere || places > 1 ? top : narrowed(m, top, facts);
    if (!anywhere && !total(m, e, ranges, Overflow::Wraps)) continue;
    Isolation work{{m, text(f.name), coordinate_names(f), ranges, m[r.body].type, m[e].span,
                    around.together.get()},
                   r,
                   static_cast<double>(tuning.contraction_work),
                   ranges};
    if (reads_any(m, e, *around.together)) work.sequential = around.sequential;
    enter(m, r, work.facts);
    work.names.resize(work.facts.slots.size());
    for (size_t i = 0; i < r.over.size(); ++i) {
      work.binders |= bit(r.first + static_cast<uint32_t>(i));
      if (i < r.names.size()) work.names[r.first + i] = r.names[i];
    }
    ExprId by = work.run(e, e == clause.body);
    if (!by) continue;
    ordered.merge(work.ordered);
    ExprId body = m[id].clauses[number].body;
    m.families[id].clauses[number].body =
        rewrite(m, body, [&, e = e](ExprId x) { return x == e ? by : x; });
  }
}

}  // namespace

std::set<FamilyId> isolate_contractions(Module& m, const Schedule& order,
                                        const std::set<FamilyId>& except, const Tuning& tuning) {
  std::set<FamilyId> ordered;
  Arounds arounds;
  note_sequences(order.steps, arounds);
  size_t families = m.families.size();  // families added by this loop already have the right form
  for (uint32_t i = 0; i < families; ++i) {
    if (except.contains(FamilyId(i))) continue;
    for (size_t c = 0; c < m[FamilyId(i)].clauses.size(); ++c) {
      isolate(m, FamilyId(i), c, arounds[FamilyId(i)], tuning, ordered);
    }
  }
  return ordered;
}

}  // namespace ein::optimise
