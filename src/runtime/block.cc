#include "runtime/block.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "base/fork_mutex.h"
#include "runtime/pool.h"
#include "runtime/team.h"

namespace ein {
namespace {

constexpr size_t kMedium = size_t{1} << 16;  // blocks of at least this size are kept when freed
constexpr size_t kLarge = size_t{1} << 20;   // blocks of at least this size get pages of their own
constexpr size_t kHugePage = size_t{2} << 20;  // the unit of large blocks
// Blocks of at least this size are first touched by all threads.
constexpr size_t kTouched = size_t{64} << 20;

struct Freed {
  void* at;
  size_t bytes;
};

// Freed blocks that are kept, up to a number and a total size.
struct Kept {
  size_t most_blocks, most_bytes;
  void (*release)(const Freed&);
  ForkMutex mutex;
  std::vector<Freed> blocks;  // the block freed last is at the end
  size_t bytes = 0;
};

bool is_large(size_t bytes) { return bytes >= kLarge; }

// Medium-sized blocks are kept as well, because malloc would return them to the system.
Kept& kept(size_t bytes) {
  // Never destroyed: blocks may be freed while the process ends.
  static Kept* large =
      new Kept{16, size_t{1} << 30, [](const Freed& b) { munmap(b.at, b.bytes); }, {}, {}};
  static Kept* medium =
      new Kept{64, size_t{32} << 20, [](const Freed& b) { std::free(b.at); }, {}, {}};
  return is_large(bytes) ? *large : *medium;
}

void* take_kept(size_t bytes, size_t& found) {
  Kept& k = kept(bytes);
  std::lock_guard lock(k.mutex);
  for (size_t i = k.blocks.size(); i-- > 0;) {
    Freed b = k.blocks[i];
    // Skips a block that is far too large, which would then be missing where it fits.
    if (b.bytes < bytes || b.bytes / 2 > bytes) continue;
    k.blocks.erase(k.blocks.begin() + static_cast<ptrdiff_t>(i));
    k.bytes -= b.bytes;
    found = b.bytes;
    return b.at;
  }
  return nullptr;
}

void give_back_all() {
  for (Kept* k : {&kept(kMedium), &kept(kLarge)}) {
    std::lock_guard lock(k->mutex);
    for (const Freed& b : k->blocks) k->release(b);
    k->blocks.clear();
    k->bytes = 0;
  }
}

size_t rounded_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

void* map(size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

// A page of memory belongs to the processor that first writes it. Each thread touches the part that
// corresponds to its part of a loop.
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
  if (!is_large(bytes)) {
    size_t wanted = std::max<size_t>(64, rounded_up(bytes, 64));
    void* found = bytes < kMedium ? nullptr : take_kept(wanted, bytes_);
    if (!found) {
      found = std::aligned_alloc(64, wanted);
      bytes_ = wanted;
    }
    if (!found) throw std::bad_alloc();
    at_ = static_cast<std::byte*>(found);
    return;
  }
  size_t pages = rounded_up(bytes, kHugePage);
  void* found = take_kept(pages, bytes_);
  if (!found) {
    found = map(pages);
    if (!found) {  // the kept blocks may be what is missing
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
  if (bytes_ < kMedium) {
    std::free(at_);
    return;
  }
  Kept& k = kept(bytes_);
  std::lock_guard lock(k.mutex);
  if (bytes_ > k.most_bytes) {
    k.release({at_, bytes_});
    return;
  }
  k.blocks.push_back({at_, bytes_});
  k.bytes += bytes_;
  while (k.bytes > k.most_bytes || k.blocks.size() > k.most_blocks) {
    k.release(k.blocks.front());
    k.bytes -= k.blocks.front().bytes;
    k.blocks.erase(k.blocks.begin());
  }
}

}  // namespace ein
