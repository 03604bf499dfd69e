// The tree as source in the one style of the language (`ein fmt`): four spaces, 100 columns, a `;`
// after every statement, at most one empty line between two. Comments, the parentheses that the
// author wrote and the spelling of literals are kept. Formatting its own output changes nothing.
#pragma once

#include <string>

#include "base/source.h"
#include "syntax/ast.h"
#include "syntax/lexer.h"

namespace ein::ast {

// The text of a file that has syntax errors is returned unchanged.
std::string format(const Ast& ast, const SourceMap& sources);
// The same, for whoever has the tokens of the file.
std::string format(const Ast& ast, const SourceMap& sources, Lexed lexed);

}  // namespace ein::ast
