// libFuzzer: any bytes are checked as `ein check` checks a program, its tests included; a program
// without errors passes the verifier after every pass and has an order of computation.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "autodiff/differentiate.h"
#include "base/render.h"
#include "core/groups.h"
#include "core/solve_gates.h"
#include "core/verify.h"
#include "driver/library.h"
#include "sema/elaborate.h"

namespace {

void expect(bool ok, const std::string& what) {
  if (ok) return;
  fmt::print(stderr, "{}\n", what);
  std::abort();
}

void expect_valid(const ein::core::Module& m, const char* pass) {
  std::vector<std::string> wrong = ein::core::verify(m);
  expect(wrong.empty(), fmt::format("after {}: {}", pass, fmt::join(wrong, "; ")));
}

void check_module(ein::core::Module m, ein::Diagnostics& diags) {
  if (diags.has_errors()) return;
  expect_valid(m, "sema");
  ein::core::solve_gates(m);
  expect_valid(m, "solve-gates");
  m = ein::autodiff::differentiate(std::move(m), diags);
  if (diags.has_errors()) return;
  expect_valid(m, "autodiff");
  expect(ein::autodiff::requests_left(m).empty(), "a request is left");
  expect(!ein::core::schedule(m, {}).cycle, "no order of computation");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ein::SourceMap sources;
  ein::Diagnostics diags;
  ein::FileId file = sources.add("fuzz.ein", {reinterpret_cast<const char*>(data), size});
  ein::sema::Program program =
      ein::sema::read_program(file, sources, ein::module_reader({}, ""), diags);
  const ein::ast::Ast& tree = program.ast;
  check_module(ein::sema::elaborate(program, diags), diags);
  if (!diags.has_errors()) {
    for (ein::ast::StmtId id : tree.items) {
      const auto* test = std::get_if<ein::ast::Test>(&tree[id].node);
      if (test) check_module(ein::sema::elaborate_test(program, *test, diags), diags);
    }
  }
  ein::render(diags, sources, {});
  return 0;
}
