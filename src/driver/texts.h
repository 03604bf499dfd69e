// Reports about a compiled program that both the command line and the C interface give, as text or JSON.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "autodiff/record.h"
#include "core/core.h"
#include "driver/explain.h"

namespace ein {

// The values of `m` that a derivative was asked for in the definition of. `asked` is the program
// before autodiff.
std::vector<core::FamilyId> derivatives(const core::Module& asked, const core::Module& m);

// A program in the one style of `ein fmt`.
std::string laid_out(const std::string& printed);
// `m` as source, laid out as `ein fmt` does: what `roots` need, with comments from `record`;
// without roots, the whole program.
std::string derived_source(core::Module& m, const autodiff::Record& record,
                           const std::vector<core::FamilyId>& roots);

// The derivative of each of `of` by each of `wrt`, names of families; without these, every
// derivative that the program asks for.
std::vector<Explanation> explanations(const autodiff::Record& record, const core::Module& asked,
                                      const std::vector<std::string>& of,
                                      const std::vector<std::string>& wrt);

// Where operands are repeated. `m` is the program before autodiff.
struct Audit {
  std::string text, json;  // the JSON without a newline
  bool suspicious = false;
};
Audit audit_report(core::Module& m, const SourceMap& sources);

}  // namespace ein
