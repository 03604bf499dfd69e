// libFuzzer: any bytes are lexed, parsed and rendered without a fault, and what parses without an
// error is formatted to a text that parses and formats to itself.
#include <cstdio>
#include <cstdlib>

#include "base/render.h"
#include "syntax/format.h"
#include "syntax/parser.h"

namespace {

struct Parsed {
  std::string formatted;
  bool errors;
};

Parsed parse_and_format(const std::string& text) {
  ein::SourceMap sources;
  ein::Diagnostics diags;
  ein::ast::Ast tree = ein::ast::parse(sources.add("fuzz.ein", text), sources, diags);
  ein::render(diags, sources, {});
  return {ein::ast::format(tree, sources), diags.has_errors()};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Parsed once = parse_and_format({reinterpret_cast<const char*>(data), size});
  if (once.errors) return 0;
  Parsed twice = parse_and_format(once.formatted);
  if (twice.errors || twice.formatted != once.formatted) {
    std::fprintf(stderr, "%s\n---- formatted once\n%s\n---- twice\n%s\n",
                 twice.errors ? "the formatted text has errors" : "formatting is not idempotent",
                 once.formatted.c_str(), twice.formatted.c_str());
    std::abort();
  }
  return 0;
}
