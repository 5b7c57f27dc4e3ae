/* parallel.h: work on many particles, block by block, on several threads.
 *
 * What is done for a particle depends on nothing but that particle, and what
 * is found is written to places of its own. So the results are the same for
 * any number of threads, and for blocks of any size. Blocks are small enough
 * to stay in the cache from the first thing that is done with them to the last,
 * and threads take them as they become free: one that has to wait for a busy
 * machine holds up one block.
 *
 * Threads live no longer than the call. Nothing is left of them that another
 * process, forked from this one, would wait for, and none of them is ever busy
 * with waiting.
 */
#ifndef SMC_PARALLEL_H
#define SMC_PARALLEL_H

enum { SMC_MOST_THREADS = 256 };

/* The most particles of a block. */
enum { SMC_LARGEST_BLOCK = 64 };

/* Particles first, ..., first + n - 1, the block of that index, for thread
 * 0, ..., n_threads - 1. Thread 0 is the caller's. */
typedef struct smc_work {
  int index, first, n;
  int thread;
} smc_work;

/* Work on one block. It may not leave by a long jump, nor call R. */
typedef void smc_work_fn(void *context, const smc_work *work);

/* The number of blocks of n particles, and the most that there may be of as
 * many particles or fewer. */
int smc_n_blocks(int n_threads, int n);
int smc_most_blocks(int n_threads, int n);

/* The work for all n particles, on at most n_threads threads: on one where
 * there is too little of it, or no more are to be had. pace: in/out, the
 * seconds that such work on a particle took last, or 0: then one thread does
 * the first block alone, which tells. */
void smc_for_blocks(int n_threads, int n, double *pace, smc_work_fn *f,
                    void *context);

#endif
