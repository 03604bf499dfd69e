// The allocator of `ein`. A compiler creates and drops very many small objects, and the general
// allocator would take a third of the time of checking a program. Here, allocating a small object
// pops it from a list, and freeing it pushes it back. Larger objects go to malloc.
//
// Small objects are in one reserved range of addresses, which is cut into pages of one size class
// each, so that a pointer alone tells where it belongs. A page never changes its class and is never
// given back. Each thread has its own lists; what a thread leaves behind is taken over by later
// threads.
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>

#ifndef __SANITIZE_ADDRESS__

namespace {

constexpr size_t kStep = 16, kClasses = 32, kLargest = kStep * kClasses;  // bytes
constexpr size_t kPage = size_t{1} << 16, kPages = size_t{1} << 18;       // 16 GiB of addresses

struct Free {
  Free* next;
  Free* next_list;  // on the first object of a list that a thread has left behind
};
static_assert(sizeof(Free) <= kStep);

struct Lists {
  Free* free[kClasses] = {};
  char* begin[kClasses] = {};  // the unused rest of the current page
  char* end[kClasses] = {};
};

char* reserve() {
  void* p = mmap(nullptr, kPage * kPages, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return nullptr;  // then malloc handles everything
  // Without huge pages, page faults would take a tenth of the time of checking a long program. The
  // system may refuse.
  madvise(p, kPage * kPages, MADV_HUGEPAGE);
  return static_cast<char*>(p);
}

// Constant-initialised where possible, because memory is requested before any constructor has run.
std::atomic<size_t> pages_used{0};
uint8_t class_of_page[kPages];
std::mutex left_mutex;
Free* left[kClasses] = {};  // the lists of threads that have ended

char* range;  // null until the first small object; a thread that holds a small object sees it
std::once_flag reserved;

thread_local constinit Lists own{};
// Destructors of other thread-local objects still allocate.
thread_local constinit bool ended = false;

struct Heir {
  ~Heir() {
    std::lock_guard lock(left_mutex);
    for (size_t c = 0; c < kClasses; ++c) {
      if (Free* first = own.free[c]) {
        first->next_list = left[c];
        left[c] = first;
      }
      own.free[c] = nullptr;
      own.begin[c] = own.end[c] = nullptr;
    }
    ended = true;
  }
  void watch() {}  // makes sure that the object exists
};
thread_local Heir heir;

void* slow_allocate(size_t c) {
  size_t size = (c + 1) * kStep;
  std::call_once(reserved, [] { range = reserve(); });
  if (ended || !range) return std::malloc(size);
  heir.watch();
  {
    std::lock_guard lock(left_mutex);
    if (Free* first = left[c]) {
      left[c] = first->next_list;
      own.free[c] = first->next;
      return first;
    }
  }
  size_t page = pages_used.fetch_add(1, std::memory_order_relaxed);
  if (page >= kPages) return std::malloc(size);
  class_of_page[page] = static_cast<uint8_t>(c);
  own.begin[c] = range + page * kPage;
  own.end[c] = own.begin[c] + kPage / size * size;
  void* out = own.begin[c];
  own.begin[c] += size;
  return out;
}

void* allocate(size_t size) {
  if (size > kLargest) return std::malloc(size);
  size_t c = size == 0 ? 0 : (size - 1) / kStep;
  if (Free* f = own.free[c]) {
    own.free[c] = f->next;
    // Objects that were dropped lie anywhere: the next one comes into the cache while this one is filled.
    __builtin_prefetch(f->next);
    return f;
  }
  if (own.begin[c] != own.end[c]) {
    void* out = own.begin[c];
    own.begin[c] += (c + 1) * kStep;
    return out;
  }
  return slow_allocate(c);
}

void release(void* p) {
  auto offset = reinterpret_cast<uintptr_t>(p) - reinterpret_cast<uintptr_t>(range);
  if (!range || offset >= kPage * kPages) return std::free(p);
  if (ended) return;  // a few bytes are lost
  auto* f = static_cast<Free*>(p);
  size_t c = class_of_page[offset / kPage];
  f->next = own.free[c];
  own.free[c] = f;
}

std::atomic<bool> ran_out{false};

void* allocate_or_throw(size_t size) {
  for (;;) {
    if (void* p = allocate(size)) return p;
    ran_out = true;
    std::new_handler handler = std::get_new_handler();
    if (!handler) throw std::bad_alloc();
    handler();
  }
}

}  // namespace

// For reports: a failed allocation is the cause of what goes wrong after it.
namespace ein {
bool memory_ran_out();
bool memory_ran_out() { return ran_out; }
}  // namespace ein

// Over-aligned types use the library's own operators, which never call these.
void* operator new(size_t size) { return allocate_or_throw(size); }
void* operator new[](size_t size) { return allocate_or_throw(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void operator delete(void* p) noexcept {
  if (p) release(p);
}
void operator delete[](void* p) noexcept {
  if (p) release(p);
}
void operator delete(void* p, size_t) noexcept {
  if (p) release(p);
}
void operator delete[](void* p, size_t) noexcept {
  if (p) release(p);
}

#endif
