// Element types: literals that adapt, operands that must agree, tables.
#include "sema/types/types.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <unordered_map>

#include "base/check.h"
#include "core/rewrite.h"
#include "runtime/show.h"
#include "sema/names/names.h"
#include "sema/ranges/ranges.h"
#include "sema/state/report.h"
#include "sema/state/values.h"

namespace ein::sema {
namespace {

// Whether a finite number is still finite in that type.
bool stays_finite(DType type, double value) {
  Tensor t(type, {});
  t.set_float(0, value);
  return std::isfinite(t.get_float(0)) || !std::isfinite(value);
}

// The first literal that would become infinite in `to`; that others are rounded is intended.
std::optional<double> too_large(const Sema& s, CoreId e, DType to) {
  std::optional<double> out;
  core::for_each_node(s.m, e, [&](CoreId x) {
    const auto* f = core::get_if<core::FloatLit>(s.m, x);
    if (f && !out && s.m[x].type == DType::F64 && !stays_finite(to, f->value)) out = f->value;
  });
  return out;
}

void report_too_large(Sema& s, double value, DType to, Span span) {
  Tensor t(to, {});
  t.set_float(0, to == DType::F16 ? 65504.0 : to == DType::BF16 ? 0x1.fep127 : 0x1.fffffep127);
  s.diags.error(Code::E0503, fmt::format("{} does not fit in `{}`", value, name_of(to)))
      .primary(span, fmt::format("the largest `{}` is {}", name_of(to), show_scalar(t, 0)))
      .help(fmt::format(
          "give it a wider type, as in `1e39 as f64`; if infinity is intended, `… as {}`",
          name_of(to)));
}

// A literal expression computed in f64, computed again in `to`: it takes the context's type as a
// whole (decisions.md, 20).
CoreId retype(Sema& s, CoreId e, DType to, std::unordered_map<CoreId, CoreId>& memo) {
  if (s.m[e].type != DType::F64) return e;
  if (auto it = memo.find(e); it != memo.end()) return it->second;
  const core::Expr x = s.m[e];
  CoreId out = e;
  if (const auto* f = std::get_if<core::FloatLit>(&x.node)) {
    out = core::float_lit(s.m, f->value, to, x.span);
  } else if (const auto* a = std::get_if<core::Apply>(&x.node); a && a->op == core::Op::Cast) {
    out = core::cast(s.m, a->args[0], to, x.span);
  } else if (a) {
    std::vector<CoreId> args;
    for (CoreId arg : a->args) args.push_back(retype(s, arg, to, memo));
    out = core::apply(s.m, a->op, std::move(args), x.span);
  } else if (const auto* r = std::get_if<core::Reduce>(&x.node)) {
    core::Reduce copy = *r;
    copy.body = retype(s, r->body, to, memo);
    out = core::reduce(s.m, std::move(copy), x.span);
  } else {
    EIN_UNREACHABLE("an untyped expression that reads a family");
  }
  return memo[e] = out;
}

bool holds(DType type, int64_t value) {
  switch (type) {
    case DType::I8: return value >= INT8_MIN && value <= INT8_MAX;
    case DType::I16: return value >= INT16_MIN && value <= INT16_MAX;
    case DType::I32: return value >= INT32_MIN && value <= INT32_MAX;
    case DType::U8: return value >= 0 && value <= UINT8_MAX;
    default: return true;
  }
}

Value mismatch(Sema& s, const Value& v, DType to) {
  auto& d = s.diags.error(Code::E0501,
                          fmt::format("expected `{}`, found {}", name_of(to), show_value(s, v)));
  d.primary(v.span, "");
  if (v.typing == Typing::Float && is_int(to)) {
    d.note("an integer literal can become a float, but not the other way round");
  } else if (to != DType::Bool && v.type != DType::Bool) {
    d.help(fmt::format("convert explicitly: `… as {}`", name_of(to)));
  }
  return {};
}

// Converts one scalar expression of an adapting value.
CoreId convert(Sema& s, const Value& v, CoreId e, DType to, bool asked, bool& ok) {
  if (v.typing == Typing::Float) {
    if (auto large = asked ? std::nullopt : too_large(s, e, to)) {
      report_too_large(s, *large, to, v.span);
      ok = false;
      return e;
    }
    std::unordered_map<CoreId, CoreId> memo;
    return retype(s, e, to, memo);
  }
  if (auto c = core::const_int(s.m, e);
      c && !asked && is_float(to) && !stays_finite(to, static_cast<double>(*c))) {
    report_too_large(s, static_cast<double>(*c), to, v.span);
    ok = false;
    return e;
  }
  if (auto c = core::const_int(s.m, e); c && !holds(to, *c)) {
    s.diags.error(Code::E0503, fmt::format("{} does not fit in `{}`", *c, name_of(to)))
        .primary(v.span, "");
    ok = false;
    return e;
  }
  // `if c { 1 } else { 0 }` takes the type in its arms, like the literals it is made of.
  if (const core::Expr x = s.m[e]; const auto* a = std::get_if<core::Apply>(&x.node)) {
    if (a->op == core::Op::Select) {
      CoreId yes = convert(s, v, a->args[1], to, asked, ok),
             no = convert(s, v, a->args[2], to, asked, ok);
      if (!ok) return e;
      return core::apply(s.m, core::Op::Select, {a->args[0], yes, no}, x.span);
    }
  }
  // So do the operands of bit operators: `~15` beside a u8 is 240. Not those of `>>` and
  // `bit_length`, which ask for bits that would be lost.
  if (const core::Expr x = s.m[e]; is_int(to)) {
    const auto* a = std::get_if<core::Apply>(&x.node);
    if (a && core::info(a->op).cls == core::OpClass::Whole && a->op != core::Op::Shr &&
        a->op != core::Op::BitLength) {
      std::vector<CoreId> args;
      for (CoreId arg : a->args) args.push_back(convert(s, v, arg, to, asked, ok));
      return ok ? core::apply(s.m, a->op, std::move(args), x.span) : e;
    }
  }
  return core::cast(s.m, e, to, v.span);
}

}  // namespace

std::optional<DType> scalar_type(Symbol name) {
  static const std::map<std::string, DType> types = {
      {"bool", DType::Bool}, {"i8", DType::I8},   {"i16", DType::I16}, {"i32", DType::I32},
      {"i64", DType::I64},   {"u8", DType::U8},   {"f16", DType::F16}, {"bf16", DType::BF16},
      {"f32", DType::F32},   {"f64", DType::F64}, {"str", DType::Str}};
  auto it = types.find(text(name));
  if (it == types.end()) return std::nullopt;
  return it->second;
}

DType default_type(const Value& v) {
  switch (v.typing) {
    case Typing::Fixed: return v.type;
    case Typing::Int: return DType::I32;
    case Typing::Float: return DType::F32;
  }
  EIN_UNREACHABLE("typing");
}

bool fits(const Value& v, DType to) {
  if (!v.one()) return false;
  switch (v.typing) {
    case Typing::Fixed: return v.type == to;
    case Typing::Int: return is_int(to) || is_float(to);
    case Typing::Float: return is_float(to);
  }
  EIN_UNREACHABLE("typing");
}

Value adapt(Sema& s, const Env&, Value v, DType to, bool asked) {
  if (v.poison()) return v;
  if (v.typing == Typing::Fixed && v.type == to) return v;
  if (!fits(v, to)) return mismatch(s, v, to);
  if (is_float(to) && v.division.valid()) {
    s.diags.error(Code::E0502, "integer division where a float is expected")
        .primary(v.division, "both operands are integers, so the result is an integer too")
        .help(v.kind == Value::Kind::Data && core::const_int(s.m, v.body)
                  ? "write float literals, as in `1.0 / 2.0`"
                  : "divide floats, as in `i as f32 / 4.0`; if integer division is intended, "
                    "`(i / 4) as f32`");
    return {};
  }
  bool ok = true;
  if (v.kind == Value::Kind::Table) {
    for (CoreId& c : v.cells) c = convert(s, v, c, to, asked, ok);
  } else {
    v.body = convert(s, v, v.body, to, asked, ok);
  }
  if (!ok) return {};
  v.type = to;
  v.typing = Typing::Fixed;
  return v;
}

bool same_type(Sema& s, const Env& env, std::vector<Value*> values, Span span) {
  const Value* fixed = nullptr;
  bool open_float = false;
  for (Value* v : values) {
    if (v->poison() || reject_non_data(s, *v)) return false;
    if (v->typing == Typing::Float) open_float = true;
    if (v->typing != Typing::Fixed) continue;
    if (fixed && fixed->type != v->type) {
      auto& d = s.diags.error(Code::E0501, fmt::format("types differ: `{}` and `{}`",
                                                       name_of(fixed->type), name_of(v->type)));
      bool apart = !(v->span == span) && !(fixed->span == v->span);
      d.primary(apart ? v->span : span, fmt::format("this is `{}`", name_of(v->type)));
      d.label(fixed->span, fmt::format("this is `{}`", name_of(fixed->type)));
      if (fixed->type != DType::Bool && v->type != DType::Bool) {
        d.help(fmt::format("convert one side: `… as {}`", name_of(fixed->type)));
      } else {
        d.help("use the condition: `if … { … } else { 0.0 }`, or mask with `where`");
      }
      return false;
    }
    if (!fixed) fixed = v;
  }
  if (!fixed && !open_float) return true;  // all untyped integers
  for (Value* v : values) {
    if (v->typing == Typing::Fixed) continue;
    if (!fixed && v->typing == Typing::Float) continue;
    if (fixed && v->typing == Typing::Float && is_int(fixed->type)) {
      s.diags
          .error(Code::E0501,
                 fmt::format("expected `{}`, found {}", name_of(fixed->type), show_value(s, *v)))
          .primary(v->span, "this is a float")
          .label(fixed->span, fmt::format("this is `{}`", name_of(fixed->type)))
          .help("convert the integer, as in `n as f32`");
      return false;
    }
    *v = adapt(s, env, *v, fixed ? fixed->type : DType::F64);
    if (v->poison()) return false;
    if (!fixed) v->typing = Typing::Float;
  }
  return true;
}

Value table_as(Sema& s, const Env& env, const Value& v, DType type, const std::string& name) {
  Value fixed = adapt(s, env, v, type);
  if (fixed.poison()) return fixed;
  // The cells do not depend on the statement around, so the ranges of their reductions are known.
  ClauseOut cells;
  cells.site = env.site;
  cells.body = fixed;
  Site nowhere;
  if (!cells.site) cells.site = &nowhere;
  infer_ranges(s, cells, {});
  if (cells.bad) return {};
  core::Family f;
  f.name = fresh_family_name(s.names, name);
  f.kind = core::Family::Kind::Table;
  f.dtype = type;
  f.coords = fixed.coords;
  f.cells = fixed.cells;
  f.generated = true;
  f.span = v.span;
  return read_family(s.m, env, s.m.families.add(std::move(f)), {}, v.span);
}

bool reject_non_data(Sema& s, const Value& v) {
  const char* help = nullptr;
  switch (v.kind) {
    case Value::Kind::Poison:
    case Value::Kind::Data:
    case Value::Kind::Table: return false;
    case Value::Kind::Tuple:
      help = v.record()
                 ? "take a field, as in `p.w`, or apply a function to every part: `each(p, |w| …)`"
             : is_nothing(v) ? "`()` stands for an argument that the call leaves out: ask `if "
                               "given(x) { … } else { … }` first"
                             : "take it apart: `let (a, b) = …`, or a field, as in `t.0`";
      break;
    case Value::Kind::Function: help = "call it, as in `f(x)`, or pass it to a function"; break;
    case Value::Kind::Text:
      help = "strings can only be printed, compared and passed to functions";
      break;
    case Value::Kind::Texts: help = "read one string of it, as in `names[k]`"; break;
  }
  std::string what = is_nothing(v) ? "`()`" : show_value(s, v);
  s.diags.error(Code::E0502, what + " is used where a single value is expected")
      .primary(v.span, "")
      .help(help);
  return true;
}

bool reject_untyped_empty(Sema& s, const Value& v) {
  if (v.kind != Value::Kind::Table || !v.cells.empty() || v.typing == Typing::Fixed) return false;
  s.diags.error(Code::E0502, "an empty array literal has no element type")
      .primary(v.span, "")
      .help("give it one: `let x: [f32; 0] = [];`, or `[] as [f32; 0]`");
  return true;
}

Value as_data(Sema& s, const Env& env, Value v) {
  if (reject_non_data(s, v) || reject_untyped_empty(s, v)) return {};
  if (v.kind != Value::Kind::Table) return v;
  return table_as(s, env, v, default_type(v), "table");
}

Value without_tables(Sema& s, const Env& env, Value v) {
  for (Value& item : v.items) item = without_tables(s, env, std::move(item));
  return v.kind == Value::Kind::Table ? as_data(s, env, std::move(v)) : v;
}

Value settle(Sema& s, const Env& env, Value v) {
  if (v.poison() || reject_non_data(s, v)) return {};
  if (v.kind == Value::Kind::Table) return as_data(s, env, std::move(v));
  DType type = default_type(v);
  return adapt(s, env, std::move(v), type);
}

}  // namespace ein::sema
