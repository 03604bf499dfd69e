#include "driver/run.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>

#include "cli/cli.h"
#include "cli/monitor.h"
#include "core/groups.h"
#include "runtime/files.h"
#include "runtime/show.h"

namespace ein::cli {
namespace {

core::FamilyId find_value(const core::Module& m, const std::string& name, std::string& problem) {
  core::FamilyId id = m.find(intern(name));
  if (id) return id;
  std::vector<std::string> known;
  for (const core::Family& f : m.families) {
    if (!f.generated) known.push_back(text(f.name));
  }
  std::string near = did_you_mean(name, known);
  problem = fmt::format("the program defines no value `{}`{}", name,
                        near.empty() ? "" : fmt::format("; did you mean `{}`?", near));
  return {};
}

std::optional<Tensor> parse_scalar(const std::string& text, DType dtype) {
  Tensor t(dtype, {});
  if (dtype == DType::Bool) {
    if (text != "true" && text != "false") return std::nullopt;
    t.set_int(0, text == "true");
    return t;
  }
  const char* end = text.data() + text.size();
  if (is_float(dtype)) {
    double v = 0;
    auto [stop, error] = std::from_chars(text.data(), end, v);
    if (error != std::errc{} || stop != end) return std::nullopt;
    t.set_float(0, v);
    return t;
  }
  int64_t v = 0;
  auto [stop, error] = std::from_chars(text.data(), end, v);
  if (error != std::errc{} || stop != end) return std::nullopt;
  t.set_int(0, v);
  if (t.get_int(0) != v) return std::nullopt;
  return t;
}

std::variant<Tensor, RuntimeError> read_input(const Pair& given, const core::Family& f) {
  return read_tensor(given.value, member_for(given), Wanted{f.dtype, f.coords.size()});
}

// Fills `inputs` from --in and --set; the exit status when something is wrong.
std::optional<int> read_inputs(const RunCommand& command, const core::Module& m,
                               core::Inputs& inputs) {
  for (bool from_file : {true, false}) {
    for (const std::string& given : from_file ? command.in : command.set) {
      const char* option = from_file ? "--in" : "--set";
      auto pair = split(given);
      if (!pair)
        return usage_error(
            fmt::format("{} needs NAME={}, got `{}`", option, from_file ? "FILE" : "VALUE", given));
      std::string problem;
      core::FamilyId id = find_value(m, pair->name, problem);
      if (!id) return usage_error(problem);
      const core::Family& f = m[id];
      if (f.kind != core::Family::Kind::Input) {
        return usage_error(
            fmt::format("`{}` has a definition; only inputs (`let {}: type;`) are supplied",
                        pair->name, pair->name));
      }
      if (f.file) {
        return usage_error(
            fmt::format("`{}` is loaded from `{}`; only inputs (`let {}: type;`) are "
                        "supplied",
                        pair->name, f.file->written, pair->name));
      }
      if (from_file) {
        auto read = read_input(*pair, f);
        if (auto* e = std::get_if<RuntimeError>(&read)) return runtime_error(*e, command.common);
        inputs[pair->name] = std::get<Tensor>(read);
        continue;
      }
      if (!f.coords.empty())
        return usage_error(
            fmt::format("`{}` is a tensor: supply it with --in {}=FILE", pair->name, pair->name));
      auto value = parse_scalar(pair->value, f.dtype);
      if (!value)
        return usage_error(
            fmt::format("`{}` is not a value of type {}", pair->value, name_of(f.dtype)));
      inputs[pair->name] = *value;
    }
  }
  return std::nullopt;
}

// Does `id` have steps that run in sequence?
bool has_steps(core::Module& m, core::FamilyId id) {
  for (const core::Step& s : core::schedule(m, {id}).steps) {
    const auto* q = std::get_if<core::Sequence>(&s);
    if (!q) continue;
    for (const auto& member : q->members) {
      if (member.family == id) return true;
    }
  }
  return false;
}

// Values of --out; those that a stopped run had not finished are named.
std::optional<int> write_outputs(const RunCommand& command, const std::vector<Pair>& outputs,
                                 const RunResult& result) {
  for (const Pair& o : outputs) {
    auto it = result.values.find(o.name);
    if (it == result.values.end()) {
      fmt::print(stderr, "not written: `{}` is not finished\n", o.name);
      continue;
    }
    auto written = write_tensors(o.value, {{o.name, &it->second}});
    if (auto* e = std::get_if<RuntimeError>(&written)) return runtime_error(*e, command.common);
  }
  return std::nullopt;
}

}  // namespace

int run_verb(const RunCommand& command) {
  Program p = load(command.common, {.in = command.in, .direction = command.direction});
  if (p.status != kFine) return p.status;
  core::Module& m = p.compiled.module;

  RunOptions options;
  options.backend = command.backend == "ref" ? Backend::Reference : Backend::Native;
  options.opt_level = command.opt_level;
  options.check_overflow = command.check_overflow;
  options.show = command.show;
  if (auto status = read_grad_memory(command.grad_memory, options.grad_memory)) return *status;
  std::vector<Pair> outputs;
  for (const std::string& given : command.out) {
    auto pair = split(given);
    if (!pair) return usage_error(fmt::format("--out needs NAME=FILE, got `{}`", given));
    if (std::string why = check_target(pair->value, 1); !why.empty()) {
      return usage_error(fmt::format("cannot write `{}`: {}", pair->value, why));
    }
    outputs.push_back(*pair);
    options.show.push_back(pair->name);
  }
  for (const std::string& name : options.show) {
    std::string problem;
    if (!find_value(m, name, problem)) return usage_error(problem);
  }
  for (const std::string& name : command.watch) {
    std::string problem;
    core::FamilyId id = find_value(m, name, problem);
    if (!id) return usage_error(problem);
    if (!has_steps(m, id)) {
      return usage_error(fmt::format("`{}` is no recurrence: it has no steps to watch", name));
    }
  }
  options.watch = command.watch;
  if (!command.emit.empty()) {
    auto text = emit(m, options, command.emit);
    if (auto* e = std::get_if<RuntimeError>(&text)) return runtime_error(*e, command.common);
    std::fputs(std::get<std::string>(text).c_str(), stdout);
    return kFine;
  }
  core::Inputs inputs;
  if (auto status = read_inputs(command, m, inputs)) return *status;

  RunResult result;
  {
    RunMonitor monitor(command.progress);
    options.monitor = &monitor;
    result =
        run(m, inputs, options, [](const std::string& line) { std::fputs(line.c_str(), stdout); });
  }
  if (!result.fallback.empty()) {
    fmt::print(stderr, "warning: ran on the reference evaluator: {}\n", result.fallback);
  }
  for (const plan::SegmentPlan& plan : result.checkpoints) {
    if (options.grad_memory && plan.bytes > *options.grad_memory) {
      fmt::print(stderr, "warning: --grad-memory {} is not kept: {}\n", command.grad_memory,
                 plan::describe(plan));
    }
  }
  if (result.error) return runtime_error(*result.error, command.common, &p.sources);
  if (result.stopped) fmt::print(stderr, "interrupted: {}\n", stop_text(*result.stopped));
  if (auto status = write_outputs(command, outputs, result)) return *status;
  if (result.stopped) return kInterrupted;
  if (command.show.empty()) return kFine;
  std::vector<std::string> items;
  for (const std::string& name : command.show) {
    const Tensor& t = result.values.at(name);
    std::vector<std::string> coords = coordinate_texts(m[m.find(intern(name))]);
    if (command.format == "json") {
      items.push_back(fmt::format("\"{}\": {}", name, show_json(t, coords)));
    } else {
      fmt::print("{} = {}\n", name, show(t, coords));
    }
  }
  if (command.format == "json") fmt::print("{{{}}}\n", fmt::join(items, ", "));
  return kFine;
}

}  // namespace ein::cli
