// A tree that was parsed alone becomes part of another one. The library is parsed once per process; every
// program gets its modules from there, which takes a fraction of the time.
#pragma once

#include "syntax/ast.h"

namespace ein::ast {

// Adds all of `from`, as the text of `file`, and returns its top level. The result is what parsing the text into
// `to` gives.
std::vector<StmtId> graft(Ast& to, const Ast& from, FileId file);

}  // namespace ein::ast
