// The pipeline: source → Ast → Core → Core without requests. One place orders the passes, and dump,
// timing and verification come from it alone. Nothing here reads files (`load` asks
// CompileOptions::files) or prints.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autodiff/differentiate.h"
#include "base/diag.h"
#include "base/source.h"
#include "core/core.h"
#include "driver/library.h"
#include "sema/file_lookup.h"
#include "sema/modules.h"

namespace ein {

struct PassTime {
  std::string pass;
  double milliseconds;
};

// A derivative asked for on the command line: `ein grad --of loss --wrt W,b`.
struct ExtraRequest {
  std::string of;
  std::vector<std::string> wrt;
};

struct CompileOptions {
  ReadFile read_file;      // for modules; without it a program stands alone
  std::string dump_after;  // a pass name; its result is left in Compiled::dump
  ExtraRequest extra;
  bool tests = false;        // compile the `test` blocks too
  bool strict = false;       // an equality of extents that is not proven is an error
  sema::FileLookup files;    // what `load` finds; empty: it is an error
  sema::InputShapes inputs;  // of those that are known already
  autodiff::Direction direction = autodiff::Direction::Auto;
};

// A `test` block, ready to run: the file's definitions and its own, its effects alone.
struct CompiledTest {
  std::string name;
  Span span;
  core::Module module;
};

struct Compiled {
  sema::Program program;
  core::Module module;  // ready to run
  std::vector<CompiledTest> tests;
  bool ok = false;  // no errors; otherwise `module` is not to be used
  std::string dump;
  std::vector<PassTime> times;
};

// The passes in order, for `--dump-after` and `--help`.
const std::vector<std::string>& pass_names();

Compiled compile(FileId file, SourceMap& sources, const CompileOptions& options,
                 Diagnostics& diags);

}  // namespace ein
