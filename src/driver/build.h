// `ein build`: compiles a program to an object file that needs no compiler, and writes the C header
// for calling it. Extents remain arguments, so one build serves every shape.
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
  std::string name;               // prefix of the functions: `name_run`; a C identifier
  std::vector<std::string> show;  // the values to compute; empty: every value of the program
  // Make a `main` that performs the program's effects instead of functions.
  bool executable = false;
  int opt_level = 2;
  Processor processor = Processor::Native;  // may be a processor that cannot run here
};

struct Built {
  std::string object;  // an ELF object file; needs libeinlang_rt.a
  std::string header;  // declares the functions
  std::vector<std::string> warnings;
};

// The values that the program defines under names of its own.
std::vector<core::FamilyId> defined_values(const core::Module& m);

std::variant<Built, RuntimeError> build(core::Module& m, const SourceMap& sources,
                                        const BuildOptions& options);

// Just the header (build_header.cc). `source`: the program's name, for the reader.
std::string header_text(const Image& image, const std::string& name, const std::string& source);
// The nearest C identifier that is not a keyword of C or C++.
std::string c_identifier(const std::string& name);

}  // namespace ein
