// Functions of whole matrices (Op::Factor) on the way to native code: each becomes a clause of its
// own, which lowering turns into one statement.
#pragma once

#include <cstdint>
#include <optional>

#include "core/core.h"
#include "optimise/classify.h"

namespace ein::optimise {

// If the clause is nothing but a matrix function of plain operands: the function as a contraction
// (runtime/factor.h explains its index sets). Its rows and columns must run over whole coordinates
// in `free`, and its operands must be linear accesses.
std::optional<Contraction> classify_factor(core::Module& m, const core::Clause& clause,
                                           uint64_t free);
bool has_factor(const core::Module& m, core::ExprId e);
// A clause that is a move between ranks of the cells of one family, as a contraction.
std::optional<Contraction> classify_moved(const core::Module& m, const core::Clause& clause);

// Gives every matrix function a family of its own in the form above, and its operands as well if
// needed.
void isolate_factors(core::Module& m);
// Replaces products with an inverse by solutions: `sum[k](inverse[i, k] * b[k])` needs no inverse.
void solve_for_products(core::Module& m);

}  // namespace ein::optimise
