// Private: the program of a request, compiled, and what answers say about places in it.
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

// As the verbs of the command line have them.
enum Status : int { kFine = 0, kProgramWrong = 1, kUsage = 2, kRuntimeFailure = 3, kInternal = 70 };

// A request that makes no sense: the reason, in words.
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
      false;           // derivatives from the reverse side, whatever is cheaper: `explain` walks it
  bool extra = false;  // the derivative of `of` by `wrt`, where the request names them
};

// Compiles the program of the request; mistakes go into `answer`, with the status. False: it is wrong.
bool compile_program(const Surroundings& around, const Json& request, const What& what,
                     Program& out, Json& answer);

std::string text_in(const Json& request, const char* name, const std::string& otherwise = "");
std::vector<std::string> names_in(const Json& request, const char* name);

// A place of the program as a page counts: units of UTF-16 from the beginning. Null where it lies elsewhere.
Json place_json(const Program& p, Span span);
Json diagnostic_json(const Program& p, const Diagnostic& d);
// The mistake that stopped a run, for people and as an entry of `diagnostics`.
void add_runtime_error(const Program& p, const RuntimeError& error, Json& answer);
// The values that the user named, for pickers and tables: name, kind, type, coordinates, place.
Json values_json(const Program& p, const core::Module& m);

// ---- one function for each verb; `answer` has a status already ------------------------------------------------

void run_program(const Surroundings& around, const Json& request, Json& answer);    // run.cc
void check_program(const Surroundings& around, const Json& request, Json& answer);  // request.cc
void format_program(const Json& request, Json& answer);
void grad_program(const Surroundings& around, const Json& request, Json& answer);  // derive.cc
void explain_program(const Surroundings& around, const Json& request, Json& answer);
void audit_program(const Surroundings& around, const Json& request, Json& answer);  // report.cc
void facts_program(const Surroundings& around, const Json& request, Json& answer);

}  // namespace ein::web
