#include "runtime/members.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

namespace ein {
namespace {

std::vector<std::string> components(const std::string& name) {
  std::vector<std::string> out(1);
  for (char c : name) {
    if (c == '.') {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (&part == &parts[0] ? "" : ".") + part;
  return out;
}

// A number as such files write it: no sign, no leading zeros.
std::optional<int64_t> number(const std::string& text) {
  constexpr size_t kDigits = 9;
  bool digits = std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || text.empty() || text.size() > kDigits) return std::nullopt;
  if (text.size() > 1 && text[0] == '0') return std::nullopt;
  return std::stoll(text);
}

std::optional<std::vector<int64_t>> numbers_in(const std::vector<std::string>& pattern,
                                               const std::string& name) {
  std::vector<std::string> parts = components(name);
  if (parts.size() != pattern.size()) return std::nullopt;
  std::vector<int64_t> out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (pattern[i] != kNumber) {
      if (parts[i] != pattern[i]) return std::nullopt;
      continue;
    }
    auto n = number(parts[i]);
    if (!n) return std::nullopt;
    out.push_back(*n);
  }
  return out;
}

}  // namespace

size_t count_numbers(const std::string& name) {
  std::vector<std::string> parts = components(name);
  return static_cast<size_t>(std::count(parts.begin(), parts.end(), kNumber));
}

std::string with_numbers(const std::string& name, const std::vector<int64_t>& numbers) {
  std::vector<std::string> parts = components(name);
  size_t next = 0;
  for (std::string& part : parts) {
    if (part == kNumber) part = std::to_string(numbers[next++]);
  }
  return joined(parts);
}

std::string listed(std::vector<std::string> names) {
  size_t more = names.size() - std::min(names.size(), kListed);
  names.resize(names.size() - more);
  return fmt::format("`{}`{}", fmt::join(names, "`, `"),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

bool fits_name(const std::string& name, const std::string& pattern) {
  return numbers_in(components(pattern), name).has_value();
}

std::variant<ChosenMembers, std::string> choose_members(const std::vector<std::string>& names,
                                                        const std::string& wanted) {
  auto place = [&](const std::string& name) -> ChosenMembers {
    auto it = std::find(names.begin(), names.end(), name);
    if (it == names.end()) return {};
    return {{static_cast<size_t>(it - names.begin())}, {}};
  };
  if (ChosenMembers itself = place(wanted); !itself.at.empty()) return itself;
  std::vector<std::string> pattern = components(wanted);
  std::map<std::vector<int64_t>, size_t> found;
  std::vector<int64_t> counts(count_numbers(wanted));
  if (counts.empty()) return ChosenMembers{};
  for (size_t i = 0; i < names.size(); ++i) {
    auto numbers = numbers_in(pattern, names[i]);
    if (!numbers) continue;
    for (size_t k = 0; k < counts.size(); ++k) counts[k] = std::max(counts[k], (*numbers)[k] + 1);
    found.emplace(std::move(*numbers), i);
  }
  if (found.empty()) {
    std::erase(pattern, kNumber);
    return place(joined(pattern));
  }
  ChosenMembers out{{}, counts};
  std::vector<int64_t> at(counts.size());
  for (bool more = true; more;) {
    auto it = found.find(at);
    if (it == found.end()) {  // at the latest after all that were found
      return fmt::format("it has `{}`, but no `{}`", with_numbers(wanted, found.rbegin()->first),
                         with_numbers(wanted, at));
    }
    out.at.push_back(it->second);
    more = false;
    for (size_t k = at.size(); k-- > 0 && !more;) {
      more = ++at[k] < counts[k];
      if (!more) at[k] = 0;
    }
  }
  return out;
}

}  // namespace ein
