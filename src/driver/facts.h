// What the compiler knows about each family, for people: the ranges of its clauses, along which of
// its coordinates each operand is repeated, and, for a recurrence, its order and how many steps of
// it are needed at once (`ein check --facts`). Nothing is decided here; the schedule and the proofs
// are the ones the compiler uses.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/core.h"
#include "core/steps.h"

namespace ein {

// A read of `operand` that is constant along some coordinates of the reader.
struct Broadcast {
  core::FamilyId operand;
  std::vector<uint32_t> omits;  // positions of the reader's coordinates

  friend bool operator==(const Broadcast&, const Broadcast&) = default;
};

struct FamilyReport {
  core::FamilyId family;
  std::vector<Broadcast> broadcasts;             // distinct, in order of first occurrence
  std::optional<core::SequenceReport> sequence;  // when the family is part of a recurrence
};

// Reports every family that the user named, in the order of definition.
std::vector<FamilyReport> report_families(core::Module& m);

// Both end in a newline. The text also lists what is checked when the program starts.
std::string facts_text(const core::Module& m, const std::vector<FamilyReport>& reports);
std::string facts_json(const core::Module& m, const std::vector<FamilyReport>& reports);

}  // namespace ein
