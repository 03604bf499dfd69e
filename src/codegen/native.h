// A module compiled to machine code for this process: plan, lower, emit, run. Compiled code takes
// extents as arguments, so one compilation serves every shape.
//
//   auto compiled = compile_native(module, wanted, {});
//   if (auto* why = std::get_if<std::string>(&compiled)) …          // a known limitation
//   NativeResult r = run(*std::get<std::shared_ptr<Native>>(compiled), inputs);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "core/core.h"
#include "core/eval.h"
#include "lower/work.h"
#include "plan/plan.h"
#include "runtime/processor.h"
#include "runtime/tensor.h"

namespace ein {

class Native;

struct NativeOptions {
  int opt_level = 2;
  Processor processor = Processor::Native;  // must be one that runs here
  plan::Choices choices;                    // for tests that draw plans at random
};

// Reports what cannot be compiled natively (strings) instead of guessing.
std::variant<std::shared_ptr<Native>, std::string> compile_native(
    const core::Module& m, const std::vector<core::FamilyId>& wanted,
    const NativeOptions& options = {});

struct NativeResult {
  std::unordered_map<core::FamilyId, Tensor> values;  // of `wanted`
  std::optional<RuntimeError> error;
  std::optional<Stopped> stopped;  // by the monitor; `values` then has what was finished
};

// With `kernel_times`, those become the nanoseconds that each kernel took.
NativeResult run(Native& native, const core::Inputs& inputs, const core::Watch& watch = {},
                 std::vector<int64_t>* kernel_times = nullptr);

// What each kernel has to do with these inputs, which `run` accepts.
std::vector<lower::Work> work_of(Native& native, const core::Inputs& inputs);

enum class Emit { Plan, Loops, Llvm, Assembly };
std::string emit(Native& native, Emit what);

// Milliseconds per phase of the compilation, in order.
std::vector<std::pair<std::string, double>> compile_times(const Native& native);
uint64_t native_compile_count();  // LLVM compilations in this process

}  // namespace ein
