#include <fmt/format.h>

#include "driver/gradcheck.h"
#include "driver/rule_programs.h"

namespace ein {
namespace {

using Verdict = Comparison::Verdict;

std::string first_error(const Diagnostics& diags) {
  for (const Diagnostic& d : diags.all()) {
    if (info(d.code).severity == Severity::Error) return d.message;
  }
  return "";
}

void compare(const RuleProgram& rule, const GradcheckOptions& options,
             const CompileOptions& compile_options, std::vector<Comparison>& out) {
  auto not_compared = [&](std::string why) {
    Comparison c;
    c.verdict = Verdict::NotCompared;
    c.name = c.request = fmt::format("rule of `{}`", rule.function);
    c.span = rule.span;
    c.note = std::move(why);
    out.push_back(std::move(c));
  };
  if (rule.surrogate) return not_compared("not compared: a surrogate rule");
  std::string why;
  for (const std::string& text : rule.candidates) {
    SourceMap sources;
    Diagnostics diags;
    CompileOptions with = compile_options;
    with.extra = {};
    with.keep_asked = true;
    Compiled compiled = compile(sources.add(rule.file, text), sources, with, diags);
    if (!compiled.ok) {
      if (why.empty()) why = first_error(diags);
      continue;
    }
    // Its own requests alone: those of the program are compared where they are asked for.
    GradcheckOptions own = options;
    own.named = {};
    own.claimed.clear();
    own.agree = false;
    for (const RuleProgram::By& by : rule.by) own.holders.push_back(by.holder);
    GradcheckReport report = gradcheck(compiled, {}, own, with, rule.file);
    if (report.error) return not_compared("not compared: " + report.error->message);
    for (Comparison& c : report.requests) {
      std::string parameter;
      for (const RuleProgram::By& by : rule.by) {
        if (by.holder == c.name) parameter = by.parameter;
      }
      std::string derivative = fmt::format("@{} / @{}", rule.function, parameter);
      if (size_t at = c.worst_at.find(c.name); at == 0) {
        c.worst_at = derivative + c.worst_at.substr(c.name.size());
      }
      if (size_t at = c.kink_at.find(c.name); at == 0) {
        c.kink_at = derivative + c.kink_at.substr(c.name.size());
      }
      c.name = fmt::format("rule of `{}`", rule.function);
      c.request = derivative;
      c.span = rule.span;
      out.push_back(std::move(c));
    }
    return;
  }
  not_compared("not compared: it could not be called with made-up inputs (" + why + ")");
}

}  // namespace

std::vector<Comparison> gradcheck_rules(const Compiled& compiled, const SourceMap& sources,
                                        const GradcheckOptions& options,
                                        const CompileOptions& compile_options) {
  std::vector<Comparison> out;
  for (const RuleProgram& rule : rule_programs(compiled.program, sources)) {
    compare(rule, options, compile_options, out);
  }
  return out;
}

}  // namespace ein
