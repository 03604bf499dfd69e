#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "driver/facts.h"
#include "driver/run.h"
#include "driver/streams.h"

namespace ein::cli {
namespace {

nlohmann::ordered_json checkpoints_json(const std::vector<optimise::SegmentPlan>& plans) {
  auto out = nlohmann::ordered_json::array();
  for (const optimise::SegmentPlan& p : plans) {
    out.push_back({{"recurrences", p.recurrences},
                   {"steps", p.steps},
                   {"segment", p.segment == 0 ? p.steps : p.segment},
                   {"bytes", p.bytes},
                   {"bytes_whole", p.bytes_whole},
                   {"work", p.work},
                   {"reason", p.reason}});
  }
  return out;
}

nlohmann::ordered_json streams_json(const std::vector<StreamFact>& facts) {
  auto out = nlohmann::ordered_json::array();
  for (const StreamFact& f : facts) {
    out.push_back(
        {{"input", f.input}, {"streams", f.streams}, {"rows", f.window}, {"reason", f.text}});
  }
  return out;
}

}  // namespace

int check_verb(const CheckCommand& command) {
  RunOptions options;
  if (auto status = read_grad_memory(command.grad_memory, options.grad_memory)) return *status;
  // Never destroyed: that would take a tenth of the time of checking.
  static Program* const kept =
      new Program(load(command.common, {.tests = true,
                                        .strict = command.strict,
                                        .in = command.in,
                                        .grad_memory = options.grad_memory}));
  Program& p = *kept;
  if (p.status != kFine || !command.facts) return p.status;
  core::Module& m = p.compiled.module;
  auto plans = plan_checkpoints(m, options);
  for (const std::string& given : command.in) {
    auto pair = split(given);
    std::string why;
    auto rows =
        pair ? find_rows(pair->value, member_for(*pair, command.common), why) : std::nullopt;
    if (rows) options.files.emplace(pair->name, std::move(*rows));
  }
  std::vector<StreamFact> streams = stream_facts(m, options);
  std::vector<FamilyReport> reports = report_families(m);
  if (command.format == "json") {
    auto facts = nlohmann::ordered_json::parse(facts_json(m, reports));
    if (plans) facts["checkpoints"] = checkpoints_json(*plans);
    facts["streams"] = streams_json(streams);
    print_out("{}\n", facts.dump());
    return kFine;
  }
  std::string text = facts_text(m, reports);
  if (!plans && options.grad_memory) {
    text +=
        "steps kept for derivatives: decided at the start of a run, when the extents are known\n";
  } else if (plans && !plans->empty()) {
    text += "steps kept for derivatives\n";
    for (const optimise::SegmentPlan& plan : *plans) text += "  " + optimise::describe(plan) + "\n";
  }
  if (!streams.empty()) text += "files read while the program runs\n";
  for (const StreamFact& fact : streams) text += "  " + fact.text + "\n";
  put(text);
  return kFine;
}

}  // namespace ein::cli
