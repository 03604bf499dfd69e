// Tokens → surface tree. Never fails: a mistake is reported once, the parser goes on behind it, and
// the place becomes an Error node. The grammar is docs/reference.md; precedence, tightest first:
// postfix and requests, `as`, `**` (right), unary `-` `!`, `* / %`, `+ -`, ranges, comparisons (not
// chained), `&&`, `||`, `where`.
#pragma once

#include "base/diag.h"
#include "syntax/ast.h"

namespace ein::ast {

Ast parse(FileId file, const SourceMap& sources, Diagnostics& diags);

}  // namespace ein::ast
