/* test_parallel.c: blocks of particles on several threads. */
#include "parallel.h"
#include "smc.h"
#include "toy.h"

#include <stdlib.h>
#include <string.h>

/* every particle, once ----------------------------------------------------- */

enum { MOST = 2000, N_STEPS = 4, D = 3, N = 500 };

typedef struct tally {
  int n_threads;
  int times[MOST];  /* that each particle was worked on */
  int blocks[MOST]; /* that each block was              */
  int out_of_range[SMC_MOST_THREADS];
  double sink[SMC_MOST_THREADS];
} tally;

/* Long enough, in all, for threads to be worth it. */
static void count(void *context, const smc_work *work) {
  tally *t = context;
  if (work->thread < 0 || work->thread >= t->n_threads)
    t->out_of_range[0]++;
  t->blocks[work->index]++;
  for (int k = work->first; k < work->first + work->n; k++) {
    t->times[k]++;
    for (int i = 0; i < 500; i++)
      t->sink[work->thread] += sqrt(i);
  }
}

static void test_blocks(void) {
  static const int numbers[] = {1, 7, 8, 63, 64, 65, 128, 129, 1000, MOST};
  long wrong = 0, tried = 0;
  tally *t = take_memory(sizeof *t);
  for (int n_threads = 1; n_threads <= 5; n_threads++) {
    smc_team team;
    smc_team_begin(&team, n_threads);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++, tried++) {
      int n = numbers[i], n_blocks = smc_n_blocks(n_threads, n);
      double pace = i % 2 ? 1.0 : 0.0;
      memset(t, 0, sizeof *t);
      t->n_threads = n_threads;
      smc_for_blocks(&team, n, &pace, count, t);
      bool right = t->out_of_range[0] == 0 &&
                   n_blocks <= smc_most_blocks(n_threads, n) &&
                   n_blocks <= smc_most_blocks(n_threads, MOST);
      for (int k = 0; k < MOST; k++)
        right &= t->times[k] == (k < n) && t->blocks[k] == (k < n_blocks);
      wrong += !right;
    }
    smc_team_end(&team);
    smc_team_end(&team); /* which is safe */
  }
  CHECK_NONE(wrong, tried, "every particle is worked on once");
  memset(t, 0, sizeof *t);
  double pace = 0.0;
  smc_for_blocks(NULL, 0, &pace, count, t);
  CHECK(t->blocks[0] == 0);
  smc_team idle = {.process = 0};
  smc_team_end(&idle); /* and so is that of one that never began */
  free(t);
}

/* runs --------------------------------------------------------------------- */

/* A target with a context for each thread, which would show two calls with the
 * same one at a time. */
typedef struct guarded {
  toy target;
  int inside, overlaps;
  double sink;
  bool fail; /* at points whose first coordinate is above 1, with a code that
                tells which was the first */
} guarded;

static int guarded_target(void *data, int d, int n, const double *x,
                          double *logp, double *grad) {
  guarded *g = data;
  g->overlaps += g->inside++ != 0;
  int code = toy_target(&g->target, d, n, x, logp, grad);
  for (int k = 0; k < n && g->fail && !code; k++)
    code = x[d * k] > 1.0 ? (int)(1e6 * x[d * k]) : 0;
  double sum = 0.0;
  for (int k = 0; k < 200 * n; k++)
    sum += sqrt(k); /* so that there is work for threads */
  g->sink = sum;
  g->inside--;
  return code;
}

typedef struct outcome {
  double log_z[N_STEPS], x[D * N], log_weights[N], step_size[N_STEPS];
  double points, overlaps, n_impossible;
  int status, failure;
} outcome;

static const double mean[D] = {0.3, -0.2, 0.1};
static const double chol[D * D] = {1.1, 0.2, -0.1, NAN, 0.9,
                                   0.3, NAN, NAN,  1.2};
static const double lower[D] = {-9.0, -INFINITY, -INFINITY};
static const double upper[D] = {9.0, INFINITY, INFINITY};

static smc_config config_of(const smc_kernel *kernel,
                            smc_tuner_options *tuner) {
  static const double lambda[N_STEPS] = {0.1, 0.3, 0.6, 1.0};
  *tuner = toy_tuner(kernel, N / 2, 0.1);
  smc_config config = {.kernel = kernel,
                       .d = D,
                       .n_particles = N,
                       .n_steps = N_STEPS,
                       .lambda = lambda,
                       .tuner = tuner,
                       .ess_threshold = 0.5,
                       .key = {1, 1}};
  config.kernel_options.n_moves = 1;
  config.kernel_options.target_acceptance = 0.5;
  return config;
}

/* in_blocks: whether the target is called from the threads. */
static outcome *run(const smc_kernel *kernel, toy_shape shape, int n_threads,
                    bool in_blocks, bool fail) {
  outcome *o = take_memory(sizeof *o);
  memset(o, 0, sizeof *o);
  guarded targets[4];
  void *contexts[4];
  for (int i = 0; i < 4; i++) {
    targets[i] = (guarded){.target = {.shape = shape}, .fail = fail};
    contexts[i] = &targets[i];
  }
  smc_map maps[2] = {toy_affine(D, mean, NULL, chol),
                     toy_bounds(D, lower, upper)};
  smc_team team;
  smc_team_begin(&team, n_threads);
  smc_path path = {.target = guarded_target,
                   .data = &targets[0],
                   .d = D,
                   .team = &team,
                   .in_blocks = in_blocks,
                   .contexts = in_blocks ? contexts : NULL,
                   .chain = toy_chain(2, maps)};
  smc_tuner_options tuner;
  smc_config config = config_of(kernel, &tuner);
  double unused[7][N_STEPS];
  int flags[3][N_STEPS];
  smc_trace trace = {.lambda = unused[0],
                     .step_size = o->step_size,
                     .refresh_rate = unused[1],
                     .acceptance = unused[2],
                     .ess = unused[3],
                     .lcb = unused[4],
                     .n_target_evals = unused[5],
                     .length = unused[6],
                     .resampled = flags[0],
                     .n_objective_evals = flags[1],
                     .tuner_status = flags[2],
                     .log_z = o->log_z};
  smc_state state;
  smc_arena arena = {.base = NULL};
  smc_layout(&state, &path, &config, &arena);
  char *block = take_memory(arena.used);
  arena = (smc_arena){.base = block};
  smc_layout(&state, &path, &config, &arena);
  o->status = (int)smc_run(&state, &path, &config, &trace);
  smc_team_end(&team);
  o->failure = path.failure;
  o->n_impossible = path.n_impossible;
  if (!fail) {
    memcpy(o->x, state.cloud.x, sizeof o->x);
    memcpy(o->log_weights, state.log_weights, sizeof o->log_weights);
  }
  for (int i = 0; i < 4; i++) {
    o->overlaps += targets[i].overlaps;
    o->points += targets[i].target.points;
  }
  free(block);
  return o;
}

static bool same_run(const smc_kernel *kernel, toy_shape shape, bool fail) {
  outcome *one = run(kernel, shape, 1, false, fail);
  bool same = one->overlaps == 0;
  for (int n_threads = 1; n_threads <= 4; n_threads++)
    for (int in_blocks = 0; in_blocks < 2; in_blocks++) {
      outcome *other = run(kernel, shape, n_threads, in_blocks, fail);
      same &= memcmp(one, other, sizeof *one) == 0;
      free(other);
    }
  free(one);
  return same;
}

void test_parallel(void) {
  static const smc_kernel *const kernels[] = {
      &smc_kernel_klmc, &smc_kernel_lmc, &smc_kernel_mala, &smc_kernel_rwmh};
  test_blocks();
  long differ = 0;
  for (int i = 0; i < 4; i++) {
    differ += !same_run(kernels[i], TOY_SKEWED, false);
    differ += !same_run(kernels[i], TOY_HALF, false);
  }
  CHECK_NONE(differ, 8, "a run is the same on any number of threads");
  CHECK(same_run(&smc_kernel_klmc, TOY_SKEWED, true));
}
