// Functions of whole matrices (Op::Factor) on the way to native code: each becomes one clause that
// lowering turns into one statement.
#pragma once

#include <cstdint>
#include <optional>

#include "core/core.h"
#include "optimise/classify.h"

namespace ein::optimise {

// Where a clause is a matrix function of plain operands and nothing else: its rows and columns run
// over whole coordinates in `free`, and its operands are linear accesses. As a contraction (see
// runtime/factor.h for its sets).
std::optional<Contraction> classify_factor(core::Module& m, const core::Clause& clause,
                                           uint64_t free);
bool has_factor(const core::Module& m, core::ExprId e);
// A clause that is a move between ranks, whose cells are those of one value.
std::optional<Contraction> classify_moved(const core::Module& m, const core::Clause& clause);

// Gives every matrix function a family of its own, in the form above, and so its operands where they
// need one.
void isolate_factors(core::Module& m);
// Products with an inverse become solutions: `sum[k](inverse[i, k] * b[k])` needs no inverse.
void solve_for_products(core::Module& m);

}  // namespace ein::optimise
