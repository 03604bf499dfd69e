// From a name to where it is defined and used, through all files that a program has, and new names.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ide/analysis.h"

namespace ein::ide {

// A place in a file, by its path, so that the places of several analyses can be put together.
struct Place {
  std::string path;
  uint32_t begin = 0, end = 0;
  bool defines = false;
  bool field = false;  // the name is that of a field too, and the field keeps it
  friend auto operator<=>(const Place&, const Place&) = default;
};

std::vector<Place> definition(const Analysis& a, uint32_t offset);
// In the same file, those of the one index or value.
std::vector<Place> highlights(const Analysis& a, uint32_t offset);

// What a name means, as it can be asked of another program that has the same file.
struct Target {
  std::string path;
  uint32_t begin = 0;
  std::string name;
  bool shared = false;  // other files can use it
};
std::optional<Target> target_at(const Analysis& a, uint32_t offset);
// Every place where the target is spelled by its own name, in all files of the program.
std::vector<Place> references(const Analysis& a, const Target& target);

// Why this name cannot have another one; empty: it can.
std::string why_not_renamed(const Analysis& a, uint32_t offset);
std::string why_not_a_name(const std::string& name);
// Empty when, after the change, every name means what it meant: the same names in the same order
// with the same definitions, and no new mistake. Otherwise what is wrong with the text after it.
std::string what_changes(const Analysis& before, const Analysis& after);

}  // namespace ein::ide
