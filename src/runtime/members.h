// The names of the tensors in a file that may hold several, and which of them make up one value.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "runtime/tensor.h"

namespace ein {

// In the order of the file; none where a file holds one tensor and no name.
std::variant<std::vector<std::string>, RuntimeError> file_members(const std::string& path);

// `h.#.w` stands for the tensors `h.0.w`, `h.1.w`, …: a single value that has one coordinate for
// every `#`, in front of the coordinates of the tensors.
constexpr const char* kNumber = "#";
size_t count_numbers(const std::string& name);
std::string with_numbers(const std::string& name, const std::vector<int64_t>& numbers);

// Names for a message, the first twelve of many: "`a`, `b` and 3 more".
constexpr size_t kListed = 12;
std::string listed(std::vector<std::string> names);

// Whether `name` is `pattern` with numbers in place of every `#`.
bool fits_name(const std::string& name, const std::string& pattern);

// Which names a value is made of: positions in `names`, the last number fastest.
struct ChosenMembers {
  std::vector<size_t> at;
  std::vector<int64_t>
      counts;  // how many there are of every `#`; none for a tensor that is the value
};
// A tensor with exactly the name `wanted` comes first, then numbered ones, then one that holds all
// of them and has the same name without the numbers. `at` is empty if there is none. A text says
// why there is no value although some tensors fit: a number is missing.
std::variant<ChosenMembers, std::string> choose_members(const std::vector<std::string>& names,
                                                        const std::string& wanted);

}  // namespace ein
