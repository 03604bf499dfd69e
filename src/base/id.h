// Typed 32-bit ids and the stores they address. A Store never moves its elements (deque), so a
// reference obtained from it stays valid while others are added.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

namespace ein {

template <class Tag>
struct Id {
  static constexpr uint32_t kNone = 0xffffffffu;
  uint32_t v = kNone;

  constexpr Id() = default;
  constexpr explicit Id(uint32_t value) : v(value) {}
  constexpr bool valid() const { return v != kNone; }
  constexpr explicit operator bool() const { return valid(); }
  friend constexpr auto operator<=>(Id, Id) = default;
};

template <class IdType, class T>
class Store {
 public:
  IdType add(T value) {
    items_.push_back(std::move(value));
    return IdType(static_cast<uint32_t>(items_.size() - 1));
  }
  T& operator[](IdType id) { return items_[id.v]; }
  const T& operator[](IdType id) const { return items_[id.v]; }
  size_t size() const { return items_.size(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  std::deque<T> items_;
};

}  // namespace ein

template <class Tag>
struct std::hash<ein::Id<Tag>> {
  size_t operator()(ein::Id<Tag> id) const noexcept { return id.v * 0x9E3779B97F4A7C15ull; }
};
