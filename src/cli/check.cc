#include <cstdio>

#include "cli/cli.h"
#include "core/facts.h"

namespace ein::cli {

int check_verb(const CheckCommand& command) {
  // Kept until the process ends: taking it apart would be a tenth of checking it.
  static Program* const kept =
      new Program(load(command.common, {.tests = true, .strict = command.strict, .in = command.in}));
  Program& p = *kept;
  if (p.status != kFine || !command.facts) return p.status;
  core::Module& m = p.compiled.module;
  std::vector<core::FamilyReport> reports = core::report_families(m);
  std::string text =
      command.format == "json" ? core::facts_json(m, reports) : core::facts_text(m, reports);
  std::fputs(text.c_str(), stdout);
  return kFine;
}

}  // namespace ein::cli
