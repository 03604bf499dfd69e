#include "runtime/block.h"

#include <sys/mman.h>

#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "base/fork_mutex.h"
#include "runtime/pool.h"
#include "runtime/team.h"

namespace ein {
namespace {

constexpr size_t kLarge = size_t{1} << 20;      // from here on: pages of their own, kept when freed
constexpr size_t kHugePage = size_t{2} << 20;   // the unit of large blocks
constexpr size_t kTouched = size_t{64} << 20;   // from here on: first touched by all threads
constexpr size_t kKeptBytes = size_t{1} << 30;  // at most this much is kept
constexpr size_t kKeptBlocks = 16;

struct Freed {
  void* at;
  size_t bytes;
};

struct Kept {
  ForkMutex mutex;
  std::vector<Freed> blocks;  // the last freed at the end
  size_t bytes = 0;
};

Kept& kept() {
  static Kept* all = new Kept;  // never destroyed: blocks may be freed while the process ends
  return *all;
}

void* take_kept(size_t bytes, size_t& found) {
  Kept& k = kept();
  std::lock_guard lock(k.mutex);
  for (size_t i = k.blocks.size(); i-- > 0;) {
    Freed b = k.blocks[i];
    // Not one that is far too large: it would be missing where it fits.
    if (b.bytes < bytes || b.bytes / 2 > bytes) continue;
    k.blocks.erase(k.blocks.begin() + static_cast<ptrdiff_t>(i));
    k.bytes -= b.bytes;
    found = b.bytes;
    return b.at;
  }
  return nullptr;
}

void give_back_all() {
  Kept& k = kept();
  std::lock_guard lock(k.mutex);
  for (const Freed& b : k.blocks) munmap(b.at, b.bytes);
  k.blocks.clear();
  k.bytes = 0;
}

void* map(size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

// Memory is where the processor is that writes a page first. Threads begin with the part of a loop
// that corresponds to theirs here.
void touch(void* at, size_t bytes) {
  if (bytes < kTouched || in_team() || inside_chunk()) return;
  constexpr size_t page = 4096;
  for_each_chunk(static_cast<int64_t>(bytes / kHugePage), [&](int64_t i, int) {
    volatile char* from = static_cast<char*>(at) + static_cast<size_t>(i) * kHugePage;
    for (size_t k = 0; k < kHugePage; k += page) from[k] = 0;
  });
}

}  // namespace

Block::Block(size_t bytes) {
  if (bytes > SIZE_MAX / 4) throw std::bad_alloc();
  if (bytes < kLarge) {
    bytes_ = (bytes + 63) / 64 * 64 + (bytes == 0 ? 64 : 0);
    at_ = static_cast<std::byte*>(std::aligned_alloc(64, bytes_));
    if (!at_) throw std::bad_alloc();
    return;
  }
  size_t pages = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void* found = take_kept(pages, bytes_);
  if (!found) {
    found = map(pages);
    if (!found) {  // what is kept may be what is missing
      give_back_all();
      found = map(pages);
    }
    if (!found) throw std::bad_alloc();
    bytes_ = pages;
    madvise(found, pages, MADV_HUGEPAGE);  // only a hint
    touch(found, pages);
  }
  at_ = static_cast<std::byte*>(found);
}

Block::~Block() {
  if (!at_) return;
  if (bytes_ < kLarge) {
    std::free(at_);
    return;
  }
  Kept& k = kept();
  std::lock_guard lock(k.mutex);
  if (bytes_ > kKeptBytes) {
    munmap(at_, bytes_);
    return;
  }
  k.blocks.push_back({at_, bytes_});
  k.bytes += bytes_;
  while (k.bytes > kKeptBytes || k.blocks.size() > kKeptBlocks) {
    munmap(k.blocks.front().at, k.blocks.front().bytes);
    k.bytes -= k.blocks.front().bytes;
    k.blocks.erase(k.blocks.begin());
  }
}

}  // namespace ein
