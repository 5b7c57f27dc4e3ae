/* parallel.h: work on many particles, block by block, on several threads.
 *
 * What is done for a particle depends on nothing but that particle, and what
 * is found is written to places of its own. So the results are the same for
 * any number of threads, and for blocks of any size. Blocks are small enough
 * to stay in the cache from the first thing that is done with them to the last.
 * Each thread begins with a share of them that is the same each time, and goes
 * on with what others have not begun: one that has to wait for a busy machine
 * holds up one block.
 *
 * The threads are a team's. They are started when there is work for them, and
 * end with the team. From one job to the next they wait awake, for as long as a
 * run takes between two steps; where it takes longer they sleep, so that they
 * are in nobody's way.
 */
#ifndef SMC_PARALLEL_H
#define SMC_PARALLEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

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

/* How many of so many threads n particles are enough for: with the smallest
 * blocks. */
int smc_most_threads_for(int n_threads, int n);

typedef struct smc_job smc_job;
typedef struct smc_team smc_team;

/* Thread 1, ..., n_threads - 1 of a team. */
typedef struct smc_helper {
  smc_team *team;
  int thread;
  pthread_t id;
} smc_helper;

/* Of one caller, which begins it, works with it, and ends it. It may not be
 * moved meanwhile. */
struct smc_team {
  int n_threads; /* at most, with the caller's */
  int n_helpers; /* that have been started     */
  pid_t process; /* in which they are, or 0    */
  smc_helper helpers[SMC_MOST_THREADS];
  pthread_mutex_t lock; /* of what follows                            */
  pthread_cond_t called, done;
  smc_job *job; /* for which help is wanted, or NULL          */
  bool is_over;
  /* changed with the lock; read without it by those who wait awake */
  atomic_uint n_jobs; /* so far, so that none is taken up twice */
  atomic_uint n_busy; /* helpers at work on it                  */
};

/* A team of so many threads, of which none is started. Where the system has no
 * more locks, it is of the caller's thread alone. */
void smc_team_begin(smc_team *team, int n_threads);

/* Ends its threads; safe to call twice, and for a team of zeros that has not
 * begun. In another process, forked from that in which they were started, there
 * are none, and nothing is done. */
void smc_team_end(smc_team *team);

/* How many threads a team has; no team is one thread, the caller's. */
static inline int smc_team_size(const smc_team *team) {
  return team ? team->n_threads : 1;
}

/* The work for all n particles, on the team's threads: on one where there is no
 * team, where there is too little work, or where no more threads are to be had.
 * pace: in/out, the seconds that such work on a particle took last, or 0: then
 * one thread does the first block alone, which tells. */
void smc_for_blocks(smc_team *team, int n, double *pace, smc_work_fn *f,
                    void *context);

#endif
