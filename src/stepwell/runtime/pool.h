/* Threads for the parallel loops of compiled programs: spin a little, then sleep.

   A region of n iterations is split into at most `threads` equal runs of at least `grain`
   iterations. The caller takes the first run and workers claim the others; when the caller is done,
   it claims the rest too, so that a worker that wakes up late costs nothing. While one region runs,
   another (nested, or from a second Python thread) runs serially in its caller. */
#ifndef STEPWELL_POOL_H
#define STEPWELL_POOL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

typedef void (*sw_body)(void *ctx, int64_t begin, int64_t end);

struct sw_runtime {
  void (*parallel)(const struct sw_runtime *rt, sw_body body, void *ctx, int64_t n, int64_t grain);
  int32_t threads;
};

enum { SW_MAX_THREADS = 256, SW_SPIN_NANOSECONDS = 200000 };

static struct {
  sw_body body;
  void *ctx;
  int64_t n;
  _Atomic uint64_t ticket;  /* number of the region << 32 | its runs << 16 | next run to claim */
  _Atomic uint32_t region;  /* the region's number: idle workers sleep on it */
  _Atomic uint32_t done;    /* number of finished runs: the caller sleeps on it */
  _Atomic uint32_t sleeping; /* number of sleeping workers */
  _Atomic uint32_t waiting; /* whether the caller sleeps */
  _Atomic int busy;
  int workers;
} sw_pool;

static inline void sw_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static void sw_sleep(_Atomic uint32_t *word, uint32_t seen) {
#ifdef __linux__
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
#else
  struct timespec pause = {0, 50000};
  if (atomic_load(word) == seen) nanosleep(&pause, NULL);
#endif
}

static void sw_wake(_Atomic uint32_t *word, int count) {
#ifdef __linux__
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
#else
  (void)word, (void)count;
#endif
}

static int64_t sw_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Spin while *word equals `value` (while_equal), or until it does; 0 after a timeout. */
static int sw_spin(_Atomic uint32_t *word, uint32_t value, int while_equal) {
  int64_t start = 0;
  for (;;) {
    for (int i = 0; i < 64; i++) {
      if ((atomic_load_explicit(word, memory_order_acquire) == value) != while_equal) return 1;
      sw_pause();
    }
    int64_t now = sw_now();
    if (start == 0) start = now;
    if (now - start > SW_SPIN_NANOSECONDS) return 0;
  }
}

static void sw_run(int64_t run, int64_t runs) {
  int64_t n = sw_pool.n, size = n / runs, extra = n % runs;
  int64_t begin = run * size + (run < extra ? run : extra);
  sw_pool.body(sw_pool.ctx, begin, begin + size + (run < extra));
  if (atomic_fetch_add(&sw_pool.done, 1) + 1 == runs && atomic_load(&sw_pool.waiting))
    sw_wake(&sw_pool.done, 1);
}

/* Claim and run runs of the current region until none is left. */
static void sw_work(void) {
  uint64_t ticket = atomic_load(&sw_pool.ticket);
  for (;;) {
    uint32_t next = ticket & 0xffff, runs = (ticket >> 16) & 0xffff;
    if (next >= runs) return;
    if (!atomic_compare_exchange_weak(&sw_pool.ticket, &ticket, ticket + 1)) continue;
    sw_run(next, runs);
    ticket = atomic_load(&sw_pool.ticket);
  }
}

static void *sw_worker(void *unused) {
  (void)unused;
  uint32_t seen = 0;
  for (;;) {
    if (!sw_spin(&sw_pool.region, seen, 1)) {
      atomic_fetch_add(&sw_pool.sleeping, 1);
      while (atomic_load(&sw_pool.region) == seen) sw_sleep(&sw_pool.region, seen);
      atomic_fetch_sub(&sw_pool.sleeping, 1);
    }
    seen = atomic_load(&sw_pool.region);
    sw_work();
  }
  return NULL;
}

static void sw_after_fork(void) { /* a child process has no workers */
  sw_pool.workers = 0;
  atomic_store(&sw_pool.ticket, 0);
  atomic_store(&sw_pool.region, 0);
  atomic_store(&sw_pool.sleeping, 0);
  atomic_store(&sw_pool.waiting, 0);
  atomic_store(&sw_pool.busy, 0);
}

/* Start missing workers; the caller holds `busy`. */
static void sw_start(int threads) {
  static int registered;
  if (!registered) registered = 1, pthread_atfork(NULL, NULL, sw_after_fork);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* signals belong to Python's threads */
  while (sw_pool.workers < threads - 1) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, sw_worker, NULL) != 0) break;
    pthread_detach(thread);
    sw_pool.workers++;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void sw_parallel(const struct sw_runtime *rt, sw_body body, void *ctx, int64_t n,
                        int64_t grain) {
  int64_t runs = n / (grain > 0 ? grain : 1);
  if (runs > rt->threads) runs = rt->threads;
  int idle = 0;
  if (runs < 2 || !atomic_compare_exchange_strong(&sw_pool.busy, &idle, 1)) {
    if (n > 0) body(ctx, 0, n);
    return;
  }
  if (sw_pool.workers < rt->threads - 1) sw_start(rt->threads);
  sw_pool.body = body, sw_pool.ctx = ctx, sw_pool.n = n;
  atomic_store(&sw_pool.done, 0);
  uint32_t region = atomic_load(&sw_pool.region) + 1;
  atomic_store(&sw_pool.ticket, (uint64_t)region << 32 | (uint64_t)runs << 16 | 1);
  atomic_store(&sw_pool.region, region);
  if (atomic_load(&sw_pool.sleeping)) sw_wake(&sw_pool.region, (int)runs - 1);
  sw_run(0, runs);
  sw_work();
  if (!sw_spin(&sw_pool.done, (uint32_t)runs, 0)) {
    atomic_store(&sw_pool.waiting, 1);
    for (uint32_t done; (done = atomic_load(&sw_pool.done)) != runs;) sw_sleep(&sw_pool.done, done);
    atomic_store(&sw_pool.waiting, 0);
  }
  atomic_store(&sw_pool.busy, 0);
}

static struct sw_runtime sw_shared = {sw_parallel, 1};

#endif
