#include "driver/audit.h"

#include <algorithm>

#include "cli/cli.h"
#include "driver/texts.h"

namespace ein::cli {

int audit_verb(const AuditCommand& command) {
  LoadOptions what{.in = command.in};
  what.keep_asked = true;
  Program p = load(command.common, what);
  if (p.status != kFine) return p.status;
  core::Module& m = p.compiled.asked;
  if (!command.html.empty()) {
    std::vector<Repeated> all = audit(m);
    if (int status = write_file(command.html, audit_html(all, m, p.sources, p.root))) return status;
    bool suspicious =
        std::any_of(all.begin(), all.end(), [](const Repeated& r) { return !r.suspicion.empty(); });
    return suspicious && command.deny ? kProgramWrong : kFine;
  }
  Audit report = audit_report(m, p.sources);
  put(command.format == "json" ? report.json + "\n" : report.text);
  return report.suspicious && command.deny ? kProgramWrong : kFine;
}

}  // namespace ein::cli
