// Ranks in a mesh of named axes, and how they share the addresses of a coordinate.
//
// n addresses in p parts: part r has ⌊n·r/p⌋ to ⌊n·(r+1)/p⌋. Parts differ by at most one address,
// and some are empty where n < p.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ein {

using Axes = uint64_t;  // bit k: axis k of the mesh

struct Mesh {
  struct Axis {
    std::string name;
    int64_t size = 1;
  };
  std::vector<Axis> axes;

  int64_t ranks() const;
  int64_t at(uint32_t axis, int64_t rank) const;  // the place of a rank; the last axis runs fastest
  int64_t parts(Axes along) const;                // how many parts these axes make together
  int64_t part(Axes along, int64_t rank) const;   // which of these parts a rank holds
  std::string names(Axes along) const;            // "data+model"
};

// The first address of a part; for part p, that is n.
int64_t first_of(int64_t n, int64_t part, int64_t parts);

}  // namespace ein
