#include <fmt/format.h>

#include "cli/cli.h"
#include "core/print.h"

namespace ein::cli {

int grad_verb(const GradCommand& command) {
  if (command.of.empty() != command.wrt.empty()) {
    return usage_error("--of and --wrt must be given together: --of loss --wrt W,b");
  }
  autodiff::Record record;
  Program p = load(command.common, {.extra = {command.of, command.wrt},
                                    .in = command.in,
                                    .direction = command.direction,
                                    .record = &record});
  if (p.status != kFine) return p.status;
  core::PrintOptions options{.comments = autodiff::comments(record, p.compiled.module)};
  print_out("{}", core::print(p.compiled.module, options));
  return kFine;
}

}  // namespace ein::cli
