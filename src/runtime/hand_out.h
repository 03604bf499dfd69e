// Decides which thread runs which chunks. Each of `width` threads begins with a contiguous part,
// always the same one, so that it finds its data in its cache. A thread that is done takes half of
// what is left from the end of the fullest part.
//
// A part is a single word: the number of the loop, begin and end. A word with the number of an
// earlier loop stands for a whole, untouched part, so nothing needs to be set before a loop begins.
// In a team (team.h) a thread may still be working on the previous loop; there, an earlier word
// stands for an untouched part only if that earlier part is empty.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "runtime/wait.h"

namespace ein {

// What a thread of a region writes and other threads read.
struct alignas(128) Seat {
  std::atomic<uint64_t> part{0};
  alignas(64) Word meeting{0};  // for a team
  int rank = 0;
};

struct HandOut {
  static constexpr int kBits = 20;
  static constexpr int64_t kMost = (int64_t{1} << kBits) - 1;  // the most chunks of a loop
  // How many loops until numbers repeat.
  static constexpr uint64_t kLoops = uint64_t{1} << (64 - 2 * kBits);

  Seat* seats;
  int width;
  int64_t count;  // at most kMost
  uint64_t loop;  // below kLoops; in a team, one more than the previous loop's
  bool team;

  // Calls `run(chunk)` for the chunks of this thread, then for chunks taken from others.
  template <class Run>
  void work(int rank, Run&& run) const {
    if (team) enter(rank);
    for (;;) {
      for (int64_t i = take(rank); i >= 0; i = take(rank)) run(i);
      Part more = steal(rank);
      if (more.size() == 0) return;
      if (keep(rank, more)) continue;
      for (int64_t i = more.begin; i < more.end; ++i) run(i);
    }
  }

 private:
  struct Part {
    int64_t begin, end;
    int64_t size() const { return end - begin; }
  };
  uint64_t word(Part p) const {
    return loop << 2 * kBits | static_cast<uint64_t>(p.begin) << kBits |
           static_cast<uint64_t>(p.end);
  }
  Part part(uint64_t word, int rank) const {
    Part p{static_cast<int64_t>(word >> kBits) & kMost, static_cast<int64_t>(word) & kMost};
    if (word >> 2 * kBits == loop) return p;
    if (team && !(follows(word) && p.size() == 0)) return {0, 0};
    return {count * rank / width, count * (rank + 1) / width};
  }

  // Whether the word is of the loop before this one.
  bool follows(uint64_t word) const { return word >> 2 * kBits == ((loop - 1) & (kLoops - 1)); }

  // Marks the word as one of this loop, unless another thread has done so or has even begun the
  // next loop.
  void enter(int rank) const {
    std::atomic<uint64_t>& own = seats[rank].part;
    uint64_t now = own.load(std::memory_order_relaxed);
    if (follows(now)) {
      own.compare_exchange_strong(now, word(part(now, rank)), std::memory_order_acq_rel);
    }
  }

  int64_t take(int rank) const {
    std::atomic<uint64_t>& own = seats[rank].part;
    uint64_t now = own.load(std::memory_order_relaxed);
    for (;;) {
      Part p = part(now, rank);
      if (p.size() == 0) return -1;
      if (own.compare_exchange_weak(now, word({p.begin + 1, p.end}), std::memory_order_acq_rel)) {
        return p.begin;
      }
    }
  }

  // Puts a stolen part on this thread's seat, from where others may steal it in turn. Not if
  // another thread has already begun the next loop on that seat.
  bool keep(int rank, Part p) const {
    std::atomic<uint64_t>& own = seats[rank].part;
    uint64_t now = own.load(std::memory_order_relaxed);
    return now >> 2 * kBits == loop &&
           own.compare_exchange_strong(now, word(p), std::memory_order_acq_rel);
  }

  // Takes chunks of another thread; none if no thread has any. If every thread has only few,
  // stealing costs more than it gains; then only the caller does it, for threads that never came.
  Part steal(int rank) const {
    if ((rank != 0 || team) && count < 2 * int64_t{width}) return {0, 0};
    for (;;) {
      int from = -1;
      uint64_t seen = 0;
      int64_t most = 0;
      for (int r = 0; r < width; ++r) {
        uint64_t now = seats[r].part.load(std::memory_order_relaxed);
        if (int64_t size = part(now, r).size(); r != rank && size > most) {
          from = r;
          seen = now;
          most = size;
        }
      }
      if (from < 0) return {0, 0};
      Part p = part(seen, from);
      int64_t middle = p.end - (most + 1) / 2;
      if (seats[from].part.compare_exchange_strong(seen, word({p.begin, middle}),
                                                   std::memory_order_acq_rel)) {
        return {middle, p.end};
      }
    }
  }
};

}  // namespace ein
