#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "cli/cli.h"

namespace ein::cli {
namespace {

struct Page {
  const char* code;
  const char* text;
};

constexpr Page kPages[] = {
#include "error_pages.inc"  // docs/errors/*.md
};

}  // namespace

int explain_verb(const ExplainCommand& command) {
  if (command.code.empty()) {
    for (const CodeInfo& c : all_codes()) fmt::print("{}  {}\n", c.name, c.title);
    return kFine;
  }
  std::string code = command.code;
  std::transform(code.begin(), code.end(), code.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  for (const Page& page : kPages) {
    if (code != page.code) continue;
    fmt::print("{}", page.text);
    return kFine;
  }
  std::vector<std::string> known;
  for (const CodeInfo& c : all_codes()) {
    known.push_back(c.name);
    if (code != c.name) continue;
    fmt::print("{}: {}\n", c.name, c.title);
    return kFine;
  }
  std::string near = did_you_mean(code, known);
  return usage_error(fmt::format(
      "no diagnostic `{}`; {}", command.code,
      near.empty() ? "`ein explain` lists all of them" : fmt::format("did you mean `{}`?", near)));
}

}  // namespace ein::cli
