// What running on several ranks would take (`ein plan`): every move with its bytes and its time, and the
// compute time and memory of a rank. It needs no ranks and no values, only extents.
//
// Bytes are those that the transport counts (runtime/moves.h). Times are a model: a message takes the latency, and
// its bytes at the bandwidth; a rank computes at the peaks of this machine (driver/work.h). Moves wait for their
// messages, so none of them is hidden behind computing.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/core.h"
#include "driver/run.h"
#include "runtime/peaks.h"
#include "shard/shard.h"

namespace ein {

struct Network {
  double latency = 5e-6;    // seconds
  double bandwidth = 12e9;  // bytes a second
};

struct RankPlan {
  struct Row {
    std::string value, split, move, over;
    int64_t times = 1;   // how often, in one run
    double bytes = 0;    // that the busiest rank sends each time
    double seconds = 0;  // each time
  };
  std::vector<Row> rows;
  double bytes = 0, moving = 0;     // of one run, of the busiest rank
  double computing = 0, alone = 0;  // seconds: of the busiest rank, and of one rank for all
  double memory = 0;                // bytes of a rank
  int64_t ranks = 1;
  double efficiency() const { return alone / (static_cast<double>(ranks) * (computing + moving)); }
};

// `params`: the extents of the whole program.
std::variant<RankPlan, RuntimeError> plan_ranks(core::Module& m, const std::vector<int64_t>& params,
                                                const RunOptions& options, const shard::Spec& spec,
                                                const Network& network, const Peaks& peaks);

}  // namespace ein
