// Array literals, `[[1.0, 2.0], [3.0, 4.0]]`.
#include <fmt/format.h>

#include "sema/sema.h"

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
    if (!v.scalar()) {
      unsupported(s, s[e].span, "array literals of whole values",
                  "write the rows out, or use an indexed `let`");
      return false;
    }
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

}  // namespace

Value elaborate_array(Sema& s, Env& env, TreeId e) {
  std::vector<int64_t> shape;
  std::vector<Value> cells;
  if (!flatten(s, env, e, 0, shape, cells)) return {};
  if (cells.empty()) return unsupported(s, s[e].span, "empty array literals");
  if (too_many_indices(s, shape.size(), s[e].span)) return {};
  std::vector<Value*> list;
  for (Value& v : cells) list.push_back(&v);
  if (!same_type(s, env, list, s[e].span)) return {};
  Value out;
  out.kind = Value::Kind::Table;
  out.type = cells[0].type;
  out.typing = cells[0].typing;
  out.depth = env.depth;
  out.span = s[e].span;
  for (int64_t n : shape) out.coords.push_back({{}, core::int_lit(s.m, n)});
  for (const Value& v : cells) {
    CoreId c = cell(s, v, {}, 0);
    if (s.m[c].free != 0) {
      return unsupported(s, v.span, "array literals that mention indices",
                         "use `if` or several clauses");
    }
    out.cells.push_back(c);
  }
  return out;
}

}  // namespace ein::sema
