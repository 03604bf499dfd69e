// `--log`: writes the watched values of every step to a file that can be followed while it grows.
#pragma once

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "runtime/monitor.h"
#include "runtime/tensor.h"

namespace ein::cli {

class RunLog {
 public:
  // `names`: the columns of a csv file. The path ends in .csv or .jsonl (is_log_path).
  RunLog(const std::string& path, std::vector<std::string> names, bool appends);
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  // Adds the step before this moment, if it has watched values. `step`: its address.
  void add(const Moment& now, int64_t step);
  void close();
  // Why the file could not be written. The run is then stopped.
  const std::optional<RuntimeError>& error() const { return error_; }

 private:
  using Clock = std::chrono::steady_clock;
  void begin();
  void fail();
  void write(const std::string& line);

  std::string path_;
  std::vector<std::string> names_;
  bool json_ = false;
  std::FILE* file_ = nullptr;
  bool skips_ = false;  // skip the row that the previous run wrote last
  bool begun_ = false;
  std::string family_;  // the recurrence and step of the last row
  int64_t step_ = -1;
  Clock::time_point flushed_;
  std::optional<RuntimeError> error_;
};

bool is_log_path(const std::string& path);
std::string exact_number(const Tensor& t);  // enough digits to read back the same bits, and no more

}  // namespace ein::cli
