#include "core/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/cli.h"

namespace ein::cli {

int audit_verb(const AuditCommand& command) {
  LoadOptions what{.in = command.in};
  what.keep_asked = true;
  Program p = load(command.common, what);
  if (p.status != kFine) return p.status;
  core::Module& m = p.compiled.asked;
  std::vector<core::Repeated> all = core::audit(m);
  bool suspicious = std::any_of(all.begin(), all.end(),
                                [](const core::Repeated& r) { return !r.suspicion.empty(); });
  if (command.format == "json") {
    nlohmann::json out = nlohmann::json::array();
    for (const core::Repeated& r : all) {
      nlohmann::json item{{"reader", text(m[r.reader].name)},
                          {"operand", text(m[r.operand].name)},
                          {"read", r.read},
                          {"along", r.along},
                          {"suspicion", r.suspicion}};
      if (r.span.valid()) item["at"] = place_text(p.sources, r.span);
      out.push_back(std::move(item));
    }
    print_out("{}\n", out.dump());
  } else {
    if (all.empty()) print_out("there are no broadcasts: every operand has every coordinate\n");
    core::FamilyId last;
    for (const core::Repeated& r : all) {
      if (r.reader != last) {
        print_out("{}{}\n", last ? "\n" : "", text(m[r.reader].name));
        last = r.reader;
      }
      std::string along = fmt::format("{}", fmt::join(r.along, ", "));
      print_out("  {} is repeated along {}: its gradient sums {}\n", r.read, along, along);
      if (r.suspicion.empty()) continue;
      std::string place = r.span.valid() ? " at " + place_text(p.sources, r.span) : "";
      print_out("    looks unintended{}: {}\n", place, r.suspicion);
    }
  }
  return suspicious && command.deny ? kProgramWrong : kFine;
}

}  // namespace ein::cli
