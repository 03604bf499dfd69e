#include "cli/live_plot.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "cli/cli.h"
#include "driver/run.h"
#include "runtime/bytes.h"

namespace ein::cli {
namespace {

constexpr size_t kMost = 1000;  // the most points
constexpr auto kRedraw = std::chrono::milliseconds(1000);
constexpr int kShare = 20;  // drawing takes at most one part in this many of the time

}  // namespace

struct LivePlot::Drawing {
  SourceMap sources;
  Compiled compiled;

  explicit Drawing(const std::vector<std::string>& names) {
    std::string code = fmt::format(
        "use std::plot::line_svg;\nlet x: [f64; t];\nlet y: [f64; k, t];\n"
        "print(line_svg(x, y, \"{}\", \"step\", \"\"));\n",
        fmt::join(names, ", "));
    FileId file = sources.add("plot", code);
    Diagnostics diags;
    compiled = compile(file, sources, {}, diags);
    EIN_CHECK(compiled.ok, "the program that draws: " + render(diags, sources, {}));
  }

  std::string svg(const std::vector<double>& steps,
                  const std::vector<std::vector<double>>& values) {
    auto count = static_cast<int64_t>(steps.size());
    Tensor x(DType::F64, {count}), y(DType::F64, {static_cast<int64_t>(values.size()), count});
    std::copy(steps.begin(), steps.end(), x.as<double>());
    for (size_t k = 0; k < values.size(); ++k) {
      std::copy(values[k].begin(), values[k].end(), y.as<double>() + k * steps.size());
    }
    RunOptions options;
    options.backend = Backend::Reference;  // there is little to compute, so compiling does not pay
    std::string out;
    RunResult result = run(compiled.module, {{"x", x}, {"y", y}}, options,
                           [&](const std::string& text) { out += text; });
    EIN_CHECK(!result.error, "a plot failed: " + result.error->message);
    return out;
  }
};

LivePlot::LivePlot(std::string path, std::vector<std::string> names)
    : path_(std::move(path)),
      names_(std::move(names)),
      values_(names_.size()),
      next_(Clock::now()) {}

LivePlot::~LivePlot() = default;

bool LivePlot::wants(const Moment& now) const {
  return now.family != family_ || now.done % stride_ == 0 || now.done == now.steps;
}

void LivePlot::thin_out() {
  stride_ *= 2;
  auto halve = [](std::vector<double>& all) {
    size_t to = 0;
    for (size_t i = 1; i < all.size(); i += 2) all[to++] = all[i];
    all.resize(to);
  };
  halve(steps_);
  for (auto& v : values_) halve(v);
}

std::optional<RuntimeError> LivePlot::add(const Moment& now) {
  if (now.watched.empty() || !wants(now)) return std::nullopt;
  if (now.family != family_) {  // another recurrence gets a new picture
    family_ = now.family;
    stride_ = 1;
    steps_.clear();
    for (auto& v : values_) v.clear();
  }
  std::vector<double> point;
  for (const std::string& name : names_) {
    for (const auto& [of, value] : now.watched) {
      if (of != name) continue;
      point.push_back(is_float(value.dtype()) ? value.get_float(0)
                                              : static_cast<double>(value.get_int(0)));
    }
  }
  bool finite = std::all_of(point.begin(), point.end(), [](double v) { return std::isfinite(v); });
  auto step = static_cast<double>(now.last());
  bool again = !steps_.empty() && steps_.back() == step;
  if (point.size() == names_.size() && finite && !again) {
    if (steps_.size() >= kMost) thin_out();
    steps_.push_back(step);
    for (size_t k = 0; k < point.size(); ++k) values_[k].push_back(point[k]);
    drawn_ = false;
  }
  return Clock::now() < next_ ? std::nullopt : draw();
}

std::optional<RuntimeError> LivePlot::draw() {
  if (drawn_ || steps_.size() < 2) return std::nullopt;
  auto begin = Clock::now();
  if (!drawing_) drawing_ = std::make_unique<Drawing>(names_);
  try {
    OutFile file(path_);
    file.write(drawing_->svg(steps_, values_));
    file.close();
  } catch (const Malformed& m) {
    return RuntimeError{Code::E0808, fmt::format("cannot write `{}`: {}", path_, m.why)};
  }
  drawn_ = true;
  auto end = Clock::now();
  next_ = end + std::max<Clock::duration>(kRedraw, kShare * (end - begin));
  return std::nullopt;
}

}  // namespace ein::cli
