// The rules (`@fn`) of a program, each as a program that gradcheck can compare: the module in which
// the rule stands, and after it a call of the function on inputs and the derivative by each of
// them. So a rule is checked against its function whether or not anything calls it.
#pragma once

#include <string>
#include <vector>

#include "base/source.h"
#include "sema/modules.h"

namespace ein {

struct RuleProgram {
  std::string function;
  Span span;               // of the rule's name
  bool surrogate = false;  // not to be compared
  std::string file;        // the module's
  // Several texts where parameters have no types; the first that compiles is used.
  std::vector<std::string> candidates;
  struct By {
    std::string holder, parameter;  // the derivative by one parameter
  };
  std::vector<By> by;
};

// Of the program's own modules; the standard library has tests of its own.
std::vector<RuleProgram> rule_programs(const sema::Program& program, const SourceMap& sources);

}  // namespace ein
