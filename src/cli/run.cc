#include "driver/run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "cli/cli.h"
#include "cli/monitor.h"
#include "cli/timing.h"
#include "driver/cache.h"
#include "driver/observe.h"
#include "runtime/files.h"
#include "runtime/mpi.h"
#include "runtime/pool.h"
#include "runtime/show.h"

namespace ein::cli {
Device device_named(const std::string& name) {
  return name == "gpu" ? Device::Gpu : name == "emulated" ? Device::Emulated : Device::Cpu;
}

namespace {

// The values to watch: those of --watch, or `loss` if none are named and there may be somebody to
// look.
std::optional<int> read_watched(const RunCommand& command, const Program& p, RunOptions& options) {
  const core::Module& asked = p.compiled.asked;
  options.asked = &asked;
  for (const std::string& name : command.watch) {
    auto found = find_watched(asked, p.sources, name);
    if (auto* problem = std::get_if<std::string>(&found)) return usage_error(*problem);
    bool twice = std::any_of(options.watch.begin(), options.watch.end(),
                             [&](const Watched& w) { return w.name == name; });
    if (!twice) options.watch.push_back(std::get<Watched>(found));
  }
  bool writes = !command.log.empty() || !command.plot.empty();
  options.scalars = writes;
  if (!options.watch.empty()) return std::nullopt;
  if (!writes && !RunMonitor::shows(command.progress)) return std::nullopt;
  auto found = find_watched(asked, p.sources, "loss");
  if (auto* loss = std::get_if<Watched>(&found)) {
    loss->asked = writes;
    options.watch.push_back(*loss);
  } else if (writes) {
    return usage_error(
        fmt::format("{}: name what to write with --watch A,B (the program has no `loss`)",
                    command.log.empty() ? "--plot" : "--log"));
  }
  return std::nullopt;
}

// `30s`, `10m`, `1h`, or a number of steps.
bool read_every(const std::string& text, MonitorOptions& out) {
  size_t digits = text.find_first_not_of("0123456789");
  int64_t number = std::strtoll(text.c_str(), nullptr, 10);
  if (digits == 0 || text.empty() || text.size() > 9 || number == 0) return false;
  std::string unit = digits == std::string::npos ? "" : text.substr(digits);
  if (unit.empty()) {
    out.save_steps = number;
    return true;
  }
  int64_t seconds = unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  out.save_after = std::chrono::seconds(number * seconds);
  return seconds > 0;
}

std::optional<int> read_monitor(const RunCommand& command, RunOptions& options,
                                MonitorOptions& out) {
  out.progress = command.progress;
  out.log = command.log;
  out.plot = command.plot;
  out.save = command.save_state;
  out.resumed = !command.resume.empty();
  for (const Watched& w : options.watch) out.names.push_back(w.name);
  if (!out.log.empty() && !is_log_path(out.log)) {
    return usage_error(fmt::format("--log {}: the name of a log ends in .csv or .jsonl", out.log));
  }
  if (!out.plot.empty() && !out.plot.ends_with(".svg")) {
    return usage_error(fmt::format("--plot {}: the name of a plot ends in .svg", out.plot));
  }
  if (!command.every.empty() && out.save.empty()) {
    return usage_error("--every needs --save-state DIR: it says how often the state is saved");
  }
  if (!read_every(command.every.empty() ? "10m" : command.every, out)) {
    return usage_error(fmt::format(
        "--every {}: write a time such as 30s, 10m or 1h, or a number of steps", command.every));
  }
  options.keeps_state = !out.save.empty();
  if (options.keeps_state) {
    std::error_code failed;
    std::filesystem::create_directories(out.save, failed);
    if (failed || !std::filesystem::is_directory(out.save, failed)) {
      return usage_error(fmt::format("--save-state {}: cannot create this folder", out.save));
    }
  }
  if (out.resumed) {
    auto read = read_file(state_path(command.resume));
    if (!read) {
      return usage_error(fmt::format("--resume {}: there is no state of a run ({})", command.resume,
                                     state_path(command.resume)));
    }
    options.resume = std::move(*read);
  }
  return std::nullopt;
}

// Writes the values of --out, and names those that a stopped run had not finished.
std::optional<int> write_outputs(const RunCommand& command, const core::Module& m,
                                 const std::vector<Pair>& outputs, const RunResult& result) {
  for (const Pair& o : outputs) {
    const std::vector<std::string> parts = parts_of(m, o.name);
    std::vector<NamedTensor> tensors;
    for (const std::string& name : parts.empty() ? std::vector{o.name} : parts) {
      auto it = result.values.find(name);
      if (it == result.values.end()) {
        print_error("not written: `{}` is not finished\n", name);
        break;
      }
      std::string member = parts.empty() ? name : member_name(m[m.find(intern(name))], o.name);
      tensors.push_back({member, &it->second});
    }
    if (tensors.size() != std::max<size_t>(1, parts.size())) continue;
    auto written = write_tensors(o.value, tensors);
    if (auto* e = std::get_if<RuntimeError>(&written)) return runtime_error(*e, command.common);
  }
  return std::nullopt;
}

struct ShownPart {
  std::string path;  // `net.enc.w`
  std::string json;
};

// One JSON object, with an object for each record.
std::string nested_json(const std::vector<ShownPart>& parts) {
  std::vector<std::pair<std::string, std::vector<ShownPart>>> heads;
  for (const ShownPart& part : parts) {
    size_t dot = part.path.find('.');
    std::string head = part.path.substr(0, dot);
    auto it =
        std::find_if(heads.begin(), heads.end(), [&](const auto& h) { return h.first == head; });
    if (it == heads.end()) it = heads.insert(heads.end(), {head, {}});
    it->second.push_back({dot == std::string::npos ? "" : part.path.substr(dot + 1), part.json});
  }
  std::vector<std::string> items;
  for (const auto& [head, inside] : heads) {
    bool leaf = inside[0].path.empty();
    items.push_back(fmt::format("\"{}\": {}", head, leaf ? inside[0].json : nested_json(inside)));
  }
  return fmt::format("{{{}}}", fmt::join(items, ", "));
}

// Reports options that only work on the processor.
std::optional<int> refuse_device(const RunCommand& command, Device device) {
  if (device == Device::Cpu) return std::nullopt;
  const char* what = command.backend == "ref" ? "--backend ref"
                     : command.check_overflow ? "--check-overflow"
                     : !command.trap.empty()  ? "--trap"
                     : !command.mesh.empty()  ? "--mesh"
                                              : nullptr;
  if (!what) return std::nullopt;
  return usage_error(fmt::format("--device {} and {} cannot be combined; leave out one of them",
                                 command.device, what));
}

// The run's options, as given on the command line; `refused` is the exit status if they cannot be
// used here.
RunOptions options_of(const RunCommand& command, std::optional<int>& refused) {
  RunOptions out;
  out.backend = command.backend == "ref" ? Backend::Reference : Backend::Native;
  out.opt_level = command.opt_level;
  out.threads = command.threads;
  out.processor = *processor_named(command.cpu);
  if (!runs_here(out.processor)) {
    refused = usage_error(fmt::format(
        "--cpu {}: this machine does not support these instructions; the best it supports is `{}`",
        command.cpu, name_of(best_here())));
  }
  out.device = device_named(command.device);
  if (!refused) refused = refuse_device(command, out.device);
  out.check_overflow = command.check_overflow;
  out.trap = command.trap == "nan";
  out.check_bounds = command.check_bounds;
  out.operands = operands_named(command.precision);
  out.time = command.time;
  if (!refused) refused = read_grad_memory(command.grad_memory, out.grad_memory);
  if (!refused) refused = read_tuning(command.tune, out.tuning);
  return out;
}

// The values that --show and --out ask for; an exit status if one does not exist or cannot be
// written.
std::optional<int> read_wanted(const RunCommand& command, const core::Module& m,
                               std::vector<Pair>& outputs, RunOptions& options) {
  options.show = shown_parts(m, command.show);
  if (auto status = read_outputs(command.out, outputs)) return status;
  for (const Pair& o : outputs) {
    const std::vector<std::string> parts = shown_parts(m, {o.name});
    if (std::string why = check_target(o.value, parts.size()); !why.empty()) {
      return usage_error(fmt::format("cannot write `{}`: {}", o.value, why));
    }
    options.show.insert(options.show.end(), parts.begin(), parts.end());
  }
  for (const std::string& name : options.show) {
    std::string problem;
    if (!find_value(m, name, problem)) return usage_error(problem);
  }
  return std::nullopt;
}

// Reports what a user should know about a run besides its values.
void report_run(const RunCommand& command, const RunOptions& options, const DiskCache* cache,
                const Trace& compiled, const RunResult& result) {
  if (command.common.time_passes) print_times(*options.trace);
  if (cache && command.cache_stats) {
    const DiskCache::Counts& c = cache->counts();
    print_error("cache: {} found, {} missed, {} stored; compiled {}\n", c.found, c.missed, c.stored,
                native_compile_count());
  }
  show_thread_note();
  if (result.unwatched) {
    print_error("warning: watched values are missing: they could not be computed at some steps\n");
  }
  if (!result.fallback.empty()) {
    print_error("warning: ran on the slow reference evaluator: {}\n", result.fallback);
  }
  for (const optimise::SegmentPlan& plan : result.checkpoints) {
    if (options.grad_memory && plan.bytes > *options.grad_memory) {
      print_error("warning: --grad-memory {} is exceeded: {}\n", command.grad_memory,
                  optimise::describe(plan));
    }
  }
  if (result.timing) {
    Peaks peaks = measure_peaks();
    put_error(command.format == "json"
                  ? timing_json(compiled.times, *result.timing, peaks).dump() + "\n"
                  : timing_text(compiled.times, *result.timing, peaks));
  } else if (command.time) {
    print_error("--time: nothing ran as native code\n");
  }
}

void show_values(const RunCommand& command, const core::Module& m,
                 const std::vector<std::string>& names, const RunResult& result) {
  std::vector<ShownPart> parts;
  for (const std::string& name : names) {
    std::vector<std::string> coords = coordinate_texts(m[m.find(intern(name))]);
    const Tensor& value = result.values.at(name);
    if (command.format == "json") {
      parts.push_back({name, show_json(value, coords)});
    } else {
      print_out("{} = {}\n", name, show(value, coords));
    }
  }
  if (!parts.empty()) print_out("{}\n", nested_json(parts));
}

}  // namespace

namespace {

// Silences ranks other than 0: they would only repeat what rank 0 says.
void be_silent() {
  int nowhere = open("/dev/null", O_WRONLY);
  if (nowhere < 0) return;
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
  ::close(nowhere);
}

int run_program(const RunCommand& command, RunOptions options);

// Runs as one of the processes that mpirun has started. All ranks end with the status of rank 0.
int run_over_mpi(const RunCommand& command, RunOptions options, const MpiPlace& place) {
  if (place.rank != 0) be_silent();
  const int64_t ranks = options.ranks->mesh.ranks();
  if (ranks != place.ranks) {
    return runtime_error({Code::E0901, fmt::format("the mesh has {} ranks, but mpirun started {}: "
                                                   "use `mpirun -n {}`, or change `--mesh`",
                                                   ranks, place.ranks, ranks)},
                         command.common);
  }
  auto opened = open_mpi(place);
  if (auto* why = std::get_if<std::string>(&opened))
    return runtime_error({Code::E0901, *why}, command.common);
  auto& mpi = *std::get<std::unique_ptr<MpiTransport>>(opened);
  options.mpi = &mpi;
  if (options.threads == 0) {
    set_threads(0);
    options.threads = static_cast<int>(std::max<int64_t>(1, threads() / place.beside));
  }
  int status = run_program(command, options);
  if (place.rank == 0) {
    for (int64_t r = 1; r < place.ranks; ++r) mpi.tell(r, std::to_string(status));
    return status;
  }
  if (status != kFine) return status;
  auto told = mpi.hear(0);
  return told ? std::atoi(told->c_str()) : kRuntimeFailure;
}

}  // namespace

int run_verb(const RunCommand& command) {
  std::optional<int> refused;
  RunOptions options = options_of(command, refused);
  if (refused) return *refused;
  shard::Spec spec;
  if (auto status = read_mesh(command.mesh, command.shard, command.common, spec)) return *status;
  if (command.mesh.empty()) return run_program(command, options);
  options.ranks = &spec;
  auto place = mpi_place();
  return place ? run_over_mpi(command, options, *place) : run_program(command, options);
}

namespace {

int run_program(const RunCommand& command, RunOptions options) {
  Program p =
      load(command.common,
           {.in = command.in, .direction = command.direction, .keep_asked = true, .runs = true});
  if (p.status != kFine) return p.status;
  core::Module& m = p.compiled.module;

  options.access = p.access.get();
  std::vector<Pair> outputs;
  if (auto status = read_wanted(command, m, outputs, options)) return *status;
  if (auto status = read_watched(command, p, options)) return *status;
  core::Inputs inputs;
  if (auto status =
          read_inputs(command.in, command.set, m, inputs, command.common, &options.files)) {
    return *status;
  }
  if (auto status = dump_native(m, inputs, options, command.common)) return *status;
  if (!command.emit.empty()) {
    auto text = emit(m, inputs, options, command.emit);
    if (auto* e = std::get_if<RuntimeError>(&text)) return runtime_error(*e, command.common);
    put(std::get<std::string>(text));
    return kFine;
  }

  MonitorOptions watching;
  if (auto status = read_monitor(command, options, watching)) return *status;
  std::string note;
  std::unique_ptr<DiskCache> cache = command.no_cache ? nullptr : open_cache(&note);
  if (!note.empty()) print_error("note: {}\n", note);
  options.cache = cache.get();
  Trace passes;
  options.trace = &passes;
  RunResult result;
  bool kept = false;
  {
    RunMonitor monitor(watching);
    if (monitor.error()) return runtime_error(*monitor.error(), command.common);
    options.monitor = &monitor;
    result = run(m, inputs, options, [](const std::string& line) { put(line); });
    auto lost = monitor.finish();
    if (lost && !result.error) result.error = lost;
    kept = monitor.state_kept();
  }
  report_run(command, options, cache.get(), p.compiled.trace, result);
  if (!result.refused.empty()) return usage_error(result.refused);
  if (result.error) {
    return runtime_error(*result.error, command.common, &p.sources,
                         how_to_supply(m, inputs, *result.error));
  }
  if (result.stopped) {
    print_error("interrupted: {}\n", stop_text(*result.stopped));
    if (kept) {
      print_error("its state is in `{0}`; continue with --resume {0}\n", command.save_state);
    }
  }
  if (result.elsewhere) return kFine;
  if (auto status = write_outputs(command, m, outputs, result)) return *status;
  if (result.stopped) return kInterrupted;
  show_values(command, m, shown_parts(m, command.show), result);
  return kFine;
}

}  // namespace

}  // namespace ein::cli
