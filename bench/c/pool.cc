// What it costs to share a loop, in microseconds, for 1, 2, 4, 8 and 16 threads. `make bench-pool`.
//
//   hot     a loop of empty chunks, one for each thread, right after another
//   asleep  the same after a pause in which the workers have fallen asleep
//   full    a loop of chunks of 10 µs, one for each thread: 10 would be perfect
//   meet    a meeting of a team
//   pair    how much faster two callers are side by side than one after the other, each with loops for half of the
//           threads; 2 would be perfect
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "runtime/pool.h"
#include "runtime/team.h"

namespace {

double now() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void busy(double microseconds) {
  for (double end = now() + microseconds; now() < end;) {}
}

double median(std::vector<double> all) {
  std::nth_element(all.begin(), all.begin() + static_cast<ptrdiff_t>(all.size() / 2), all.end());
  return all[all.size() / 2];
}

template <class F>
double taken(int repeats, F&& f) {
  std::vector<double> all;
  for (int i = 0; i < repeats; ++i) {
    double begin = now();
    f();
    all.push_back(now() - begin);
  }
  return median(std::move(all));
}

void loop(int chunks, double microseconds) {
  ein::for_each_chunk(chunks, [&](int64_t, int) {
    if (microseconds > 0) busy(microseconds);
  });
}

constexpr int kMeetings = 20000;

int32_t meetings(const ein::NativeContext* context, void*) {
  for (int i = 0; i < kMeetings; ++i) {
    if (ein::native_gather(context) != 0) return 1;
    ein::native_release(context);
  }
  return 0;
}

double meeting(int count) {
  std::vector<ein::NativeFailure> failures(static_cast<size_t>(count) + 1);
  ein::NativeContext context;
  context.failure = &failures.back();
  std::vector<ein::NativeContext> workers(static_cast<size_t>(count), context);
  for (size_t w = 0; w < workers.size(); ++w) workers[w].failure = &failures[w];
  context.workers = workers.data();
  return taken(5, [&] { ein::native_team(&context, meetings, nullptr, count); }) / kMeetings;
}

double pair(int width) {
  auto loops = [&] {
    for (int i = 0; i < 500; ++i) loop(width, 20);
  };
  auto once = [&](bool together) {
    double begin = now();
    std::thread first(loops);
    if (!together) first.join();
    std::thread second(loops);
    if (together) first.join();
    second.join();
    return now() - begin;
  };
  once(true);
  std::vector<double> gains;
  for (int i = 0; i < 5; ++i) gains.push_back(once(false) / once(true));
  return median(gains);
}

}  // namespace

int main(int argc, char** argv) {
  int most = argc > 1 ? std::atoi(argv[1]) : 16;
  std::printf("threads     hot  asleep    full    meet    pair\n");
  for (int count = 1; count <= most; count *= 2) {
    ein::set_threads(count);
    loop(count, 20);
    double hot = taken(20000, [&] { loop(count, 0); });
    double asleep = 0;
    std::vector<double> all;
    for (int i = 0; i < 200; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      all.push_back(taken(1, [&] { loop(count, 0); }));
    }
    asleep = median(std::move(all));
    double full = taken(2000, [&] { loop(count, 10); });
    std::printf("%7d %7.2f %7.2f %7.2f %7.2f", count, hot, asleep, full, meeting(count));
    if (count > 1) {
      std::printf(" %7.2f", pair(count / 2));
    }
    std::printf("\n");
    std::fflush(stdout);
  }
}
