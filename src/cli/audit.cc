#include "cli/cli.h"
#include "driver/texts.h"

namespace ein::cli {

int audit_verb(const AuditCommand& command) {
  LoadOptions what{.in = command.in};
  what.keep_asked = true;
  Program p = load(command.common, what);
  if (p.status != kFine) return p.status;
  core::Module& m = p.compiled.asked;
  Audit report = audit_report(m, p.sources);
  put(command.format == "json" ? report.json + "\n" : report.text);
  return report.suspicious && command.deny ? kProgramWrong : kFine;
}

}  // namespace ein::cli
