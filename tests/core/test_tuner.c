/* test_tuner.c: the tuner against a search over a fine grid. The sub-sample
 * is all the particles, with equal weights: SSP then draws each once. */
#include "normals.h"
#include "toy.h"
#include "tuner.h"

#include <stdlib.h>

enum { D = 2, N = 60 };

typedef struct bench {
  toy target;
  smc_path path;
  smc_kernel_options kernel_options;
  smc_tuner_options options;
  smc_tuner tuner;
  smc_cloud cloud, to;
  smc_move move;
  double noise[D * N], log_g[N], acceptance[N];
  char *block_cloud, *block_to, *block_tuner, *scratch;
} bench;

static const uint32_t key[2] = {8, 9};

static void begin(bench *b, const smc_kernel *kernel, int step) {
  *b = (bench){.target = {.shape = TOY_GAUSSIAN}};
  b->path = (smc_path){.target = toy_target, .data = &b->target, .d = D};
  b->scratch = toy_path_layout(&b->path, N);
  b->options = toy_tuner(kernel, N, 0.002);
  b->options.regularization = 0.3;
  b->options.step_size_anchor = 0.5;
  b->options.search.method = SMC_SEARCH_GOLDEN;
  b->cloud =
      toy_cloud(D, N, kernel->refreshes, kernel->gradients, &b->block_cloud);
  b->to = toy_cloud(D, N, kernel->refreshes, kernel->gradients, &b->block_to);
  smc_path_sample(&b->path, key, &b->cloud);
  smc_path_evaluate(&b->path, &b->cloud, kernel->gradients, NULL);

  b->tuner.options = &b->options;
  b->tuner.resampling = SMC_RESAMPLE_SSP;
  smc_arena arena = {.base = NULL};
  smc_cloud_parts parts = {kernel->refreshes, kernel->gradients,
                           kernel->gradients};
  smc_tuner_layout(&b->tuner, &arena, parts, D, N);
  b->block_tuner = take_memory(arena.used);
  arena = (smc_arena){.base = b->block_tuner};
  smc_tuner_layout(&b->tuner, &arena, parts, D, N);

  b->move = (smc_move){.path = &b->path,
                       .options = &b->kernel_options,
                       .step = step,
                       .previous = {0.0, NAN, NAN},
                       .current = {.lambda = 0.5}};
  if (step > 1)
    b->move.previous = (smc_level){0.2, 0.15, 0.1, NAN};
}

static void end(bench *b) {
  free(b->scratch);
  free(b->block_cloud);
  free(b->block_to);
  free(b->block_tuner);
}

/* The objective, from a move of the bench's own. */
static double objective(bench *b, const smc_kernel *kernel, double log_h,
                        double rate) {
  smc_move m = b->move;
  m.from = &b->cloud;
  m.to = &b->to;
  m.noise = b->noise;
  m.log_g = b->log_g;
  m.acceptance = b->acceptance;
  m.trial = true;
  m.current.step_size = exp(log_h);
  m.current.refresh_rate = rate;
  smc_kernel_move(kernel, &m);
  double sum = 0.0, away = log_h - log(m.step == 1 ? 0.5 : 0.15);
  for (int k = 0; k < N; k++) {
    double jump = 0.0;
    for (int i = D * k; i < D * (k + 1); i++)
      jump += pow(b->to.x[i] - b->cloud.x[i], 2.0);
    if (!kernel->adjusted)
      sum -= b->log_g[k];
    else if (b->kernel_options.objective == SMC_OBJECTIVE_ESJD)
      sum -= b->acceptance[k] * jump;
    else
      sum += b->acceptance[k];
  }
  sum /= N;
  if (kernel->adjusted &&
      b->kernel_options.objective == SMC_OBJECTIVE_ACCEPTANCE)
    sum = pow(log(sum / b->kernel_options.target_acceptance), 2.0);
  return sum + 0.3 * away * away;
}

static void test_against_grid(const smc_kernel *kernel, int step,
                              smc_adjusted_objective adjusted_objective) {
  bench b;
  begin(&b, kernel, step);
  b.kernel_options.objective = adjusted_objective;
  b.kernel_options.target_acceptance = 0.4;
  double w[N];
  for (int k = 0; k < N; k++)
    w[k] = 1.0 / N;
  double evals = b.path.n_evals;
  smc_tuning tuning = smc_tune(&b.tuner, kernel, b.move, key, &b.cloud, w);
  CHECK(tuning.status == SMC_SEARCH_CONVERGED);
  CHECK(b.path.n_evals - evals == N * (double)tuning.n_evals);

  smc_stream stream = smc_substream(key, SMC_STAGE_TUNE_MOVE, step, 0);
  smc_normal_matrix(&stream, D, 0, N, b.noise);
  double best = INFINITY, best_log_h = NAN, best_rate = NAN;
  for (int r = 0; r < b.options.n_refresh; r++)
    for (int i = 0; i <= 8000; i++) {
      double log_h = -6.0 + i * 0.001, rate = b.options.refresh_grid[r];
      double y = objective(&b, kernel, log_h, rate);
      if (y < best) {
        best = y;
        best_log_h = log_h;
        best_rate = rate;
      }
    }
  CHECK_NEAR(log(tuning.step_size), best_log_h, 0.003);
  CHECK(kernel->refreshes ? tuning.refresh_rate == best_rate
                          : isnan(tuning.refresh_rate));
  end(&b);
}

/* The dead are not drawn, and weights are heeded: with all the weight on one
 * particle, the tuner sees only that one. */
static void test_weights_are_heeded(void) {
  bench b;
  double w[N] = {0};
  begin(&b, &smc_kernel_lmc, 2);
  w[7] = 1.0;
  smc_tune(&b.tuner, &smc_kernel_lmc, b.move, key, &b.cloud, w);
  long other = 0;
  for (int k = 0; k < N; k++) {
    other += b.tuner.from.x[D * k] != b.cloud.x[D * 7];
    other += b.tuner.from.log_p[k] != b.cloud.log_p[7];
  }
  CHECK_NONE(other, N, "the sub-sample is drawn by weight");
  end(&b);
}

void test_tuner(void) {
  for (int step = 1; step <= 2; step++) {
    test_against_grid(&smc_kernel_lmc, step, SMC_OBJECTIVE_ESJD);
    test_against_grid(&smc_kernel_klmc, step, SMC_OBJECTIVE_ESJD);
    test_against_grid(&smc_kernel_mala, step, SMC_OBJECTIVE_ESJD);
    test_against_grid(&smc_kernel_mala, step, SMC_OBJECTIVE_ACCEPTANCE);
    test_against_grid(&smc_kernel_rwmh, step, SMC_OBJECTIVE_ESJD);
    test_against_grid(&smc_kernel_rwmh, step, SMC_OBJECTIVE_ACCEPTANCE);
  }
  test_weights_are_heeded();
}
