#include "runtime/mesh.h"

namespace ein {

int64_t Mesh::ranks() const {
  int64_t out = 1;
  for (const Axis& a : axes) out *= a.size;
  return out;
}

int64_t Mesh::at(uint32_t axis, int64_t rank) const {
  for (size_t k = axes.size(); k-- > axis + 1;) rank /= axes[k].size;
  return rank % axes[axis].size;
}

int64_t Mesh::parts(Axes along) const {
  int64_t out = 1;
  for (uint32_t k = 0; k < axes.size(); ++k) {
    if (along >> k & 1) out *= axes[k].size;
  }
  return out;
}

int64_t Mesh::part(Axes along, int64_t rank) const {
  int64_t out = 0;
  for (uint32_t k = 0; k < axes.size(); ++k) {
    if (along >> k & 1) out = out * axes[k].size + at(k, rank);
  }
  return out;
}

std::string Mesh::names(Axes along) const {
  std::string out;
  for (uint32_t k = 0; k < axes.size(); ++k) {
    if (along >> k & 1) out += (out.empty() ? "" : "+") + axes[k].name;
  }
  return out;
}

int64_t first_of(int64_t n, int64_t part, int64_t parts) {
  return static_cast<int64_t>(static_cast<__int128>(n) * part / parts);
}

}  // namespace ein
