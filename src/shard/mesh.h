// What the user says about several ranks: a mesh of named axes, and which coordinates are split along
// which of them.
//
//   --mesh data=4,model=2                    eight ranks
//   --shard "batch: data, hidden: model"     coordinates of these names, wherever they occur
//           "W.k: data"                      one array's only
//           "a: data+model"                  along two axes
//           "b: none"                        not at all; the more specific rule wins
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "runtime/mesh.h"
#include "runtime/tensor.h"

namespace ein::shard {

struct Rule {
  std::string family;      // as spelled in the program; empty: every family
  std::string coordinate;  // the coordinate's name
  Axes along = 0;          // 0: never split
};

struct Spec {
  Mesh mesh;
  std::vector<Rule> rules;
};

// E0901 if the text is not a mesh.
std::variant<Mesh, RuntimeError> parse_mesh(const std::string& text);
std::variant<std::vector<Rule>, RuntimeError> parse_rules(const Mesh& mesh,
                                                          const std::string& text);

}  // namespace ein::shard
