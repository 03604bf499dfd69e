// Private to gradcheck: a program that is evaluated at many points, on the way that `ein run` goes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "codegen/native.h"
#include "core/core.h"
#include "core/eval.h"
#include "driver/run.h"

namespace ein {

// A program and the values wanted of it, compiled once (again, where extents that decide about
// segments change).
class Evaluator {
 public:
  // Programs that run once, or are small, are not worth optimising.
  enum class Runs : uint8_t { Once, Often };
  Evaluator(core::Module m, const std::vector<std::string>& wanted, Runs runs = Runs::Often);

  using Values = std::map<std::string, Tensor>;
  std::variant<Values, RuntimeError> operator()(const core::Inputs& inputs);

  // Done by the first call; before that, its time does not count as that of a run.
  std::optional<RuntimeError> compile(const core::Inputs& inputs);

  core::Module& module() { return m_; }
  int runs() const { return runs_; }
  // Includes inputs that only say how large something is.
  const std::vector<core::FamilyId>& needed() const { return needed_; }

 private:
  core::Module m_;
  std::vector<core::FamilyId> wanted_, needed_;
  RunOptions options_;
  std::vector<int64_t> compiled_for_;  // the extents, where they matter
  bool compiled_ = false;
  std::optional<core::Module> cut_;  // run instead of m_
  std::shared_ptr<Native> native_;   // null: strings, which only the reference knows
  int runs_ = 0;
};

}  // namespace ein
