#define _POSIX_C_SOURCE 200809L
#include "parallel.h"

#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

int smc_most_threads_for(int n_threads, int n) {
  int most = n < 1 ? 1 : n_of(n, VECTOR);
  return n_threads < most ? n_threads : most;
}

/* jobs -------------------------------------------------------------------- */

/* The blocks of one thread, in a cache line that no other thread writes to as
 * long as it has any. */
typedef struct share {
  _Alignas(64) atomic_int next;
  int end;
} share;

struct smc_job {
  smc_work_fn *f;
  void *context;
  int n, size;
  int n_blocks, n_shares;
  share *shares;
};

/* A block that nobody has done yet: one of the thread's own, whose particles
 * are in the cache of its core since the last job; when it has none left, one
 * of another's. -1 when there is none. */
static int next_block(smc_job *job, int thread) {
  for (int i = 0; i < job->n_shares; i++) {
    share *from = &job->shares[(thread + i) % job->n_shares];
    int index = atomic_fetch_add(&from->next, 1);
    if (index < from->end)
      return index;
  }
  return -1;
}

/* Do one block that nobody has done yet. Returns 0 when there is none. */
static int do_block(smc_job *job, int thread) {
  int index = next_block(job, thread);
  if (index < 0)
    return 0;
  int first = index * job->size, left = job->n - first;
  smc_work work = {index, first, left < job->size ? left : job->size, thread};
  job->f(job->context, &work);
  return 1;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* do_block(), which tells the pace. */
static int do_timed(smc_job *job, double *pace) {
  double before = now();
  int done = do_block(job, 0);
  if (done)
    *pace = (now() - before) / job->size;
  return done;
}

/* teams ------------------------------------------------------------------- */

/* Seconds of work that are worth waking others: that takes them 10 to 100
 * microseconds. */
static const double least_work = 1e-4;

/* Seconds that a thread waits awake before it sleeps: more than a run of some
 * thousand particles takes from one job to the next, to weigh them and to
 * resample. To be woken each time would take as long again. */
static const double patience = 4e-4;

/* Enough for what a target may have on the stack: some systems give a thread
 * only half a megabyte. */
static const size_t stack_size = 8 << 20;

/* Until the number is this one, or another one; not beyond patience. A thread
 * that has work and no core gets this one's meanwhile. */
static void wait_awake(const atomic_uint *number, unsigned one, bool is_one) {
  double until = now() + patience;
  while ((atomic_load(number) == one) != is_one && now() < until)
    sched_yield();
}

/* The next job, or NULL at the end. last: in/out, the number of the one that
 * the helper had. With the lock. */
static smc_job *wait_for_job(smc_team *team, unsigned *last) {
  pthread_mutex_unlock(&team->lock);
  wait_awake(&team->n_jobs, *last, false);
  pthread_mutex_lock(&team->lock);
  while (!team->is_over && (!team->job || team->n_jobs == *last))
    pthread_cond_wait(&team->called, &team->lock);
  *last = team->n_jobs;
  return team->is_over ? NULL : team->job;
}

static void *help(void *data) {
  const smc_helper *helper = data;
  smc_team *team = helper->team;
  smc_job *job;
  unsigned last = 0;
  pthread_mutex_lock(&team->lock);
  while ((job = wait_for_job(team, &last))) {
    team->n_busy++;
    pthread_mutex_unlock(&team->lock);
    while (do_block(job, helper->thread))
      continue;
    pthread_mutex_lock(&team->lock);
    if (--team->n_busy == 0)
      pthread_cond_signal(&team->done);
  }
  pthread_mutex_unlock(&team->lock);
  return NULL;
}

/* Starts helpers until there are n, or the system gives no more. Signals are
 * left to the thread that has them now: R handles them there. */
static void start_helpers(smc_team *team, int n) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0)
    return;
  pthread_attr_setstacksize(&attributes, stack_size);
#ifndef _WIN32
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
#endif
  while (team->n_helpers < n) {
    smc_helper *helper = &team->helpers[team->n_helpers];
    *helper = (smc_helper){.team = team, .thread = team->n_helpers + 1};
    if (pthread_create(&helper->id, &attributes, help, helper) != 0)
      break;
    team->n_helpers++;
  }
#ifndef _WIN32
  pthread_sigmask(SIG_SETMASK, &before, NULL);
#endif
  pthread_attr_destroy(&attributes);
}

static int least(int a, int b) { return a < b ? a : b; }

/* Returns 0, or 1 when the system has no more. */
static int make_locks(smc_team *team) {
  if (pthread_mutex_init(&team->lock, NULL) != 0)
    return 1;
  if (pthread_cond_init(&team->called, NULL) == 0) {
    if (pthread_cond_init(&team->done, NULL) == 0)
      return 0;
    pthread_cond_destroy(&team->called);
  }
  pthread_mutex_destroy(&team->lock);
  return 1;
}

void smc_team_begin(smc_team *team, int n_threads) {
  memset(team, 0, sizeof *team);
  team->n_threads = least(n_threads, SMC_MOST_THREADS);
  if (team->n_threads > 1 && make_locks(team) == 0)
    team->process = getpid();
}

/* Whether its threads are those of this process. */
static bool is_here(const smc_team *team) { return team->process == getpid(); }

void smc_team_end(smc_team *team) {
  if (!is_here(team))
    return;
  pthread_mutex_lock(&team->lock);
  team->is_over = true;
  pthread_cond_broadcast(&team->called);
  pthread_mutex_unlock(&team->lock);
  for (int i = 0; i < team->n_helpers; i++)
    pthread_join(team->helpers[i].id, NULL);
  pthread_cond_destroy(&team->done);
  pthread_cond_destroy(&team->called);
  pthread_mutex_destroy(&team->lock);
  team->process = 0;
}

/* What is left of a job, with the helpers. */
static void do_together(smc_team *team, smc_job *job, double *pace) {
  pthread_mutex_lock(&team->lock);
  team->job = job;
  team->n_jobs++;
  pthread_mutex_unlock(&team->lock);
  pthread_cond_broadcast(&team->called);
  do_timed(job, pace);
  while (do_block(job, 0))
    continue;
  pthread_mutex_lock(&team->lock);
  team->job = NULL; /* who has not come yet need not come */
  pthread_mutex_unlock(&team->lock);
  wait_awake(&team->n_busy, 0, true);
  pthread_mutex_lock(&team->lock);
  while (team->n_busy > 0)
    pthread_cond_wait(&team->done, &team->lock);
  pthread_mutex_unlock(&team->lock);
}

void smc_for_blocks(smc_team *team, int n, double *pace, smc_work_fn *f,
                    void *context) {
  int n_threads = smc_team_size(team);
  share shares[SMC_MOST_THREADS];
  smc_job job = {.f = f,
                 .context = context,
                 .n = n,
                 .size = block_size(n_threads, n),
                 .n_blocks = smc_n_blocks(n_threads, n),
                 .n_shares = n_threads,
                 .shares = shares};
  for (int i = 0, first = 0; i < n_threads; i++) {
    atomic_init(&shares[i].next, first);
    first += (job.n_blocks - first) / (n_threads - i);
    shares[i].end = first;
  }
  if (*pace == 0.0)
    do_timed(&job, pace);
  if (n_threads > 1 && job.n_blocks > 1 && is_here(team)) {
    if (*pace * n > least_work) {
      start_helpers(team, n_threads - 1);
      do_together(team, &job, pace);
    }
    do_timed(&job, pace);
  }
  while (do_block(&job, 0))
    continue;
}
