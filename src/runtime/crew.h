// Private to the pool: what a thread that calls loops keeps for its next one.
#pragma once

#include <cstdint>

#include "runtime/block.h"
#include "runtime/hand_out.h"

namespace ein {

class Crew {
 public:
  ~Crew();
  // Room for so many ranks; false when there is no memory.
  bool reserve(int width);
  Seat* seats() const { return seats_; }
  int* workers() const { return workers_; }  // by rank; 0 is not used
  uint64_t next_loop() {                     // from 1 on: 0 is what seats begin with
    if (++loop_ == HandOut::kLoops) reset();
    return loop_;
  }
  void reset();  // as if no loop had been

  bool inside = false;  // this thread runs a chunk

  // What all members of a team see; it belongs to the one that calls.
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

Crew& crew();  // of this thread

}  // namespace ein
