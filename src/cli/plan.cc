// `ein plan`: estimates what a program would move between ranks, and how long that takes.
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "core/groups.h"
#include "driver/rank_plan.h"
#include "driver/ranks.h"
#include "runtime/peaks.h"

namespace ein::cli {
namespace {

using Json = nlohmann::ordered_json;

// A number and its unit; nothing if the text is something else.
std::optional<double> with_unit(const std::string& text,
                                const std::vector<std::pair<std::string, double>>& units) {
  double value = 0;
  auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong != std::errc() || !(value > 0) || !std::isfinite(value)) return std::nullopt;
  const std::string unit(end, text.data() + text.size());
  for (const auto& [name, factor] : units) {
    if (unit == name) return value * factor;
  }
  return std::nullopt;
}

std::optional<Network> read_network(const std::string& text) {
  size_t comma = text.find(',');
  if (comma == std::string::npos) return std::nullopt;
  auto latency =
      with_unit(text.substr(0, comma), {{"us", 1e-6}, {"ms", 1e-3}, {"ns", 1e-9}, {"s", 1}});
  auto bandwidth =
      with_unit(text.substr(comma + 1), {{"GB/s", 1e9}, {"MB/s", 1e6}, {"Gbit/s", 1.25e8}});
  if (!latency || !bandwidth) return std::nullopt;
  return Network{*latency, *bandwidth};
}

std::string bytes_text(double bytes) {
  const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  size_t k = 0;
  while (bytes >= 1000 && k < 4) bytes /= 1000, ++k;
  return k == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.3g} {}", bytes, units[k]);
}

std::string time_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.3g} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} us", seconds * 1e6);
}

// The extents of the whole program: from --set, or from the shapes of files.
std::optional<int> read_extents(const PlanCommand& command, const core::Module& m,
                                std::vector<int64_t>& params) {
  std::map<std::string, int64_t> numbers;
  std::vector<std::string> others;
  for (const std::string& given : command.set) {
    auto pair = split(given);
    int64_t n = 0;
    bool fine = false;
    if (pair) {
      const std::string& text = pair->value;
      auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), n);
      fine = wrong == std::errc() && end == text.data() + text.size() && n >= 0;
    }
    if (fine) numbers[pair->name] = n;
    if (!fine || m.find(intern(pair->name))) others.push_back(given);
  }
  core::Inputs inputs;
  if (auto status = read_inputs(command.in, others, m, inputs, command.common)) return status;
  for (const core::Param& p : m.params) {
    const core::Family& source = m[p.source];
    const std::string name = p.name ? text(p.name) : source.spelled();
    auto given = inputs.find(text(source.name));
    int64_t value = -1;
    if (auto it = numbers.find(name); it != numbers.end()) {
      value = it->second;
    } else if (given != inputs.end()) {
      value = p.position == core::Param::kItself ? given->second.get_int(0)
                                                 : given->second.shape()[p.position];
    } else if (source.file && p.position != core::Param::kItself) {
      value = source.file->header.shape[p.position];
    }
    if (value < 0) {
      return usage_error(fmt::format(
          "the extent `{0}` is not known: set it, as in `--set {0}=1000`, or give a file "
          "with `--in {1}=FILE`",
          name, source.spelled()));
    }
    params.push_back(value);
  }
  return std::nullopt;
}

void print_rows(const RankPlan& plan) {
  std::vector<std::vector<std::string>> table = {
      {"value", "split", "move", "over", "times", "bytes/rank", "time"}};
  for (const RankPlan::Row& r : plan.rows) {
    table.push_back({r.value, r.split.empty() ? "–" : r.split, r.move, r.over,
                     std::to_string(r.times), bytes_text(r.bytes), time_text(r.seconds)});
  }
  std::vector<size_t> widths(table[0].size());
  auto width = [](const std::string& s) {
    return static_cast<size_t>(
        std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xc0) != 0x80; }));
  };
  for (const auto& row : table) {
    for (size_t k = 0; k < row.size(); ++k) widths[k] = std::max(widths[k], width(row[k]));
  }
  for (const auto& row : table) {
    std::string line;
    for (size_t k = 0; k < row.size(); ++k) {
      line += row[k];
      if (k + 1 < row.size()) line += std::string(widths[k] - width(row[k]) + 2, ' ');
    }
    print_out("{}\n", line);
  }
}

void print_total(const RankPlan& plan) {
  print_out("total: compute {}, moved {}, exposed {}, memory/rank {}; efficiency {:.2f}\n",
            time_text(plan.computing), bytes_text(plan.bytes), time_text(plan.moving),
            bytes_text(plan.memory), plan.efficiency());
}

Json json_of(const RankPlan& plan) {
  Json rows = Json::array();
  for (const RankPlan::Row& r : plan.rows) {
    rows.push_back({{"value", r.value},
                    {"split", r.split},
                    {"move", r.move},
                    {"over", r.over},
                    {"times", r.times},
                    {"bytes", r.bytes},
                    {"seconds", r.seconds}});
  }
  return {{"ranks", plan.ranks},
          {"moves", rows},
          {"bytes", plan.bytes},
          {"compute", plan.computing},
          {"exposed", plan.moving},
          {"memory", plan.memory},
          {"efficiency", plan.efficiency()}};
}

// A sweep such as data=1..4096.
struct Sweep {
  size_t axis = 0;
  int64_t from = 1, to = 1;
};
std::optional<Sweep> read_sweep(const std::string& text, const Mesh& mesh) {
  auto pair = split(text);
  size_t dots = pair ? pair->value.find("..") : std::string::npos;
  if (dots == std::string::npos) return std::nullopt;
  Sweep out;
  auto number = [](const std::string& s, int64_t& n) {
    auto [end, wrong] = std::from_chars(s.data(), s.data() + s.size(), n);
    return wrong == std::errc() && end == s.data() + s.size() && n >= 1 && n <= 1 << 20;
  };
  if (!number(pair->value.substr(0, dots), out.from)) return std::nullopt;
  if (!number(pair->value.substr(dots + 2), out.to) || out.to < out.from) return std::nullopt;
  while (out.axis < mesh.axes.size() && mesh.axes[out.axis].name != pair->name) ++out.axis;
  return out.axis < mesh.axes.size() ? std::optional(out) : std::nullopt;
}

}  // namespace

int plan_verb(const PlanCommand& command) {
  if (command.mesh.empty()) return usage_error("`ein plan` needs a mesh: --mesh data=4");
  shard::Spec spec;
  if (auto status = read_mesh(command.mesh, command.shard, command.common, spec)) return *status;
  auto network = read_network(command.network);
  if (!network) {
    return usage_error(fmt::format("--network needs a time and a rate such as 5us,12GB/s, got `{}`",
                                   command.network));
  }
  std::optional<Sweep> sweep;
  if (!command.sweep.empty()) {
    sweep = read_sweep(command.sweep, spec.mesh);
    if (!sweep) {
      return usage_error(
          fmt::format("--sweep needs an axis of the mesh and its sizes such as "
                      "{}=1..64, got `{}`",
                      spec.mesh.axes[0].name, command.sweep));
    }
  }
  Program p = load(command.common, {.in = command.in, .direction = command.direction});
  if (p.status != kFine) return p.status;
  core::Module& m = p.compiled.module;
  RunOptions options;
  options.streams = false;
  options.show = shown_parts(m, command.show);
  for (const std::string& name : options.show) {
    std::string problem;
    if (!find_value(m, name, problem)) return usage_error(problem);
  }
  if (auto refused = refuse_on_ranks(m, options))
    return runtime_error(*refused, command.common, &p.sources);
  std::vector<int64_t> params;
  if (auto status = read_extents(command, m, params)) return *status;
  Peaks peaks = measure_peaks();
  const bool json = command.format == "json";
  Json all = Json::array();
  auto one = [&](const shard::Spec& now) -> std::optional<int> {
    auto made = plan_ranks(m, params, options, now, *network, peaks);
    if (auto* e = std::get_if<RuntimeError>(&made))
      return runtime_error(*e, command.common, &p.sources);
    const RankPlan& plan = std::get<RankPlan>(made);
    if (json) {
      all.push_back(json_of(plan));
    } else if (sweep) {
      print_out("{} = {}: compute {}, moved {}, exposed {}, memory/rank {}; efficiency {:.2f}\n",
                now.mesh.axes[sweep->axis].name, now.mesh.axes[sweep->axis].size,
                time_text(plan.computing), bytes_text(plan.bytes), time_text(plan.moving),
                bytes_text(plan.memory), plan.efficiency());
    } else {
      print_rows(plan);
      print_total(plan);
    }
    return std::nullopt;
  };
  if (!sweep) {
    if (auto status = one(spec)) return *status;
    if (json) print_out("{}\n", all[0].dump());
    return kFine;
  }
  for (int64_t n = sweep->from; n <= sweep->to; n *= 2) {
    shard::Spec now = spec;
    now.mesh.axes[sweep->axis].size = n;
    if (auto status = one(now)) return *status;
  }
  if (json) print_out("{}\n", all.dump());
  return kFine;
}

}  // namespace ein::cli
