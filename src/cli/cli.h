// The command line. A verb is a function from its options to an exit status; main.cc holds the table.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/diag.h"
#include "base/render.h"
#include "base/source.h"
#include "driver/compile.h"

namespace ein::cli {

// Exit statuses, part of the interface.
enum Exit { kFine = 0, kProgramWrong = 1, kUsage = 2, kRuntimeFailure = 3, kInternal = 70 };

// What every verb that reads a program takes.
struct CommonOptions {
  std::string file;  // a path, `-` for standard input
  std::optional<std::string> code;  // -c
  std::string error_format = "human";
  std::string color = "auto";
  std::string dump_after;
  bool time_passes = false;
};

struct RunCommand {
  CommonOptions common;
  std::vector<std::string> in, set, out;  // NAME=FILE, NAME=VALUE, NAME=FILE
  std::vector<std::string> show;
  std::string format = "text";
  std::string backend = "native";
  int opt_level = 2;
};

struct CheckCommand {
  CommonOptions common;
};

struct GradCommand {
  CommonOptions common;
  std::string of;
  std::vector<std::string> wrt;
};

int run_verb(const RunCommand& command);
int check_verb(const CheckCommand& command);
int grad_verb(const GradCommand& command);

// A program read and compiled, its diagnostics already on standard error.
struct Program {
  SourceMap sources;
  Diagnostics diags;
  Compiled compiled;
  int status = kFine;  // kUsage: the file cannot be read; kProgramWrong: it has errors
};
Program load(const CommonOptions& options, const ExtraRequest& extra = {});

int usage_error(const std::string& message);
int runtime_error(const std::string& message);

}  // namespace ein::cli
