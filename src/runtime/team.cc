#include "runtime/team.h"

#include <algorithm>
#include <utility>

#include "runtime/crew.h"
#include "runtime/native_chunks.h"
#include "runtime/workers.h"

namespace ein {
namespace {

constexpr int kFan = 4;                           // for how many members each member waits
constexpr int64_t kArrivalNanoseconds = 100'000;  // how long workers have to join

struct Team : Job {
  const NativeContext* contexts = nullptr;
  TeamBody body = nullptr;
  void* closure = nullptr;
  Crew* crew = nullptr;
  int members = 0;  // valid when `begin` is 2
  alignas(128) Word begin{0};
  alignas(128) Word released{0};  // the last meeting that is over, times two
  std::atomic<bool> stop{false};
  FirstFailure first;
  int32_t result = 0;
};

// What a member knows, on its own stack.
struct Member {
  Team* team;
  int rank;
  uint64_t loop = 0;     // the last loop, as in HandOut
  uint32_t meeting = 0;  // the last meeting, times two
  int turn = 0;
  bool held = false;  // between `gather` and `release`
};
thread_local Member* t_member = nullptr;

bool gather(Member& m) {
  Team& t = *m.team;
  Seat* seats = t.crew->seats();
  uint32_t before = m.meeting;
  m.meeting += 2;
  for (int r = kFan * m.rank + 1; r < std::min(t.members, kFan * m.rank + kFan + 1); ++r) {
    wait_while(seats[r].meeting, before, spin_nanoseconds());
  }
  if (m.rank == 0) {
    m.held = true;
    return false;
  }
  publish(seats[m.rank].meeting, m.meeting);
  wait_while(t.released, before, spin_nanoseconds());
  return t.stop.load(std::memory_order_acquire);
}

void release(Member& m) {
  if (m.rank != 0) return;
  m.held = false;
  publish(m.team->released, m.meeting);
}

void stop_all(Member& m) {
  m.team->stop.store(true, std::memory_order_release);
  release(m);
}

void run_body(Team& t, int rank) {
  Member m{&t, rank};
  t_member = &m;
  // Generated code finds its rank in its context, which is part of the caller's frame.
  auto* context = const_cast<NativeContext*>(t.contexts + rank);
  context->rank = rank;
  context->members = t.members;
  int32_t result = t.body(context, t.closure);
  // A member that fails on its own fails where all members do, or else where the others next meet.
  if (result != 0 && !t.stop.load(std::memory_order_acquire)) {
    if (!m.held) gather(m);
    if (rank == 0) stop_all(m);
  }
  if (rank == 0) t.result = result;
  context->rank = 0;
  context->members = 1;
  t_member = nullptr;
}

void run_member(const Job& job, int rank) {
  auto& t = static_cast<Team&>(const_cast<Job&>(job));
  wait_while(t.begin, 0, spin_nanoseconds());
  run_body(t, t.crew->seats()[rank].rank);
}

}  // namespace

int32_t native_team(const NativeContext* context, TeamBody body, void* closure, int64_t width) {
  Crew& mine = crew();
  width = std::min<int64_t>({width, threads(), int64_t{kMostWorkers} + 1});
  bool alone = width <= 1 || !context->workers || mine.inside || in_team();
  if (alone || !mine.reserve(static_cast<int>(width))) return body(context, closure);
  int* workers = mine.workers();
  int helpers = claim_workers(static_cast<int>(width) - 1, workers + 1);
  if (helpers == 0) return body(context, closure);
  mine.reset();
  Team t;
  t.member = run_member;
  t.workers = workers;
  t.width = helpers + 1;
  t.contexts = context->workers;
  t.body = body;
  t.closure = closure;
  t.crew = &mine;
  t.members = 1;
  offer(t);
  auto all_there = [&] {
    return std::all_of(workers + 1, workers + t.width, [](int w) { return has_begun(w); });
  };
  spin_until(all_there, kArrivalNanoseconds);
  // Members that have not arrived yet are not needed; the others go on without them.
  for (int r = 1; r < t.width; ++r) {
    if (!withdraw(workers[r])) mine.seats()[r].rank = t.members++;
  }
  if (t.members == 1) {
    release_workers(workers + 1, helpers);
    return body(context, closure);
  }
  publish(t.begin, 2);
  run_body(t, 0);
  for (int r = 1; r < t.width; ++r) await_end(workers[r]);
  release_workers(workers + 1, helpers);
  mine.reset();
  if (t.result != 0) *context->failure = *context->workers[0].failure;
  return t.result;
}

int32_t native_gather(const NativeContext* context) {
  if (!t_member) return 0;
  Member& m = *t_member;
  if (gather(m)) return 1;
  if (m.rank != 0 || m.team->first.copy_to(*context->failure) == 0) return 0;
  stop_all(m);
  return 1;
}

void native_release(const NativeContext*) {
  if (t_member) release(*t_member);
}

int32_t native_team_loop(const NativeContext* context, NativeBody body, void* closure, int64_t lo,
                         int64_t hi, int64_t grain) {
  if (!t_member) return native_parallel(context, body, closure, lo, hi, grain);
  if (hi <= lo) return 0;
  NativeChunks chunks{body, closure, lo, hi, grain};
  FirstFailure& first = t_member->team->first;
  share_in_team(chunks.count(), [&](int64_t i, int) { first.run(chunks, context, i); });
  return 0;
}

bool in_team() { return t_member != nullptr; }

void share_in_team(int64_t count, const ChunkFunction& chunk) {
  Member& m = *t_member;
  bool& inside = crew().inside;
  inside = true;
  if (count == 1) {
    if (m.rank == 0) chunk(0, 0);
  } else {
    m.loop = (m.loop + 1) & (HandOut::kLoops - 1);
    int64_t bunch = (count - 1) / HandOut::kMost + 1, bunches = (count - 1) / bunch + 1;
    HandOut parts{m.team->crew->seats(), m.team->members, bunches, m.loop, true};
    parts.work(m.rank, [&](int64_t number) {
      int64_t end = std::min(count, (number + 1) * bunch);
      for (int64_t i = number * bunch; i < end; ++i) chunk(i, m.rank);
    });
  }
  inside = false;
}

void all_done() {
  if (!t_member || crew().inside) return;
  gather(*t_member);
  release(*t_member);
}

ApartFromTeam::ApartFromTeam() : member_(std::exchange(t_member, nullptr)) {
  if (member_) crew().inside = true;
}
ApartFromTeam::~ApartFromTeam() {
  if (!member_) return;
  crew().inside = false;
  t_member = static_cast<Member*>(member_);
}

bool inside_chunk() { return crew().inside; }

int next_turn() { return t_member->turn ^= 1; }

void* team_memory(int piece, size_t bytes) {
  Crew::Piece& p = t_member->team->crew->pieces[piece];
  if (p.bytes >= bytes) return p.block.at();
  all_done();
  if (t_member->rank == 0) {
    p.block = Block();
    p.bytes = 0;
    p.block = Block(bytes);
    p.bytes = bytes;
  }
  all_done();
  return p.block.at();
}

}  // namespace ein
