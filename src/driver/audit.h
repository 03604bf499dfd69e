// The broadcast self-audit. A value without a coordinate that its reader runs over is repeated
// along it. That claims that the value does not depend on the coordinate, and its gradient sums
// over it. The audit says for every operand along which coordinates it is repeated, and whether
// that looks unintended.
#pragma once

#include <string>
#include <vector>

#include "core/core.h"

namespace ein {

struct Repeated {
  core::FamilyId reader, operand;
  std::string read;                // `bias[out]`
  std::vector<std::string> along;  // coordinates that its gradient sums over
  std::string suspicion;           // why it looks unintended; empty: it does not
  Span span;                       // of the read
};

// Audits every family that the user named, in the order of definition; `m` is taken
// before autodiff.
std::vector<Repeated> audit(core::Module& m);

// A page that stands alone: the repeated operands beside the source.
std::string audit_html(const std::vector<Repeated>& all, const core::Module& m,
                       const SourceMap& sources, FileId root);

}  // namespace ein
