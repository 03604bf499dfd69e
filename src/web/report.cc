// The verbs `audit` and `facts`: what is repeated, and what was inferred.
#include "driver/facts.h"
#include "driver/texts.h"
#include "web/program.h"

namespace ein::web {

void audit_program(const Surroundings& around, const Json& request, Json& answer) {
  Program p;
  if (!compile_program(around, request, {}, p, answer)) return;
  Audit report = audit_report(p.compiled.asked, p.sources);
  answer["stdout"] = report.text;
  answer["audit"] = Json::parse(report.json);
}

void facts_program(const Surroundings& around, const Json& request, Json& answer) {
  Program p;
  if (!compile_program(around, request, {}, p, answer)) return;
  core::Module& m = p.compiled.module;
  std::vector<FamilyReport> reports = report_families(m);
  answer["stdout"] = facts_text(m, reports);
  answer["facts"] = Json::parse(facts_json(m, reports));
}

}  // namespace ein::web
