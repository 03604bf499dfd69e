#include "cli/cli.h"
#include "driver/texts.h"

namespace ein::cli {

int grad_verb(const GradCommand& command) {
  if (command.of.empty() != command.wrt.empty()) {
    return usage_error("--of and --wrt must be given together: --of loss --wrt W,b");
  }
  autodiff::Record record;
  Program p = load(command.common, {.extra = {command.of, command.wrt},
                                    .in = command.in,
                                    .direction = command.direction,
                                    .keep_asked = !command.all,
                                    .record = &record});
  if (p.status != kFine) return p.status;
  core::Module& m = p.compiled.module;
  std::vector<core::FamilyId> roots;
  if (!command.all) roots = derivatives(p.compiled.asked, m);
  put(derived_source(m, record, roots));
  return kFine;
}

}  // namespace ein::cli
