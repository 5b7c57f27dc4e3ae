#define _POSIX_C_SOURCE 200809L
#include "parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

#ifndef _WIN32
#include <signal.h>
#endif

/* blocks ------------------------------------------------------------------ */

/* What stays in the cache, and in how many parts the work is shared: fewer
 * particles for each block where there are few, but whole vectors. */
enum { VECTOR = 8, BLOCKS_PER_THREAD = 4 };

static int n_of(int n, int size) { return n / size + (n % size != 0); }

static int block_size(int n_threads, int n) {
  if (n_threads < 2)
    return SMC_LARGEST_BLOCK;
  int size = VECTOR * n_of(n, VECTOR * BLOCKS_PER_THREAD * n_threads);
  return size < SMC_LARGEST_BLOCK ? size : SMC_LARGEST_BLOCK;
}

int smc_n_blocks(int n_threads, int n) {
  return n < 1 ? 0 : n_of(n, block_size(n_threads, n));
}

int smc_most_blocks(int n_threads, int n) {
  return n_of(n, SMC_LARGEST_BLOCK) + BLOCKS_PER_THREAD * n_threads;
}

/* threads ----------------------------------------------------------------- */

/* Seconds of work that are worth more threads: several times what it takes to
 * start and to end one, which is 15 to 20 microseconds. */
static const double least_work = 1e-4;

/* Enough for what a target may have on the stack: some systems give a thread
 * only half a megabyte. */
static const size_t stack_size = 8 << 20;

typedef struct job {
  smc_work_fn *f;
  void *context;
  int n, size;
  int n_blocks;
  atomic_int next; /* block */
} job;

typedef struct helper {
  job *job;
  int thread;
} helper;

/* Do one block that nobody has done yet. Returns 0 when there is none. */
static int do_block(job *job, int thread) {
  int index = atomic_fetch_add(&job->next, 1);
  if (index >= job->n_blocks)
    return 0;
  int first = index * job->size, left = job->n - first;
  smc_work work = {index, first, left < job->size ? left : job->size, thread};
  job->f(job->context, &work);
  return 1;
}

static void *help(void *data) {
  const helper *helper = data;
  while (do_block(helper->job, helper->thread))
    continue;
  return NULL;
}

/* Starts threads. Returns how many; the system may not give as many. Signals
 * are left to the thread that has them now: R handles them there. */
static int start(int n, helper *helpers, pthread_t *threads) {
  pthread_attr_t attributes;
  int started = 0;
  if (pthread_attr_init(&attributes) != 0)
    return 0;
  pthread_attr_setstacksize(&attributes, stack_size);
#ifndef _WIN32
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
#endif
  while (started < n && pthread_create(&threads[started], &attributes, help,
                                       &helpers[started]) == 0)
    started++;
#ifndef _WIN32
  pthread_sigmask(SIG_SETMASK, &before, NULL);
#endif
  pthread_attr_destroy(&attributes);
  return started;
}

static double now(void) {
  struct timespec t;
  timespec_get(&t, TIME_UTC);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* do_block(), which tells the pace. */
static int do_timed(job *job, double *pace) {
  double before = now();
  int done = do_block(job, 0);
  if (done)
    *pace = (now() - before) / job->size;
  return done;
}

/* What is left of a job, with threads that help. */
static void share(job *job, int n_helpers, double *pace) {
  helper helpers[SMC_MOST_THREADS];
  pthread_t threads[SMC_MOST_THREADS];
  for (int i = 0; i < n_helpers; i++)
    helpers[i] = (helper){job, i + 1};
  int started = start(n_helpers, helpers, threads);
  do_timed(job, pace);
  while (do_block(job, 0))
    continue;
  for (int i = 0; i < started; i++)
    pthread_join(threads[i], NULL);
}

static int least(int a, int b) { return a < b ? a : b; }

void smc_for_blocks(int n_threads, int n, double *pace, smc_work_fn *f,
                    void *context) {
  job job = {.f = f,
             .context = context,
             .n = n,
             .size = block_size(n_threads, n),
             .n_blocks = smc_n_blocks(n_threads, n)};
  int n_workers = least(least(n_threads, SMC_MOST_THREADS), job.n_blocks);
  atomic_init(&job.next, 0);
  if (n_workers > 1) {
    if (*pace == 0.0)
      do_timed(&job, pace);
    if (*pace * n > least_work)
      share(&job, n_workers - 1, pace);
    do_timed(&job, pace);
  }
  while (do_block(&job, 0))
    continue;
}
