// Memory in large pieces. Freed blocks are kept for the next request that fits, because the first
// write to fresh memory costs several times as much as a later one. Large blocks ask for huge pages
// and are first touched by all threads at once.
#pragma once

#include <cstddef>
#include <utility>

namespace ein {

class Block {
 public:
  Block() = default;
  explicit Block(size_t bytes);  // aligned to 64, not cleared; throws std::bad_alloc
  Block(Block&& other) noexcept
      : at_(std::exchange(other.at_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Block& operator=(Block&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Block();

  std::byte* at() const { return at_; }

 private:
  std::byte* at_ = nullptr;
  size_t bytes_ = 0;  // the size that the system was asked for
};

}  // namespace ein
