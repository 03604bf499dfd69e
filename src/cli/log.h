// `--log`: the watched values of every step, in a file that can be followed while it grows.
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
  // `names`: the columns of a csv file. The ending of the path is .csv or .jsonl (is_log_path).
  RunLog(const std::string& path, std::vector<std::string> names, bool appends);
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  // The step before this moment, if it has watched values. `step`: its address.
  void add(const Moment& now, int64_t step);
  void close();
  // Why it could not be written. A run whose log is lost is stopped.
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
  bool skips_ = false;  // the last row of the run before
  bool begun_ = false;
  std::string family_;  // of the last row, and its step
  int64_t step_ = -1;
  Clock::time_point flushed_;
  std::optional<RuntimeError> error_;
};

bool is_log_path(const std::string& path);
std::string exact_number(const Tensor& t);  // that reads back as the same bits, and no more digits

}  // namespace ein::cli
