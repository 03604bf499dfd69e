#include "optimise/small_sums.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "core/build.h"
#include "core/cost.h"
#include "core/product.h"
#include "core/prove.h"
#include "core/rewrite.h"
#include "core/total.h"
#include "optimise/operands.h"

namespace ein::optimise {
namespace {

using namespace core;

std::optional<int64_t> short_extent(const Module& m, const Range& r, const Tuning& tuning) {
  auto lo = const_int(m, r.lo), hi = const_int(m, r.hi);
  if (!lo || !hi || *hi <= *lo || *hi - *lo > tuning.written_extent) return std::nullopt;
  return *hi - *lo;
}

// Whether it is a sum of f32 or f64 without conditions or routes.
bool is_bare_sum(const Module& m, const Reduce& r) {
  DType type = m[r.body].type;
  return r.op == ReduceOp::Sum && !r.gate && r.routes.empty() &&
         (type == DType::F32 || type == DType::F64);
}

struct ShortTerm {
  Product product;
  uint64_t slots = 0;
  // Conditions under which the sums so far have any cells. Only then do the factors outside of them
  // count.
  std::vector<ExprId> conds = {};
};

struct Splitter {
  Module& m;
  const Reduce& r;
  uint32_t above;  // all slots are below this
  DType type;
  Span span;
  const Facts& facts;
  const Tuning& tuning;
  std::vector<ShortTerm> terms = {};

  uint32_t slot_at(size_t binder) const { return r.first + static_cast<uint32_t>(binder); }

  // How many multiplications summing this binder now takes, for each combination of long indices.
  int64_t cost(size_t binder) const {
    uint64_t slots = 0;
    for (const ShortTerm& t : terms) {
      if (t.slots & bit(slot_at(binder))) slots |= t.slots;
    }
    int64_t out = 1;
    for (size_t i = 0; i < r.over.size(); ++i) {
      if (slots & bit(slot_at(i)))
        out *= short_extent(m, r.over[i], tuning).value_or(tuning.written_work);
    }
    return out;
  }

  // Whether the range of another binder depends on this one. That binder must be summed first.
  bool bounds_another(size_t binder, const std::vector<size_t>& left) const {
    return std::any_of(left.begin(), left.end(), [&](size_t other) {
      return (m[r.over[other].lo].free | m[r.over[other].hi].free) & bit(slot_at(binder));
    });
  }

  // The facts inside the sum over a binder: the ranges of the binders that its range depends on,
  // which are summed outside of it. Other ranges may be empty, so nothing follows from them.
  Facts around(size_t binder) const {
    Facts out = facts;
    out.slots.resize(above);
    uint64_t needed = m[r.over[binder].lo].free | m[r.over[binder].hi].free;
    for (size_t i = binder; i-- > 0;) {
      if (!(needed & bit(slot_at(i)))) continue;
      out.slots[slot_at(i)] = r.over[i];
      needed |= m[r.over[i].lo].free | m[r.over[i].hi].free;
    }
    return out;
  }

  static size_t factors(const ShortTerm& t) { return t.product.num.size() + t.product.den.size(); }

  static void absorb(ShortTerm& into, const ShortTerm& t) {
    const Product& p = t.product;
    into.product.num.insert(into.product.num.end(), p.num.begin(), p.num.end());
    into.product.den.insert(into.product.den.end(), p.den.begin(), p.den.end());
    into.conds.insert(into.conds.end(), t.conds.begin(), t.conds.end());
    into.slots |= t.slots;
  }

  ExprId value(const ShortTerm& t) {
    ExprId product = from_product(m, t.product, type);
    return factors(t) > 1 ? gated(m, all_of(m, t.conds), product) : product;
  }

  // Replaces all terms that have this binder by the sum of their product over it.
  void sum_out(size_t binder) {
    const uint64_t own = bit(slot_at(binder));
    ShortTerm both;
    auto take = [&](auto&& wanted) {
      for (size_t i = 0; i < terms.size();) {
        if (!wanted(terms[i])) {
          ++i;
          continue;
        }
        absorb(both, terms[i]);
        terms.erase(terms.begin() + static_cast<ptrdiff_t>(i));
      }
    };
    take([&](const ShortTerm& t) { return (t.slots & own) != 0; });
    // Which steps have cells depends on the step, so a condition cannot be moved out of the sum:
    // everything moves in.
    auto depends = [&](ExprId cond) { return (m[cond].free & own) != 0; };
    if (std::any_of(both.conds.begin(), both.conds.end(), depends)) {
      take([](const ShortTerm&) { return true; });
    }
    ExprId body = value(both);
    // Binders get slots above all others until the whole expression is assembled.
    Reduce inner{ReduceOp::Sum, above, {r.over[binder]}, {}, {}, {}, {}};
    if (binder < r.names.size()) inner.names = {r.names[binder]};
    std::vector<ExprId> with(above);
    with[slot_at(binder)] = slot(m, above);
    inner.body = substitute(m, body, with, above + 1);
    ExprId sum = reduce(m, inner, span);
    ShortTerm out{{false, {sum}, {}}, m[sum].free, std::move(both.conds)};
    std::erase_if(out.conds, depends);
    if (ExprId cells = has_cells(m, inner.over, around(binder))) out.conds.push_back(cells);
    terms.push_back(std::move(out));
  }

  // The expression that replaces the sum; invalid if the sum stays.
  ExprId run() {
    Product p = as_product(m, r.body);
    auto add = [&](ExprId e, bool below) {
      ShortTerm t;
      (below ? t.product.den : t.product.num).push_back(e);
      t.slots = m[e].free;
      terms.push_back(std::move(t));
    };
    for (ExprId e : p.num) add(e, false);
    for (ExprId e : p.den) add(e, true);
    uint64_t mentioned = 0, everywhere = ~uint64_t{0};
    for (const ShortTerm& t : terms) mentioned |= t.slots, everywhere &= t.slots;
    for (const Range& range : r.over) mentioned |= m[range.lo].free | m[range.hi].free;
    std::vector<size_t> left;
    bool splits = false;
    for (size_t i = 0; i < r.over.size(); ++i) {
      // The binder just multiplies the sum by its extent.
      if (!(mentioned & bit(slot_at(i)))) return {};
      splits |= !(everywhere & bit(slot_at(i)));
      left.push_back(i);
    }
    if (!splits) return {};
    // The long binder comes last: what is inside it is computed for each of its steps anyway.
    auto sooner = [&](size_t a, size_t b) {
      bool wait_a = bounds_another(a, left), wait_b = bounds_another(b, left);
      if (wait_a != wait_b) return wait_b;
      bool long_a = !short_extent(m, r.over[a], tuning),
           long_b = !short_extent(m, r.over[b], tuning);
      return long_a != long_b ? long_b : cost(a) < cost(b);
    };
    while (!left.empty()) {
      auto next = std::min_element(left.begin(), left.end(), sooner);
      sum_out(*next);
      left.erase(next);
    }
    ShortTerm all;
    for (const ShortTerm& t : terms) absorb(all, t);
    ExprId out = value(all);
    if (p.negative) out = apply(m, Op::Neg, {out});
    return substitute(m, out, std::vector<ExprId>(above), r.first);
  }
};

// A sum over one short binder without the terms that are zero; invalid if there are none.
ExprId without_zeros(Module& m, const Reduce& r) {
  if (r.over.size() != 1) return {};
  auto lo = const_int(m, r.over[0].lo), hi = const_int(m, r.over[0].hi);
  ExprId out;
  bool any = false;
  for (int64_t i = *lo; i < *hi; ++i) {
    // The slots of sums inside move down by one binder.
    std::vector<ExprId> with(r.first + 1);
    with[r.first] = int_lit(m, i);
    ExprId term = substitute(m, r.body, with, r.first);
    const auto* zero = get_if<FloatLit>(m, term);
    if (zero && zero->value == 0) {
      any = true;
    } else {
      out = out ? apply(m, Op::Add, {out, term}) : term;
    }
  }
  if (!any) return {};
  return out ? out : float_lit(m, 0, m[r.body].type);
}

// Innermost first, so that nested sums are treated as one small sum. `first` numbers the binders of
// each sum.
void split_in(Module& m, FamilyId id, size_t number, const Tuning& tuning) {
  const Clause clause = m[id].clauses[number];
  Facts top = clause_facts(m, clause);
  const auto rank = static_cast<uint32_t>(clause.box.size());
  auto visit = [&](ExprId e) {
    const auto* found = get_if<Reduce>(m, e);
    if (!found || !is_bare_sum(m, *found) || !is_small(m, clause, *found, tuning)) return e;
    const Reduce r = *found;
    if (r.over.size() == 1 && short_extent(m, r.over[0], tuning)) {
      ExprId terms = without_zeros(m, r);
      return terms ? terms : e;
    }
    if (r.first != rank) return e;
    // If no range is ever empty, every factor is evaluated as before. A factor may move out of a
    // range that may be empty, so then nothing may fail.
    bool never_empty = std::all_of(r.over.begin(), r.over.end(), [&](const Range& range) {
      return short_extent(m, range, tuning);
    });
    if (!never_empty && !total(m, e, top, Overflow::Wraps)) return e;
    uint32_t above = r.first + static_cast<uint32_t>(r.over.size());
    if (above + r.over.size() + 4 >= kMaxSlots) return e;
    ExprId by = Splitter{m, r, above, m[r.body].type, m[e].span, top, tuning}.run();
    return by ? by : e;
  };
  ExprId once = rewrite(m, clause.body, visit);
  // After the first pass each sum has one binder.
  m.families[id].clauses[number].body = once == clause.body ? once : rewrite(m, once, visit);
}

}  // namespace

bool is_small(const Module& m, const Clause& clause, const Reduce& r, const Tuning& tuning) {
  int64_t work = 1;
  uint64_t open = 0;  // slots with long ranges
  auto take = [&](const Range& range, uint32_t slot) {
    if (auto n = short_extent(m, range, tuning)) {
      work = std::min(work * *n, tuning.written_work + 1);
    } else {
      open |= bit(slot);
    }
  };
  const auto rank = static_cast<uint32_t>(clause.box.size());
  for (uint32_t k = 0; k < rank; ++k) take(clause.box[k], k);
  for (size_t k = 0; k < r.over.size(); ++k) take(r.over[k], r.first + static_cast<uint32_t>(k));
  if (work > tuning.written_work) return false;
  if (std::popcount(open) <= 1) return true;
  const auto* product = get_if<Apply>(m, r.body);
  if (open >= bit(rank) || !product || product->op != Op::Mul) return false;
  const uint64_t a = m[product->args[0]].free & open, b = m[product->args[1]].free & open;
  return (a & b) == a || (a & b) == b;
}

void split_small_sums(Module& m, const Tuning& tuning) {
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    for (size_t c = 0; c < m[FamilyId(i)].clauses.size(); ++c) split_in(m, FamilyId(i), c, tuning);
  }
}

}  // namespace ein::optimise
