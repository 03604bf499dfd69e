#include <fmt/format.h>

#include "cli/cli.h"
#include "core/print.h"

namespace ein::cli {

int grad_verb(const GradCommand& command) {
  if (command.of.empty() != command.wrt.empty()) {
    return usage_error("--of and --wrt belong together: --of loss --wrt W,b");
  }
  Program p =
      load(command.common,
           {.extra = {command.of, command.wrt}, .in = command.in, .direction = command.direction});
  if (p.status != kFine) return p.status;
  fmt::print("{}", core::print(p.compiled.module));
  return kFine;
}

}  // namespace ein::cli
