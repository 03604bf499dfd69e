#include "driver/bench.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/cli.h"
#include "cli/timing.h"
#include "runtime/files.h"

namespace ein::cli {

int bench_verb(const BenchCommand& command) {
  Program p =
      load(command.common, {.in = command.in, .direction = command.direction, .runs = true});
  if (p.status != kFine) return p.status;
  core::Module& m = p.compiled.module;
  BenchOptions options;
  options.repeat = command.repeat;
  options.run.opt_level = command.opt_level;
  options.run.threads = command.threads;
  options.run.operands = operands_named(command.precision);
  options.run.device = device_named(command.device);
  options.run.show = shown_parts(m, command.show);
  if (auto status = read_tuning(command.tune, options.run.tuning)) return *status;
  if (auto status = read_grad_memory(command.grad_memory, options.run.grad_memory)) return *status;
  std::vector<Pair> outputs;
  if (auto status = read_outputs(command.out, outputs)) return *status;
  for (const Pair& o : outputs) options.run.show.push_back(o.name);
  for (const std::string& name : options.run.show) {
    std::string problem;
    if (!find_value(m, name, problem)) return usage_error(problem);
  }
  core::Inputs inputs;
  if (auto status = read_inputs(command.in, command.set, m, inputs, command.common)) return *status;
  if (auto status = dump_native(m, inputs, options.run, command.common)) return *status;

  auto done = bench(m, inputs, options);
  show_thread_note();
  if (auto* e = std::get_if<RuntimeError>(&done)) {
    return runtime_error(*e, command.common, &p.sources);
  }
  const BenchReport& report = std::get<BenchReport>(done);
  if (report.computed.empty())
    return usage_error("the program does not define any value to compute");
  for (const Pair& o : outputs) {
    auto written = write_tensors(o.value, {{o.name, &report.values.at(o.name)}});
    if (auto* e = std::get_if<RuntimeError>(&written)) return runtime_error(*e, command.common);
  }
  Peaks peaks = command.no_peaks ? Peaks{} : measure_peaks();
  auto [least, most] = std::minmax_element(report.runs.begin(), report.runs.end());
  if (command.format == "json") {
    nlohmann::json out = timing_json(p.compiled.trace.times, report.median, peaks);
    out["runs"] = report.runs;
    out["computed"] = report.computed;
    out["made_up"] = report.made_up;
    if (report.memory) out["memory"] = *report.memory;
    print_out("{}\n", out.dump());
    return kFine;
  }
  print_out("{}", timing_text(p.compiled.trace.times, report.median, peaks));
  print_out("a run takes {} (median of {}; {} to {}); computed: {}\n",
            seconds_text(report.median.seconds), report.runs.size(), seconds_text(*least),
            seconds_text(*most), fmt::join(report.computed, ", "));
  if (report.memory) {
    print_out("a run uses at most {:.1f} MB of memory, including its inputs\n",
              static_cast<double>(*report.memory) * 1e-6);
  }
  if (!report.made_up.empty()) {
    print_out("inputs with made-up values and small extents: {}; supply them with --in NAME=FILE\n",
              fmt::join(report.made_up, ", "));
  }
  return kFine;
}

}  // namespace ein::cli
