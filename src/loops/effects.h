// What statements read and write: what a pass must know before it moves one past another.
#pragma once

#include <algorithm>
#include <optional>
#include <set>

#include "loops/loops.h"

namespace ein::loops {

// Effects of a statement, its blocks included. What it binds and changes only inside is left out.
struct Effects {
  std::set<VarId> reads, binds, changes;
  std::set<BufferId> loads, stores;
  bool checks = false;  // it may stop the program
  bool polls = false;   // the caller may stop the program there
  bool may_stop() const { return checks || polls; }
};

Effects effects(const Program& p, const Stmt& s);
// What a kernel touches and whether it may stop; its variables are its own.
Effects effects(const Program& p, const Block& kernel);

bool meet(const auto& a, const auto& b) {
  return std::any_of(a.begin(), a.end(), [&](const auto& x) { return b.contains(x); });
}

// The statements that have to move along when the one at `from` moves up to the one at `to`:
// the Lets and Declares between them that it needs. None: it may not pass what stands between.
// Whether it may pass the statement at `to` itself is not checked, except for variables and
// what moves along.
std::optional<std::set<size_t>> moves_along(const Program& p, const Block& block, size_t from,
                                            size_t to);

// Puts what moves along before the statement at `to`, and takes the one at `from` out.
void move_up(Block& block, size_t from, size_t to, const std::set<size_t>& along);

}  // namespace ein::loops
