// All ranks of a module in one module: what a program for several ranks means. Every family is there once for every rank,
// `f@0`, `f@1`, …, and a move is an ordinary clause that reads the families of other ranks: which of them has a
// cell is asked of their intervals, and partial results are combined in the order of the ranks.
// The reference evaluator then computes all ranks side by side.
#pragma once

#include <map>
#include <variant>
#include <vector>

#include "shard/shard.h"

namespace ein::shard {

struct Joint {
  core::Module module;
  uint32_t families = 0;  // of one rank

  core::FamilyId of_rank(core::FamilyId id, int64_t rank) const {
    return core::FamilyId(static_cast<uint32_t>(rank) * families + id.v);
  }
};
Joint joint(const Sharded& s);

// Computes `wanted` on all ranks and joins the parts. `original`: what was sharded; `inputs`: whole values.
std::variant<std::map<core::FamilyId, Tensor>, RuntimeError> evaluate_ranks(
    core::Module& original, const Sharded& s, const core::Inputs& inputs,
    const std::vector<core::FamilyId>& wanted);

}  // namespace ein::shard
