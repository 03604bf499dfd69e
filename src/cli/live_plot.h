// `--plot`: the watched values as a line over the steps, drawn again while the run goes on. The
// drawing is `std::plot::line_svg`, called as any program calls it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/monitor.h"
#include "runtime/tensor.h"

namespace ein::cli {

class LivePlot {
 public:
  LivePlot(std::string path, std::vector<std::string> names);
  ~LivePlot();
  LivePlot(const LivePlot&) = delete;
  LivePlot& operator=(const LivePlot&) = delete;

  // Whether the step before this moment becomes a point: each one at first, then every second, …
  bool wants(const Moment& now) const;
  // Adds the point, and draws about once a second. What could not be written is an error.
  std::optional<RuntimeError> add(const Moment& now);
  std::optional<RuntimeError> draw();

 private:
  using Clock = std::chrono::steady_clock;
  struct Drawing;  // the program that draws, compiled

  void thin_out();

  std::string path_, family_;
  std::vector<std::string> names_;
  std::vector<double> steps_;
  std::vector<std::vector<double>> values_;  // by name
  int64_t stride_ = 1;
  bool drawn_ = true;  // everything so far
  Clock::time_point next_;
  std::unique_ptr<Drawing> drawing_;
};

}  // namespace ein::cli
