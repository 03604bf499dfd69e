// Core as Einlang source: explicit ranges, bounds gates on inverted accesses, fresh stable names.
// What it prints parses and checks to a module with the same hash. This is what `ein grad` shows.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/core.h"

namespace ein::core {

struct PrintOptions {
  std::vector<FamilyId> only;  // print these families alone (and no effects); empty: everything
  // Print what these need, and the effects that show one of them; empty: everything.
  std::vector<FamilyId> roots;
  std::map<Symbol, std::vector<std::string>> comments;  // lines before a family's definition
};

std::string print(Module& m, const PrintOptions& options = {});
// One expression inside `family` (for messages and dumps).
std::string print(const Module& m, FamilyId family, ExprId e);
// A function, on a line of its own.
std::string print(const Module& m, FunctionId function);
// The same with the names of the slots in scope given; equal names get a suffix. `brief`: without
// the ranges of reductions, which a reader knows and a compiler would infer.
std::string print(const Module& m, const std::vector<Symbol>& slots, ExprId e, bool brief = false);

// How a csv file is read (runtime/csv_options.h), as further arguments of `load`:
// `, columns = ["a", "b"], missing = nan`. Not the type, which `as` says. Throws Malformed.
std::string csv_arguments(const std::string& options);

}  // namespace ein::core
