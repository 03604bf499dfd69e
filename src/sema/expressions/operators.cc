// Operators: pointwise application with adapting literals, `if`, casts, integers as indices.
#include <fmt/format.h>

#include <cmath>

#include "base/check.h"
#include "core/total.h"
#include "sema/expressions/expressions.h"
#include "sema/names/trees.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

bool literal_int(const Sema& s, const Value& v) {
  return v.typing == Typing::Int && v.kind == Value::Kind::Data && v.scalar() &&
         core::const_int(s.m, v.body).has_value();
}

Value wrong_operand(Sema& s, core::Op op, const Value& v, const char* wanted) {
  auto& d = s.diags.error(Code::E0502, fmt::format("`{}` takes {}, not {}", core::info(op).spelling,
                                                   wanted, show_value(s, v)));
  d.primary(v.span, "this is " + show_value(s, v));
  bool condition = v.type == DType::Bool && v.typing == Typing::Fixed;
  bool whole = v.typing == Typing::Int || (v.typing == Typing::Fixed && is_int(v.type));
  switch (op) {
    case core::Op::BitAnd:
      if (condition) d.help("join conditions with `&&`");
      break;
    case core::Op::BitOr:
      if (condition) d.help("join conditions with `||`");
      break;
    case core::Op::BitXor:
      d.help(condition ? "an exclusive or is written `a != b`"
                       : "`^` combines bits; a power is written `**`");
      break;
    case core::Op::BitNot:
      if (condition) d.help("`!` negates a condition");
      break;
    case core::Op::And:
      if (whole) d.help("`&` combines the bits of integers");
      break;
    case core::Op::Or:
      if (whole) d.help("`|` combines the bits of integers");
      break;
    case core::Op::Not:
      if (whole) d.help("`~` flips the bits of an integer");
      break;
    default: break;
  }
  return {};
}

// Applies `op` to operands that already have one type.
Value build(Sema& s, Env& env, core::Op op, std::vector<Value> args, Span span) {
  std::vector<Value*> list;
  for (Value& a : args) list.push_back(&a);
  std::vector<core::Coord> coords;
  if (!same_coords(s, env, list, span, coords)) return {};
  std::vector<CoreId> cells = aligned(s.m, env, args, coords.size());
  const Value& last = args.back();  // for Select the arms decide, not the condition
  Value out = data(env, last.type, core::apply(s.m, op, std::move(cells), span), span);
  out.type = s.m[out.body].type;
  out.typing = out.type == DType::Bool ? Typing::Fixed : last.typing;
  out.coords = std::move(coords);
  for (const Value& a : args) {
    if (a.division.valid() && out.typing == Typing::Int) out.division = a.division;
  }
  return out;
}

// The operands as data of one type. An array literal takes the type of the other operand. If that
// is a literal too, the array gets its default type and the literal takes it.
bool as_operands(Sema& s, Env& env, const std::vector<Value*>& values, Span span) {
  if (!same_type(s, env, values, span)) return false;
  bool settled = false;
  for (Value* v : values) {
    settled |= v->kind == Value::Kind::Table;
    *v = as_data(s, env, std::move(*v));
    if (v->poison()) return false;
  }
  return !settled || same_type(s, env, values, span);
}

// `idx[k] == r`: an integer of the program beside an index is compared in i64, which is exact and
// lets the gate be solved.
bool compare_as_index(Sema& s, const Env& env, Value& a, Value& b) {
  auto index = [&](const Value& v) { return v.typing == Typing::Int && !literal_int(s, v); };
  auto integer = [](const Value& v) { return v.typing == Typing::Fixed && is_int(v.type); };
  if (!(index(a) && integer(b)) && !(index(b) && integer(a))) return false;
  Value& typed = integer(a) ? a : b;
  CoreId e = typed.scalar() ? as_index(s, env, typed, {}) : CoreId{};
  if (!e) return false;
  typed.body = e;
  typed.type = DType::I64;
  typed.typing = Typing::Int;
  return true;
}

// A shift by a constant outside the width of the type is found here; others when they happen.
bool shifts(Sema& s, core::Op op, const std::vector<Value>& args) {
  if (op != core::Op::Shl && op != core::Op::Shr) return true;
  auto by = core::shift_amount(s.m, {op, {args[0].body, args[1].body}});
  if (!by || shifts_within(args[0].type, *by)) return true;
  s.diags.error(Code::E0502, shift_text(args[0].type, *by)).primary(args[1].span, "");
  return false;
}

// `2 ** -1` is 0: the quotient 1 / 2 of integers.
void warn_negative_power(Sema& s, const Value& exponent, Span span) {
  auto n = core::const_int(s.m, exponent.body);
  if (exponent.typing == Typing::Float || is_float(exponent.type) || !n || *n >= 0) return;
  if (!s.warned.insert({span.begin, span.end}).second) return;
  s.diags.warning(Code::W0502, "an integer to a negative power is 0, unless the integer is 1 or -1")
      .primary(span, "both sides are integers")
      .help("for a fraction write floats: `2.0 ** -1.0`");
}

Value power(Sema& s, Env& env, Value a, Value b, Span span) {
  // An integer exponent on a float base becomes a float of the base's type.
  bool float_base = a.typing == Typing::Float || (a.typing == Typing::Fixed && is_float(a.type));
  if (float_base && b.typing == Typing::Fixed && is_int(b.type)) {
    DType to = a.typing == Typing::Fixed ? a.type : DType::F64;
    b.body = core::cast(s.m, b.body, to, b.span);
    b.type = to;
    b.typing = a.typing;
  }
  if (literal_int(s, a) && literal_int(s, b)) {
    int64_t base = *core::const_int(s.m, a.body), n = *core::const_int(s.m, b.body);
    double size = std::pow(static_cast<double>(base), static_cast<double>(n));
    if (n >= 0 && std::abs(size) < 9.0e18) {
      int64_t result = 1;
      for (int64_t i = 0; i < n && base != 0; ++i) {
        result *= base;
        if (base == 1 || base == -1) result = (base == 1 || n % 2 == 0) ? 1 : -1;
        if (base == 1 || base == -1) break;
      }
      if (base == 0) result = n == 0 ? 1 : 0;
      return untyped_int(env, core::int_lit(s.m, result), span);
    }
  }
  if (!same_type(s, env, {&a, &b}, span)) return {};
  warn_negative_power(s, b, span);
  return build(s, env, core::Op::Pow, {a, b}, span);
}

// `"%f" % x`, `"x = " + x`: values stand in a string's placeholders.
Value format_operator(Sema& s, const Value& a, const Value& b, Span span) {
  const Value& text = a.kind == Value::Kind::Text ? a : b;
  s.diags.error(Code::E0502, "operators do not work on strings")
      .primary(text.span, "this is a string")
      .label(span, "")
      .help("a string shows values in placeholders: `\"x = {x}\"`, `\"{x:.3f}\"`");
  return {};
}

}  // namespace

Value apply_pointwise(Sema& s, Env& env, core::Op op, std::vector<Value> args, Span span) {
  core::OpClass cls = core::info(op).cls;
  std::vector<Value*> list;
  for (Value& a : args) {
    if (a.poison()) return {};
    list.push_back(&a);
  }
  if (!as_operands(s, env, list, span)) return {};
  const Value& first = args[0];
  if (cls == core::OpClass::Whole) {
    if (first.typing == Typing::Float || !is_int(first.type)) {
      return wrong_operand(s, op, first, "integers");
    }
    if (!shifts(s, op, args)) return {};
  }
  if (first.type == DType::Bool) return wrong_operand(s, op, first, "numbers");
  if (cls == core::OpClass::Real) {
    if (first.typing == Typing::Int) {
      for (Value& a : args) {
        a = adapt(s, env, a, DType::F64);
        if (a.poison()) return {};
        a.typing = Typing::Float;
      }
    } else if (!is_float(first.type)) {
      return wrong_operand(s, op, first, "floats");
    }
  }
  return build(s, env, op, std::move(args), span);
}

Value apply_unary(Sema& s, Env& env, core::Op op, Value a, Span span) {
  if (a.record() && op == core::Op::Neg) {
    return map_leaves(a, [&](const Value& leaf, const std::string&) {
      return apply_unary(s, env, op, leaf, span);
    });
  }
  if (a.poison() || reject_non_data(s, a)) return {};
  if (op != core::Op::Not) return apply_pointwise(s, env, op, {std::move(a)}, span);
  if (a.typing != Typing::Fixed || a.type != DType::Bool) return wrong_operand(s, op, a, "`bool`");
  return build(s, env, op, {as_data(s, env, std::move(a))}, span);
}

Value unary_plus(Sema& s, Value a, Span span) {
  if (a.poison() || reject_non_data(s, a)) return {};
  if (a.type != DType::Bool) return a;
  s.diags.error(Code::E0502, fmt::format("`+` takes numbers, not {}", show_value(s, a)))
      .primary(span, "");
  return {};
}

Value apply_binary(Sema& s, Env& env, core::Op op, Value a, Value b, Span span, Span op_span) {
  bool equality = op == core::Op::Eq || op == core::Op::Ne;
  if (equality && a.kind == Value::Kind::Text && b.kind == Value::Kind::Text) {
    if (auto same = same_text(s, env, a, b, span)) {
      if (op == core::Op::Ne && !same->poison()) same->body = core::negate(s.m, same->body);
      return *same;
    }
    bool left = !constant_text(a) && !a.choice;
    s.diags.error(Code::E0502, "a string that shows values cannot be compared")
        .primary((left ? a : b).span, "")
        .help("compare the values themselves");
    return {};
  }
  if (a.poison() || b.poison()) return {};
  if (a.record() || b.record()) return record_binary(s, env, op, a, b, span, op_span);
  if (a.kind == Value::Kind::Text || b.kind == Value::Kind::Text)
    return format_operator(s, a, b, span);
  if (reject_non_data(s, a) || reject_non_data(s, b)) return {};
  if (op == core::Op::Pow) {
    a = as_data(s, env, std::move(a));
    b = as_data(s, env, std::move(b));
    if (a.type == DType::Bool) return wrong_operand(s, op, a, "numbers");
    if (b.type == DType::Bool) return wrong_operand(s, op, b, "numbers");
    return power(s, env, std::move(a), std::move(b), span);
  }
  switch (core::info(op).cls) {
    case core::OpClass::Logic:
      for (const Value* v : {&a, &b}) {
        if (v->typing != Typing::Fixed || v->type != DType::Bool) {
          return wrong_operand(s, op, *v, "`bool`");
        }
      }
      return build(s, env, op, {as_data(s, env, a), as_data(s, env, b)}, span);
    case core::OpClass::Compare: {
      compare_as_index(s, env, a, b);
      if (!as_operands(s, env, {&a, &b}, op_span.valid() ? op_span : span)) return {};
      bool order = op != core::Op::Eq && op != core::Op::Ne;
      if (order && a.type == DType::Bool) return wrong_operand(s, op, a, "numbers");
      return build(s, env, op, {a, b}, span);
    }
    default: break;
  }
  bool literals = literal_int(s, a) && literal_int(s, b);
  bool untyped = a.typing == Typing::Int && b.typing == Typing::Int;
  bool divides = op == core::Op::Div || op == core::Op::Mod;
  if (literals && divides && *core::const_int(s.m, b.body) == 0) {
    s.diags.error(Code::E0502, "division by zero").primary(b.span, "");
    return {};
  }
  Value out = apply_pointwise(s, env, op, {std::move(a), std::move(b)}, span);
  if (untyped && divides && !out.poison()) out.division = span;
  return out;
}

Value select(Sema& s, Env& env, Value cond, Value yes, Value no, Span span) {
  if (cond.poison() || yes.poison() || no.poison()) return {};
  if (yes.record() && no.record()) return select_records(s, env, cond, yes, no, span);
  if (yes.kind == Value::Kind::Tuple && no.kind == Value::Kind::Tuple &&
      yes.items.size() == no.items.size()) {
    Value out = yes;
    for (size_t i = 0; i < out.items.size(); ++i) {
      out.items[i] = select(s, env, cond, yes.items[i], no.items[i], span);
      if (out.items[i].poison()) return {};
    }
    return out;
  }
  if (yes.kind == Value::Kind::Text && no.kind == Value::Kind::Text) {
    return choose_text(s, env, cond, yes, no, span);
  }
  if (!yes.one() || !no.one()) {
    bool tuples = yes.kind == Value::Kind::Tuple && no.kind == Value::Kind::Tuple;
    auto& d = s.diags.error(Code::E0502, tuples ? "the arms are tuples of different lengths"
                                         : yes.kind == no.kind
                                             ? "the arms cannot be functions"
                                             : "the arms are different kinds of values");
    d.primary(span, "");
    d.label(yes.span, "this is " + show_value(s, yes));
    d.label(no.span, "this is " + show_value(s, no));
    if (yes.kind == Value::Kind::Function) d.help("choose between their results instead");
    return {};
  }
  if (!as_operands(s, env, {&yes, &no}, span)) return {};
  return build(s, env, core::Op::Select, {as_data(s, env, cond), yes, no}, span);
}

Value zero_like(Sema& s, const Env& env, const Value& v) {
  Value out = data(env, v.type, {}, v.span);
  out.typing = v.typing;
  out.body = v.typing == Typing::Fixed ? zero(s.m, v.type) : core::number(s.m, 0, v.type);
  return out;
}

Value elaborate_cast(Sema& s, Env& env, const ast::Cast& cast, Span span) {
  const ast::TupleType* tuple = tuple_type(s.ast, cast.type);
  const auto* call = std::get_if<ast::Call>(&s[cast.arg].node);
  if (tuple && !tuple->names.empty() && call && spells(s.ast, *call, Builtin::Id::Load)) {
    return load_record(s, env, cast, *call, span);
  }
  return convert(s, env, elaborate(s, env, cast.arg), cast.type, cast.arg, span);
}

Value convert(Sema& s, Env& env, Value v, ast::TypeId type, TreeId tree, Span span) {
  if (v.poison()) return {};
  if (const ast::TupleType* tuple = tuple_type(s.ast, type); tuple && fit_fields(*tuple, v)) {
    for (size_t i = 0; i < v.items.size(); ++i) {
      v.items[i] = convert(s, env, std::move(v.items[i]), tuple->items[i], {}, span);
      if (v.items[i].poison()) return {};
    }
    return v;
  }
  auto to = element_type(s, type);
  if (!to || reject_non_data(s, v)) return {};
  if (tree) v = load_as(s, env, tree, std::move(v), *to);
  if (v.poison()) return {};
  if (fits(v, *to)) {
    // In `(i / 4) as f32` the division is visibly of integers; `(1 / 2) as f32` is one literal.
    bool literal = true;
    for_each_tree(s.ast, tree, [&](TreeId x) {
      literal &= !std::holds_alternative<ast::Path>(s[x].node) &&
                 !std::holds_alternative<ast::Call>(s[x].node);
    });
    if (!literal) v.division = {};
    v = as_data(s, env, adapt(s, env, std::move(v), *to, true));
    if (v.poison()) return v;
  } else {
    v = settle(s, env, std::move(v));
    if (v.poison()) return v;
    v.body = core::cast(s.m, v.body, *to, span);
    v.type = *to;
  }
  if (!dims_of(s.ast, type)) return v;  // a scalar type converts every cell
  const Frame* f = env.frame;
  while (!f->scope) f = f->up;
  if (!annotate(s, env, *f->scope, v.coords, type, v.span, "the value", true)) return {};
  return v;
}

}  // namespace ein::sema
