/* parallel.h: work on many particles, block by block, on several threads.
 *
 * What is done for a particle depends on nothing but that particle, and what
 * is found is written to places of its own. So the results are the same for
 * any number of threads. Blocks are small enough to stay in the cache from the
 * first thing that is done with them to the last, and threads take them as
 * they become free: one that has to wait for a busy machine holds up one block.
 *
 * Nothing here may call R, or leave by a long jump.
 */
#ifndef SMC_PARALLEL_H
#define SMC_PARALLEL_H

#ifdef _OPENMP
#include <omp.h>
#endif

enum { SMC_BLOCK = 64 }; /* particles */

static inline int smc_n_blocks(int n) {
  return n / SMC_BLOCK + (n % SMC_BLOCK != 0);
}

/* Work on the particles first, ..., first + n - 1, as thread 0, ...,
 * n_threads - 1. */
typedef void smc_block_fn(void *context, int thread, int first, int n);

/* The work for all n particles. Without OpenMP it is done on one thread. */
static inline void smc_for_blocks(int n_threads, int n, smc_block_fn *work,
                                  void *context) {
  int n_blocks = smc_n_blocks(n);
#ifdef _OPENMP
  int used = n_threads < n_blocks ? n_threads : n_blocks;
#pragma omp parallel for num_threads(used) if (used > 1) schedule(dynamic)
#else
  (void)n_threads;
#endif
  for (int b = 0; b < n_blocks; b++) {
    int first = b * SMC_BLOCK;
    int size = n - first < SMC_BLOCK ? n - first : SMC_BLOCK;
#ifdef _OPENMP
    work(context, omp_get_thread_num(), first, size);
#else
    work(context, 0, first, size);
#endif
  }
}

#endif
