// The surface tree as s-expressions, one top-level statement per line, for tests and
// `--dump-after=parse`. Names are as written; spans are left out.
//
//   let C[i, j] = sum[k](A[i, k] * B[k, j]);
//   (let C [i j] (call sum [k] (* (index A i k) (index B k j))))
#pragma once

#include <string>

#include "syntax/ast.h"

namespace ein::ast {

std::string dump(const Ast& ast);
std::string dump(const Ast& ast, ExprId id);
std::string dump(const Ast& ast, TypeId id);
std::string dump(const Ast& ast, StmtId id);

const char* spelling(BinaryOp op);  // "+"
const char* spelling(UnaryOp op);   // "-"

// The first operand of a node whose chains may be long (`a + b + …`, `x[i][j]…`); invalid if it has
// none. Walks over it in a loop, not by recursion.
ExprId leading_operand(const ExprNode& node);

}  // namespace ein::ast
