#include "optimise/operands.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <unordered_map>

#include "core/build.h"
#include "core/normal.h"
#include "core/rewrite.h"

namespace ein::optimise {

using namespace core;

namespace {

// The access, if the factor is nothing but an access and conversions.
const Access* converted_read(const Module& m, ExprId e) {
  for (const auto* cast = get_if<Apply>(m, e); cast && cast->op == Op::Cast;
       cast = get_if<Apply>(m, e)) {
    e = cast->args[0];
  }
  return get_if<Access>(m, e);
}

}  // namespace

ExprId operand_read(const Module& m, ExprId e) {
  if (get_if<Access>(m, e)) return e;
  const auto* cast = get_if<Apply>(m, e);
  if (!cast || cast->op != Op::Cast || m[e].type != DType::F32) return {};
  ExprId from = cast->args[0];
  bool is_short = m[from].type == DType::F16 || m[from].type == DType::BF16;
  return is_short && get_if<Access>(m, from) ? from : ExprId{};
}

DType Operands::stored_as(const Term& t) const {
  if (type != DType::F32 || t.product.num.size() != 1 || !t.product.den.empty()) return type;
  const auto* cast = get_if<Apply>(m, t.product.num[0]);
  if (!cast || cast->op != Op::Cast) return type;
  DType from = m[cast->args[0]].type;
  return from == DType::F16 || from == DType::BF16 ? from : type;
}

DType Operands::common(const Term& a, const Term& b) const {
  DType stored = stored_as(a);
  return stored == stored_as(b) ? stored : type;
}

ExprId Operands::value_as(const Term& t, DType stored) {
  if (stored == type) return value(t);
  return gated(m, all_of(m, t.conds), std::get<Apply>(m[t.product.num[0]].node).args[0]);
}

ExprId Operands::value(const Term& t) {
  ExprId product = from_product(m, t.product, type);
  return gated(m, all_of(m, t.conds), product);
}

bool Operands::plain(const Term& t, DType stored) const {
  if (!t.conds.empty() || t.product.num.size() != 1 || !t.product.den.empty()) return false;
  ExprId read = operand_read(m, t.product.num[0]);
  if (!read || m[read].type != stored) return false;
  const auto* a = get_if<Access>(m, read);
  for (ExprId e : a->at) {
    for (const auto& term : affine_form(m, e).terms) {
      if (m[term.atom].free != 0 && slot_of(m, term.atom) == ~0u) return false;
    }
  }
  return true;
}

ExprId Operands::hoisted(ExprId e, const char* suffix) {
  return hoist(m, name + suffix, e, {}, facts, names, span);
}

// Some operands depend on fewer index expressions than slots; such an operand becomes a family over
// those expressions. An example is `x[n, c, p + kh - 1]` under conditions on p + kh - 1: what a
// convolution reads, with a rim. Invalid if the operand is not like that.
ExprId Operands::over_expressions(const Term& t, DType stored) {
  std::vector<ExprId> axes;
  for (ExprId f : t.product.num) {
    const auto* a = converted_read(m, f);
    if (!a || a->at.size() < axes.size()) continue;
    axes.clear();
    for (ExprId e : a->at) {
      if (m[e].free != 0 && std::count(axes.begin(), axes.end(), e) == 0) axes.push_back(e);
    }
  }
  if (axes.empty() || axes.size() >= static_cast<size_t>(std::popcount(t.slots))) return {};
  Family f;
  f.name = fresh_name(m, name + "_operand");
  f.dtype = stored;
  f.generated = true;
  f.span = span;
  std::vector<ExprId> at, low, starts;
  Clause clause;
  for (ExprId e : axes) {
    ExprId most = closed_upper(m, e, facts), least = closed_upper(m, neg(m, e), facts);
    if (!most || !least) return {};
    // A sequential coordinate must keep its numbers: shifted, it would be read at another step.
    const auto* s = get_if<Slot>(m, e);
    bool keeps = s && m[facts.slots[s->n].lo].free == 0;
    low.push_back(keeps ? int_lit(m, 0) : neg(m, least));
    at.push_back(sub(m, e, low.back()));
    ExprId extent = add(m, sub(m, most, low.back()), int_lit(m, 1));
    f.coords.push_back({s ? names[s->n] : Symbol{}, extent});
    clause.box.push_back({int_lit(m, 0), extent});
    starts.push_back(keeps ? facts.slots[s->n].lo : int_lit(m, 0));
  }
  for (size_t k = 0; k < starts.size(); ++k) {
    if (const_int(m, starts[k]) == 0) continue;
    std::vector<Range> below = clause.box;
    below[k].hi = starts[k];
    f.clauses.push_back({below, number(m, 0, stored), span});
    clause.box[k].lo = starts[k];
  }
  bool ok = true;
  std::unordered_map<ExprId, ExprId> memo;
  std::function<ExprId(ExprId)> put = [&](ExprId e) -> ExprId {
    if (m[e].free == 0 || !ok) return e;
    if (auto it = memo.find(e); it != memo.end()) return it->second;
    ExprId out;
    if (m[e].type == DType::I64) {  // one of the expressions, or a fixed distance from one
      for (size_t i = 0; i < axes.size() && !out; ++i) {
        auto off = const_int(m, sub(m, e, axes[i]));
        if (!off) continue;
        ExprId here = add(m, slot(m, static_cast<uint32_t>(i)), low[i]);
        out = add(m, here, int_lit(m, *off));
      }
    }
    bool inner = get_if<Apply>(m, e) || get_if<Access>(m, e);
    if (!out && inner) out = map_children(m, e, put);
    ok &= out.valid();
    if (!out) out = e;
    memo[e] = out;
    return out;
  };
  clause.body = put(value_as(t, stored));
  clause.span = span;
  if (!ok) return {};
  f.clauses.push_back(clause);
  FamilyId id = m.families.add(std::move(f));
  return access(m, id, at, span);
}

// Orders an operand's coordinates like those of the largest array it reads, so that computing it
// goes through memory in order.
ExprId Operands::in_order_of_reads(ExprId read, const Term& t) {
  std::vector<uint32_t> order;  // slots
  for (ExprId f : t.product.num) {
    const auto* a = converted_read(m, f);
    if (!a || a->at.size() < order.size()) continue;
    order.clear();
    for (ExprId e : a->at) {
      uint32_t s = slot_of(m, e);
      if (s == ~0u || std::count(order.begin(), order.end(), s) > 0) return read;
      order.push_back(s);
    }
  }
  return in_order(read, order);
}

// Puts the coordinates of the family that is read, which is a new one, into the order of these
// slots.
ExprId Operands::in_order(ExprId read, const std::vector<uint32_t>& order) {
  const Access access = std::get<Access>(m[read].node);
  if (order.size() != access.at.size()) return read;
  Family& f = m.families[access.family];
  std::vector<Coord> coords;
  std::vector<ExprId> with(f.rank()), at;
  std::vector<size_t> from;
  for (uint32_t s : order) {
    auto it = std::find(access.at.begin(), access.at.end(), slot(m, s));
    if (it == access.at.end()) return read;
    from.push_back(static_cast<size_t>(it - access.at.begin()));
    with[from.back()] = slot(m, static_cast<uint32_t>(at.size()));
    at.push_back(*it);
    coords.push_back(f.coords[from.back()]);
  }
  f.coords = coords;
  for (Clause& c : f.clauses) {
    std::vector<Range> box;
    for (size_t k : from) box.push_back(c.box[k]);
    c.box = box;
    c.body = substitute(m, c.body, with, static_cast<uint32_t>(from.size()));
  }
  return core::access(m, access.family, at, m[read].span);
}

bool Operands::wants_order(const Term& t) const {
  if (sequential == 0 || (t.slots & sequential) || !plain(t, stored_as(t))) return false;
  const auto& a = std::get<Access>(m[operand_read(m, t.product.num[0])].node);
  if (steps->contains(a.family) || a.at.empty()) return false;
  for (ExprId e : a.at) {
    if (slot_of(m, e) == ~0u) return false;
  }
  return (m[a.at.back()].free & binders) && (t.slots & ~binders);
}

void Operands::give_order(Term& t) {
  std::vector<uint32_t> order;
  for (bool summed : {true, false}) {
    for (ExprId e : std::get<Access>(m[operand_read(m, t.product.num[0])].node).at) {
      bool is = (m[e].free & binders) != 0;
      if (is == summed) order.push_back(slot_of(m, e));
    }
  }
  ExprId read = hoisted(value_as(t, stored_as(t)), "_operand");
  if (!read) return;
  read = in_order(read, order);
  ordered.insert(std::get<Access>(m[read].node).family);
  t = read_of(read);
}

Term Operands::read_of(ExprId access) {
  Term t;
  t.product.num = {m[access].type == type ? access : cast(m, access, type)};
  t.slots = m[access].free;
  return t;
}

bool Operands::make_plain(Term& t, DType stored) {
  if (plain(t, stored)) return true;
  if (ExprId fewer = over_expressions(t, stored)) {
    t = read_of(fewer);
    return true;
  }
  ExprId read = hoisted(value_as(t, stored), "_operand");
  if (!read) return false;
  t = read_of(in_order_of_reads(read, t));
  return true;
}

bool Operands::make_plain(Term& a, Term& b) {
  DType stored = common(a, b);
  return make_plain(a, stored) && make_plain(b, stored);
}

}  // namespace ein::optimise
