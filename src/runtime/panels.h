// Private to contractions: memory that a thread keeps from call to call, and memory that is shared
// by all threads that compute one product.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/block.h"
#include "runtime/team.h"

namespace ein {

template <class T>
class Panels {
 public:
  T* reserve(int64_t count) {
    size_t bytes = static_cast<size_t>(count) * sizeof(T);
    if (have_ < bytes) {
      block_ = Block();
      have_ = 0;
      block_ = Block(bytes);
      have_ = bytes;
    }
    return reinterpret_cast<T*>(block_.at());
  }

 private:
  Block block_;
  size_t have_ = 0;
};

// In a team, a member may still be reading the panels of one round while another packs those of the
// next, so pieces 0 and 1 alternate; all members meet after packing, which keeps the round after
// that away. The sums over the spans of a long product have a piece of their own.
constexpr int kSpanSums = 2;
template <class T>
T* memory_for_all(int piece, int64_t count) {
  thread_local Panels<T> mine[kSpanSums + 1];
  if (!in_team() || inside_chunk()) return mine[piece].reserve(count);
  return static_cast<T*>(team_memory(piece, static_cast<size_t>(count) * sizeof(T)));
}
inline int panels_now() { return in_team() && !inside_chunk() ? next_turn() : 0; }

}  // namespace ein
