/* The peak rates of the machine: fused multiply-adds, and memory traffic.

   sw_limit(kind, threads, bytes): the best rate seen, in units of 1e9 a second, of `threads`
   threads, each on its own core. bytes: of the arrays of all threads together. FMA counts
   operations, the other kinds the bytes that a program reads and writes.
   sw_rate(kind, threads, bytes, rounds, moved): the same for given rounds and bytes per round.
   sw_pace(): the current multiply-add rate of the calling core, in the same unit.
   sw_clock(): cycles in a nanosecond, measured by dependent additions, one a cycle each.
   sw_latency(): nanoseconds from a multiply-add to a dependent one.
   sw_start_of(threads, asleep): nanoseconds until another thread of a pool has begun its part of a
   loop, with the threads spinning or asleep; -1 if there is no other. */
#include "pool.h"
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#if defined(__AVX512F__)
enum { WIDE = 64 };
#elif defined(__AVX__)
enum { WIDE = 32 };
#else
enum { WIDE = 16 };
#endif
#ifdef __SSE2__
#include <immintrin.h>
#endif

enum { FMA, READ, COPY, TRIAD, WRITE };
enum { MOST = 256, ROUNDS = 8, CHAINS = 12, PAGE = 4096, FUSED = 1 << 20 };
enum { LANES = WIDE / 4, AT_ONCE = 64 << 20 }; /* bytes moved between two readings of the clock */
enum { BRIEF = 1 << 16, TRIALS = 9, ASLEEP = 3 * SW_SPIN_NANOSECONDS };
typedef float vector __attribute__((vector_size(WIDE), may_alias));

typedef struct {
  int kind, number, threads, rounds;
  int64_t vectors, moved; /* of each array; bytes between two readings of the clock */
  double begin[ROUNDS], end[ROUNDS], done[ROUNDS];
  pthread_t thread;
} Worker;

static atomic_int arrived, phase;
static volatile float sink;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void meet(int threads) {
  int before = atomic_load(&phase);
  if (atomic_fetch_add(&arrived, 1) + 1 == threads) {
    atomic_store(&arrived, 0);
    atomic_fetch_add(&phase, 1);
  } else {
    while (atomic_load(&phase) == before) sched_yield();
  }
}

#define EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
#define BEGIN(k) vector x##k = zero + (first + k);
#define FUSE(k) x##k = x##k * factor + term;
#define SUM(k) zero += x##k;

static double fuse(int times) {
  float first = sink; /* unknown to the compiler: it would compute a chain from 1, which stays 1 */
  vector zero = {0}, factor = zero + 0.999999f, term = zero + 1e-6f;
  EACH(BEGIN)
  for (int i = 0; i < times; i++) {
    EACH(FUSE)
  }
  EACH(SUM)
  sink = zero[0];
  return 2.0 * LANES * CHAINS * times;
}

static void keep(vector *at, vector value) { /* by nontemporal stores if available */
#if defined(__AVX512F__)
  _mm512_stream_ps((float *)at, (__m512)value);
#elif defined(__AVX__)
  _mm256_stream_ps((float *)at, (__m256)value);
#elif defined(__SSE2__)
  _mm_stream_ps((float *)at, (__m128)value);
#else
  *at = value;
#endif
}

static void pass(int kind, vector *a, const vector *b, const vector *c, int64_t n) {
  vector sums[8] = {0}, factor = sums[0] + 3.0f;
  if (kind == READ)
    for (int64_t i = 0; i + 8 <= n; i += 8) {
      vector s0 = b[i] + b[i + 1], s1 = b[i + 2] + b[i + 3], s2 = b[i + 4] + b[i + 5], s3 = b[i + 6] + b[i + 7];
      sums[0] += s0, sums[1] += s1, sums[2] += s2, sums[3] += s3;
    }
  else if (kind == WRITE)
    for (int64_t i = 0; i < n; i++) keep(&a[i], factor);
  else if (kind == COPY)
    for (int64_t i = 0; i < n; i++) keep(&a[i], b[i]);
  else
    for (int64_t i = 0; i < n; i++) keep(&a[i], c[i] * factor + b[i]);
  sink = sums[0][0] + sums[1][0] + sums[2][0] + sums[3][0];
}

static vector *array(int64_t vectors, float value) {
  size_t bytes = ((size_t)vectors * WIDE + PAGE - 1) / PAGE * PAGE + PAGE;
  float *at = aligned_alloc(PAGE, bytes);
  if (at != NULL)
    for (size_t i = 0; i < bytes / sizeof *at; i++) at[i] = value;
  return (vector *)at;
}

static int streams(int kind) { return kind == TRIAD ? 3 : kind == COPY ? 2 : 1; }

/* Whether a kind accesses an array: 0 is the written one, 1 and 2 are read. */
static int touches(int kind, int array) {
  return array == 0 ? kind != READ : array == 1 ? kind != WRITE : kind == TRIAD;
}

static double once(Worker *w, vector *const *arrays) {
  if (w->kind == FMA) return fuse(FUSED);
  int64_t bytes = w->vectors * WIDE * streams(w->kind);
  int64_t times = bytes > 0 ? w->moved / (bytes * w->threads) + 1 : 1;
  for (int64_t i = 0; i < times; i++) {
    pass(w->kind, arrays[0], arrays[1], arrays[2], w->vectors);
    __asm__ volatile("" ::: "memory");
  }
  return (double)(bytes * times);
}

static void pin(int number) {
#ifdef __linux__
  cpu_set_t all, one;
  if (sched_getaffinity(0, sizeof all, &all)) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &all) && number-- == 0) {
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      sched_setaffinity(0, sizeof one, &one);
      return;
    }
#else
  (void)number;
#endif
}

static void *work(void *of) {
  Worker *w = of;
  pin(w->number);
  vector *arrays[3] = {0};
  int made = 1;
  for (int k = 0; k < 3 && w->kind != FMA; k++)
    if (touches(w->kind, k)) made &= (arrays[k] = array(w->vectors, (float)k)) != NULL;
  for (int i = 0; i < w->rounds; i++) {
    meet(w->threads);
    w->begin[i] = now();
    w->done[i] = made ? once(w, arrays) : 0;
    w->end[i] = now();
  }
  for (int k = 0; k < 3; k++) free(arrays[k]);
  return NULL;
}

double sw_rate(int kind, int threads, int64_t bytes, int rounds, int64_t moved) {
  static Worker workers[MOST];
  threads = threads < 1 ? 1 : threads > MOST ? MOST : threads;
  rounds = rounds < 1 ? 1 : rounds > ROUNDS ? ROUNDS : rounds;
  atomic_store(&arrived, 0);
  for (int t = 0; t < threads; t++) {
    workers[t] = (Worker){.kind = kind, .number = t, .threads = threads, .rounds = rounds, .moved = moved};
    workers[t].vectors = bytes / (streams(kind) * threads) / WIDE / 8 * 8;
    if (pthread_create(&workers[t].thread, NULL, work, &workers[t])) return -1;
  }
  for (int t = 0; t < threads; t++) pthread_join(workers[t].thread, NULL);
  double best = 0;
  for (int i = 0; i < rounds; i++) { /* from the first thread's start to the last one's end */
    double begin = workers[0].begin[i], end = workers[0].end[i], done = 0;
    for (int t = 0; t < threads; t++) {
      if (workers[t].begin[i] < begin) begin = workers[t].begin[i];
      if (workers[t].end[i] > end) end = workers[t].end[i];
      done += workers[t].done[i];
    }
    double rate = done / (end - begin) / 1e9;
    if (rate > best) best = rate;
  }
  return best;
}

double sw_limit(int kind, int threads, int64_t bytes) {
  return sw_rate(kind, threads, bytes, ROUNDS, AT_ONCE);
}

double sw_pace(void) {
  double start = now(), done = fuse(FUSED);
  return done / (now() - start) / 1e9;
}

double sw_clock(void) {
  double best = 0;
  for (int i = 0; i < TRIALS; i++) {
    fuse(BRIEF / 4); /* vectors may slow the clock for longer than the additions take */
    uint64_t x = (uint64_t)i, y = 3;
    double start = now();
    for (int k = 0; k < BRIEF; k++) {
      x += y;
      __asm__ volatile("" : "+r"(x), "+r"(y));
      x += y;
      __asm__ volatile("" : "+r"(x), "+r"(y));
      x += y;
      __asm__ volatile("" : "+r"(x), "+r"(y));
      x += y;
      __asm__ volatile("" : "+r"(x), "+r"(y));
    }
    double rate = 4.0 * BRIEF / (now() - start) / 1e9;
    if (rate > best) best = rate;
  }
  return best;
}

vector kept;

double sw_latency(void) {
  double best = 1e9;
  vector factor = {0}, term = factor + 1e-6f;
  factor += 0.999999f;
  for (int i = 0; i < TRIALS; i++) {
    vector x = term;
    double start = now();
    for (int k = 0; k < BRIEF; k++) x = x * factor + term;
    double took = (now() - start) / BRIEF * 1e9;
    kept = x; /* taking the address of x itself would put it in memory */
    if (took < best) best = took;
  }
  return best;
}

static _Atomic int64_t begun; /* when another thread began its part; 0 before */

static void part(void *caller, int64_t from, int64_t to) {
  (void)from, (void)to;
  int64_t start = sw_now();
  if (!pthread_equal(*(pthread_t *)caller, pthread_self())) {
    atomic_store(&begun, start);
    return;
  }
  while (!atomic_load(&begun) && sw_now() - start < 20 * SW_SPIN_NANOSECONDS) sw_pause();
}

double sw_start_of(int threads, int asleep) {
  struct sw_runtime pool = {sw_parallel, threads < MOST ? threads : MOST};
  double taken[TRIALS], clock = 1e9; /* the cost of reading the clock, part of each */
  int count = 0;
  for (int i = 0; i < TRIALS; i++) {
    int64_t start = sw_now(), then = sw_now();
    if ((double)(then - start) < clock) clock = (double)(then - start);
  }
  pthread_t caller = pthread_self();
  for (int i = 0; i <= TRIALS && threads > 1; i++) {
    struct timespec pause = {0, asleep ? ASLEEP : 0};
    if (asleep) nanosleep(&pause, NULL);
    atomic_store(&begun, 0);
    int64_t start = sw_now();
    pool.parallel(&pool, part, &caller, 2, 1);
    int64_t then = atomic_load(&begun);
    if (i > 0 && then > start) taken[count++] = (double)(then - start); /* not the first */
  }
  for (int i = 1; i < count; i++) /* sort: the lower quartile is least disturbed by other load */
    for (int k = i; k > 0 && taken[k] < taken[k - 1]; k--) {
      double other = taken[k];
      taken[k] = taken[k - 1], taken[k - 1] = other;
    }
  return count ? taken[count / 4] - clock : -1;
}
