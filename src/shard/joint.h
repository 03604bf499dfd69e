// Puts all ranks of a program into one module, which defines what a program on several ranks means.
// Every family exists once for each rank: `f@0`, `f@1`, …. A move becomes an ordinary clause that
// reads the families of the other ranks: their intervals decide which rank supplies a cell, and
// partial results are combined in the order of the ranks. The reference evaluator can then compute
// all ranks side by side.
#pragma once

#include <map>
#include <variant>
#include <vector>

#include "shard/shard.h"

namespace ein::shard {

struct Joint {
  core::Module module;
  uint32_t families = 0;  // families of one rank

  core::FamilyId of_rank(core::FamilyId id, int64_t rank) const {
    return core::FamilyId(static_cast<uint32_t>(rank) * families + id.v);
  }
};
Joint joint(const Sharded& s);

// Computes `wanted` on all ranks and joins the parts. `original`: the program before it was
// sharded; `inputs`: whole values.
std::variant<std::map<core::FamilyId, Tensor>, RuntimeError> evaluate_ranks(
    core::Module& original, const Sharded& s, const core::Inputs& inputs,
    const std::vector<core::FamilyId>& wanted);

}  // namespace ein::shard
