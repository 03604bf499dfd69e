// How many bytes a process has from the C library's allocator, now and at most: preloaded into peers, whose own accounts differ or
// do not exist. Memory that a library keeps for its next call counts only while it was asked for.
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>

void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);
void __libc_free(void *);

static atomic_llong now, most;

long long held_now(void) { return atomic_load(&now); }
long long held_most(void) { return atomic_load(&most); }
void held_forget(void) { atomic_store(&most, atomic_load(&now)); }

static void *got(void *p) {
  if (!p) return p;
  long long size = (long long)malloc_usable_size(p);
  long long total = atomic_fetch_add(&now, size) + size, seen = atomic_load(&most);
  while (total > seen && !atomic_compare_exchange_weak(&most, &seen, total)) {
  }
  return p;
}

static void left(void *p) {
  if (p) atomic_fetch_sub(&now, (long long)malloc_usable_size(p));
}

void *malloc(size_t n) { return got(__libc_malloc(n)); }
void *calloc(size_t n, size_t size) { return got(__libc_calloc(n, size)); }
void *memalign(size_t align, size_t n) { return got(__libc_memalign(align, n)); }
void *aligned_alloc(size_t align, size_t n) { return got(__libc_memalign(align, n)); }

int posix_memalign(void **out, size_t align, size_t n) {
  void *p = got(__libc_memalign(align, n));
  if (!p) return ENOMEM;
  *out = p;
  return 0;
}

void *realloc(void *p, size_t n) {
  left(p);
  void *moved = __libc_realloc(p, n);
  if (moved) return got(moved);
  if (n) got(p);  // it stays where it was
  return moved;
}

void free(void *p) {
  left(p);
  __libc_free(p);
}
