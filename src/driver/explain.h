// Explains the derivative of one value by another: each read on the path as the five steps by which
// one would derive it by hand. Everything comes from what differentiation recorded
// (autodiff/record.h).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "autodiff/record.h"
#include "core/core.h"

namespace ein {

struct Explanation {
  std::string of, wrt;
  std::vector<autodiff::Flow> steps;  // from the numerator back to the denominator
  struct Value {
    std::string name;
    std::vector<std::string> coords;
  };
  std::vector<Value> values;  // on the path, the denominator first
  // What the steps name: values of the program, and what it does not define (Record::parts).
  struct Place {
    Span span;
    std::string path;  // how the program spells a part of a record: `net.w`
  };
  std::map<std::string, Place> defined = {};
  std::map<std::string, std::string> parts = {};
};

// The recorded flows of `of` that `wrt` reaches. `m` is a module that has the families of the
// program (before or after autodiff). Without steps there is no path.
Explanation explain(const autodiff::Record& record, const core::Module& m, const std::string& of,
                    const std::string& wrt);

// The five steps of one read, and what was solved, as pairs: what the step is, and what it is here.
std::vector<std::pair<std::string, std::string>> steps_of(const autodiff::Flow& flow);

std::string explanation_text(const Explanation& e);
std::string explanation_json(const Explanation& e);
// A page that stands alone: beside the source, the flow drawn, the coordinates, what every name is, and the steps.
std::string explanation_html(const std::vector<Explanation>& all, const SourceMap& sources,
                             FileId root);

}  // namespace ein
