// `matrix_factor(which, i, j, matrix_cells[p, q](…))`: a cell of a function of a whole matrix
// (Op::Factor). The standard library wraps it; programs that `ein grad` prints have it too.
#include "runtime/factor.h"
#include "sema/builtins.h"
#include "sema/expressions/expressions.h"
#include "sema/names/trees.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

// The cells over `indices` indices from 0; nothing after an error.
CoreId cells_of(Sema& s, Env& env, TreeId tree, size_t indices) {
  const auto* call = std::get_if<ast::Call>(&s[tree].node);
  Value v;  // nothing: some other expression
  if (call && spells(s.ast, *call, Builtin::Id::MatrixCells)) {
    Env inside = env;
    inside.takes_cells = true;
    v = elaborate_reduction(s, inside, *spelled_builtin(s.ast, *call), *call, s[tree].span);
    if (!v.body) return {};
  }
  const auto* r = v.body ? core::get_if<core::Reduce>(s.m, v.body) : nullptr;
  bool fits = r && r->op == core::ReduceOp::Collect && v.scalar() && r->over.size() == indices;
  for (size_t k = 0; fits && k < indices; ++k) {
    fits = core::const_int(s.m, r->over[k].lo) == 0 && s.m[r->over[k].hi].level() < 0;
  }
  if (fits && is_float(s.m[v.body].type)) return v.body;
  s.diags.error(Code::E0502, "this is not a matrix of floats")
      .primary(s[tree].span, "")
      .help(indices == 2 ? "write `matrix_cells[p in 0..m, q in 0..n](a[p, q])`"
                         : "write `matrix_cells[p in 0..n](b[p])`");
  return {};
}

}  // namespace

Value elaborate_matrix_factor(Sema& s, Env& env, const Builtin& b, const ast::Call& call,
                              Span span) {
  auto wrong = [&](const std::string& what) {
    s.diags.error(Code::E0205, what)
        .primary(span, "")
        .help("`std::linalg` has functions for this, such as `cholesky` and `solve`");
    return Value{};
  };
  if (!b.takes(call.args.size())) {
    return wrong(
        "`matrix_factor` takes a number, two indices, a matrix, and a column for some numbers");
  }
  bool shadow = env.shadow_ok;
  env.shadow_ok = true;  // an index may stand alone here, as in brackets
  std::vector<CoreId> parts;
  for (size_t k = 0; k < 3; ++k) {
    std::vector<IndexItem> item;
    bool fine = expand_indices(s, env, {call.args[k]}, item) && item.size() == 1;
    CoreId at = fine ? item_index(s, env, item[0]) : CoreId{};
    if (!at) {
      env.shadow_ok = shadow;
      return {};
    }
    parts.push_back(at);
  }
  env.shadow_ok = shadow;
  auto which = core::const_int(s.m, parts[0]);
  if (!which || *which < 0 || *which >= kFactors) {
    return wrong("there is no matrix function with this number");
  }
  parts[0] = core::int_lit(s.m, *which);
  bool column = is_solve(static_cast<Factor>(*which));
  if (column != (call.args.size() == 5)) {
    return wrong(column ? "this matrix function needs a column"
                        : "this matrix function takes no column");
  }
  CoreId matrix = cells_of(s, env, call.args[3], 2);
  if (!matrix) return {};
  CoreId other = matrix;
  if (column) other = cells_of(s, env, call.args[4], 1);
  if (!other) return {};
  if (s.m[matrix].type != s.m[other].type) return wrong("the matrix and the column differ in type");
  parts.insert(parts.end(), {matrix, other});
  return data(env, s.m[matrix].type, core::apply(s.m, core::Op::Factor, parts, span), span);
}

}  // namespace ein::sema
