// Runs one program along every route of the compiler and compares its values with the oracle's.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "oracle/expected.h"

namespace ein::fuzz {

struct Routes {
  uint64_t seed = 0;  // decides which routes are taken, and the random plans
  bool native = true;
  bool all = false;  // every route, whatever the seed
};

// Empty, or the route, a colon and what is wrong with it. The part before the second colon is the
// kind of failure, which the shrinker keeps. `taken` gets the seconds of the processor by route.
std::string check_routes(const oracle::Program& p, const oracle::Prepared& expected,
                         const Routes& routes, std::map<std::string, double>& taken);

}  // namespace ein::fuzz
