#include "runtime/layout.h"

#include <algorithm>
#include <new>
#include <numeric>

namespace ein {

Layout lay_out(const std::vector<size_t>& bytes, const std::vector<Lifetime>& lives) {
  Layout out{std::vector<size_t>(bytes.size(), 0), 0};
  std::vector<size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return bytes[a] > bytes[b]; });
  struct Placed {
    size_t begin, end;
    Lifetime lives;
  };
  std::vector<Placed> placed;  // by `begin`
  for (size_t i : order) {
    size_t size = (bytes[i] + 63) / 64 * 64;
    if (size < bytes[i] || size > SIZE_MAX / 4) throw std::bad_alloc();
    if (size == 0 || lives[i].first > lives[i].last) continue;
    size_t at = 0;
    for (const Placed& other : placed) {
      if (!other.lives.meets(lives[i])) continue;
      if (other.begin >= at + size) break;
      at = std::max(at, other.end);
    }
    if (at > SIZE_MAX / 4) throw std::bad_alloc();
    out.at[i] = at;
    out.bytes = std::max(out.bytes, at + size);
    Placed mine{at, at + size, lives[i]};
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), mine,
                         [](const Placed& a, const Placed& b) { return a.begin < b.begin; }),
        mine);
  }
  return out;
}

}  // namespace ein
