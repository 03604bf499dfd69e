// Array literals, `[[1.0, 2.0], [3.0, 4.0]]`.
#include <fmt/format.h>

#include <algorithm>

#include "sema/expressions/expressions.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

// Depth-first cells and the shape; false after an error.
bool flatten(Sema& s, Env& env, TreeId e, size_t level, std::vector<int64_t>& shape,
             std::vector<Value>& cells) {
  const auto* array = std::get_if<ast::Array>(&s[e].node);
  if (!array) {
    if (level < shape.size()) {
      s.diags.error(Code::E0404, "rows of an array literal differ in depth").primary(s[e].span, "");
      return false;
    }
    Value v = elaborate(s, env, e);
    if (v.poison()) return false;
    v = without_tables(s, env, std::move(v));
    if (v.poison()) return false;
    cells.push_back(std::move(v));
    return true;
  }
  auto n = static_cast<int64_t>(array->items.size());
  if (level == shape.size()) {
    if (!cells.empty()) {
      s.diags.error(Code::E0404, "rows of an array literal differ in depth").primary(s[e].span, "");
      return false;
    }
    shape.push_back(n);
  } else if (shape[level] != n) {
    s.diags
        .error(Code::E0404,
               fmt::format("rows of an array literal have lengths {} and {}", shape[level], n))
        .primary(s[e].span, fmt::format("{} items here", n));
    return false;
  }
  for (TreeId item : array->items) {
    if (!flatten(s, env, item, level + 1, shape, cells)) return false;
  }
  return true;
}

// Cells that are whole values, or that read indices: stacked along new first coordinates, each
// address choosing its item.
Value stack(Sema& s, Env& env, const std::vector<int64_t>& shape, std::vector<Value> items,
            Span span) {
  std::vector<core::Coord> inner;
  std::vector<Value*> list;
  for (Value& v : items) {
    list.push_back(&v);
    if (v.coords.size() == items[0].coords.size()) continue;
    s.diags.error(Code::E0404, "items of an array literal have different coordinates")
        .primary(v.span, "this is " + show_value(s, v))
        .label(items[0].span, "this is " + show_value(s, items[0]));
    return {};
  }
  if (!same_coords(s, env, list, span, inner)) return {};
  auto outer = static_cast<uint32_t>(shape.size());
  auto inside = env.depth + outer + static_cast<uint32_t>(inner.size());
  std::vector<CoreId> holes;
  for (uint32_t n = env.depth + outer; n < inside; ++n) holes.push_back(core::slot(s.m, n));
  std::vector<CoreId> cells;
  for (const Value& v : items) cells.push_back(cell(s.m, v, holes, inside));
  // The last coordinate first: its items become one expression that the next one chooses from.
  for (uint32_t level = outer; level-- > 0;) {
    auto n = static_cast<size_t>(shape[level]);
    CoreId index = core::slot(s.m, env.depth + level);
    std::vector<CoreId> rows;
    for (size_t row = 0; row < cells.size() / n; ++row) {
      CoreId e = cells[row * n + n - 1];
      for (size_t k = n - 1; k-- > 0;) {
        CoreId here =
            core::apply(s.m, core::Op::Eq, {index, core::int_lit(s.m, static_cast<int64_t>(k))});
        e = core::apply(s.m, core::Op::Select, {here, cells[row * n + k], e}, span);
      }
      rows.push_back(e);
    }
    cells = std::move(rows);
  }
  Value out = data(env, items[0].type, cells[0], span);
  out.typing = items[0].typing;
  for (int64_t n : shape) out.coords.push_back({{}, core::int_lit(s.m, n)});
  out.coords.insert(out.coords.end(), inner.begin(), inner.end());
  // A family, so that every access to the new coordinates is checked.
  out = hold(s, env, settle(s, env, std::move(out)), "items", true);
  if (out.poison() || whole_family(s.m, out)) return out;
  return unsupported(s, span, "array literals that read the index of a reduction around them",
                     "define the array outside, with the index as a coordinate");
}

// `["cat", "dog"]`
Value strings(Sema& s, const Env& env, const std::vector<int64_t>& shape, std::vector<Value> cells,
              Span span) {
  for (const Value& v : cells) {
    if (v.kind == Value::Kind::Text && shape.size() == 1) continue;
    bool deep = v.kind == Value::Kind::Text;
    s.diags
        .error(Code::E0502, deep ? "an array of strings has one coordinate"
                                 : "an array has strings and other values")
        .primary(v.span, "this is " + show_value(s, v));
    return {};
  }
  Value out;
  out.kind = Value::Kind::Texts;
  out.depth = env.depth;
  out.span = span;
  out.items = std::move(cells);
  out.coords.push_back({{}, core::int_lit(s.m, shape[0])});
  return out;
}

}  // namespace

Value elaborate_array(Sema& s, Env& env, TreeId e) {
  std::vector<int64_t> shape;
  std::vector<Value> cells;
  if (!flatten(s, env, e, 0, shape, cells)) return {};
  if (too_many_indices(s, shape.size(), s[e].span)) return {};
  return array_of(s, env, shape, std::move(cells), s[e].span);
}

Value array_of(Sema& s, Env& env, const std::vector<int64_t>& shape, std::vector<Value> cells,
               Span span) {
  if (std::any_of(cells.begin(), cells.end(),
                  [](const Value& v) { return v.kind == Value::Kind::Text; })) {
    return strings(s, env, shape, std::move(cells), span);
  }
  std::vector<Value*> list;
  for (Value& v : cells) list.push_back(&v);
  if (!same_type(s, env, list, span)) return {};
  bool table = std::all_of(cells.begin(), cells.end(),
                           [&](const Value& v) { return v.scalar() && s.m[v.body].free == 0; });
  if (!table) return stack(s, env, shape, std::move(cells), span);
  Value out;
  out.kind = Value::Kind::Table;
  out.type = cells.empty() ? DType::I64 : cells[0].type;
  out.typing = cells.empty() ? Typing::Int : cells[0].typing;
  out.depth = env.depth;
  out.span = span;
  for (int64_t n : shape) out.coords.push_back({{}, core::int_lit(s.m, n)});
  for (const Value& v : cells) out.cells.push_back(cell(s.m, v, {}, 0));
  return out;
}

}  // namespace ein::sema
