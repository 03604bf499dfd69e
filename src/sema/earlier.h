// A program may go on from texts that were compiled before it, as the cells of a notebook do: it
// has their definitions as if they stood in its own text. What it defines itself replaces what they
// define, and of two of them the later one counts. What they print, save, assert and test is not
// done again. A hidden one gives nothing, but what it replaces stays replaced: no older definition
// comes back in its place. A joined one stays beside newer ones: its clauses are further clauses of
// the same value.
#pragma once

#include <vector>

#include "syntax/ast.h"

namespace ein::sema {

struct EarlierItems {
  std::vector<ast::StmtId> items;
  bool hidden = false;
  bool joined = false;
};

// The statements of the earlier texts, the newest last, that the program has besides `own`. A `use`
// in the tree loses the names that a newer text defines.
std::vector<ast::StmtId> earlier_definitions(ast::Ast& ast, const std::vector<ast::StmtId>& own,
                                             const std::vector<EarlierItems>& earlier);

}  // namespace ein::sema
