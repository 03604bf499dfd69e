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
      {"isnan", "write `x != x`: only NaN differs from itself"},
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
  const Builtin* builtin = builtin_named(name.symbol);
  if (builtin && builtin->kind == Builtin::Kind::Planned) {
    return unsupported(s, name.span, quoted(name.symbol));
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
  for (const Builtin& b : builtins()) {
    if (b.kind != Builtin::Kind::Planned) names.push_back(b.spelling);
  }
#define EIN_OP(op, spelling, arity, cls) names.push_back(spelling);
#include "core/ops.def"
#undef EIN_OP
  std::string near = did_you_mean(text(name.symbol), names);
  suggest(d, near, name.span);
  return {};
}

}  // namespace ein::sema
