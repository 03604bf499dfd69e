#include "driver/fix.h"

#include <fmt/format.h>

#include "cli/cli.h"

namespace ein::cli {

// For standard input, the fixed program goes to standard output and the report to standard error.
int fix_verb(const FixCommand& command) {
  Text source = read_source(command.common);
  if (source.status != kFine) return source.status;
  bool piped = command.common.file == "-";
  std::string report;
  std::optional<int> wrong;
  auto access = access_of(command.common, wrong);
  if (wrong) return *wrong;
  Fixed fixed = apply_fixes(source.name, source.text, read_file, access);
  for (const AppliedFix& f : fixed.applied) {
    report += fmt::format("{}:{}:{}: {}{} ({})\n", source.name, f.at.line, f.at.col,
                          command.dry_run ? "would " : "", f.title, info(f.code).name);
  }
  if (fixed.applied.empty()) report += fmt::format("{}: nothing to fix\n", source.name);
  if (piped) {
    put_error(report);
    put(command.dry_run ? source.text : fixed.text);
  } else {
    put(report);
    if (!command.dry_run && !fixed.applied.empty()) {
      if (int status = write_file(command.common.file, fixed.text)) return status;
    }
  }
  show_diagnostics(fixed.left, fixed.sources, command.common);
  return fixed.left.has_errors() ? kProgramWrong : kFine;
}

}  // namespace ein::cli
