// Private to the pool: the threads that wait for loops, which of them are claimed, and how they
// start and stop.
//
// A worker belongs to the caller whose compare-and-swap took its bit. That caller offers it a job
// by a single store. The worker accepts it, or the caller withdraws it when there is nothing left
// to do; so only workers that took part are waited for. Sleeping workers are woken in a tree: each
// that begins wakes three more.
#pragma once

#include <string>

#include "runtime/pool.h"
#include "runtime/wait.h"

namespace ein {

constexpr int kMostWorkers = 1023;

struct Job {
  void (*member)(const Job& job, int rank);  // what every thread executes; the caller has rank 0
  const int* workers = nullptr;              // by rank, from 1 on
  int width = 1;                             // how many ranks
};

// Claims at most `wanted` idle workers and writes them to `out`. Starts threads if there are fewer
// than threads() asks for.
int claim_workers(int wanted, int* out);
void release_workers(const int* workers, int count);

// Offers the job to its workers. `withdraw` takes it back from one; false if that worker has begun.
void offer(const Job& job);
bool withdraw(int worker);
bool has_begun(int worker);
void await_end(int worker);  // waits for a worker that has begun

int64_t spin_nanoseconds();  // 0 if there are fewer processors than threads

}  // namespace ein
