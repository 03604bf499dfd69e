// Pairs `(` `[` `{` with what closes them and reports those that have no partner, one message per
// mistake. Closing delimiters that nothing opened are removed; a wrong one (`(a]`) becomes the
// right one.
#pragma once

#include "syntax/lexer.h"

namespace ein::ast {

void pair_delimiters(Lexed& lexed, Diagnostics& diags);

}  // namespace ein::ast
