// Tokens → surface tree. Never fails: a mistake is reported once, the parser goes on after it, and
// the place becomes an Error node. The grammar is docs/reference.md; precedence, tightest first:
// postfix and requests, `as`, `**` (right), unary `-` `!`, `* / %`, `+ -`, ranges, comparisons (not
// chained), `&&`, `||`, `where`.
#pragma once

#include "base/diag.h"
#include "syntax/ast.h"
#include "syntax/lexer.h"

namespace ein::ast {

Ast parse(FileId file, const SourceMap& sources, Diagnostics& diags);

// Adds another file to a tree and returns its top level: the modules of a program share one tree,
// so that an id says everything. `lexed` gets the tokens.
std::vector<StmtId> parse_into(Ast& ast, FileId file, const SourceMap& sources, Diagnostics& diags,
                               Lexed* lexed = nullptr);

}  // namespace ein::ast
