// Runs a program on several ranks (shard/shard.h). Ranks are threads of this process or processes
// that mpirun has started; or the reference evaluator computes all of them.
//
// Over MPI, every rank compiles the program and computes its part. Before that, each rank tells
// rank 0 what it is about to run, and rank 0 refuses if they differ (E0908). Afterwards every rank
// reports to rank 0 how it went. Rank 0 tells all ranks the outcome, collects the parts of the
// wanted values, and performs the effects.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/core.h"
#include "core/eval.h"
#include "driver/run.h"
#include "shard/shard.h"

namespace ein {

struct MoveOfCells;  // runtime/moves.h

struct RankRun {
  std::unordered_map<core::FamilyId, Tensor> values;  // whole values
  std::optional<RuntimeError> error;
  bool elsewhere = false;      // over MPI, on ranks other than 0: rank 0 has the values
  std::string fallback;        // why the reference evaluator ran instead of native code
  std::vector<uint64_t> sent;  // bytes, by rank; native code only
};

// `inputs`: whole values of everything that `wanted` depends on.
RankRun run_on_ranks(core::Module& m, const std::vector<core::FamilyId>& wanted,
                     const core::Inputs& inputs, const RunOptions& options);

// The pass `shard` (driver/compile.h).
std::variant<shard::Sharded, RuntimeError> for_ranks(core::Module& m,
                                                     const std::vector<core::FamilyId>& wanted,
                                                     const shard::Spec& spec, Trace* trace);

// The first option or statement that does not work on several ranks, as E0904.
std::optional<RuntimeError> refuse_on_ranks(const core::Module& m, const RunOptions& options);

// The moves with numbers for all extents, given those of the whole program.
std::vector<MoveOfCells> moves_in_numbers(const shard::Sharded& s,
                                          const std::vector<int64_t>& params);

}  // namespace ein
