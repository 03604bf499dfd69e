// `ein build`: a program as an object file that needs no compiler any more, and the C header that
// says how to call it. Extents stay arguments: one build serves every shape.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/source.h"
#include "core/core.h"
#include "runtime/image.h"
#include "runtime/processor.h"
#include "runtime/tensor.h"

namespace ein {

struct BuildOptions {
  std::string name;               // of the functions: `name_run`; a C identifier
  std::vector<std::string> show;  // the values to compute; none: every value of the program
  bool executable = false;        // a `main` that performs the program's effects, not functions
  int opt_level = 2;
  Processor processor = Processor::Native;  // may be one that does not run here
};

struct Built {
  std::string object;  // ELF; needs libeinlang_rt.a
  std::string header;  // of the functions
  std::vector<std::string> warnings;
};

// What the program defines under names of its own.
std::vector<core::FamilyId> defined_values(const core::Module& m);

std::variant<Built, RuntimeError> build(core::Module& m, const SourceMap& sources,
                                        const BuildOptions& options);

// The header alone (build_header.cc). `source` is the program's name, for the reader.
std::string header_text(const Image& image, const std::string& name, const std::string& source);
// The nearest C identifier that is not a keyword of C or C++.
std::string c_identifier(const std::string& name);

}  // namespace ein
