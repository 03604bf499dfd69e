#include "driver/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "cli/cli.h"
#include "driver/texts.h"

namespace ein::cli {
namespace {

struct Page {
  const char* code;
  const char* text;
};

constexpr Page kPages[] = {
#include "error_pages.inc"  // docs/errors/*.md
};

// Whether the text has the form of a code, `E0301`. Anything else is a program.
bool is_code(const std::string& text) {
  return text.size() > 1 && text.find_first_of("./") == std::string::npos &&
         std::string_view("eEwW").find(text[0]) != std::string_view::npos &&
         std::isdigit(static_cast<unsigned char>(text[1]));
}

int explain_code(const std::string& given) {
  std::string code = given;
  std::transform(code.begin(), code.end(), code.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  for (const Page& page : kPages) {
    if (code != page.code) continue;
    print_out("{}", page.text);
    return kFine;
  }
  std::vector<std::string> known;
  for (const CodeInfo& c : all_codes()) {
    known.push_back(c.name);
    if (code != c.name) continue;
    print_out("{}: {}\n", c.name, c.title);
    return kFine;
  }
  std::string near = did_you_mean(code, known);
  return usage_error(fmt::format(
      "there is no error code `{}`; {}", given,
      near.empty() ? "`ein explain` lists all of them" : fmt::format("did you mean `{}`?", near)));
}

int explain_program(const ExplainCommand& command) {
  if (command.of.empty() != command.wrt.empty()) {
    return usage_error("--of and --wrt must be given together: --of loss --wrt W,b");
  }
  autodiff::Record record;
  LoadOptions what{.extra = {command.of, command.wrt}, .in = command.in, .direction = "reverse"};
  what.keep_asked = true;
  what.record = &record;
  Program p = load(command.common, what);
  if (p.status != kFine) return p.status;
  const core::Module& asked = p.compiled.asked;
  std::vector<std::string> of =
      command.wrt.empty() ? std::vector<std::string>() : float_parts(asked, {command.of});
  std::vector<Explanation> all = explanations(record, asked, of, float_parts(asked, command.wrt));
  if (all.empty()) {
    return usage_error("the program contains no derivative: name one, as in --of loss --wrt W");
  }
  if (!command.html.empty())
    return write_file(command.html, explanation_html(all, p.sources, p.root));
  for (size_t k = 0; k < all.size(); ++k) {
    bool json = command.format == "json";
    if (k > 0 && !json) print_out("\n");
    print_out("{}{}", json ? explanation_json(all[k]) : explanation_text(all[k]), json ? "\n" : "");
  }
  return kFine;
}

}  // namespace

int explain_verb(const ExplainCommand& command) {
  const std::string& what = command.common.file;
  if (command.common.code) return explain_program(command);
  if (what.empty() && command.of.empty()) {
    for (const CodeInfo& c : all_codes()) print_out("{}  {}\n", c.name, c.title);
    return kFine;
  }
  if (is_code(what) && command.of.empty()) return explain_code(what);
  if (what != "-" && !what.empty() && !read_file(what)) {
    return usage_error(
        fmt::format("`{}` is neither a readable program nor an error code such as E0301; "
                    "`ein explain` lists all of them",
                    what));
  }
  return explain_program(command);
}

}  // namespace ein::cli
