#include "runtime/transport.h"

#include <cstring>

#include "base/check.h"

namespace ein {

struct RankThreads::Side : Transport {
  RankThreads& all;
  int64_t own;
  Side(RankThreads& a, int64_t r) : all(a), own(r) {}

  int64_t rank() const override { return own; }
  int64_t ranks() const override { return all.ranks_; }
  Box& box(int64_t from, int64_t to) {
    return all.boxes_[static_cast<size_t>(from * all.ranks_ + to)];
  }
  void send(int64_t to, const void* bytes, size_t count) override {
    const auto* from = static_cast<const std::byte*>(bytes);
    std::vector<std::byte> message(from, from + count);
    {
      std::lock_guard guard(all.lock_);
      box(own, to).messages.push_back(std::move(message));
    }
    sent += count;
    all.changed_.notify_all();
  }
  bool receive(int64_t from, void* bytes, size_t count) override {
    std::unique_lock guard(all.lock_);
    Box& in = box(from, own);
    all.changed_.wait(
        guard, [&] { return !in.messages.empty() || all.ended_[static_cast<size_t>(from)]; });
    if (in.messages.empty()) return false;
    std::vector<std::byte> message = std::move(in.messages.front());
    in.messages.pop_front();
    guard.unlock();
    EIN_CHECK(message.size() == count, "ranks disagree about a message");
    if (count > 0) std::memcpy(bytes, message.data(), count);
    return true;
  }
};

RankThreads::RankThreads(int64_t ranks)
    : ranks_(ranks),
      boxes_(static_cast<size_t>(ranks * ranks)),
      ended_(static_cast<size_t>(ranks)) {}

std::unique_ptr<Transport> RankThreads::of_rank(int64_t rank) {
  return std::make_unique<Side>(*this, rank);
}

void RankThreads::end(int64_t rank) {
  {
    std::lock_guard guard(lock_);
    ended_[static_cast<size_t>(rank)] = true;
  }
  changed_.notify_all();
}

}  // namespace ein
