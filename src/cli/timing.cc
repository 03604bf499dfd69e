#include "cli/timing.h"

#include <fmt/format.h>

#include <algorithm>

namespace ein::cli {
namespace {

// Phases in order, without the final one, which is the sum of the native ones.
std::vector<std::pair<std::string, double>> phases(const std::vector<PassTime>& passes,
                                                   const Timing& timing) {
  std::vector<std::pair<std::string, double>> out;
  for (const PassTime& p : passes) out.emplace_back(p.pass, p.milliseconds);
  for (const auto& [phase, milliseconds] : timing.compile) {
    if (phase != "total") out.emplace_back(phase, milliseconds);
  }
  return out;
}

double per_second(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

std::string label(const Work& work) {
  std::string out;
  for (const std::string& f : work.computes) {
    if (!out.empty() && out.size() + f.size() > 28) {
      out += ", …";
      break;
    }
    out += (out.empty() ? "" : ", ") + f;
  }
  return work.steps ? out + " (steps)" : out;
}

// fmt counts bytes, but a terminal counts characters.
std::string spaces(const std::string& s, size_t width) {
  auto shown = static_cast<size_t>(
      std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xC0) != 0x80; }));
  return std::string(width - std::min(width, shown), ' ');
}
std::string left(const std::string& s, size_t width) { return s + spaces(s, width); }
std::string right(const std::string& s, size_t width) { return spaces(s, width) + s; }

double in_kernels(const Timing& timing) {
  double sum = 0;
  for (const KernelTime& k : timing.kernels) sum += k.seconds;
  return sum;
}

}  // namespace

std::string seconds_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} µs", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.3f} s", seconds);
}

std::string timing_text(const std::vector<PassTime>& passes, const Timing& timing,
                        const Peaks& peaks) {
  double total = 0;
  std::string each;
  for (const auto& [phase, milliseconds] : phases(passes, timing)) {
    total += milliseconds;
    each += fmt::format("{}{} {:.1f}", each.empty() ? "" : ", ", phase, milliseconds);
  }
  std::string out = fmt::format("compiled in {:.1f} ms: {}\n", total, each);
  size_t width = 8;
  std::vector<const KernelTime*> order;
  for (const KernelTime& k : timing.kernels) {
    order.push_back(&k);
    width = std::max(width, std::min<size_t>(label(k.work).size(), 44));
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->seconds > b->seconds; });
  auto share = [&](double seconds) { return 100 * per_second(seconds, timing.seconds); };
  out += fmt::format("{:<{}} {:>11} {:>7} {:>9} {:>9} {:>7} {:>9}\n", "family", width, "time",
                     "share", "GFLOP/s", "of peak", "GB/s", "of stream");
  for (const KernelTime* k : order) {
    double flops = per_second(k->work.operations, k->seconds);
    double bytes = per_second(k->work.bytes, k->seconds);
    out += fmt::format("{} {} {:>5.1f} % {:>9.2f} {:>7.1f} % {:>7.2f} {:>7.1f} %\n",
                       left(label(k->work), width), right(seconds_text(k->seconds), 11),
                       share(k->seconds), flops * 1e-9,
                       100 * per_second(flops, peaks.fma(k->work.type)), bytes * 1e-9,
                       100 * per_second(bytes, peaks.stream));
  }
  double outside = std::max(0.0, timing.seconds - in_kernels(timing));
  out += fmt::format("memory and entry checks {}, {:.1f} % of {}\n", seconds_text(outside),
                     share(outside), seconds_text(timing.seconds));
  if (peaks.stream == 0) return out;  // not measured
  out += fmt::format(
      "this machine, {} thread{}: {:.1f} GFLOP/s f32, {:.1f} GFLOP/s f64, stream {:.1f} GB/s\n",
      peaks.threads, peaks.threads == 1 ? "" : "s", peaks.fma32 * 1e-9, peaks.fma64 * 1e-9,
      peaks.stream * 1e-9);
  return out;
}

nlohmann::json timing_json(const std::vector<PassTime>& passes, const Timing& timing,
                           const Peaks& peaks) {
  nlohmann::json compile = nlohmann::json::object(), kernels = nlohmann::json::array();
  double total = 0;
  for (const auto& [phase, milliseconds] : phases(passes, timing)) {
    compile[phase] = milliseconds * 1e-3;
    total += milliseconds * 1e-3;
  }
  compile["total"] = total;
  for (const KernelTime& k : timing.kernels) {
    double flops = per_second(k.work.operations, k.seconds);
    double bytes = per_second(k.work.bytes, k.seconds);
    kernels.push_back({{"families", k.work.computes},
                       {"steps", k.work.steps},
                       {"seconds", k.seconds},
                       {"operations", k.work.operations},
                       {"bytes", k.work.bytes},
                       {"of_peak", per_second(flops, peaks.fma(k.work.type))},
                       {"of_stream", per_second(bytes, peaks.stream)}});
  }
  return {{"compile", compile},
          {"kernels", kernels},
          {"seconds", timing.seconds},
          {"machine",
           {{"threads", peaks.threads},
            {"flops_f32", peaks.fma32},
            {"flops_f64", peaks.fma64},
            {"stream_bytes", peaks.stream}}}};
}

}  // namespace ein::cli
