// Private to src/driver: builds the program that computes a value of one step (observe.h).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/core.h"

namespace ein {

struct CannotWatch {
  std::string why;  // follows "`loss` cannot be watched: "
};

// A step of a family of the running recurrence, as an input.
struct StepInput {
  std::string name, family;
  int64_t offset = 0;  // its distance from the watched step
};

class StepProgram {
 public:
  // `members`: families of the recurrence, with the coordinates of their steps.
  StepProgram(const core::Module& asked, std::map<std::string, uint32_t> members, bool downward);

  // Adds a family of rank 0: the family `id`, of rank 1, at the watched step. Throws CannotWatch.
  std::string add(core::FamilyId id);

  core::Module module;
  std::string step;  // the input that holds the step, an i64
  std::vector<StepInput> inputs;

 private:
  // By coordinate: the address at which it is fixed; invalid: not fixed.
  using Fixed = std::vector<core::ExprId>;

  core::FamilyId fixed_at(core::FamilyId id, const Fixed& at);
  core::ExprId read(core::FamilyId id, const std::vector<core::ExprId>& at, Span span);
  core::FamilyId moved(core::FamilyId id, std::vector<core::ExprId>& at);
  core::ExprId body_of(core::ExprId body, const std::vector<core::ExprId>& with, uint32_t rank);
  core::FamilyId step_input(core::FamilyId id, uint32_t position, int64_t offset);
  bool reads_members(core::FamilyId id);
  std::optional<int64_t> offset_of(core::ExprId e) const;
  bool mentions_step(core::ExprId e) const;

  std::map<std::string, uint32_t> members_;
  bool downward_;
  core::ExprId now_;
  std::map<std::pair<core::FamilyId, Fixed>, core::FamilyId> made_;
  std::map<std::pair<core::FamilyId, int64_t>, core::FamilyId> sliced_;
  std::map<core::FamilyId, bool> reads_;
};

}  // namespace ein
