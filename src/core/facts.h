// What is known of every family, for people: the ranges of its clauses, along which of its
// coordinates each operand is repeated, and, for a recurrence, its order and how many steps of it
// are needed at once (`ein check --facts`). Nothing is decided here; the schedule and the proofs
// are the ones the compiler uses.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/core.h"

namespace ein::core {

// A read of `operand` that is constant along some coordinates of the reader.
struct Broadcast {
  FamilyId operand;
  std::vector<uint32_t> omits;  // positions of the reader's coordinates

  friend bool operator==(const Broadcast&, const Broadcast&) = default;
};

struct SequentialCoordinate {
  uint32_t position = 0;
  bool downward = false;
};

// How a recurrence runs. Steps are those of its outermost coordinate; a number that no constant
// bounds is all of them: nullopt.
struct SequenceReport {
  std::vector<SequentialCoordinate> order;  // outermost first, at least one
  std::optional<int64_t> lookback;          // the largest distance to a step that the group reads
  std::optional<int64_t> tail;              // how many last steps are read from outside the group
  std::optional<int64_t> kept() const;      // max(lookback + 1, tail)
};

struct FamilyReport {
  FamilyId family;
  std::vector<Broadcast> broadcasts;       // distinct, in order of first occurrence
  std::optional<SequenceReport> sequence;  // when the family is part of a recurrence
};

// Reports every family that the user named, in the order of definition.
std::vector<FamilyReport> report_families(Module& m);

// Both end in a newline. The text also lists what is checked when the program starts.
std::string facts_text(const Module& m, const std::vector<FamilyReport>& reports);
std::string facts_json(const Module& m, const std::vector<FamilyReport>& reports);

}  // namespace ein::core
