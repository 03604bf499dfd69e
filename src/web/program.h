// Private: compiles the program of a request, and converts places in it for answers.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "autodiff/record.h"
#include "base/diag.h"
#include "base/source.h"
#include "driver/compile.h"
#include "web/web.h"

namespace ein::web {

using Json = nlohmann::json;

// The same as those of the command line.
enum Status : int { kFine = 0, kProgramWrong = 1, kUsage = 2, kRuntimeFailure = 3, kInternal = 70 };

// A request that makes no sense, and why.
struct BadRequest {
  std::string why;
};

struct Program {
  SourceMap sources;
  FileId file;
  Diagnostics diags;
  autodiff::Record record;
  Compiled compiled;
};

struct What {
  bool tests = false;
  bool reverse =
      // Derivatives in reverse mode even if forward mode is cheaper, because `explain` follows it.
      false;
  bool extra = false;  // also the derivative of `of` by `wrt`, if the request names them
};

// Compiles the program of the request. Diagnostics go into `answer`, with the status. False if the
// program is wrong.
bool compile_program(const Surroundings& around, const Json& request, const What& what,
                     Program& out, Json& answer);

std::string text_in(const Json& request, const char* name, const std::string& otherwise = "");
std::vector<std::string> names_in(const Json& request, const char* name);

// A place in the program as a page counts: UTF-16 units from the beginning. Null if it is in
// another file.
Json place_json(const Program& p, Span span);
Json diagnostic_json(const Program& p, const Diagnostic& d);
// Adds the error that stopped a run, as text for people and as an entry of `diagnostics`.
void add_runtime_error(const Program& p, const RuntimeError& error, Json& answer);
// The values that the user named, for lists and tables: name, kind, type, coordinates, place.
Json values_json(const Program& p, const core::Module& m);

// ---- one function for each verb; `answer` already has a status
// ------------------------------------------------

void run_program(const Surroundings& around, const Json& request, Json& answer);    // run.cc
void check_program(const Surroundings& around, const Json& request, Json& answer);  // request.cc
void format_program(const Json& request, Json& answer);
void grad_program(const Surroundings& around, const Json& request, Json& answer);  // derive.cc
void explain_program(const Surroundings& around, const Json& request, Json& answer);
void audit_program(const Surroundings& around, const Json& request, Json& answer);  // report.cc
void facts_program(const Surroundings& around, const Json& request, Json& answer);

}  // namespace ein::web
