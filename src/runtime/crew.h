// Private to the pool: what a thread that calls loops keeps from one loop to the next.
#pragma once

#include <cstdint>

#include "runtime/block.h"
#include "runtime/hand_out.h"

namespace ein {

class Crew {
 public:
  ~Crew();
  // Makes room for this many ranks. False if there is no memory.
  bool reserve(int width);
  Seat* seats() const { return seats_; }
  int* workers() const { return workers_; }  // by rank; entry 0 is not used
  uint64_t next_loop() {                     // starts at 1, because seats start with 0
    if (++loop_ == HandOut::kLoops) reset();
    return loop_;
  }
  void reset();  // as if there had been no loop yet

  bool inside = false;  // this thread is running a chunk

  // What all members of a team see; it belongs to the thread that calls.
  struct Piece {
    Block block;
    size_t bytes = 0;
  };
  static constexpr int kPieces = 3;
  Piece pieces[kPieces];

 private:
  Seat* seats_ = nullptr;
  int* workers_ = nullptr;
  int room_ = 0;
  uint64_t loop_ = 0;
};

Crew& crew();  // the crew of this thread

}  // namespace ein
