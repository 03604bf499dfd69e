// Core as Einlang source: explicit ranges, bounds gates on inverted accesses, fresh stable names.
// What it prints parses and checks to a module with the same hash. This is what `ein grad` shows.
#pragma once

#include <string>
#include <vector>

#include "core/core.h"

namespace ein::core {

struct PrintOptions {
  std::vector<FamilyId> only;  // print these families alone (and no effects); empty: everything
};

std::string print(Module& m, const PrintOptions& options = {});
// One expression inside `family` (for messages and dumps).
std::string print(const Module& m, FamilyId family, ExprId e);

}  // namespace ein::core
