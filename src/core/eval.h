// The reference evaluator: short, slow, obviously right; the living definition of Core. Families
// are computed one after the other (eval_order.h), cell by cell, one clause at a time, and kept
// whole. An expression's value is memoised until a slot it depends on changes, so a shared or
// loop-invariant node is evaluated once per distinct environment and the operation count means
// something.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "core/core.h"
#include "runtime/monitor.h"
#include "runtime/tensor.h"

namespace ein {
class Exchange;
struct KeptState;
}  // namespace ein

namespace ein::core {

using Inputs = std::map<std::string, Tensor>;  // by input name

struct EvalResult {
  std::unordered_map<FamilyId, Tensor> values;  // every family that was computed
  std::vector<int64_t> params;                  // by ParamId
  uint64_t operations = 0;  // scalar value operations, plus one per reduction cell visited
  std::optional<RuntimeError> error;
  std::optional<Stopped> stopped;  // by the monitor; `values` then has what was finished
};

// How a run is looked at.
struct Watch {
  Monitor* monitor = nullptr;
  std::function<void(Moment&)> observe = {};  // adds the watched values, before it is shown
  const KeptState* resume = nullptr;          // native code only: where to go on
  Exchange* exchange = nullptr;               // native code only: how cells go between ranks
};

struct EvalOptions {
  bool check_overflow = false;  // integer arithmetic that does not fit is an error, not wrapped
  bool trap = false;            // a float cell that is not finite is an error
};

// Extents from the inputs' shapes; checks shapes, dtypes and entry constraints.
std::variant<std::vector<int64_t>, RuntimeError> bind_params(const Module& m, const Inputs& inputs,
                                                             const std::vector<FamilyId>& needed);
int64_t eval_extent(const Module& m, ExprId e, const std::vector<int64_t>& params);

// Computes `wanted` and what they read.
EvalResult evaluate(Module& m, const Inputs& inputs, const std::vector<FamilyId>& wanted,
                    const Watch& watch = {}, const EvalOptions& options = {});

}  // namespace ein::core
