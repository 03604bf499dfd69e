// Messages between ranks: the only thing that differs between ranks in one process and ranks in
// several.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace ein {

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int64_t rank() const = 0;
  virtual int64_t ranks() const = 0;
  // Messages from one rank to another arrive in the order in which they were sent. `send` does not
  // wait for the receiver; when it returns, the caller may reuse the bytes.
  virtual void send(int64_t to, const void* bytes, size_t count) = 0;
  // Waits for a message. False if that rank has ended and sends no more.
  virtual bool receive(int64_t from, void* bytes, size_t count) = 0;

  uint64_t sent = 0;  // bytes
};

// Ranks that are threads of this process.
class RankThreads {
 public:
  explicit RankThreads(int64_t ranks);
  // The transport of one rank, for its thread. Must be destroyed before the RankThreads.
  std::unique_ptr<Transport> of_rank(int64_t rank);
  // The rank sends no more, so no rank waits for it any longer.
  void end(int64_t rank);

 private:
  struct Box {  // what one rank has sent to another
    std::deque<std::vector<std::byte>> messages;
  };
  struct Side;
  int64_t ranks_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<Box> boxes_;   // by sender, then receiver
  std::vector<bool> ended_;  // by rank
};

}  // namespace ein
