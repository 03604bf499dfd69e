#include "optimise/factors.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "core/build.h"
#include "core/normal.h"
#include "core/product.h"
#include "core/prove.h"
#include "core/rewrite.h"
#include "core/total.h"
#include "runtime/factor.h"

namespace ein::optimise {
namespace {

using namespace core;

const Apply* as_factor(const Module& m, ExprId e) {
  const auto* a = get_if<Apply>(m, e);
  return a && a->op == Op::Factor ? a : nullptr;
}

Factor which_of(const Module& m, const Apply& a) {
  return static_cast<Factor>(get_if<IntLit>(m, a.args[0])->value);
}

// The extents of a result as expressions; `factor_shape` computes the same with numbers.
struct Extents {
  ExprId rows, cols;
};
Extents extents_of(Module& m, const Apply& a) {
  const Reduce r = *get_if<Reduce>(m, a.args[3]);
  ExprId rows = r.over[0].hi, cols = r.over[1].hi, one = int_lit(m, 1);
  switch (which_of(m, a)) {
    case Factor::Cholesky:
    case Factor::Cofactors:
    case Factor::InverseLower:
    case Factor::InverseUpper:
    case Factor::InverseLu: return {rows, rows};
    case Factor::Lu: return {rows, add(m, rows, one)};
    case Factor::Qr: return {add(m, rows, cols), cols};
    case Factor::Eigen:
    case Factor::Svd: return {add(m, cols, one), cols};
    default: return {rows, one};
  }
}

bool is_linear(const Module& m, ExprId e) {
  for (const auto& t : affine_form(m, e).terms) {
    if (m[t.atom].free != 0 && slot_of(m, t.atom) == ~0u) return false;
  }
  return true;
}

// Whether `cells`, a Collect, just reads an array: its body is an access whose address is linear
// and in bounds.
bool is_plain(Module& m, ExprId cells, const Facts& facts) {
  const Reduce r = *get_if<Reduce>(m, cells);
  const auto* read = get_if<Access>(m, r.body);
  if (!read) return false;
  const Access copy = *read;
  for (ExprId e : copy.at) {
    if (!is_linear(m, e)) return false;
  }
  Facts inner = facts;
  inner.slots.resize(r.first);
  enter(m, r, inner);
  return in_bounds(m, copy, inner);
}

// A condition that was met further out, with its binders renumbered from `depth`, so that it can be
// compared here.
ExprId numbered_from(Module& m, ExprId e, uint32_t depth) {
  uint32_t outermost = kMaxSlots;
  for_each_node(m, e, [&](ExprId x) {
    if (const auto* r = get_if<Reduce>(m, x)) outermost = std::min(outermost, r->first);
  });
  if (outermost == kMaxSlots) return e;
  return substitute(m, e, std::vector<ExprId>(outermost), depth);
}

bool native(DType t) { return t == DType::F32 || t == DType::F64; }

class FactorsApart {
 public:
  FactorsApart(Module& m, FamilyId id) : m_(m), base_(text(m[id].name)), family_(id) {}

  void clause(size_t number) {
    const Family& f = m_[family_];
    const Clause c = f.clauses[number];
    if (!has_factor(m_, c.body)) return;
    uint64_t all = f.rank() >= 64 ? ~0ull : (1ull << f.rank()) - 1;
    if (classify_factor(m_, c, all)) return;
    names_ = coordinate_names(f);
    // A matrix function inside an operand of another one comes first.
    for (bool again = true; again;) {
      again = false;
      const Clause now = m_[family_].clauses[number];
      std::map<ExprId, ExprId> apart;
      auto wanted = [&](const Node& n) {
        const auto* a = std::get_if<Apply>(&n);
        return a && a->op == Op::Factor && !has_factor(m_, a->args[3]) &&
               !has_factor(m_, a->args[4]);
      };
      std::map<ExprId, Facts> places;
      for_each_with_facts(m_, now, wanted, [&](ExprId e, const Facts& facts) {
        auto [known, fresh] = places.try_emplace(e, facts);
        if (!fresh) known->second = either(known->second, facts);
      });
      for (const auto& [e, facts] : places) apart[e] = isolate(e, facts);
      ExprId body = rewrite(m_, now.body, [&](ExprId x) {
        auto it = apart.find(x);
        return it == apart.end() ? x : it->second;
      });
      again = body != now.body && has_factor(m_, body);
      m_.families[family_].clauses[number].body = body;
    }
  }

 private:
  // What holds in two places of one expression: the conditions of either, and ranges that have those
  // of both.
  Facts either(const Facts& a, const Facts& b) {
    Facts out = a;
    std::vector<ExprId> here = a.holds, there = b.holds;
    for (size_t n = 0; n < a.slots.size(); ++n) {
      const Range &x = a.slots[n], &y = b.slots[n];
      if (x.lo == y.lo && x.hi == y.hi) continue;
      const ExprId self = slot(m_, static_cast<uint32_t>(n));
      for (auto [range, conds] : {std::pair(&x, &here), std::pair(&y, &there)}) {
        conds->push_back(apply(m_, Op::Ge, {self, range->lo}));
        conds->push_back(apply(m_, Op::Lt, {self, range->hi}));
      }
      out.slots[n] = {apply(m_, Op::Min, {x.lo, y.lo}), apply(m_, Op::Max, {x.hi, y.hi})};
    }
    if (here == there) return out;
    out.holds.clear();
    out.nonnegative.clear();
    out.nonzero.clear();
    out.guarded |= b.guarded;
    if (here.empty() || there.empty()) return out;
    const auto depth = static_cast<uint32_t>(a.slots.size());
    auto all = [&](const std::vector<ExprId>& conds) {
      std::vector<ExprId> numbered;
      for (ExprId cond : conds) numbered.push_back(numbered_from(m_, cond, depth));
      return all_of(m_, numbered);
    };
    out.holds = {apply(m_, Op::Or, {all(here), all(there)})};
    return out;
  }

  ExprId isolate(ExprId e, const Facts& facts) {
    const Apply a = *as_factor(m_, e);
    const DType type = m_[e].type;
    auto depth = static_cast<uint32_t>(facts.slots.size());
    bool column = is_solve(which_of(m_, a));
    const uint32_t inside = depth + (column ? 1 : 2);
    ExprId first = operand(a.args[3], facts, inside);
    ExprId second = column ? operand(a.args[4], facts, inside) : first;
    Facts outer = facts;
    outer.holds.clear();
    outer.nonnegative.clear();
    outer.nonzero.clear();
    outer.guarded = false;
    Extents size = extents_of(m_, a);
    outer.slots.push_back({int_lit(m_, 0), size.rows});
    if (!column) outer.slots.push_back({int_lit(m_, 0), size.cols});
    std::vector<Symbol> names = names_;
    names.resize(depth);
    names.push_back(Symbol{});
    names.push_back(Symbol{});
    ExprId cell = apply(
        m_, Op::Factor,
        {a.args[0], slot(m_, depth), column ? int_lit(m_, 0) : slot(m_, depth + 1), first, second},
        m_[e].span);
    ExprId read = hoist(m_, base_ + "_matrix", cell, {}, outer, names, m_[e].span);
    EIN_CHECK(read.valid(), "a matrix function at an index without a bound");
    Access at = *get_if<Access>(m_, read);
    // Nothing is read outside of the indices' ranges, so no condition is needed.
    for (Clause& c : m_.families[at.family].clauses) {
      const auto* gated = get_if<Apply>(m_, c.body);
      if (gated && gated->op == Op::Select) c.body = gated->args[1];
    }
    if (column) {
      at.at.back() = a.args[1];
    } else {
      at.at[at.at.size() - 2] = a.args[1];
      at.at.back() = a.args[2];
    }
    return cast(m_, access(m_, at.family, at.at, m_[e].span), type);
  }

  // The operand as plain cells, its indices numbered from `inside`.
  ExprId operand(ExprId cells, const Facts& facts, uint32_t inside) {
    Reduce r = *get_if<Reduce>(m_, cells);
    bool moves = !facts.holds.empty() || facts.guarded || !is_plain(m_, cells, facts) ||
                 !native(m_[r.body].type);
    for (const Range& range : facts.slots) {
      moves |= m_[range.lo].free != 0 || m_[range.hi].free != 0;
    }
    if (moves) {
      Facts inner = facts;
      enter(m_, r, inner);
      std::vector<Symbol> names = names_;
      names.resize(r.first);
      names.insert(names.end(), r.names.begin(), r.names.end());
      ExprId body = native(m_[r.body].type) ? r.body : cast(m_, r.body, DType::F32);
      std::vector<ExprId> holds;
      for (ExprId e : facts.holds) {
        holds.push_back(numbered_from(m_, e, static_cast<uint32_t>(inner.slots.size())));
      }
      ExprId read =
          hoist(m_, base_ + "_cells", body, all_of(m_, holds), inner, names, m_[cells].span);
      EIN_CHECK(read.valid(), "a matrix at an index without a bound");
      r.body = read;
    }
    ExprId same = reduce(m_, std::move(r), m_[cells].span);
    return substitute(m_, same, std::vector<ExprId>(facts.slots.size()), inside);
  }

  Module& m_;
  std::string base_;
  FamilyId family_;
  std::vector<Symbol> names_;
};

}  // namespace

bool has_factor(const Module& m, ExprId e) {
  bool found = false;
  for_each_node(m, e, [&](ExprId x) { found = found || as_factor(m, x); });
  return found;
}

std::optional<Contraction> classify_moved(const Module& m, const Clause& clause) {
  const auto* a = get_if<Apply>(m, clause.body);
  if (!a || a->op != Op::Moved) return std::nullopt;
  const auto* cells = get_if<Reduce>(m, a->args[2]);
  ExprId read = cells ? cells->body : a->args[2];
  EIN_CHECK(get_if<Access>(m, read), "the cells of a move are those of one value");
  Contraction c{a->args[2], read, read, {}, {}, {}, {}, -1};
  c.moved = get_if<IntLit>(m, a->args[0])->value;
  return c;
}

std::optional<Contraction> classify_factor(Module& m, const Clause& clause, uint64_t free) {
  const auto* found = as_factor(m, clause.body);
  if (!found || !native(m[clause.body].type)) return std::nullopt;
  const Apply a = *found;
  Factor which = which_of(m, a);
  Extents size = extents_of(m, a);
  uint32_t row = slot_of(m, a.args[1]), col = slot_of(m, a.args[2]);
  bool column = is_solve(which);
  auto whole = [&](uint32_t s, ExprId extent) {
    return s < clause.box.size() && (free >> s & 1) != 0 && const_int(m, clause.box[s].lo) == 0 &&
           clause.box[s].hi == extent;
  };
  if (!whole(row, size.rows) || (!column && (!whole(col, size.cols) || col == row))) {
    return std::nullopt;
  }
  uint64_t used = m[a.args[3]].free | m[a.args[4]].free;
  if (used >> row & 1 || (!column && (used >> col & 1))) return std::nullopt;
  Facts facts = clause_facts(m, clause);
  if (!is_plain(m, a.args[3], facts) || !is_plain(m, a.args[4], facts)) return std::nullopt;
  const Reduce cells = *get_if<Reduce>(m, a.args[3]);
  Contraction c{a.args[3], cells.body, get_if<Reduce>(m, a.args[4])->body, {}, {}, {}, {}, -1};
  c.factor = static_cast<int64_t>(which);
  c.k = {cells.first, cells.first + 1};
  c.m = {row};
  if (!column) c.n = {col};
  for (uint32_t s = 0; s < clause.box.size(); ++s) {
    if ((free >> s & 1) && s != row && (column || s != col)) c.batch.push_back(s);
  }
  return c;
}

void isolate_factors(Module& m) {
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    for (size_t c = 0; c < m[FamilyId(i)].clauses.size(); ++c) {
      FactorsApart(m, FamilyId(i)).clause(c);
    }
  }
}

namespace {

// For a product with an inverse: the function that computes it directly, and that function's
// operand.
struct Solution {
  Factor which;
  bool transposed;  // the operand must be transposed
};
std::optional<Solution> solution_for(Factor inverse, bool transposed) {
  switch (inverse) {
    case Factor::InverseLower:
      return Solution{transposed ? Factor::SolveUpper : Factor::SolveLower, transposed};
    case Factor::InverseUpper:
      return Solution{transposed ? Factor::SolveLower : Factor::SolveUpper, transposed};
    case Factor::InverseLu:
      return Solution{transposed ? Factor::SolveLuTransposed : Factor::SolveLu, false};
    default: return std::nullopt;
  }
}

// If `e` is a sum of products with a cell of an inverse: the cell of the solution instead;
// otherwise invalid.
ExprId as_solution(Module& m, ExprId e) {
  const auto* found = get_if<Reduce>(m, e);
  if (!found || found->op != ReduceOp::Sum || found->gate || !found->routes.empty() ||
      found->over.size() != 1) {
    return {};
  }
  const Reduce r = *found;
  Product product = as_product(m, r.body);
  for (size_t k = 0; k < product.num.size(); ++k) {
    const auto* access = get_if<Access>(m, product.num[k]);
    if (!access) continue;
    const Access read = *access;
    const Family& inverse = m[read.family];
    if (inverse.clauses.size() != 1) continue;
    const auto* cell = as_factor(m, inverse.clauses[0].body);
    if (!cell) continue;
    const Apply a = *cell;
    uint32_t row = slot_of(m, a.args[1]), col = slot_of(m, a.args[2]);
    if (row == ~0u || col == ~0u || row == col) continue;
    bool by_col = slot_of(m, read.at[col]) == r.first, by_row = slot_of(m, read.at[row]) == r.first;
    auto how = by_col != by_row ? solution_for(which_of(m, a), by_row) : std::nullopt;
    if (!how) continue;
    ExprId other = read.at[by_col ? row : col];
    uint64_t summed = 1ull << r.first;
    bool apart = (m[other].free & summed) == 0;
    for (uint32_t s = 0; s < read.at.size(); ++s) {
      if (s != row && s != col) apart &= (m[read.at[s]].free & (m[other].free | summed)) == 0;
    }
    const Reduce cells = *get_if<Reduce>(m, a.args[3]);
    apart &= const_int(m, r.over[0].lo) == 0 && r.over[0].hi == cells.over[0].hi;
    Product rest = product;
    rest.num.erase(rest.num.begin() + static_cast<ptrdiff_t>(k));
    ExprId column = from_product(m, rest, m[e].type);
    if (!apart || (m[column].free & m[other].free) != 0 || has_reduce(m, column)) continue;
    if ((m[column].free & summed) == 0) continue;
    // The inverse's operand at this place, with rows and columns exchanged if needed.
    ExprId moved = substitute(m, a.args[3], read.at, r.first);
    Reduce matrix = *get_if<Reduce>(m, moved);
    if (how->transposed) {
      std::vector<ExprId> with(r.first + 2);
      with[r.first] = slot(m, r.first + 1);
      with[r.first + 1] = slot(m, r.first);
      matrix.body = substitute(m, matrix.body, with, r.first + 2);
    }
    Reduce side{ReduceOp::Collect, r.first, r.over, r.names, {}, {}, column};
    ExprId out = apply(m, Op::Factor,
                       {int_lit(m, static_cast<int64_t>(how->which)), other, int_lit(m, 0),
                        reduce(m, std::move(matrix)), reduce(m, std::move(side))},
                       m[e].span);
    return product.negative ? neg(m, out) : out;
  }
  return {};
}

}  // namespace

void solve_for_products(Module& m) {
  bool some = false;
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    for_each_body(m, FamilyId(i), [&](ExprId body) { some = some || as_factor(m, body); });
  }
  if (!some) return;
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    for (size_t c = 0; c < m[FamilyId(i)].clauses.size(); ++c) {
      ExprId body = m[FamilyId(i)].clauses[c].body;
      ExprId by = rewrite(m, body, [&](ExprId x) {
        ExprId solution = as_solution(m, x);
        return solution ? solution : x;
      });
      m.families[FamilyId(i)].clauses[c].body = by;
    }
  }
  isolate_factors(m);
}

}  // namespace ein::optimise
