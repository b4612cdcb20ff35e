/* Reuse of large blocks of memory: arenas, and the memory of large results.

   A fresh block costs a page fault for every page that is touched, which for a large result is a
   third of the time of the program that fills it. Freed blocks are therefore kept for the next
   allocation of about the same size: only a few, up to a fraction of the machine's memory, and none
   for longer than a few seconds without use while programs are called. One lock, held for a handful
   of instructions, protects everything, so any thread may allocate and free. Blocks of two
   megabytes and more are aligned to huge pages.

   Returned memory begins in the middle of a page. Large arrays of other allocators begin just after
   the start of a page, and a loop that reads there and writes a little further into its own page
   stalls, since processors first compare only the lower bits of addresses. */
#ifndef STEPWELL_MEMORY_H
#define STEPWELL_MEMORY_H

#include "pool.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
  SW_HUGE_PAGE = 2 << 20,
  SW_PAGE = 64 << 10,
  SW_AHEAD = 2048, /* from the header at the beginning of a block to the returned memory */
  SW_KEPT_BLOCKS = 16,
  SW_KEPT_SECONDS = 5,
  SW_KEPT_PART = 16 /* the maximum kept, as a fraction of the machine's memory: 1/16 */
};

typedef struct { /* the header of a block */
  size_t bytes;  /* of the mapping, including this header */
  int64_t since; /* when it was freed, in nanoseconds */
} sw_block;

static struct {
  _Atomic int lock;
  int count;
  size_t bytes, limit;
  sw_block *blocks[SW_KEPT_BLOCKS]; /* in the order in which they were freed */
} sw_kept;

static void sw_kept_lock(void) {
  for (int free = 0; !atomic_compare_exchange_weak(&sw_kept.lock, &free, 1); free = 0) sw_pause();
}

static void sw_kept_unlock(void) { atomic_store(&sw_kept.lock, 0); }

static void sw_kept_after_fork(void) { /* another thread may have held the lock: start empty */
  memset(sw_kept.blocks, 0, sizeof sw_kept.blocks);
  sw_kept.count = 0, sw_kept.bytes = 0;
  sw_kept_unlock();
}

static void sw_memory_init(void) {
  int64_t pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  sw_kept.limit = pages > 0 && size > 0 ? (size_t)pages * (size_t)size / SW_KEPT_PART : 0;
  pthread_atfork(NULL, NULL, sw_kept_after_fork);
}

/* Remove block `i` from the kept ones; the lock is held. */
static sw_block *sw_kept_take(int i) {
  sw_block *block = sw_kept.blocks[i];
  sw_kept.count--, sw_kept.bytes -= block->bytes;
  memmove(&sw_kept.blocks[i], &sw_kept.blocks[i + 1], (size_t)(sw_kept.count - i) * sizeof block);
  return block;
}

/* Unmap blocks unused for long, and those beyond the limit once `coming` bytes are added. */
static void sw_kept_trim(int64_t now, size_t coming) {
  sw_block *gone[SW_KEPT_BLOCKS];
  int n = 0;
  sw_kept_lock();
  while (sw_kept.count > 0 &&
         (now - sw_kept.blocks[0]->since > SW_KEPT_SECONDS * 1000000000LL ||
          sw_kept.bytes + coming > sw_kept.limit || (coming && sw_kept.count == SW_KEPT_BLOCKS)))
    gone[n++] = sw_kept_take(0);
  sw_kept_unlock();
  for (int i = 0; i < n; i++) munmap(gone[i], gone[i]->bytes);
}

static sw_block *sw_block_map(size_t bytes) {
  size_t spare = bytes < SW_HUGE_PAGE ? 0 : SW_HUGE_PAGE;
  char *p = mmap(NULL, bytes + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return NULL;
  size_t ahead = spare ? (size_t)(-(uintptr_t)p % SW_HUGE_PAGE) : 0;
  if (ahead) munmap(p, ahead);
  if (spare > ahead) munmap(p + ahead + bytes, spare - ahead);
#ifdef MADV_HUGEPAGE
  if (spare) madvise(p + ahead, bytes, MADV_HUGEPAGE);
#endif
  ((sw_block *)(p + ahead))->bytes = bytes;
  return (sw_block *)(p + ahead);
}

/* Return undefined memory for `wanted` bytes, aligned to a cache line, or NULL. */
static void *sw_memory_new(size_t wanted) {
  if (wanted > SIZE_MAX - 2 * SW_HUGE_PAGE) return NULL;
  size_t bytes = wanted + SW_AHEAD, unit = bytes < SW_HUGE_PAGE ? SW_PAGE : SW_HUGE_PAGE;
  bytes = (bytes + unit - 1) / unit * unit;
  sw_kept_lock();
  int best = -1;
  for (int i = sw_kept.count - 1; i >= 0; i--) { /* the last used block is the warmest */
    size_t has = sw_kept.blocks[i]->bytes;
    if (has >= bytes && has - bytes <= bytes / 8 &&
        (best < 0 || has < sw_kept.blocks[best]->bytes))
      best = i;
  }
  sw_block *block = best < 0 ? NULL : sw_kept_take(best);
  sw_kept_unlock();
  if (block == NULL) {
    sw_kept_trim(sw_now(), 0);
    block = sw_block_map(bytes);
  }
  return block ? (char *)block + SW_AHEAD : NULL;
}

/* Free the memory that `sw_memory_new` returned. */
static void sw_memory_free(void *memory) {
  if (memory == NULL) return;
  sw_block *block = (sw_block *)((char *)memory - SW_AHEAD);
  size_t bytes = block->bytes;
  int64_t now = block->since = sw_now();
  int keep = bytes <= sw_kept.limit;
  sw_kept_trim(now, keep ? bytes : 0);
  if (keep) {
    sw_kept_lock();
    if ((keep = sw_kept.count < SW_KEPT_BLOCKS)) {
      sw_kept.blocks[sw_kept.count++] = block;
      sw_kept.bytes += bytes;
    }
    sw_kept_unlock();
  }
  if (!keep) munmap(block, bytes);
}

/* Return the usable size of `memory` in bytes. */
static size_t sw_memory_room(const void *memory) {
  return ((const sw_block *)((const char *)memory - SW_AHEAD))->bytes - SW_AHEAD;
}

#endif
