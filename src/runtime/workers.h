// Private to the pool: the threads that wait for loops, who has claimed which, and how they begin
// and end.
//
// A worker belongs to the one whose compare-and-swap took its bit. That caller offers it a job by
// one store; the worker accepts it, or the caller withdraws it when there is nothing left to do, so
// that only workers that took part are waited for. Those that sleep are woken by a tree: each that
// begins wakes three more.
#pragma once

#include <string>

#include "runtime/pool.h"
#include "runtime/wait.h"

namespace ein {

constexpr int kMostWorkers = 1023;

struct Job {
  void (*member)(const Job& job, int rank);  // what every thread does; the caller has rank 0
  const int* workers = nullptr;              // by rank, from 1 on
  int width = 1;                             // ranks
};

// At most `wanted` idle workers, written to `out`; starts threads when there are fewer than threads()
// asks for.
int claim_workers(int wanted, int* out);
void release_workers(const int* workers, int count);

// Offers the job to its workers. `withdraw` takes it back from one: false when it has begun.
void offer(const Job& job);
bool withdraw(int worker);
bool has_begun(int worker);
void await_end(int worker);  // of one that has begun

int64_t spin_nanoseconds();  // 0 when there are fewer processors than threads

}  // namespace ein
