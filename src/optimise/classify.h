// How an access moves with an index, and which sums of products are contractions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/tuning.h"
#include "core/core.h"

namespace ein::optimise {

struct Contraction {
  core::ExprId reduce;                   // the clause's body
  core::ExprId a, b;                     // its two accesses
  std::vector<uint32_t> batch, m, n, k;  // slots
  int64_t factor = -1;  // a matrix function instead of a product (factors.h): its runtime::Factor
  int64_t moved = -1;   // a move between ranks instead of a product (shard/shard.h): its number

  bool is_product() const { return factor < 0 && moved < 0; }
};

// The class of each index of a clause, if the clause is a contraction over the coordinates in
// `free`.
std::optional<Contraction> classify(core::Module& m, const core::Clause& clause, uint64_t free,
                                    const Tuning& tuning);

// How an access moves when a slot increases by one: not at all, to the next element, or otherwise.
enum class Stride : uint8_t { None, Unit, Other };
Stride step_along(const core::Module& m, const core::Access& access, uint32_t slot);

// Whether the innermost binder of this reduction may run in lanes.
bool lanes_legal(const core::Module& m, core::ExprId reduce);

}  // namespace ein::optimise
