// Makes a failing program small: statements, clauses, gates and subtrees are dropped for as long as
// `fails` still holds.
#pragma once

#include <functional>

#include "tree.h"

namespace oracle {

Program shrink(Program p, const std::function<bool(const Program&)>& fails);

}  // namespace oracle
