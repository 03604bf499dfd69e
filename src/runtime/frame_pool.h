// Frames for the calls of one program. Each call takes an idle one: so calls from several threads
// do not share memory, and consecutive calls do not allocate it again.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/fork_mutex.h"
#include "runtime/execute.h"

namespace ein {

class FramePool {
 public:
  std::unique_ptr<Frame> take() {
    std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<Frame>();
    std::unique_ptr<Frame> out = std::move(idle_.back());
    idle_.pop_back();
    return out;
  }
  void put(std::unique_ptr<Frame> frame) {
    std::lock_guard lock(mutex_);
    idle_.push_back(std::move(frame));
  }

 private:
  ForkMutex mutex_;
  std::vector<std::unique_ptr<Frame>> idle_;
};

// Borrows a frame for its own lifetime.
class Borrowed {
 public:
  explicit Borrowed(FramePool& pool) : pool_(pool), frame_(pool.take()) {}
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  ~Borrowed() {
    try {
      pool_.put(std::move(frame_));
    } catch (const std::bad_alloc&) {}  // then the frame is freed
  }
  Frame& operator*() const { return *frame_; }

 private:
  FramePool& pool_;
  std::unique_ptr<Frame> frame_;
};

}  // namespace ein
