#include "driver/fix.h"

#include <fmt/format.h>

#include "cli/cli.h"

namespace ein::cli {

// Standard input goes to standard output, so what was done is told on standard error then.
int fix_verb(const FixCommand& command) {
  Text source = read_source(command.common);
  if (source.status != kFine) return source.status;
  bool piped = command.common.file == "-";
  std::FILE* report = piped ? stderr : stdout;
  Fixed fixed = apply_fixes(source.name, source.text, read_file);
  for (const AppliedFix& f : fixed.applied) {
    fmt::print(report, "{}:{}:{}: {}{} ({})\n", source.name, f.at.line, f.at.col,
               command.dry_run ? "would " : "", f.title, info(f.code).name);
  }
  if (fixed.applied.empty()) fmt::print(report, "{}: nothing to fix\n", source.name);
  if (piped) {
    fmt::print("{}", command.dry_run ? source.text : fixed.text);
  } else if (!command.dry_run && !fixed.applied.empty() &&
             !write_file(command.common.file, fixed.text)) {
    return usage_error(fmt::format("cannot write `{}`", command.common.file));
  }
  show_diagnostics(fixed.left, fixed.sources, command.common);
  return fixed.left.has_errors() ? kProgramWrong : kFine;
}

}  // namespace ein::cli
