// What is asked about an entry while it is written.
#include <fmt/format.h>

#include <algorithm>

#include "ide/features.h"
#include "session/session.h"

namespace ein::session {
namespace {

constexpr size_t kLongestDetail = 100;

// The entry over the definitions of the session. What they are is shared with it, what is read from disk is not kept.
std::shared_ptr<const ide::Analysis> analysed(const Session& s, const std::string& text) {
  State state = s.state;
  ide::Documents documents = documents_of(state, s.options, false);
  return ide::analyse("<entry>", text, ide::Depth::Quick, documents);
}

// A command, and where its argument begins; 0: it is no command.
uint32_t argument_of(const std::string& text, std::string& name) {
  size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos || text[begin] != ':') return 0;
  size_t end = std::min(text.find_first_of(" \t", begin), text.size());
  name = text.substr(begin + 1, end - begin - 1);
  return static_cast<uint32_t>(end);
}

}  // namespace

std::vector<Suggestion> complete(const Session& s, const std::string& text, uint32_t offset) {
  std::vector<Suggestion> out;
  std::string command;
  uint32_t argument = argument_of(text, command);
  if (argument > 0 && offset <= argument) {
    auto begin = static_cast<uint32_t>(text.find(':'));
    for (const std::string& name : command_names()) {
      if (name.starts_with(command)) out.push_back({":" + name, "command", begin, offset});
    }
    if (out.size() == 1) out[0].text += ' ';
    return out;
  }
  // The argument alone is looked at, in its place.
  std::string entry = text;
  if (argument > 0) std::fill(entry.begin(), entry.begin() + argument, ' ');
  if (command == "load" || command == "save") return out;  // files
  auto a = analysed(s, entry);
  if (!a) return out;
  std::vector<ide::Completion> found = ide::complete(*a, offset);
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& x, const auto& y) { return x.rank < y.rank; });
  for (ide::Completion& c : found) {
    std::string prefix = entry.substr(c.replaced.begin, offset - c.replaced.begin);
    // A name that needs a `use` would need a second entry.
    if (!c.label.starts_with(prefix) || !c.edits.empty()) continue;
    if (c.detail.size() > kLongestDetail) c.detail.resize(kLongestDetail);
    out.push_back({c.label, c.detail, c.replaced.begin, offset});
  }
  return out;
}

std::string inspect(const Session& s, const std::string& text, uint32_t offset) {
  std::string command, entry = text;
  uint32_t argument = argument_of(text, command);
  if (argument > 0) std::fill(entry.begin(), entry.begin() + argument, ' ');
  auto a = analysed(s, entry);
  auto found = a ? ide::hover(*a, offset) : std::nullopt;
  if (found) return found->markdown;
  // The name of a function by itself is not one of the names of the entry.
  size_t begin = offset;
  auto in_name = [&](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  while (begin > 0 && in_name(entry[begin - 1])) --begin;
  size_t end = offset;
  while (end < entry.size() && in_name(entry[end])) ++end;
  if (begin == end) return "";
  auto called = analysed(s, entry.substr(begin, end - begin) + "()");
  found = called ? ide::hover(*called, 0) : std::nullopt;
  return found ? found->markdown : "";
}

}  // namespace ein::session
