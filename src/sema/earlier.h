// A program may go on from texts that were compiled before it, as the cells of a notebook do: it has their
// definitions as if they stood in its own text. What it defines itself replaces what they define, and of two of
// them the later one counts. What they print, save, assert and test is not done again.
#pragma once

#include <vector>

#include "syntax/ast.h"

namespace ein::sema {

// The statements of the earlier texts, the newest last, that the program has besides `own`. A `use` in the tree
// loses the names that a newer text defines.
std::vector<ast::StmtId> earlier_definitions(ast::Ast& ast, const std::vector<ast::StmtId>& own,
                                             const std::vector<std::vector<ast::StmtId>>& earlier);

}  // namespace ein::sema
