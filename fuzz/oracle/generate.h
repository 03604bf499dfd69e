// Random programs as the oracle's trees. The same seed gives the same program on every machine.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tree.h"

namespace oracle {

// Classes named in `without` are not drawn; `attempt` draws another program for the same seed.
Program draw(uint64_t seed, int attempt, const std::set<std::string>& without);

// Every class that can be drawn.
const std::vector<std::string>& class_names();

}  // namespace oracle
