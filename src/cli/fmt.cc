#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "cli/cli.h"
#include "syntax/format.h"
#include "syntax/parser.h"

namespace ein::cli {
namespace {

int format_one(const FmtCommand& command, const std::string& file) {
  CommonOptions options = command.common;
  options.file = file;
  Text source = read_source(options);
  if (source.status != kFine) return source.status;
  SourceMap sources;
  Diagnostics diags;
  ast::Ast tree = ast::parse(sources.add(source.name, source.text), sources, diags);
  if (diags.has_errors()) {
    show_diagnostics(diags, sources, options);
    return kProgramWrong;
  }
  std::string formatted = ast::format(tree, sources);
  bool same = formatted == source.text;
  if (command.check) {
    if (!same) print_out("{}\n", source.name);
    return same ? kFine : kProgramWrong;
  }
  if (file == "-") {
    put(formatted);
    return kFine;
  }
  return same ? int{kFine} : write_file(file, formatted);
}

}  // namespace

// Processes every file, whatever happened to earlier ones; the worst status is the result.
int fmt_verb(const FmtCommand& command) {
  int status = kFine;
  for (const std::string& file : command.files)
    status = std::max(status, format_one(command, file));
  return status;
}

}  // namespace ein::cli
