#include "optimise/residues.h"

#include <algorithm>
#include <optional>

#include "core/build.h"
#include "core/prove.h"
#include "core/rewrite.h"
#include "core/total.h"

namespace ein::optimise {
namespace {

using namespace core;

constexpr int64_t kMostResidues = 4;
constexpr int kMostFamilies = 64;

// The quotient or the remainder of `coordinate + shift`, divided by `by`.
struct Division {
  uint32_t coordinate;
  int64_t shift, by;
};

std::optional<Division> division(const Module& m, ExprId e) {
  const auto* a = get_if<Apply>(m, e);
  if (!a || (a->op != Op::Div && a->op != Op::Mod) || m[e].type != DType::I64) return std::nullopt;
  AffineForm f = affine_form(m, a->args[0]);
  auto by = const_int(m, a->args[1]);
  if (!by || *by < 2 || *by > kMostResidues || f.constant < 0) return std::nullopt;
  if (f.terms.size() != 1 || f.terms[0].coef != 1) return std::nullopt;
  uint32_t n = slot_of(m, f.terms[0].atom);
  return n == ~0u ? std::nullopt : std::optional(Division{n, f.constant, *by});
}

// The first coordinate that the sum of products divides.
std::optional<Division> divided(const Module& m, const Clause& clause) {
  const auto* r = get_if<Reduce>(m, clause.body);
  if (!r || r->op != ReduceOp::Sum || !r->routes.empty() || !is_float(m[r->body].type)) return {};
  const auto* product = get_if<Apply>(m, r->body);
  if (!product || product->op != Op::Mul) return {};
  std::optional<Division> out;
  for_each_node(m, clause.body, [&](ExprId e) {
    auto found = division(m, e);
    if (found && found->coordinate < clause.box.size() && !out) out = found;
  });
  return out;
}

int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

struct Residues {
  Module& m;

  // The body for coordinate `by * quotient + residue - shift`; the quotient takes the coordinate's
  // slot.
  ExprId at_residue(ExprId body, const Division& d, int64_t residue) {
    const ExprId quotient = slot(m, d.coordinate);
    const ExprId here = add(m, mul(m, int_lit(m, d.by), quotient), int_lit(m, residue - d.shift));
    // The new quotient must not be mistaken for the coordinate. So the divisions are replaced
    // first, by a slot that nothing uses, and then the coordinate.
    const uint32_t unused = kMaxSlots - 1;
    ExprId out = rewrite(m, body, [&](ExprId e) {
      auto found = division(m, e);
      if (!found || found->coordinate != d.coordinate || found->by != d.by) return e;
      const int64_t over = residue - d.shift + found->shift;
      const int64_t whole = floor_div(over, d.by);
      if (get_if<Apply>(m, e)->op == Op::Mod) return int_lit(m, over - whole * d.by);
      return add(m, slot(m, unused), int_lit(m, whole));
    });
    out = substitute_slot(m, out, d.coordinate, here);
    return substitute_slot(m, out, unused, quotient);
  }

  // False if a part might fail: then the family must stay as it was.
  bool family(FamilyId id) {
    const Family f = m[id];
    const Clause& clause = f.clauses[0];
    auto d = divided(m, clause);
    if (!d) return true;
    const Range& box = clause.box[d->coordinate];
    if (const_int(m, box.lo) != 0) return false;
    std::vector<FamilyId> parts;
    const ExprId by = int_lit(m, d->by), one = int_lit(m, 1);
    const ExprId here = add(m, slot(m, d->coordinate), int_lit(m, d->shift));
    const ExprId quotients =
        add(m, apply(m, Op::Div, {add(m, box.hi, int_lit(m, d->shift - 1)), by}), one);
    std::vector<ExprId> at = slots_from(m, 0, f.rank());
    at[d->coordinate] = apply(m, Op::Div, {here, by});
    ExprId chosen;
    for (int64_t residue = d->by; residue-- > 0;) {
      Family part = f;
      part.name = fresh_name(m, text(f.name) + "_part");
      part.generated = true;
      part.checkpoint = 0;
      part.with.clear();
      part.coords[d->coordinate] = {Symbol{}, quotients};
      part.clauses[0].box[d->coordinate].hi = quotients;
      part.clauses[0].body = at_residue(clause.body, *d, residue);
      const Clause& made = part.clauses[0];
      // If another coordinate is divided as well, nothing is known about its remainders until it is
      // split, too.
      if (!divided(m, made) && !total(m, made.body, clause_facts(m, made), Overflow::Wraps)) {
        return false;
      }
      parts.push_back(m.families.add(std::move(part)));
      ExprId read = access(m, parts.back(), at, clause.span);
      ExprId this_one = apply(m, Op::Eq, {apply(m, Op::Mod, {here, by}), int_lit(m, residue)});
      chosen = chosen ? apply(m, Op::Select, {this_one, read, chosen}) : read;
    }
    m.families[id].clauses[0].body = chosen;
    return std::all_of(parts.begin(), parts.end(), [&](FamilyId part) { return family(part); });
  }
};

}  // namespace

bool split_residues(Module& m) {
  bool changed = false;
  const auto families = static_cast<uint32_t>(m.families.size());
  int left = kMostFamilies;  // each takes a copy of the program
  for (uint32_t i = 0; i < families && left > 0; ++i) {
    const Family& f = m[FamilyId(i)];
    if (f.clauses.size() != 1 || !divided(m, f.clauses[0])) continue;
    --left;
    Module split = m;
    if (!Residues{split}.family(FamilyId(i))) continue;
    m = std::move(split);
    changed = true;
  }
  return changed;
}

}  // namespace ein::optimise
