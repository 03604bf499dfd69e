#include "driver/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

#include "cli/cli.h"
#include "cli/monitor.h"
#include "cli/timing.h"
#include "core/groups.h"
#include "driver/cache.h"
#include "runtime/files.h"
#include "runtime/show.h"

namespace ein::cli {
namespace {

// Why `id` has no steps that run in sequence; empty when it has.
std::string not_watchable(core::Module& m, core::FamilyId id) {
  std::string name = text(m[id].name);
  std::vector<std::string> before;  // recurrences it is computed from
  for (const core::Step& s : core::schedule(m, {id}).steps) {
    const auto* q = std::get_if<core::Sequence>(&s);
    for (size_t i = 0; q && i < q->members.size(); ++i) {
      const core::FamilyId member = q->members[i].family;
      if (member == id) return {};
      if (!m[member].generated) before.push_back(fmt::format("`{}`", text(m[member].name)));
    }
  }
  if (before.empty())
    return fmt::format("`{}` is not a recurrence, so it has no steps to watch", name);
  return fmt::format(
      "`{}` is not a recurrence; it is computed after the steps of {}, which can be watched", name,
      fmt::join(before, ", "));
}

// Values of --out; those that a stopped run had not finished are named.
std::optional<int> write_outputs(const RunCommand& command, const std::vector<Pair>& outputs,
                                 const RunResult& result) {
  for (const Pair& o : outputs) {
    auto it = result.values.find(o.name);
    if (it == result.values.end()) {
      print_error("not written: `{}` is not finished\n", o.name);
      continue;
    }
    auto written = write_tensors(o.value, {{o.name, &it->second}});
    if (auto* e = std::get_if<RuntimeError>(&written)) return runtime_error(*e, command.common);
  }
  return std::nullopt;
}

struct ShownPart {
  std::string path;  // `net.enc.w`
  std::string json;
};

// One object, in which the parts of a record are an object of their own.
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

}  // namespace

int run_verb(const RunCommand& command) {
  RunOptions options;
  options.backend = command.backend == "ref" ? Backend::Reference : Backend::Native;
  options.opt_level = command.opt_level;
  options.threads = command.threads;
  options.processor = *processor_named(command.cpu);
  if (!runs_here(options.processor)) {
    return usage_error(fmt::format(
        "--cpu {}: this machine does not support these instructions; the best it supports is `{}`",
        command.cpu, name_of(best_here())));
  }
  options.check_overflow = command.check_overflow;
  options.trap = command.trap == "nan";
  options.check_bounds = command.check_bounds;
  options.operands = command.precision == "bf16-mixed"  ? DType::BF16
                     : command.precision == "f16-mixed" ? DType::F16
                                                        : DType::F32;
  Program p =
      load(command.common, {.in = command.in, .direction = command.direction, .runs = true});
  if (p.status != kFine) return p.status;
  core::Module& m = p.compiled.module;

  options.access = p.access.get();
  for (const std::string& name : command.show) {  // a record is shown part by part
    std::vector<std::string> parts = parts_of(m, name);
    if (parts.empty()) parts = {name};
    options.show.insert(options.show.end(), parts.begin(), parts.end());
  }
  const std::vector<std::string> shown = options.show;
  options.time = command.time;
  if (auto status = read_grad_memory(command.grad_memory, options.grad_memory)) return *status;
  if (auto status = read_tuning(command.tune, options.tuning)) return *status;
  std::vector<Pair> outputs;
  if (auto status = read_outputs(command.out, outputs)) return *status;
  for (const Pair& o : outputs) options.show.push_back(o.name);
  for (const std::string& name : options.show) {
    std::string problem;
    if (!find_value(m, name, problem)) return usage_error(problem);
  }
  for (const std::string& name : command.watch) {
    std::string problem;
    core::FamilyId id = find_value(m, name, problem);
    if (!id) return usage_error(problem);
    if (std::string why = not_watchable(m, id); !why.empty()) return usage_error(why);
  }
  options.watch = command.watch;
  core::Inputs inputs;
  if (auto status = read_inputs(command.in, command.set, m, inputs, command.common)) return *status;
  if (auto status = dump_native(m, inputs, options, command.common)) return *status;
  if (!command.emit.empty()) {
    auto text = emit(m, inputs, options, command.emit);
    if (auto* e = std::get_if<RuntimeError>(&text)) return runtime_error(*e, command.common);
    put(std::get<std::string>(text));
    return kFine;
  }

  std::string note;
  std::unique_ptr<DiskCache> cache = command.no_cache ? nullptr : open_cache(&note);
  if (!note.empty()) print_error("note: {}\n", note);
  options.cache = cache.get();
  Trace passes;
  options.trace = &passes;
  RunResult result;
  {
    RunMonitor monitor(command.progress);
    options.monitor = &monitor;
    result = run(m, inputs, options, [](const std::string& line) { put(line); });
  }
  if (command.common.time_passes) print_times(passes);
  if (cache && command.cache_stats) {
    const DiskCache::Counts& c = cache->counts();
    print_error("cache: {} found, {} missed, {} stored; compiled {}\n", c.found, c.missed, c.stored,
                native_compile_count());
  }
  show_thread_note();
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
                  ? timing_json(p.compiled.trace.times, *result.timing, peaks).dump() + "\n"
                  : timing_text(p.compiled.trace.times, *result.timing, peaks));
  } else if (command.time) {
    print_error("--time: nothing ran as native code\n");
  }
  if (result.error) return runtime_error(*result.error, command.common, &p.sources);
  if (result.stopped) print_error("interrupted: {}\n", stop_text(*result.stopped));
  if (auto status = write_outputs(command, outputs, result)) return *status;
  if (result.stopped) return kInterrupted;
  if (shown.empty()) return kFine;
  if (command.format == "json") {
    std::vector<ShownPart> parts;
    for (const std::string& name : shown) {
      std::vector<std::string> coords = coordinate_texts(m[m.find(intern(name))]);
      parts.push_back({name, show_json(result.values.at(name), coords)});
    }
    print_out("{}\n", nested_json(parts));
    return kFine;
  }
  for (const std::string& name : shown) {
    std::vector<std::string> coords = coordinate_texts(m[m.find(intern(name))]);
    print_out("{} = {}\n", name, show(result.values.at(name), coords));
  }
  return kFine;
}

}  // namespace ein::cli
