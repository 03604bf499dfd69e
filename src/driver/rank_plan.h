// Estimates what running on several ranks would cost (`ein plan`): every move with its bytes and
// its time, and the compute time and memory of a rank. That needs no ranks and no values, only
// extents.
//
// Bytes are exactly those that the transport counts (runtime/moves.h). Times are a model: a message
// takes the latency plus the time for its bytes at the given bandwidth, and a rank computes at the
// peak speed of this machine (driver/work.h). Ranks wait for their moves, so no move is hidden
// behind computing.
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
  double bandwidth = 12e9;  // bytes per second
};

struct RankPlan {
  struct Row {
    std::string value, split, move, over;
    int64_t times = 1;   // how often it happens in a run
    double bytes = 0;    // bytes that the busiest rank sends each time
    double seconds = 0;  // seconds for each time
  };
  std::vector<Row> rows;
  double bytes = 0, moving = 0;  // of a run, for the busiest rank: bytes sent, seconds of moving
  // Seconds: of the busiest rank, and of a single rank that does everything.
  double computing = 0, alone = 0;
  double memory = 0;  // bytes of one rank
  int64_t ranks = 1;
  double efficiency() const { return alone / (static_cast<double>(ranks) * (computing + moving)); }
};

// `params`: the extents of the whole program.
std::variant<RankPlan, RuntimeError> plan_ranks(core::Module& m, const std::vector<int64_t>& params,
                                                const RunOptions& options, const shard::Spec& spec,
                                                const Network& network, const Peaks& peaks);

}  // namespace ein
