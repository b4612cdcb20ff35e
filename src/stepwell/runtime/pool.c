/* The thread pool as a separate library, for systems where the extension cannot be built. */
#include "pool.h"

const struct sw_runtime *stepwell_runtime(int threads) {
  sw_shared.threads = threads < 1 ? 1 : threads > SW_MAX_THREADS ? SW_MAX_THREADS : threads;
  return &sw_shared;
}
