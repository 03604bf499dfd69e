// A program compiled once and run many times in this process, for `ein bench`. Effects do not
// happen.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "driver/run.h"

namespace ein {

struct BenchOptions {
  RunOptions run;  // `show`: what is computed besides what effects need; when that is nothing,
                   // the values that nothing else reads
  int repeat = 0;  // 0: as many as fit into a second, 5 at least
};

struct BenchReport {
  Timing median;             // of the kernels one by one, and of the whole run
  std::vector<double> runs;  // seconds of each, in order; warm-up runs are not among them
  std::vector<std::string> computed;
  std::vector<std::string> made_up;      // inputs that nobody supplied
  std::map<std::string, Tensor> values;  // of `show`, from the last run
  std::optional<int64_t>
      memory;  // bytes of the inputs and of what the first run got at most, where the system tells
};

std::variant<BenchReport, RuntimeError> bench(core::Module& m, const core::Inputs& inputs,
                                              const BenchOptions& options);

}  // namespace ein
