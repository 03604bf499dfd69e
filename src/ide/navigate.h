// From a name to its definition and its uses, through all files of a program; and renaming.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ide/analysis.h"

namespace ein::ide {

// A place in a file that is given by path, so that places of several analyses can be combined.
struct Place {
  std::string path;
  uint32_t begin = 0, end = 0;
  bool defines = false;
  bool field = false;  // also the name of a field, which keeps its name
  friend auto operator<=>(const Place&, const Place&) = default;
};

std::vector<Place> definition(const Analysis& a, uint32_t offset);
// The uses of one index or value in the same file.
std::vector<Place> highlights(const Analysis& a, uint32_t offset);

// What a name means, in a form that can be looked up in other programs with the same file.
struct Target {
  std::string path;
  uint32_t begin = 0;
  std::string name;
  bool shared = false;  // other files can use it
};
std::optional<Target> target_at(const Analysis& a, uint32_t offset);
// Every place where the target is spelled by its own name, in all files of the program.
std::vector<Place> references(const Analysis& a, const Target& target);

// Why this name cannot be changed; empty if it can.
std::string why_not_renamed(const Analysis& a, uint32_t offset);
std::string why_not_a_name(const std::string& name);
// Empty if a renaming changed nothing but the name: the same names in the same order have the same
// definitions, and there is no new mistake. Otherwise what is wrong with the text after it.
std::string what_changes(const Analysis& before, const Analysis& after);

}  // namespace ein::ide
