// Records: `{ a: x, b: y }`, `{ ..p, a: x }`, `p.a`; arithmetic part by part. A record is a tuple
// whose items have names. It exists only in sema: its leaves become families.
#include <fmt/format.h>

#include <algorithm>

#include "sema/builtins.h"
#include "sema/expressions/expressions.h"
#include "sema/names/trees.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"

namespace ein::sema {
namespace {

std::vector<std::string> field_names(const Value& record) {
  std::vector<std::string> out;
  for (Symbol f : record.fields) out.push_back(text(f));
  return out;
}

void no_such_field(Sema& s, const Value& record, const ast::Name& name) {
  auto& d = s.diags.error(Code::E0502, "there is no field " + quoted(name.symbol));
  d.primary(name.span, fmt::format("the record has {}", show_fields(record.fields)));
  suggest(d, did_you_mean(text(name.symbol), field_names(record)), name.span);
}

// How to write what other languages have a method for.
const char* method_elsewhere(const std::string& method) {
  static const std::map<std::string, const char*> kMethods = {
      {"backward", "a derivative is written `@loss / @w`"},
      {"grad", "a derivative is written `@loss / @w`"},
      {"detach", "write `stop(x)`"},
      {"dtype", "write `typeof(x)`"},
      {"ndim", "write `len(shape(x))`"},
      {"size", "write `len(x)` or `shape(x)`"},
      {"item", "a scalar is a value already"},
      {"copy", "values never change, so a copy is the value itself"},
      {"clone", "values never change, so a copy is the value itself"},
      {"astype", "convert with `as`: `x as f32`"},
      {"float", "convert with `as`: `x as f32`"},
      {"int", "convert with `as`: `x as i32`"},
      {"to", "convert with `as`: `x as f32`"},
      {"reshape", "write `reshape(x, 2, -1)`"},
      {"view", "write `reshape(x, 2, -1)`"},
      {"flatten", "write `flatten(x)` after `use std::array::flatten;`"},
      {"map", "a function is applied to cells: `let y[i] = f(x[i]);`, or `f(x)`"},
      {"append", "write `concat[i](x, y)` after `use std::array::concat;`"},
      {"std", "write `sqrt(variance[i](x))`"},
      {"var", "write `variance[i](x)`"},
      {"norm", "write `sqrt(sum[i](x[i] ** 2.0))`"}};
  auto it = kMethods.find(method);
  return it == kMethods.end() ? nullptr : it->second;
}

// `x.sum()`, `x.T`: what people write who come from languages with methods.
void no_fields(Sema& s, const Value& v, const ast::Name& name, Span span) {
  const std::string& method = text(name.symbol);
  auto& d = s.diags.error(Code::E0502, show_value(s, v) + " has no fields");
  d.primary(span, fmt::format("{} is not a field", quoted(method)));
  if (reduction_named(name.symbol)) {
    d.help(fmt::format("there are no methods: write `{}[i](x[i])`", method));
  } else if (method == "T" || method == "transpose") {
    d.help("there are no methods: write `let B[j, i] = A[i, j];`");
  } else if (const char* here = method_elsewhere(method)) {
    d.help(fmt::format("there are no methods: {}", here));
  } else if (v.kind == Value::Kind::Tuple) {
    d.help("the items of a tuple have numbers, as in `t.0`");
  } else {
    d.help(
        fmt::format("there are no methods: write `{0}(…)`, or `module::{0}(…)` for a function "
                    "of a module",
                    method));
  }
}

}  // namespace

Value different_fields(Sema& s, const std::string& what, const Value& a, const Value& b,
                       Span span) {
  auto& d = s.diags.error(Code::E0502, what + " records with the same fields");
  d.primary(span, "");
  d.label(a.span, "this is " + show_value(s, a));
  d.label(b.span, "this is " + show_value(s, b));
  for (Symbol f : a.fields) {
    if (b.record() && !field_at(b, f)) {
      d.note(fmt::format("only the first one has {}", quoted(f)));
      break;
    }
  }
  for (Symbol f : b.fields) {
    if (a.record() && !field_at(a, f)) {
      d.note(fmt::format("only the second one has {}", quoted(f)));
      break;
    }
  }
  return {};
}

Value elaborate_record(Sema& s, Env& env, const ast::Record& record, Span span) {
  Value out;
  out.kind = Value::Kind::Tuple;
  if (record.base) {
    out = elaborate(s, env, record.base);
    if (out.poison()) return {};
    if (!out.record()) {
      s.diags.error(Code::E0502, fmt::format("`..` takes a record, not {}", show_value(s, out)))
          .primary(s[record.base].span, "this is " + show_value(s, out));
      return {};
    }
  }
  out.depth = env.depth;
  out.span = span;
  std::vector<ast::Name> given;
  bool ok = true;
  for (const ast::RecordField& f : record.fields) {
    for (const ast::Name& other : given) {
      if (other.symbol != f.name.symbol) continue;
      s.diags.error(Code::E0202, fmt::format("field {} is given twice", quoted(f.name.symbol)))
          .primary(f.name.span, "given again here")
          .label(other.span, "first given here");
      ok = false;
    }
    given.push_back(f.name);
    Value v = elaborate(s, env, f.value);
    ok &= !v.poison();
    auto at = field_at(out, f.name.symbol);
    if (at) {
      out.items[*at] = std::move(v);
    } else if (record.base) {
      no_such_field(s, out, f.name);
      ok = false;
    } else {
      out.fields.push_back(f.name.symbol);
      out.items.push_back(std::move(v));
    }
  }
  return ok ? out : Value{};
}

Value field_of(Sema& s, const Value& v, const ast::Field& field, Span span) {
  if (v.poison()) return v;
  if (field.name.symbol) {
    if (!v.record()) {
      no_fields(s, v, field.name, span);
      return {};
    }
    auto at = field_at(v, field.name.symbol);
    if (!at) no_such_field(s, v, field.name);
    return at ? v.items[*at] : Value{};
  }
  bool tuple = v.kind == Value::Kind::Tuple && !v.record();
  if (tuple && field.index < v.items.size()) return v.items[field.index];
  s.diags
      .error(Code::E0502, fmt::format("there is no field {} in {}", field.index, show_value(s, v)))
      .primary(span, tuple        ? fmt::format("the fields are 0 to {}", v.items.size() - 1)
                     : v.record() ? "the fields of a record have names"
                                  : "this is " + show_value(s, v));
  return {};
}

// `s[t].p.w` reads one part of `s`, so the part is chosen first and indexed then: the other parts
// are not read, and messages speak of the one that is.
Value elaborate_field(Sema& s, Env& env, const ast::Field& field, Span span) {
  std::vector<const ast::Field*> chain{&field};
  TreeId base = field.base;
  while (const auto* inner = std::get_if<ast::Field>(&s[base].node)) {
    chain.push_back(inner);
    base = inner->base;
  }
  const auto* index = std::get_if<ast::Index>(&s[base].node);
  Value v = index ? elaborate_base(s, env, index->base) : elaborate(s, env, base);
  const bool early = index && v.record();
  if (index && !early && !v.poison()) v = access_value(s, env, v, *index, s[base].span);
  for (size_t i = chain.size(); i-- > 0 && !v.poison();) v = field_of(s, v, *chain[i], span);
  return early && !v.poison() ? access_value(s, env, v, *index, span) : v;
}

Value record_binary(Sema& s, Env& env, core::Op op, const Value& a, const Value& b, Span span,
                    Span op_span) {
  bool arithmetic =
      op == core::Op::Add || op == core::Op::Sub || op == core::Op::Mul || op == core::Op::Div;
  std::string spelling = fmt::format("`{}`", core::info(op).spelling);
  if (!arithmetic) {
    const Value& r = a.record() ? a : b;
    s.diags.error(Code::E0502, fmt::format("{} does not take records", spelling))
        .primary(r.span, "this is " + show_value(s, r))
        .help("apply it to the parts: `each(p, |w| …)`; records take `+`, `-`, `*` and `/`");
    return {};
  }
  const Value& like = a.record() ? a : b;
  std::optional<Value> other = in_order_of(like, b);
  if (a.record() && b.record() && !other)
    return different_fields(s, spelling + " needs", a, b, span);
  for (const Value* v : {&a, &b}) {
    if (v->record() || (v->one() && v->scalar())) continue;
    s.diags
        .error(Code::E0502, fmt::format("{} takes a record and a scalar, or two records", spelling))
        .primary(v->span, "this is " + show_value(s, *v))
        .label((v == &a ? b : a).span, "this is a record");
    return {};
  }
  Value out = like;
  out.span = span;
  for (size_t i = 0; i < like.items.size(); ++i) {
    const Value& x = a.record() ? a.items[i] : a;
    const Value& y = !b.record() ? b : a.record() ? other->items[i] : b.items[i];
    out.items[i] = apply_binary(s, env, op, x, y, span, op_span);
    if (out.items[i].poison()) return {};
  }
  return out;
}

Value select_records(Sema& s, Env& env, const Value& cond, const Value& yes, const Value& no,
                     Span span) {
  auto other = in_order_of(yes, no);
  if (!other) return different_fields(s, "the arms need", yes, no, span);
  Value out = yes;
  for (size_t i = 0; i < out.items.size(); ++i) {
    out.items[i] = select(s, env, cond, yes.items[i], other->items[i], span);
    if (out.items[i].poison()) return {};
  }
  return out;
}

}  // namespace ein::sema
