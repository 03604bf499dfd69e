#include "runtime/pool.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "runtime/crew.h"
#include "runtime/native_chunks.h"
#include "runtime/team.h"
#include "runtime/workers.h"

namespace ein {

Crew::~Crew() { std::free(seats_); }

bool Crew::reserve(int width) {
  if (width <= room_) return true;
  std::free(seats_);
  room_ = 0;
  size_t each = sizeof(Seat) + sizeof(int);
  size_t bytes = (each * static_cast<size_t>(width) + 127) / 128 * 128;
  seats_ = static_cast<Seat*>(std::aligned_alloc(alignof(Seat), bytes));
  if (!seats_) return false;
  for (int r = 0; r < width; ++r) new (seats_ + r) Seat;
  workers_ = new (seats_ + width) int[static_cast<size_t>(width)]{};
  room_ = width;
  loop_ = 0;
  return true;
}

void Crew::reset() {
  for (int r = 0; r < room_; ++r) {
    seats_[r].part.store(0, std::memory_order_relaxed);
    seats_[r].meeting.store(0, std::memory_order_relaxed);
  }
  loop_ = 1;
}

Crew& crew() {
  thread_local Crew mine;
  return mine;
}

namespace {

struct SharedLoop : Job {
  HandOut parts{};
  int64_t bunch = 1, count = 0;  // chunks handed out together, and the total
  const ChunkFunction* chunk = nullptr;
};

void run_loop_member(const Job& job, int rank) {
  const auto& loop = static_cast<const SharedLoop&>(job);
  bool& inside = crew().inside;
  inside = true;
  loop.parts.work(rank, [&](int64_t number) {
    int64_t end = std::min(loop.count, (number + 1) * loop.bunch);
    for (int64_t i = number * loop.bunch; i < end; ++i) (*loop.chunk)(i, rank);
  });
  inside = false;
}

// False if there are no other threads to share with.
bool share(Crew& mine, int64_t count, const ChunkFunction& chunk, int width) {
  if (!mine.reserve(width)) return false;
  int* workers = mine.workers();
  int helpers = claim_workers(width - 1, workers + 1);
  if (helpers == 0) return false;
  SharedLoop loop;
  loop.member = run_loop_member;
  loop.workers = workers;
  loop.width = helpers + 1;
  loop.count = count;
  loop.bunch = (count - 1) / HandOut::kMost + 1;
  loop.chunk = &chunk;
  int64_t bunches = (count - 1) / loop.bunch + 1;
  loop.parts = {mine.seats(), loop.width, bunches, mine.next_loop(), false};
  offer(loop);
  run_loop_member(loop, 0);
  for (int r = 1; r < loop.width; ++r) {
    if (!withdraw(workers[r])) await_end(workers[r]);
  }
  release_workers(workers + 1, helpers);
  return true;
}

}  // namespace

void for_each_chunk(int64_t count, ChunkFunction chunk, int64_t width) {
  Crew& mine = crew();
  if (!mine.inside && in_team()) return share_in_team(count, chunk);
  width = std::min({width, count, int64_t{kMostWorkers} + 1});
  if (width > 1 && !mine.inside) {
    width = std::min<int64_t>(width, threads());
    if (width > 1 && share(mine, count, chunk, static_cast<int>(width))) return;
  }
  for (int64_t i = 0; i < count; ++i) chunk(i, 0);
}

int32_t native_parallel(const NativeContext* context, NativeBody body, void* closure, int64_t lo,
                        int64_t hi, int64_t grain) {
  if (hi <= lo) return 0;
  NativeChunks chunks{body, closure, lo, hi, grain};
  int64_t count = chunks.count();
  if (count == 1 || !context->workers) {
    for (int64_t i = 0; i < count; ++i) {
      if (int32_t failed = chunks.run(context, i)) return failed;
    }
    return 0;
  }
  FirstFailure first;
  auto chunk = [&](int64_t i, int worker) { first.run(chunks, context->workers + worker, i); };
  for_each_chunk(count, chunk, (hi - lo) / grain);  // a whole chunk is worth about 5 µs
  return first.copy_to(*context->failure);
}

}  // namespace ein
