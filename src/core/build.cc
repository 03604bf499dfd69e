#include "core/build.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/match.h"
#include "core/scalar.h"
#include "runtime/integers.h"

namespace ein::core {
namespace {

uint64_t free_of(const Module& m, ExprId e) { return e ? m[e].free : 0; }

ExprId make(Module& m, Node node, DType type, Span span, uint64_t free) {
  return m.arena->intern(std::move(node), type, span, free);
}

int64_t wrap_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrap_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

int64_t wrap_shl(int64_t a, int64_t by) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) << by);
}

// Sums of indices and extents.
bool counts(const Module& m, const AffineForm& f) {
  return std::all_of(f.terms.begin(), f.terms.end(), [&](const Affine::Term& t) {
    return get_if<Slot>(m, t.atom) || get_if<ParamRef>(m, t.atom);
  });
}

// a + scale·b, both in normal form.
AffineForm combine(const AffineForm& a, const AffineForm& b, int64_t scale) {
  AffineForm out;
  out.constant = wrap_add(a.constant, wrap_mul(scale, b.constant));
  auto i = a.terms.begin();
  auto j = b.terms.begin();
  while (i != a.terms.end() || j != b.terms.end()) {
    if (j == b.terms.end() || (i != a.terms.end() && i->atom < j->atom)) {
      out.terms.push_back(*i++);
    } else if (i == a.terms.end() || j->atom < i->atom) {
      out.terms.push_back({j->atom, wrap_mul(scale, j->coef)});
      ++j;
    } else {
      out.terms.push_back({i->atom, wrap_add(i->coef, wrap_mul(scale, j->coef))});
      ++i;
      ++j;
    }
  }
  std::erase_if(out.terms, [](const Affine::Term& t) { return t.coef == 0; });
  return out;
}

// Exact division of every coefficient, when it is exact.
std::optional<AffineForm> divide_exactly(const AffineForm& f, int64_t by) {
  if (by <= 0 || f.constant % by != 0) return std::nullopt;
  AffineForm out{f.terms, f.constant / by};
  for (auto& t : out.terms) {
    if (t.coef % by != 0) return std::nullopt;
    t.coef /= by;
  }
  return out;
}

// i64 arithmetic folded to its normal form or its value; invalid when it stays an Apply.
ExprId fold_i64(Module& m, Op op, const std::vector<ExprId>& args) {
  AffineForm a = affine_form(m, args[0]);
  AffineForm b = args.size() > 1 ? affine_form(m, args[1]) : AffineForm{};
  bool ca = a.terms.empty(), cb = args.size() > 1 && b.terms.empty();
  AffineForm zero;
  switch (op) {
    case Op::Add: return from_form(m, combine(a, b, 1));
    case Op::Sub: return from_form(m, combine(a, b, -1));
    case Op::Neg: return from_form(m, combine(zero, a, -1));
    case Op::Mul:
      if (ca) return from_form(m, combine(zero, b, a.constant));
      if (cb) return from_form(m, combine(zero, a, b.constant));
      return {};
    case Op::Div:
      if (!cb || b.constant <= 0) return {};
      if (ca) return int_lit(m, a.constant / b.constant);
      if (auto q = divide_exactly(a, b.constant)) return from_form(m, *q);
      return {};
    case Op::Mod:
      if (!cb || b.constant <= 0) return {};
      if (ca) return int_lit(m, a.constant % b.constant);
      if (divide_exactly(a, b.constant)) return int_lit(m, 0);
      return {};
    case Op::Min:
    case Op::Max: {
      AffineForm d = combine(a, b, -1);
      if (!d.terms.empty()) return {};
      return (d.constant <= 0) == (op == Op::Min) ? args[0] : args[1];
    }
    // Not `~`: an untyped `~15` beside a u8 is 240.
    case Op::BitAnd: return ca && cb ? int_lit(m, a.constant & b.constant) : ExprId{};
    case Op::BitOr: return ca && cb ? int_lit(m, a.constant | b.constant) : ExprId{};
    case Op::BitXor: return ca && cb ? int_lit(m, a.constant ^ b.constant) : ExprId{};
    case Op::BitLength: return ca ? int_lit(m, bit_length(a.constant)) : ExprId{};
    case Op::Shl:
      if (!cb || !shifts_within(DType::I64, b.constant)) return {};
      // Bits that fall off are no overflow, so only what counts cells becomes a product.
      if (!ca && (b.constant > 12 || !counts(m, a))) return {};
      return from_form(m, combine(zero, a, wrap_shl(1, b.constant)));
    case Op::Shr:
      if (!ca || !cb || !shifts_within(DType::I64, b.constant)) return {};
      return int_lit(m, a.constant >> b.constant);
    default: return {};
  }
}

// Folds an operation on two i32 literals if the result fits. Overflow and division by zero are left
// to run time, which may have to report them. Not `~`, see above.
ExprId fold_ints(Module& m, Op op, const std::vector<ExprId>& args) {
  const auto* a = get_if<IntLit>(m, args[0]);
  const auto* b = get_if<IntLit>(m, args.back());
  DType type = m[args[0]].type;
  if (!a || !b || type != DType::I32) return {};
  switch (op) {
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
    case Op::Div:
    case Op::Mod:
    case Op::Min:
    case Op::Max:
    case Op::BitAnd:
    case Op::BitOr:
    case Op::BitXor:
    case Op::BitLength:
    case Op::Shl:
    case Op::Shr: break;
    default: return {};
  }
  if (overflows(op, type, a->value, b->value)) return {};
  auto v = apply_scalar(op, type, type, {.i = a->value}, {.i = b->value});
  return v ? int_lit(m, v->i, type) : ExprId{};
}

// a - b, where it is known.
std::optional<int64_t> known_difference(const Module& m, ExprId a, ExprId b) {
  if (m[a].type == DType::I64) {
    AffineForm d = combine(affine_form(m, a), affine_form(m, b), -1);
    return d.terms.empty() ? std::optional(d.constant) : std::nullopt;
  }
  const auto* x = get_if<IntLit>(m, a);
  const auto* y = get_if<IntLit>(m, b);
  return x && y ? std::optional(x->value - y->value) : std::nullopt;
}

ExprId fold_compare(Module& m, Op op, ExprId a, ExprId b) {
  auto difference = known_difference(m, a, b);
  if (!difference) return {};
  int64_t v = *difference;
  switch (op) {
    case Op::Lt: return bool_lit(m, v < 0);
    case Op::Le: return bool_lit(m, v <= 0);
    case Op::Gt: return bool_lit(m, v > 0);
    case Op::Ge: return bool_lit(m, v >= 0);
    case Op::Eq: return bool_lit(m, v == 0);
    case Op::Ne: return bool_lit(m, v != 0);
    default: return {};
  }
}

// An index beside an integer value is compared as an index: `idx[k] == r` widens idx[k] instead of
// narrowing r, which is exact for every r and lets gates be solved.
bool widen_compare(Module& m, ExprId& a, ExprId& b) {
  for (auto [index, other] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
    const auto* c = get_if<Apply>(m, *index);
    if (!c || c->op != Op::Cast || m[c->args[0]].type != DType::I64 || !is_int(m[*index].type)) {
      continue;
    }
    *index = c->args[0];
    *other = cast(m, *other, DType::I64);
    return true;
  }
  return false;
}

ExprId fold_logic(Module& m, Op op, const std::vector<ExprId>& args) {
  const auto* a = get_if<BoolLit>(m, args[0]);
  if (op == Op::Not) {
    if (a) return bool_lit(m, !a->value);
    const auto* inner = get_if<Apply>(m, args[0]);
    return inner && inner->op == Op::Not ? inner->args[0] : ExprId{};
  }
  const auto* b = get_if<BoolLit>(m, args[1]);
  bool unit = op == Op::And;  // the neutral element
  if (a) return a->value == unit ? args[1] : args[0];
  if (b && b->value == unit) return args[0];
  if (args[0] == args[1]) return args[0];
  return {};
}

// -literal: exact for floats, wrapping for integers.
ExprId fold_neg(Module& m, ExprId a, Span span) {
  DType t = m[a].type;
  if (const auto* f = get_if<FloatLit>(m, a)) return float_lit(m, -f->written, t, span);
  if (const auto* i = get_if<IntLit>(m, a)) return int_lit(m, wrap_mul(i->value, -1), t, span);
  return {};
}

void check_types(const Module& m, Op op, const std::vector<ExprId>& args) {
  const OpInfo& o = info(op);
  EIN_CHECK(args.size() == o.arity, std::string("arity of ") + o.name);
  for (ExprId a : args) EIN_CHECK(a.valid(), std::string("missing argument of ") + o.name);
  DType first = m[args[0]].type;
  auto all_first = [&] {
    for (ExprId a : args) {
      EIN_CHECK(m[a].type == first, std::string("mixed argument types of ") + o.name);
    }
  };
  switch (o.cls) {
    case OpClass::Arith:
      all_first();
      EIN_CHECK(is_float(first) || is_int(first), std::string("operand type of ") + o.name);
      return;
    case OpClass::Real:
      all_first();
      EIN_CHECK(is_float(first), std::string("operand type of ") + o.name);
      return;
    case OpClass::Whole:
      all_first();
      EIN_CHECK(is_int(first), std::string("operand type of ") + o.name);
      return;
    case OpClass::Compare: all_first(); return;
    case OpClass::Logic:
      all_first();
      EIN_CHECK(first == DType::Bool, "logical operand is not bool");
      return;
    case OpClass::Select:
      EIN_CHECK(first == DType::Bool, "select condition is not bool");
      EIN_CHECK(m[args[1]].type == m[args[2]].type, "select arms differ in type");
      return;
    case OpClass::Bits:
    case OpClass::Draw:
      all_first();
      EIN_CHECK(first == DType::I64, "random bits are i64");
      return;
    case OpClass::Rule: EIN_CHECK(is_float(m[args.back()].type), "a tangent is a float"); return;
    case OpClass::Mark: EIN_CHECK(m[args[1]].type == DType::I64, "the number of a mark"); return;
    case OpClass::Matrix:
      for (size_t k = 0; k < 3; ++k) EIN_CHECK(m[args[k]].type == DType::I64, "a cell of a matrix");
      EIN_CHECK(is_float(m[args[3]].type) && m[args[3]].type == m[args[4]].type,
                "a matrix of floats");
      return;
    case OpClass::Move:
      for (size_t k = 0; k < 2; ++k) EIN_CHECK(m[args[k]].type == DType::I64, "a cell of a move");
      return;
    case OpClass::Cast: EIN_UNREACHABLE("casts are built by cast()");
  }
}

}  // namespace

ExprId float_lit(Module& m, double value, DType type, Span span) {
  EIN_CHECK(is_float(type), "float literal of a non-float type");
  return make(m, FloatLit{round_to(type, value), value}, type, span, 0);
}

ExprId int_lit(Module& m, int64_t value, DType type, Span span) {
  EIN_CHECK(is_int(type), "integer literal of a non-integer type");
  return make(m, IntLit{value}, type, span, 0);
}

ExprId bool_lit(Module& m, bool value, Span span) {
  return make(m, BoolLit{value}, DType::Bool, span, 0);
}

ExprId number(Module& m, double value, DType type, Span span) {
  if (is_float(type)) return float_lit(m, value, type, span);
  return int_lit(m, static_cast<int64_t>(value), type, span);
}

ExprId slot(Module& m, uint32_t n, Span span) {
  EIN_CHECK(n < kMaxSlots, "more than 64 indices in one definition");
  return make(m, Slot{n}, DType::I64, span, uint64_t{1} << n);
}

ExprId param(Module& m, ParamId p, Span span) { return make(m, ParamRef{p}, DType::I64, span, 0); }

ExprId apply(Module& m, Op op, std::vector<ExprId> args, Span span) {
  check_types(m, op, args);
  DType first = m[args[0]].type;
  DType type = first;
  ExprId folded;
  if (op == Op::And) {
    // A conjunction has one shape: nested to the left, as `a, b, c` and `a && b && c` are parsed.
    if (const auto* right = get_if<Apply>(m, args[1]); right && right->op == Op::And) {
      std::vector<ExprId> parts = right->args;
      return apply(m, Op::And, {apply(m, Op::And, {args[0], parts[0]}), parts[1]}, span);
    }
  }
  switch (info(op).cls) {
    case OpClass::Arith:
      if (op == Op::Neg) folded = fold_neg(m, args[0], span);
      if (!folded && is_int(first)) {
        folded = first == DType::I64 ? fold_i64(m, op, args) : fold_ints(m, op, args);
      }
      break;
    case OpClass::Whole:
      folded = first == DType::I64 ? fold_i64(m, op, args) : fold_ints(m, op, args);
      break;
    case OpClass::Compare:
      type = DType::Bool;
      if (is_int(first) && first != DType::I64) widen_compare(m, args[0], args[1]);
      folded = fold_compare(m, op, args[0], args[1]);
      break;
    case OpClass::Logic: folded = fold_logic(m, op, args); break;
    case OpClass::Select:
      type = m[args[1]].type;
      if (const auto* c = get_if<BoolLit>(m, args[0])) folded = c->value ? args[1] : args[2];
      break;
    case OpClass::Draw: type = DType::F32; break;
    case OpClass::Matrix: type = m[args[3]].type; break;
    case OpClass::Move: type = m[args[2]].type; break;
    case OpClass::Rule:
    case OpClass::Mark:
    case OpClass::Real:
    case OpClass::Bits:
    case OpClass::Cast: break;
  }
  if (folded) return folded;
  uint64_t free = 0;
  for (ExprId a : args) free |= free_of(m, a);
  return make(m, Apply{op, std::move(args)}, type, span, free);
}

ExprId cast(Module& m, ExprId value, DType to, Span span) {
  DType from = m[value].type;
  if (from == to) return value;
  EIN_CHECK(from != DType::Str && to != DType::Str, "cast of a string");
  if (const auto* i = get_if<IntLit>(m, value)) {
    if (is_float(to)) return float_lit(m, static_cast<double>(i->value), to, span);
    if (to == DType::I64 || to == DType::I32) {
      int64_t v = to == DType::I32 ? static_cast<int32_t>(i->value) : i->value;
      return int_lit(m, v, to, span);
    }
  }
  return make(m, Apply{Op::Cast, {value}}, to, span, free_of(m, value));
}

ExprId access(Module& m, FamilyId family, std::vector<ExprId> at, Span span) {
  const Family& f = m[family];
  EIN_CHECK(at.size() == f.coords.size(), "access to `" + text(f.name) + "` with the wrong rank");
  uint64_t free = 0;
  for (ExprId a : at) {
    EIN_CHECK(m[a].type == DType::I64, "index of `" + text(f.name) + "` is not i64");
    free |= free_of(m, a);
  }
  return make(m, Access{family, std::move(at)}, f.dtype, span, free);
}

ExprId call(Module& m, FunctionId function, std::vector<ExprId> args, Span span) {
  const Function& f = m.functions[function];
  EIN_CHECK(args.size() == f.params.size(), "call of `" + text(f.name) + "`: argument count");
  uint64_t free = 0;
  for (size_t k = 0; k < args.size(); ++k) {
    EIN_CHECK(m[args[k]].type == f.params[k].type, "argument type of `" + text(f.name) + "`");
    free |= free_of(m, args[k]);
  }
  return make(m, Call{function, std::move(args)}, f.result, span, free);
}

ExprId argument(Module& m, uint32_t n, DType type, Span span) {
  return make(m, Arg{n}, type, span, 0);
}

ExprId request(Module& m, Request r, Span span) {
  EIN_CHECK(r.num_at.size() == m[r.num].coords.size(), "request numerator rank");
  EIN_CHECK(r.den_at.size() == m[r.den].coords.size(), "request denominator rank");
  uint64_t free = 0;
  for (ExprId a : r.num_at) free |= free_of(m, a);
  for (ExprId a : r.den_at) free |= free_of(m, a);
  DType type = m[r.num].dtype;
  return make(m, std::move(r), type, span, free);
}

ExprId identity(Module& m, ReduceOp op, DType type) {
  auto limit = [&](bool low) {
    if (is_float(type)) {
      double inf = std::numeric_limits<double>::infinity();
      return float_lit(m, low ? -inf : inf, type);
    }
    switch (type) {
      case DType::I8: return int_lit(m, low ? INT8_MIN : INT8_MAX, type);
      case DType::I16: return int_lit(m, low ? INT16_MIN : INT16_MAX, type);
      case DType::I32: return int_lit(m, low ? INT32_MIN : INT32_MAX, type);
      case DType::U8: return int_lit(m, low ? 0 : UINT8_MAX, type);
      default: return int_lit(m, low ? INT64_MIN : INT64_MAX, DType::I64);
    }
  };
  switch (op) {
    case ReduceOp::Sum: return number(m, 0, type);
    case ReduceOp::Prod: return number(m, 1, type);
    case ReduceOp::Max: return limit(true);
    case ReduceOp::Min: return limit(false);
    case ReduceOp::All: return bool_lit(m, true);
    case ReduceOp::Any: return bool_lit(m, false);
    case ReduceOp::ArgMax:
    case ReduceOp::ArgMin: return int_lit(m, -1, DType::I32);
    case ReduceOp::Collect: EIN_UNREACHABLE("cells are not combined");
  }
  EIN_UNREACHABLE("reduce op");
}

ExprId reduce(Module& m, Reduce r, Span span) {
  DType body_type = m[r.body].type;
  DType type = body_type;
  switch (r.op) {
    case ReduceOp::Sum:
    case ReduceOp::Prod:
    case ReduceOp::Max:
    case ReduceOp::Min:
      EIN_CHECK(is_float(body_type) || is_int(body_type), "reduction of a non-number");
      break;
    case ReduceOp::All:
    case ReduceOp::Any: EIN_CHECK(body_type == DType::Bool, "all/any of a non-bool"); break;
    case ReduceOp::ArgMax:
    case ReduceOp::ArgMin:
      EIN_CHECK(r.over.size() == 1, "argmax over more than one index");
      EIN_CHECK(is_float(body_type) || is_int(body_type), "argmax of a non-number");
      type = DType::I32;
      break;
    case ReduceOp::Collect: EIN_CHECK(!r.gate && r.routes.empty(), "the cells of a matrix"); break;
  }
  EIN_CHECK(!r.gate || m[r.gate].type == DType::Bool, "gate is not bool");
  if (const auto* g = r.gate ? get_if<BoolLit>(m, r.gate) : nullptr; g && g->value) r.gate = {};
  if (r.over.empty()) {
    for (const Route& route : r.routes) {
      r.gate = both(m, r.gate, apply(m, Op::Eq, {route.to, slot(m, route.slot)}));
    }
    if (!r.gate) return r.body;
    return apply(m, Op::Select, {r.gate, r.body, identity(m, r.op, type)}, span);
  }
  EIN_CHECK(r.names.size() == r.over.size(), "binder names");
  EIN_CHECK(r.first + r.over.size() <= kMaxSlots, "more than 64 indices in one definition");
  uint64_t binders = 0;
  for (size_t i = 0; i < r.over.size(); ++i) binders |= uint64_t{1} << (r.first + i);
  uint64_t free = free_of(m, r.gate) | free_of(m, r.body);
  for (const Range& range : r.over) free |= free_of(m, range.lo) | free_of(m, range.hi);
  for (const Route& route : r.routes) free |= free_of(m, route.to) | (uint64_t{1} << route.slot);
  return make(m, std::move(r), type, span, free & ~binders);
}

ExprId add(Module& m, ExprId a, ExprId b, Span span) { return apply(m, Op::Add, {a, b}, span); }
ExprId sub(Module& m, ExprId a, ExprId b, Span span) { return apply(m, Op::Sub, {a, b}, span); }
ExprId mul(Module& m, ExprId a, ExprId b, Span span) { return apply(m, Op::Mul, {a, b}, span); }
ExprId neg(Module& m, ExprId a, Span span) { return apply(m, Op::Neg, {a}, span); }

ExprId both(Module& m, ExprId a, ExprId b) {
  if (!a) return b;
  if (!b) return a;
  return apply(m, Op::And, {a, b});
}

ExprId all_of(Module& m, const std::vector<ExprId>& conds) {
  ExprId out;
  for (ExprId c : conds) out = both(m, out, c);
  return out;
}

ExprId negate(Module& m, ExprId cond) {
  if (const auto* a = get_if<Apply>(m, cond); a && a->args.size() == 2) {
    // `if t == 0 || b == 0`: the other arm knows that neither holds.
    if (a->op == Op::Or) {
      const ExprId first = a->args[0], second = a->args[1];
      return apply(m, Op::And, {negate(m, first), negate(m, second)});
    }
    // A float comparison is not inverted: !(x > 0) holds for NaN, x <= 0 does not.
    if (is_int(m[a->args[0]].type)) {
      switch (a->op) {
        case Op::Lt: return apply(m, Op::Ge, a->args);
        case Op::Le: return apply(m, Op::Gt, a->args);
        case Op::Gt: return apply(m, Op::Le, a->args);
        case Op::Ge: return apply(m, Op::Lt, a->args);
        case Op::Eq: return apply(m, Op::Ne, a->args);
        case Op::Ne: return apply(m, Op::Eq, a->args);
        default: break;
      }
    }
  }
  return apply(m, Op::Not, {cond});
}

ExprId gated(Module& m, ExprId cond, ExprId value) {
  if (!cond) return value;
  return apply(m, Op::Select, {cond, value, number(m, 0, m[value].type)});
}

void conjuncts(const Module& m, ExprId cond, std::vector<ExprId>& out) {
  if (!cond) return;
  if (const auto* a = get_if<Apply>(m, cond); a && a->op == Op::And) {
    conjuncts(m, a->args[0], out);
    conjuncts(m, a->args[1], out);
    return;
  }
  out.push_back(cond);
}

AffineForm affine_form(const Module& m, ExprId e) {
  EIN_CHECK(m[e].type == DType::I64, "affine form of a value that is not i64");
  if (const auto* i = get_if<IntLit>(m, e)) return {{}, i->value};
  if (const auto* a = get_if<Affine>(m, e)) return {a->terms, a->constant};
  return {{{e, 1}}, 0};
}

namespace {

// c·(e / c) + e % c is e: part of the normal form, so that residue classes cancel.
std::optional<AffineForm> join_residue(const Module& m, const AffineForm& form) {
  for (const auto& t : form.terms) {
    const auto* mod = get_if<Apply>(m, t.atom);
    if (!mod || mod->op != Op::Mod) continue;
    auto by = const_int(m, mod->args[1]);
    if (!by) continue;
    for (const auto& u : form.terms) {
      const auto* div = get_if<Apply>(m, u.atom);
      if (!div || div->op != Op::Div || div->args != mod->args || u.coef != wrap_mul(t.coef, *by))
        continue;
      AffineForm rest = form;
      std::erase_if(rest.terms,
                    [&](const Affine::Term& x) { return x.atom == t.atom || x.atom == u.atom; });
      return combine(rest, affine_form(m, mod->args[0]), t.coef);
    }
  }
  return std::nullopt;
}

}  // namespace

ExprId from_form(Module& m, const AffineForm& form) {
  if (auto joined = join_residue(m, form)) return from_form(m, *joined);
  if (form.terms.empty()) return int_lit(m, form.constant);
  if (form.terms.size() == 1 && form.constant == 0 && form.terms[0].coef == 1) {
    return form.terms[0].atom;
  }
  uint64_t free = 0;
  for (const auto& t : form.terms) free |= free_of(m, t.atom);
  return make(m, Affine{form.terms, form.constant}, DType::I64, {}, free);
}

std::optional<int64_t> const_int(const Module& m, ExprId e) {
  if (const auto* i = get_if<IntLit>(m, e)) return i->value;
  return std::nullopt;
}

int64_t coefficient(const AffineForm& form, ExprId atom) {
  for (const auto& t : form.terms) {
    if (t.atom == atom) return t.coef;
  }
  return 0;
}

std::vector<ExprId> slots_from(Module& m, uint32_t first, size_t count) {
  std::vector<ExprId> out;
  for (size_t k = 0; k < count; ++k) out.push_back(slot(m, first + static_cast<uint32_t>(k)));
  return out;
}

void add_coords(std::vector<Coord>& coords, const std::vector<Coord>& more) {
  for (Coord c : more) {
    for (const Coord& taken : coords) {
      if (c.name && taken.name == c.name) c.name = intern("d_" + text(c.name));
    }
    coords.push_back(c);
  }
}

void add_denominator(std::vector<Coord>& coords, const std::vector<Coord>& den) {
  auto among = [](const std::vector<Coord>& list, Symbol name) {
    return std::any_of(list.begin(), list.end(), [&](const Coord& c) { return c.name == name; });
  };
  const std::vector<Coord> num = coords;
  for (Coord c : den) {
    bool renamed = false;
    while (c.name && (among(num, c.name) || (renamed && among(den, c.name)))) {
      c.name = intern("d_" + text(c.name));
      renamed = true;
    }
    coords.push_back(c);
  }
}

Symbol fresh_name(const Module& m, const std::string& base) {
  Module::Names& taken = m.names;
  for (; taken.families < m.families.size(); ++taken.families) {
    taken.symbols.insert(m.families[FamilyId(taken.families)].name);
  }
  for (; taken.params < m.params.size(); ++taken.params) {
    taken.symbols.insert(m.params[ParamId(taken.params)].name);
  }
  for (int n = 0;; ++n) {
    Symbol name = intern(n == 0 ? base : base + "_" + std::to_string(n));
    if (!taken.symbols.contains(name)) return name;
  }
}

}  // namespace ein::core
