// What statements read and write. A pass must know this before it moves one statement past another.
#pragma once

#include <algorithm>
#include <optional>
#include <set>

#include "loops/loops.h"

namespace ein::loops {

// Effects of a statement, including its blocks, but without variables that only exist inside of it.
struct Effects {
  std::set<VarId> reads, binds, changes;
  std::set<BufferId> loads, stores;
  bool checks = false;  // it may stop the program
  bool polls = false;   // the caller may stop the program there
  bool may_stop() const { return checks || polls; }
};

Effects effects(const Program& p, const Stmt& s);
// What a kernel accesses and whether it may stop; its variables are its own.
Effects effects(const Program& p, const Block& kernel);

bool meet(const auto& a, const auto& b) {
  return std::any_of(a.begin(), a.end(), [&](const auto& x) { return b.contains(x); });
}

// The statements that must move along when the one at `from` moves up to the one at `to`: the Lets
// and Declares between them that it needs. Nothing if it may not pass the statements in between.
// Whether it may pass the statement at `to` itself is only checked for variables and for the
// statements that move along.
std::optional<std::set<size_t>> moves_along(const Program& p, const Block& block, size_t from,
                                            size_t to);

// Moves the statements in `along` to just before the one at `to`, and removes the one at `from`.
void move_up(Block& block, size_t from, size_t to, const std::set<size_t>& along);

}  // namespace ein::loops
