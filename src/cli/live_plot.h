// `--plot`: draws the watched values as a line over the steps, again and again while the run goes
// on. `std::plot::line_svg` draws, called like from any other program.
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

  // Whether the step before this moment becomes a point: at first every step, later every second
  // one, …
  bool wants(const Moment& now) const;
  // Adds the point, and draws about once a second. Failing to write the file is an error.
  std::optional<RuntimeError> add(const Moment& now);
  std::optional<RuntimeError> draw();

 private:
  using Clock = std::chrono::steady_clock;
  struct Drawing;  // the compiled program that draws

  void thin_out();

  std::string path_, family_;
  std::vector<std::string> names_;
  std::vector<double> steps_;
  std::vector<std::vector<double>> values_;  // by name
  int64_t stride_ = 1;
  bool drawn_ = true;  // everything so far has been drawn
  Clock::time_point next_;
  std::unique_ptr<Drawing> drawing_;
};

}  // namespace ein::cli
