// Calls of functions that nothing in scope defines, and what the user probably wanted.
#include <fmt/format.h>

#include "sema/builtins.h"
#include "sema/names/names.h"
#include "sema/state/report.h"

namespace ein::sema {
namespace {

// How to write in Einlang what other array languages have a function for.
const char* foreign_function(const std::string& name) {
  static const std::map<std::string, const char*> kFunctions = {
      {"zeros", "write `let x[i in 0..n] = 0.0;`"},
      {"ones", "write `let x[i in 0..n] = 1.0;`"},
      {"full", "write `let x[i in 0..n] = value;`"},
      {"range", "write `let x[i in 0..n] = i;`"},
      {"arange", "write `let x[i in 0..n] = i;`"},
      {"transpose", "write `let B[j, i] = A[i, j];`"},
      {"matmul", "write `let C[i, j] = sum[k](A[i, k] * B[k, j]);`"},
      {"dot", "write `sum[i](x[i] * y[i])`"},
      {"grad", "a derivative is written `@loss / @W`"},
      {"where", "use `if … { … } else { … }`, or mask with `… where …`"},
      {"isnan", "write `is_nan(x)`"},
      {"isfinite", "write `is_finite(x)`"},
      {"isinf", "write `is_inf(x)`"},
      {"rand", "write `let x[i in 0..n] = uniform(seed, i);`, with any number as the seed"},
      {"random", "write `let x[i in 0..n] = uniform(seed, i);`, with any number as the seed"},
      {"randn", "write `let x[i in 0..n] = normal(seed, i);`, with any number as the seed"},
      {"randint",
       "write `let k[i in 0..n] = below(uniform(seed, i), 10);` after `use std::random::below;`"},
      {"manual_seed", "random numbers have no state: the seed is an argument, `normal(seed, i)`"},
      {"zeros_like", "write `let y[i in 0..len(x)] = 0.0;`, with an index for each coordinate"},
      {"ones_like", "write `let y[i in 0..len(x)] = 1.0;`, with an index for each coordinate"},
      {"empty", "every cell has a value: write `let x[i in 0..n] = 0.0;`"},
      {"unique",
       "extents do not depend on values, so there is no array of the different ones; "
       "`unique_counts` of `std::array` counts how often each of a known number of labels occurs"},
      {"nonzero",
       "extents do not depend on values: mask instead, `sum[i](x[i]) where x[i] != 0.0`"},
      {"maximum", "write `max(a, b)`; `max[i](x[i])` is the largest cell"},
      {"minimum", "write `min(a, b)`; `min[i](x[i])` is the smallest cell"},
      {"pow", "a power is written `x ** 2.0`"},
      {"cat", "write `concat[j](a, b)` after `use std::array::concat;`"},
      {"concatenate", "write `concat[j](a, b)` after `use std::array::concat;`"},
      {"average", "write `mean[i](x[i])`"},
      {"var", "write `variance[i](x)`"},
      {"std", "write `sqrt(variance[i](x))`"},
      {"einsum", "an equation is an einsum: `let C[i, j] = sum[k](A[i, k] * B[k, j]);`"},
      {"permute", "a left side names the new order: `let y[j, i] = x[i, j];`"},
      {"unsqueeze", "a left side names the new coordinate: `let y[b in 0..1, i] = x[i];`"},
      {"squeeze", "pick the only cell along the coordinate: `let y[i] = x[i, 0];`"},
      {"stop_gradient", "write `stop(x)`"},
      {"detach", "write `stop(x)`"},
      {"backward", "a derivative is written `@loss / @W`"},
      {"value_and_grad", "both are values: `let loss = …;` and `@loss / @W`"},
      {"vmap",
       "an index maps over cells, and so does a pack in a function's type: `[f32; ..batch, i]`"},
      {"jit", "every program is compiled; leave it out"},
      {"println", "write `print(…)`"},
      {"printf", "write `print(\"{x:.3f}\")`"},
      {"str", "write a string with a placeholder: `\"{x}\"`"},
      {"complex",
       "a complex number is a record, `{ re: 1.0, im: 2.0 }`; `std::complex` and `std::fft` have "
       "functions for them"},
      {"mod", "write `((i % n) + n) % n`; `%` keeps the sign of its left side"},
      {"float", "convert with `as`: `n as f32`"},
      {"int", "convert with `as`: `x as i32`"},
  };
  auto it = kFunctions.find(name);
  return it == kFunctions.end() ? nullptr : it->second;
}

}  // namespace

std::string how_to_import(const Sema& s, Symbol function) {
  std::string lines;
  if (!s.program.exporters) return lines;
  for (const std::string& module : s.program.exporters(text(function))) {
    lines += fmt::format("{}`use {}::{};`", lines.empty() ? "it is in the library: add " : " or ",
                         module, text(function));
  }
  return lines;
}

Value unknown_function(Sema& s, Env& env, const ast::Name& name) {
  if (value_exists(env, name.symbol) || find_index(env, name.symbol)) {
    s.diags.error(Code::E0206, quoted(name.symbol) + " is not a function")
        .primary(name.span, "")
        .help("index a value with brackets: `" + text(name.symbol) + "[i]`");
    return {};
  }
  if (import_failed(env, name.symbol)) return {};
  auto& d = s.diags.error(Code::E0204, "unknown function " + quoted(name.symbol));
  d.primary(name.span, "");
  const char* written = foreign_function(text(name.symbol));
  std::string import = how_to_import(s, name.symbol);
  if (!import.empty()) written ? d.note(import) : d.help(import);
  if (written) d.help(written);
  if (written || !import.empty()) return {};
  std::vector<std::string> names = function_names(env);
  for (const Builtin& b : builtins()) names.push_back(b.spelling);
#define EIN_OP(op, spelling, arity, cls) \
  if (primitive_named(intern(spelling))) names.push_back(spelling);
#include "core/ops.def"
#undef EIN_OP
  std::string near = did_you_mean(text(name.symbol), names);
  suggest(d, near, name.span);
  return {};
}

}  // namespace ein::sema
