// Threads that run a loop of steps together: every member runs the whole loop and computes its
// scalars, shares the loops inside with the others, and meets them where one of those needs what
// another has written. Generated code decides where (codegen/emit_team.cc).
//
// All members do the same calls in the same order. The member of rank 0 is the caller: it alone
// asks the caller's monitor and writes what no shared loop writes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/native_abi.h"
#include "runtime/pool.h"

namespace ein {

using TeamBody = int32_t (*)(const NativeContext* context, void* closure);

// Runs `body` on at most `width` threads, with the context of its worker each; alone with `context`
// when there is nobody else. Returns what the body of rank 0 returns; a failure is then in
// `context`.
int32_t native_team(const NativeContext* context, TeamBody body, void* closure, int64_t width);

// Waits until all members have come here. Rank 0 returns when they have, the others when it has
// called `native_release`. Not 0: the program stops, and no member waits any more.
int32_t native_gather(const NativeContext* context);
void native_release(const NativeContext* context);

// This member's part of a shared loop. Whether a chunk has failed shows at the next meeting; alone,
// at once, as in native_parallel.
int32_t native_team_loop(const NativeContext* context, NativeBody body, void* closure, int64_t lo,
                         int64_t hi, int64_t grain);

// For code that shares loops by for_each_chunk: in a team that returns when this member has nothing
// more to do. Waits for the others; outside of a team and inside of a chunk there are none.
void all_done();
bool in_team();
void share_in_team(int64_t count, const ChunkFunction& chunk);
bool inside_chunk();
// While it lives, this member is by itself, and loops run in order: the caller's monitor, which rank
// 0 asks, may run programs of its own.
class ApartFromTeam {
 public:
  ApartFromTeam();
  ~ApartFromTeam();
  ApartFromTeam(const ApartFromTeam&) = delete;
  ApartFromTeam& operator=(const ApartFromTeam&) = delete;

 private:
  void* member_;
};
// 0 and 1 in turns, the same for all members.
int next_turn();
// Memory that all members see, of which there are three pieces. What was in it is lost when it
// grows.
void* team_memory(int piece, size_t bytes);

}  // namespace ein
