// `x in 0..10` and `x in [1, 2]`: conditions. A range becomes two comparisons, the items of an
// array literal one each, and any other array a search.
#include <fmt/format.h>

#include "sema/expressions/expressions.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

// One of the items equals `x`.
Value among(Sema& s, Env& env, const Value& x, const std::vector<Value>& items, Span span) {
  Value out = data(env, DType::Bool, core::bool_lit(s.m, false), span);
  for (const Value& item : items) {
    Value same = apply_binary(s, env, core::Op::Eq, x, item, span, {});
    if (same.poison()) return {};
    out = apply_binary(s, env, core::Op::Or, std::move(out), std::move(same), span, {});
  }
  return out;
}

// Some cell of an array along one coordinate equals `x`.
Value search(Sema& s, Env& env, const Value& x, const Value& cells, Span span) {
  Value same = apply_binary(s, env, core::Op::Eq, x, cells, span, {});
  if (same.poison()) return {};
  same = moved(s.m, same, env.depth);
  core::Reduce r;
  r.op = core::ReduceOp::Any;
  r.first = env.depth;  // the coordinate of `same` becomes the binder
  r.over.push_back({core::int_lit(s.m, 0), same.coords[0].extent});
  r.names.push_back(intern("item"));
  r.body = same.body;
  return data(env, DType::Bool, core::reduce(s.m, std::move(r), span), span);
}

}  // namespace

Value within(Sema& s, Env& env, const Value& x, Value lo, Value hi, bool inclusive, Span span) {
  Value above = apply_binary(s, env, core::Op::Ge, x, std::move(lo), span, {});
  if (above.poison()) return {};
  core::Op op = inclusive ? core::Op::Le : core::Op::Lt;
  Value below = apply_binary(s, env, op, x, std::move(hi), span, {});
  return apply_binary(s, env, core::Op::And, std::move(above), std::move(below), span, {});
}

Value elaborate_in(Sema& s, Env& env, Value x, TreeId set, Span span) {
  if (x.poison()) return {};
  if (const auto* range = std::get_if<ast::Range>(&s[set].node)) {
    Value lo = elaborate(s, env, range->lo), hi = elaborate(s, env, range->hi);
    if (lo.poison() || hi.poison()) return {};
    return within(s, env, x, std::move(lo), std::move(hi), range->inclusive, span);
  }
  if (const auto* array = std::get_if<ast::Array>(&s[set].node)) {
    std::vector<Value> items;
    for (TreeId e : array->items) {
      items.push_back(without_tables(s, env, elaborate(s, env, e)));
      if (items.back().poison()) return {};
    }
    return among(s, env, x, items, span);
  }
  Value cells = elaborate(s, env, set);
  if (cells.poison()) return {};
  if (cells.kind == Value::Kind::Texts) return among(s, env, x, cells.items, span);
  if (!cells.one() || cells.coords.size() != 1) {
    s.diags.error(Code::E0502, "`in` takes a range or an array along one coordinate")
        .primary(s[set].span, "this is " + show_value(s, cells))
        .help("write `x in 0..10` or `x in [1, 2]`");
    return {};
  }
  if (!x.scalar()) {
    s.diags.error(Code::E0502, "`in` looks for one value, not for an array")
        .primary(x.span, "this is " + show_value(s, x))
        .help("index it, as in `x[i] in v`");
    return {};
  }
  return search(s, env, x, cells, span);
}

}  // namespace ein::sema
