#include "driver/gradcheck.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/cli.h"

namespace ein::cli {
namespace {

using Verdict = Comparison::Verdict;

const char* verdict_text(Verdict v) {
  switch (v) {
    case Verdict::Agrees: return "agrees";
    case Verdict::Wrong: return "wrong";
    case Verdict::Imprecise: return "imprecise";
    case Verdict::NotCompared: return "not compared";
  }
  return "";
}

std::string counted(int64_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

// `dA = @loss / @A: agrees (6 cells, 2 directions)`
std::string line_of(const Comparison& c) {
  std::string head = c.name == c.request ? c.name : fmt::format("{}: {}", c.name, c.request);
  if (c.verdict == Verdict::NotCompared) return fmt::format("{} — {}\n", head, c.note);
  std::string much = c.sampled < c.cells
                         ? fmt::format("{} of {}", c.sampled, counted(c.cells, "cell"))
                         : counted(c.cells, "cell");
  if (c.directions > 0) much += ", " + counted(c.directions, "direction");
  if (c.kinks > 0) {
    much += fmt::format("; {} skipped, the first at {}", counted(c.kinks, "kink"), c.kink_at);
  }
  if (c.undefined > 0) much += fmt::format("; {} outside the domain", c.undefined);
  return fmt::format("{} — {} ({})\n", head, verdict_text(c.verdict), much);
}

std::string trouble(const Comparison& c, bool rule, const SourceMap& sources) {
  std::string out;
  std::string place = c.span.valid() ? "  at " + place_text(sources, c.span) + "\n" : "";
  if (c.verdict == Verdict::Wrong) {
    out += fmt::format("error: {}\n{}",
                       rule ? fmt::format("the {} is not the derivative of its function", c.name)
                            : fmt::format("the derivative `{}` is wrong", c.request),
                       place);
    out += fmt::format("  {} is {}, but finite differences give {}\n", c.worst_at, c.derived,
                       c.expected);
    out += rule ? "  help: correct the rule; if it is deliberately not the derivative (a "
                  "straight-through estimator), mark it `#[surrogate]`\n"
                : "  help: look at the rules (`@fn`) on the path, and at `ein grad`; if there are "
                  "none, this is a bug in the compiler\n";
  }
  if (c.verdict == Verdict::Imprecise) {
    out += fmt::format("error: `{}` loses precision\n{}", c.request, place);
    out += fmt::format("  {} is {}, but the same program in f64 gives {}\n", c.worst_at, c.derived,
                       c.expected);
    out +=
        "  help: the formula is right but rounding errors are large: rearrange it, or compute it "
        "in f64\n";
  }
  return out;
}

nlohmann::json number(double v) {
  if (std::isfinite(v)) return v;
  return std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf";
}

nlohmann::json json_of(const Comparison& c, const SourceMap& sources) {
  nlohmann::json out{
      {"name", c.name},   {"request", c.request},     {"verdict", verdict_text(c.verdict)},
      {"cells", c.cells}, {"sampled", c.sampled},     {"compared", c.compared},
      {"kinks", c.kinks}, {"undefined", c.undefined}, {"directions", c.directions}};
  if (c.verdict != Verdict::NotCompared) {
    out["errors"] = {{"differences", number(c.error)},
                     {"own_type", number(c.own_error)},
                     {"forward", number(c.forward_error)}};
  }
  if (!c.note.empty()) out["note"] = c.note;
  if (!c.kink_at.empty()) out["kink_at"] = c.kink_at;
  if (c.span.valid()) out["at"] = place_text(sources, c.span);
  if (!c.worst_at.empty()) {
    out["worst"] = {{"at", c.worst_at},
                    {"derived", number(c.derived)},
                    {c.verdict == Verdict::Imprecise ? "f64" : "differences", number(c.expected)}};
  }
  return out;
}

bool fails(const std::vector<Comparison>& all) {
  return std::any_of(all.begin(), all.end(), [](const Comparison& c) {
    return c.verdict == Verdict::Wrong || c.verdict == Verdict::Imprecise;
  });
}

// The disagreements between different ways to compute the same numbers.
std::vector<std::string> problems_of(const GradcheckReport& report) {
  std::vector<std::string> out;
  for (const std::string* p : {&report.directions, &report.printed, &report.native}) {
    if (!p->empty()) out.push_back(*p);
  }
  return out;
}

void show_text(const GradcheckReport& report, const std::vector<Comparison>& rules,
               const SourceMap& sources, bool quick) {
  for (const auto* list : {&report.requests, &rules}) {
    for (const Comparison& c : *list) {
      print_out("{}", line_of(c));
      print_out("{}", trouble(c, list == &rules, sources));
    }
  }
  std::vector<std::string> problems = problems_of(report);
  for (const std::string& p : problems) print_out("error: {}\n", p);
  if (!report.requests.empty() && problems.empty()) {
    std::string also =
        report.not_run.empty() ? " and on the reference evaluator" : "; " + report.not_run;
    print_out("forward and reverse mode agree{}\n",
              quick ? "" : ", from the printed source" + also);
  }
  if (!report.synthetic.empty()) {
    print_out("inputs with made-up values: {}\n", fmt::join(report.synthetic, ", "));
  }
}

void show_json(const GradcheckReport& report, const std::vector<Comparison>& rules,
               const SourceMap& sources, bool ok) {
  nlohmann::json out{{"ok", ok},
                     {"requests", nlohmann::json::array()},
                     {"rules", nlohmann::json::array()},
                     {"printed", report.printed.empty()},
                     {"native", report.native.empty()},
                     {"directions", report.directions.empty()},
                     {"synthetic", report.synthetic}};
  for (const Comparison& c : report.requests) out["requests"].push_back(json_of(c, sources));
  for (const Comparison& c : rules) out["rules"].push_back(json_of(c, sources));
  if (!report.not_run.empty()) out["not_run"] = report.not_run;
  std::vector<std::string> problems = problems_of(report);
  if (!problems.empty()) out["problems"] = problems;
  print_out("{}\n", out.dump());
}

}  // namespace

int gradcheck_verb(const GradcheckCommand& command) {
  if (command.of.empty() != command.wrt.empty()) {
    return usage_error("--of and --wrt must be given together: --of loss --wrt W,b");
  }
  if (!command.claimed.empty() && command.claimed.size() != command.wrt.size()) {
    return usage_error(
        "--value needs a derivative to compare each value with: --of loss --wrt W,b --value dW,db");
  }
  ExtraRequest named{command.of, command.wrt};
  LoadOptions what{.in = command.in, .keep_asked = true};
  if (command.claimed.empty()) what.extra = named;
  Program p = load(command.common, what);
  if (p.status != kFine) return p.status;
  core::Module& m = p.compiled.module;
  if (!command.claimed.empty()) {
    std::vector<std::string> names = command.claimed;
    names.push_back(command.of);
    names.insert(names.end(), command.wrt.begin(), command.wrt.end());
    for (const std::string& name : names) {
      std::string problem;
      core::FamilyId id = find_value(p.compiled.asked, name, problem);
      if (!id) return usage_error(problem);
      DType type = p.compiled.asked[id].dtype;
      if (!is_float(type)) {
        return usage_error(
            fmt::format("`{}` is {}: only floats have derivatives", name, name_of(type)));
      }
    }
  }
  core::Inputs inputs;
  if (auto status = read_inputs(command.in, command.set, m, inputs, command.common)) return *status;

  if (!command.of.empty() && command.claimed.empty()) {  // each part of a record
    std::vector<std::string> of = float_parts(p.compiled.asked, {command.of});
    if (of.size() != 1) {
      return usage_error(
          fmt::format("`{0}` is a record: name one of its parts, as in --of {0}.loss", command.of));
    }
    named = {of[0], float_parts(p.compiled.asked, command.wrt)};
  }
  GradcheckOptions options{.named = named, .claimed = command.claimed};
  options.seed_tolerances = command.seed_tolerances;
  options.quick = command.quick;
  std::string name = command.common.file.empty() ? "<command line>" : command.common.file;
  GradcheckReport report = gradcheck(p.compiled, inputs, options, p.options, name);
  std::vector<Comparison> rules;
  if (command.of.empty()) rules = gradcheck_rules(p.compiled, p.sources, options, p.options);
  if (report.error) {
    runtime_error(*report.error, command.common, &p.sources);
    if (!report.synthetic.empty()) {
      print_error("  help: made-up values were used for {}; supply them with --in NAME=FILE\n",
                  fmt::join(report.synthetic, ", "));
    }
    return kRuntimeFailure;
  }
  if (report.requests.empty() && rules.empty()) {
    return usage_error("the program contains no derivative: name one, as in --of loss --wrt W");
  }
  for (const Comparison& c : report.requests) {
    if (!command.claimed.empty() && c.name.empty()) return usage_error(c.note);
  }
  bool ok = !fails(report.requests) && !fails(rules) && problems_of(report).empty();
  if (command.format == "json") {
    show_json(report, rules, p.sources, ok);
  } else {
    show_text(report, rules, p.sources, command.quick);
  }
  return ok ? kFine : kProgramWrong;
}

}  // namespace ein::cli
