// The words of the command line before options are parsed: finds the verb, repeats an option for
// further pairs, and reports words that no verb takes.
#include <algorithm>
#include <cctype>
#include <filesystem>

#include "cli/cli.h"

namespace ein::cli {
namespace {

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Whether a word is a pair such as `x=a.npy` or `net.w=w.npy`: a name before the `=`.
bool is_pair(const std::string& word) {
  size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0) return false;
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || (c & 0x80) != 0;
  });
}

// Reads `--in x=a y=b` as `--in x=a --in y=b`, since no program is called `y=b`.
void repeat_pairs(std::vector<std::string>& args) {
  for (size_t i = 0; i + 1 < args.size(); ++i) {
    const std::string option = args[i].substr(0, args[i].find('='));
    if (option != "--in" && option != "--set" && option != "--out") continue;
    size_t value = option.size() == args[i].size() ? i + 1 : i;
    if (value + 1 >= args.size() || !is_pair(args[value + 1])) continue;
    args.insert(args.begin() + static_cast<std::ptrdiff_t>(value) + 1, option);
    i = value;
  }
}

int no_such_verb(const std::string& word, const std::vector<std::string>& verbs) {
  std::string near = did_you_mean(word, verbs);
  std::error_code error;
  std::string hint = std::filesystem::exists(word + ".ein", error)
                         ? fmt::format("did you mean the file `{}.ein`?", word)
                     : near.empty() ? "`ein help` lists the commands"
                                    : fmt::format("did you mean `ein {}`?", near);
  return usage_error(fmt::format("`{}` is neither a command nor a file; {}", word, hint));
}

}  // namespace

std::optional<int> read_verb(std::vector<std::string>& args,
                             const std::vector<std::string>& verbs) {
  if (args.empty()) return std::nullopt;
  if (args[0] == "help") {
    if (args.size() > 1 && !contains(verbs, args[1])) return no_such_verb(args[1], verbs);
    args = args.size() > 1 ? std::vector<std::string>{args[1], "--help"}
                           : std::vector<std::string>{"--help"};
    return std::nullopt;
  }
  const std::string first = args[0];
  if (first != "--help" && first != "-h" && first != "--version" && !contains(verbs, first)) {
    std::error_code error;
    bool file = first[0] == '-' || first.find_first_of("./") != std::string::npos ||
                std::filesystem::exists(first, error);
    if (!file) return no_such_verb(first, verbs);
    args.insert(args.begin(), "run");
  }
  repeat_pairs(args);
  return std::nullopt;
}

int unexpected_words(const std::string& verb, const std::vector<std::string>& words,
                     const std::vector<std::string>& options) {
  for (const std::string& word : words) {
    std::string name = word.substr(0, word.find('='));
    if (name.size() < 2 || name[0] != '-') continue;
    std::string near = did_you_mean(name, options);
    std::string hint = near.empty() ? fmt::format("`ein {} --help` lists the options", verb)
                                    : fmt::format("did you mean `{}`?", near);
    return usage_error(fmt::format("`ein {}` has no option `{}`; {}", verb, name, hint));
  }
  return usage_error(
      fmt::format("`{}`: `ein {}` takes no more arguments; `ein {} --help` shows what it takes",
                  words.empty() ? "" : words[0], verb, verb));
}

}  // namespace ein::cli
