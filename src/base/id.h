// Typed 32-bit ids and the stores they address. A Store never moves its elements, so a
// reference obtained from it stays valid while others are added: it is a list of chunks, and an
// element is two loads away.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

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
  static constexpr size_t kBits = 6, kChunk = size_t{1} << kBits;

  template <class S, class Element>
  struct Iterator {
    using iterator_category = std::forward_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = Element*;
    using reference = Element&;

    S* store = nullptr;
    size_t at = 0;
    reference operator*() const { return (*store)[IdType(static_cast<uint32_t>(at))]; }
    pointer operator->() const { return &**this; }
    Iterator& operator++() {
      ++at;
      return *this;
    }
    Iterator operator++(int) { return {store, at++}; }
    bool operator==(const Iterator& other) const { return at == other.at; }
  };

 public:
  Store() = default;
  Store(const Store& other) {
    for (const T& x : other) add(x);
  }
  Store(Store&& other) noexcept
      : chunks_(std::move(other.chunks_)), size_(std::exchange(other.size_, 0)) {}
  Store& operator=(Store other) noexcept {
    chunks_.swap(other.chunks_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Store() {
    for (size_t i = 0; i < size_; ++i) std::destroy_at(at(i));
    for (T* chunk : chunks_) std::allocator<T>().deallocate(chunk, kChunk);
  }

  IdType add(T value) {
    if (size_ == chunks_.size() << kBits) {
      chunks_.reserve(chunks_.size() + 1);  // so that the new chunk is not lost
      chunks_.push_back(std::allocator<T>().allocate(kChunk));
    }
    std::construct_at(at(size_), std::move(value));
    return IdType(static_cast<uint32_t>(size_++));
  }
  T& operator[](IdType id) { return *at(id.v); }
  const T& operator[](IdType id) const { return *at(id.v); }
  size_t size() const { return size_; }
  auto begin() { return Iterator<Store, T>{this, 0}; }
  auto end() { return Iterator<Store, T>{this, size_}; }
  auto begin() const { return Iterator<const Store, const T>{this, 0}; }
  auto end() const { return Iterator<const Store, const T>{this, size_}; }

 private:
  T* at(size_t i) const { return chunks_[i >> kBits] + (i & (kChunk - 1)); }

  std::vector<T*> chunks_;
  size_t size_ = 0;
};

}  // namespace ein

template <class Tag>
struct std::hash<ein::Id<Tag>> {
  size_t operator()(ein::Id<Tag> id) const noexcept { return id.v * 0x9E3779B97F4A7C15ull; }
};
