// Answers questions about an entry that is being written: completion and inspection.
#include <fmt/format.h>

#include <algorithm>

#include "ide/features.h"
#include "session/session.h"

namespace ein::session {
namespace {

constexpr size_t kLongestDetail = 100;

// Compiles the entry on top of the session's definitions. It shares them with the session, but
// forgets what it reads from disk.
std::shared_ptr<const ide::Analysis> analysed(const Session& s, const std::string& text) {
  State state = s.state;
  ide::Documents documents = documents_of(state, s.options, false);
  return ide::analyse("<entry>", text, ide::Depth::Quick, documents);
}

// Where the argument of a command begins; 0 if the text is not a command.
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
  // Only the argument is analysed; it stays at its position.
  std::string entry = text;
  if (argument > 0) std::fill(entry.begin(), entry.begin() + argument, ' ');
  if (command == "load" || command == "save") return out;  // their argument is a file
  auto a = analysed(s, entry);
  if (!a) return out;
  std::vector<ide::Completion> found = ide::complete(*a, offset);
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& x, const auto& y) { return x.rank < y.rank; });
  for (ide::Completion& c : found) {
    std::string prefix = entry.substr(c.replaced.begin, offset - c.replaced.begin);
    // Skips a name that would need a `use`: that would be a second entry.
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
  // The name of a function on its own is not recorded among the names of the entry.
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
