// Threads that run a loop over steps together. Every member runs the whole loop and computes its
// scalars; members share the loops inside, and meet wherever one of them needs what another has
// written. Generated code decides where that is (codegen/emit_team.cc).
//
// All members make the same calls in the same order. The member of rank 0 is the caller: only it
// asks the caller's monitor, and only it writes memory outside of shared loops.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/native_abi.h"
#include "runtime/pool.h"

namespace ein {

using TeamBody = int32_t (*)(const NativeContext* context, void* closure);

// Runs `body` on at most `width` threads, each with the context of its worker; on this thread
// alone, with `context`, if there is no other. Returns what the body of rank 0 returns; a failure
// is then in `context`.
int32_t native_team(const NativeContext* context, TeamBody body, void* closure, int64_t width);

// Waits until all members have arrived. Rank 0 returns when they have; the others return when rank
// 0 has called `native_release`. If the result is not 0, the program stops and no member waits any
// more.
int32_t native_gather(const NativeContext* context);
void native_release(const NativeContext* context);

// This member's part of a shared loop. If a chunk fails, that is known at the next meeting; without
// other members, at once, as in native_parallel.
int32_t native_team_loop(const NativeContext* context, NativeBody body, void* closure, int64_t lo,
                         int64_t hi, int64_t grain);

// For code that shares loops by for_each_chunk. In a team that function returns when this member
// has nothing more to do, and this one waits for the others. Does nothing outside of a team and
// inside of a chunk.
void all_done();
bool in_team();
void share_in_team(int64_t count, const ChunkFunction& chunk);
bool inside_chunk();
// During its lifetime, this member is on its own and loops run in order: the caller's monitor,
// which rank 0 asks, may run programs of its own.
class ApartFromTeam {
 public:
  ApartFromTeam();
  ~ApartFromTeam();
  ApartFromTeam(const ApartFromTeam&) = delete;
  ApartFromTeam& operator=(const ApartFromTeam&) = delete;

 private:
  void* member_;
};
// 0 and 1 alternately, the same for all members.
int next_turn();
// Memory that all members see, in three pieces. The contents of a piece are lost when it grows.
void* team_memory(int piece, size_t bytes);

}  // namespace ein
