/* test_smc.c: whole runs. What is claimed to be unbiased is, counts are exact,
 * results are a function of the key, and what goes wrong is told. */
#include "smc.h"
#include "toy.h"
#include "vecmath.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_STEPS = 16 };

/* a run ------------------------------------------------------------------- */

typedef struct runner {
  toy target;
  smc_path path;
  smc_config config;
  smc_tuner_options tuner;
  smc_state state;
  smc_trace trace;
  smc_status status;
  char *block;
  double lambda[MAX_STEPS], given_h[MAX_STEPS], given_rho[MAX_STEPS];
  double step_size[MAX_STEPS], refresh_rate[MAX_STEPS], acceptance[MAX_STEPS];
  double ess[MAX_STEPS], lcb[MAX_STEPS], length[MAX_STEPS];
  double log_z[MAX_STEPS];
  double lambda_used[MAX_STEPS];
  double n_target_evals[MAX_STEPS];
  int resampled[MAX_STEPS], n_objective_evals[MAX_STEPS];
  int tuner_status[MAX_STEPS];
} runner;

/* Temperatures (t/T)^2, one step size for all steps. */
static void set_up(runner *r, const smc_kernel *kernel, toy_shape shape, int d,
                   int n, int n_steps, double h) {
  memset(r, 0, sizeof *r);
  r->target.shape = shape;
  r->path = (smc_path){.target = toy_target, .data = &r->target, .d = d};
  for (int t = 0; t < n_steps; t++) {
    r->lambda[t] = (t + 1.0) * (t + 1.0) / (n_steps * n_steps);
    r->given_h[t] = h;
    r->given_rho[t] = 0.7;
  }
  r->lambda[n_steps - 1] = 1.0;
  r->tuner = toy_tuner(kernel, n / 2, 0.01);
  r->config = (smc_config){.kernel = kernel,
                           .d = d,
                           .n_particles = n,
                           .n_steps = n_steps,
                           .lambda = r->lambda,
                           .step_size = r->given_h,
                           .refresh_rate = r->given_rho,
                           .tuner = &r->tuner,
                           .ess_threshold = 0.5,
                           .key = {1, 1}};
  r->config.kernel_options.n_moves = 1;
  r->config.kernel_options.target_acceptance = 0.5;
}

/* Run; release() when done with the state. */
static void run(runner *r) {
  r->trace = (smc_trace){.lambda = r->lambda_used,
                         .step_size = r->step_size,
                         .refresh_rate = r->refresh_rate,
                         .acceptance = r->acceptance,
                         .ess = r->ess,
                         .lcb = r->lcb,
                         .length = r->length,
                         .resampled = r->resampled,
                         .log_z = r->log_z,
                         .n_objective_evals = r->n_objective_evals,
                         .n_target_evals = r->n_target_evals,
                         .tuner_status = r->tuner_status};
  smc_arena arena = {.base = NULL};
  smc_layout(&r->state, &r->path, &r->config, &arena);
  size_t size = arena.used;
  r->block = take_memory(size);
  memset(r->block, 0xff, size); /* NaN: what is read unwritten shows */
  arena = (smc_arena){.base = r->block};
  smc_layout(&r->state, &r->path, &r->config, &arena);
  r->status = smc_run(&r->state, &r->path, &r->config, &r->trace);
}

static void release(runner *r) { free(r->block); }

static double last_log_z(const runner *r) {
  return r->log_z[r->config.n_steps - 1];
}

/* unbiased ---------------------------------------------------------------- */

/* Of many runs: the mean of Z-hat, and of Z-hat times the weighted mean of
 * the first coordinate, which is unbiased for Z times the target's mean. */
typedef struct estimates {
  sample z, first;
  long resampled, not_ok;
} estimates;

static estimates replicate(runner *r, uint32_t n_runs) {
  estimates e = {.not_ok = 0};
  for (uint32_t seed = 0; seed < n_runs; seed++) {
    r->config.key[0] = 5000 + seed;
    run(r);
    e.not_ok += r->status != SMC_OK;
    double z = exp(last_log_z(r)), mean = 0.0;
    int n = r->config.n_particles, d = r->config.d;
    double *x = take_memory(smc_size(d, n) * sizeof *x);
    smc_path_to_user(&r->path, n, r->state.cloud.x, x);
    for (int k = 0; k < n; k++)
      mean += r->state.weights[k] * x[d * k];
    free(x);
    sample_add(&e.z, z);
    sample_add(&e.first, z * mean);
    for (int t = 0; t < r->config.n_steps; t++)
      e.resampled += r->resampled[t];
    release(r);
  }
  return e;
}

/* Within three standard errors, and a standard error that is below 2 %. */
static void check_unbiased(const estimates *e, double z, double first,
                           const char *what) {
  double mean = sample_mean(&e->z), error = sample_error(&e->z);
  check_that(e->not_ok == 0, __FILE__, __LINE__, "%s: %ld runs failed", what,
             e->not_ok);
  check_that(fabs(mean - z) <= 3.0 * error && error < 0.02 * z, __FILE__,
             __LINE__, "%s: Z-hat is %.5g with error %.2g, not %.5g", what,
             mean, error, z);
  mean = sample_mean(&e->first);
  error = sample_error(&e->first);
  check_that(fabs(mean - first) <= 3.0 * error && error < 0.04 * z, __FILE__,
             __LINE__, "%s: Z-hat E[x] is %.5g with error %.2g, not %.5g", what,
             mean, error, first);
}

/* With L_0 = q, the first weight has a finite variance only where K_1 is wide
 * enough to cover gamma_1^2. */
static const double falling_sizes[] = {0.7, 0.5, 0.4, 0.33, 0.27};

static void test_unbiased_lmc(void) {
  static const struct {
    smc_backward backward;
    smc_first_backward first;
    smc_resampling scheme;
    const char *name;
  } cases[] = {{SMC_BACKWARD_TIME_CORRECT, SMC_FIRST_REFERENCE,
                SMC_RESAMPLE_SSP, "lmc, time correct, ssp"},
               {SMC_BACKWARD_TIME_CORRECT, SMC_FIRST_REFERENCE,
                SMC_RESAMPLE_SYSTEMATIC, "lmc, time correct, systematic"},
               {SMC_BACKWARD_TIME_CORRECT, SMC_FIRST_INDEPENDENT,
                SMC_RESAMPLE_STRATIFIED, "lmc, first independent, stratified"},
               {SMC_BACKWARD_FORWARD, SMC_FIRST_REFERENCE,
                SMC_RESAMPLE_RESIDUAL, "lmc, forward, residual"},
               {SMC_BACKWARD_FORWARD, SMC_FIRST_REFERENCE,
                SMC_RESAMPLE_MULTINOMIAL, "lmc, forward, multinomial"}};
  for (int i = 0; i < 5; i++) {
    runner r;
    set_up(&r, &smc_kernel_lmc, TOY_GAUSSIAN, 2, 32, 5, 0.15);
    for (int t = 0; t < 5; t++) /* h_t and h_{t-1} must not be mixed up */
      r.given_h[t] = falling_sizes[t];
    r.config.kernel_options.backward = cases[i].backward;
    r.config.kernel_options.first_backward = cases[i].first;
    r.config.resampling = cases[i].scheme;
    r.config.ess_threshold = 0.8;
    estimates e = replicate(&r, 3000);
    check_unbiased(&e, 3.0, 3.0, cases[i].name);
    CHECK(e.resampled > 1000);
  }
}

static void test_unbiased_others(void) {
  static const struct {
    const smc_kernel *kernel;
    double h;
    int n_moves;
    smc_resampling scheme;
    const char *name;
  } cases[] = {
      {&smc_kernel_klmc, 0.3, 1, SMC_RESAMPLE_SSP, "klmc, ssp"},
      {&smc_kernel_klmc, 0.3, 1, SMC_RESAMPLE_MULTINOMIAL, "klmc, multinomial"},
      {&smc_kernel_mala, 0.4, 1, SMC_RESAMPLE_SSP, "mala, ssp"},
      {&smc_kernel_mala, 0.4, 2, SMC_RESAMPLE_SYSTEMATIC,
       "mala, two moves, systematic"},
      {&smc_kernel_rwmh, 0.8, 1, SMC_RESAMPLE_SSP, "rwmh, ssp"},
      {&smc_kernel_rwmh, 0.8, 3, SMC_RESAMPLE_RESIDUAL,
       "rwmh, three moves, residual"}};
  for (int i = 0; i < 6; i++) {
    runner r;
    set_up(&r, cases[i].kernel, TOY_GAUSSIAN, 2, 32, 5, cases[i].h);
    r.config.kernel_options.n_moves = cases[i].n_moves;
    r.config.resampling = cases[i].scheme;
    r.config.ess_threshold = 0.8;
    estimates e = replicate(&r, 3000);
    check_unbiased(&e, 3.0, 3.0, cases[i].name);
    CHECK(e.resampled > 1000);
  }
}

/* Any reference will do. */
static void test_unbiased_with_reference(void) {
  static const double mean[2] = {0.5, 1.5}, sd[2] = {1.2, 0.8};
  runner r;
  set_up(&r, &smc_kernel_lmc, TOY_GAUSSIAN, 2, 32, 4, 0.3);
  r.given_h[0] = 0.7;
  smc_map map = toy_affine(2, mean, sd, NULL);
  r.path.chain = toy_chain(1, &map);
  estimates e = replicate(&r, 2000);
  check_unbiased(&e, 3.0, 3.0, "lmc, another reference");
}

/* Also one that is correlated. */
static void test_unbiased_with_covariance(void) {
  static const double mean[2] = {0.5, 1.5};
  static const double chol[4] = {1.1, 0.5, NAN, 0.9};
  static const smc_kernel *const kernels[] = {&smc_kernel_klmc,
                                              &smc_kernel_mala};
  for (int i = 0; i < 2; i++) {
    runner r;
    set_up(&r, kernels[i], TOY_GAUSSIAN, 2, 32, 4, 0.3);
    smc_map map = toy_affine(2, mean, NULL, chol);
    r.path.chain = toy_chain(1, &map);
    estimates e = replicate(&r, 4000);
    check_unbiased(&e, 3.0, 3.0, "a correlated reference");
  }
}

/* half a space ------------------------------------------------------------ */

/* The target is impossible where x <= 0. What an unadjusted kernel estimates
 * is then not Z but Z times the probability that the backward chain, from the
 * target through L_{T-1}, ..., L_1, stays where x > 0: the weights can only
 * see pairs that are both possible. For LMC the backward kernel is known, so
 * that probability is an integral, done here on a grid of midpoints. */
enum { N_GRID = 800 };

static double half_density(double x) {
  return 3.0 * exp(log_normal(x, 0.5, 0.64));
}

static double expected_half(const runner *r) {
  static double f[N_GRID], next[N_GRID];
  const double width = 8.0 / N_GRID;
  double total = 0.0;
  for (int i = 0; i < N_GRID; i++)
    f[i] = half_density((i + 0.5) * width);
  for (int t = r->config.n_steps; t > 1; t--) {
    double lambda = r->lambda[t - 2], h = r->given_h[t - 2];
    memset(next, 0, sizeof next);
    for (int i = 0; i < N_GRID; i++) {
      double x = (i + 0.5) * width;
      double g = -(1.0 - lambda) * x - lambda * (x - 0.5) / 0.64;
      for (int j = 0; j < N_GRID; j++) {
        double u = (j + 0.5) * width - x - h * g;
        next[j] +=
            f[i] * width * exp(-u * u / (4.0 * h)) / sqrt(2.0 * SMC_TWO_PI * h);
      }
    }
    memcpy(f, next, sizeof f);
  }
  for (int i = 0; i < N_GRID; i++)
    total += f[i] * width;
  return total;
}

static void test_half_space(void) {
  double z = 3.0 * 0.5 * erfc(-0.5 / 0.8 / sqrt(2.0));
  /* Z E[x], of the truncated normal */
  double first = 0.5 * z + 0.64 * half_density(0.0);
  for (int nan = 0; nan < 2; nan++) {
    toy_shape shape = nan ? TOY_HALF_NAN : TOY_HALF;
    runner r;

    /* Unbiased, as nothing is weighed against a position that is
     * impossible: one step of LMC, or kernels with detailed balance. */
    set_up(&r, &smc_kernel_lmc, shape, 1, 64, 1, 0.5);
    estimates e = replicate(&r, 2000);
    check_unbiased(&e, z, first, "half a space, lmc, one step");
    set_up(&r, &smc_kernel_mala, shape, 1, 64, 4, 0.3);
    e = replicate(&r, 2000);
    check_unbiased(&e, z, first, "half a space, mala");
    set_up(&r, &smc_kernel_rwmh, shape, 1, 64, 4, 0.8);
    e = replicate(&r, 2000);
    check_unbiased(&e, z, first, "half a space, rwmh");

    /* LMC loses what its backward kernel leaks, and no more. */
    set_up(&r, &smc_kernel_lmc, shape, 1, 128, 4, 0.3);
    r.given_h[0] = 0.7;
    e = replicate(&r, 2000);
    double expected = expected_half(&r);
    CHECK(e.not_ok == 0 && expected < 0.95 * z);
    CHECK_NEAR(sample_mean(&e.z), expected, 3.0 * sample_error(&e.z));
    CHECK(sample_error(&e.z) < 0.01 * z);
  }
}

/* counts ------------------------------------------------------------------ */

static void test_counts(void) {
  static const smc_kernel *const kernels[] = {
      &smc_kernel_lmc, &smc_kernel_klmc, &smc_kernel_mala, &smc_kernel_rwmh,
      &smc_kernel_hmc};
  for (int i = 0; i < 5; i++)
    for (int tuned = 0; tuned < 2; tuned++) {
      runner r;
      const int n = 40, n_steps = 6;
      set_up(&r, kernels[i], TOY_GAUSSIAN, 2, n, n_steps, 0.2);
      r.path.hook = toy_look;
      r.path.hook_data = &r.target;
      int n_moves = kernels[i]->adjusted ? 3 : 1;
      r.config.kernel_options.n_moves = n_moves;
      if (tuned)
        r.config.step_size = NULL;
      run(&r);
      CHECK(r.status == SMC_OK && r.trace.n_done == n_steps &&
            r.trace.step == n_steps);
      double total = 0.0, objectives = 0.0;
      long bad = 0;
      for (int t = 0; t < n_steps; t++) {
        double evals = n * n_moves + 20.0 * r.n_objective_evals[t];
        bad += r.n_target_evals[t] != evals + (t == 0 ? n : 0);
        bad += tuned ? r.n_objective_evals[t] < 3 : r.n_objective_evals[t] != 0;
        bad += (r.tuner_status[t] == -1) != !tuned;
        bad += !(r.ess[t] >= 1.0 - 1e-9 && r.ess[t] <= n + 1e-9);
        bad += r.resampled[t] && !(r.ess[t] < 0.5 * n);
        bad += !r.resampled[t] && t < n_steps - 1 && r.ess[t] < 0.5 * n;
        bad += kernels[i]->refreshes == isnan(r.refresh_rate[t]);
        bad += kernels[i]->adjusted == isnan(r.acceptance[t]);
        bad += r.acceptance[t] < 0.0 || r.acceptance[t] > 1.0;
        total += r.n_target_evals[t];
        objectives += r.n_objective_evals[t];
      }
      CHECK_NONE(bad, n_steps, "a row of the trace");
      CHECK(total == n * (1 + n_moves * n_steps) + 20 * objectives);
      CHECK(r.path.n_evals == total && r.target.points == total);
      CHECK(r.resampled[n_steps - 1] == 0);
      /* as a step begins and ends, after every move, before every call */
      CHECK(r.target.looks == n_steps * (2 + n_moves) + r.target.calls);
      release(&r);
    }
}

/* barriers and temperatures ----------------------------------------------- */

/* A target that watches the run it is in. */
typedef struct watcher {
  toy toy;
  const runner *run;
  double lcb[MAX_STEPS], length[MAX_STEPS]; /* by their formulas */
} watcher;

/* The change of temperature times the standard deviation of log p - log q,
 * from the mean of the squares, with the normalised weights. */
static double length_by_moments(const smc_state *s, double change) {
  double first = 0.0, second = 0.0;
  for (int k = 0; k < s->cloud.n; k++) {
    double v = s->cloud.log_p[k] - s->cloud.log_q[k];
    first += s->weights[k] * v;
    second += s->weights[k] * v * v;
  }
  return change * sqrt(second - first * first);
}

/* sqrt(log sum W G^2 - 2 log sum W G), with the normalised weights W from
 * before the step; where nothing is resampled, they are those from after it
 * over G. The last look at a step, which overwrites the others, comes after
 * the weighing. */
static void watch(void *data) {
  watcher *w = data;
  const smc_state *s = &w->run->state;
  int n = s->cloud.n, t = w->run->trace.step;
  double total = 0.0, first = 0.0, second = 0.0;
  if (t == 0)
    return;
  for (int k = 0; k < n; k++)
    total += exp(s->log_weights[k] - s->log_g[k]);
  for (int k = 0; k < n; k++) {
    double weight = exp(s->log_weights[k] - s->log_g[k]) / total;
    first += weight * exp(s->log_g[k]);
    second += weight * exp(2.0 * s->log_g[k]);
  }
  w->lcb[t - 1] = sqrt(fmax(0.0, log(second) - 2.0 * log(first)));
  /* an adjusted kernel weighs, and then moves */
  if (w->run->config.kernel->adjusted)
    return;
  const double *lambda = w->run->lambda;
  double change = lambda[t - 1] - (t > 1 ? lambda[t - 2] : 0.0);
  w->length[t - 1] = length_by_moments(s, change);
}

static void test_barrier(void) {
  static const smc_kernel *const kernels[] = {
      &smc_kernel_lmc, &smc_kernel_klmc, &smc_kernel_mala, &smc_kernel_rwmh,
      &smc_kernel_hmc};
  for (int i = 0; i < 5; i++)
    for (int tuned = 0; tuned < 2; tuned++) {
      const int n_steps = 6;
      runner r;
      set_up(&r, kernels[i], TOY_GAUSSIAN, 2, 60, n_steps, 0.25);
      watcher w = {.toy = {.shape = TOY_GAUSSIAN}, .run = &r};
      r.path.data = &w;
      r.path.hook = watch;
      r.path.hook_data = &w;
      r.config.ess_threshold = 0.0;
      if (tuned)
        r.config.step_size = NULL;
      run(&r);
      double off = 0.0, least = INFINITY;
      for (int t = 0; t < n_steps; t++) {
        off = fmax(off, fabs(r.lcb[t] - w.lcb[t]));
        if (kernels[i]->adjusted)
          CHECK(isfinite(r.length[t]) && r.length[t] > 0.0);
        else
          off = fmax(off, fabs(r.length[t] - w.length[t]));
        least = fmin(least, r.lcb[t]);
      }
      CHECK(r.status == SMC_OK && least > 0.01);
      CHECK_NEAR(off, 0.0, 1e-10);
      CHECK(memcmp(r.lambda_used, r.lambda, sizeof(double) * 6) == 0);
      release(&r);
    }
}

/* With equal weights, as after resampling, the barrier is told by the
 * effective sample size: LCB^2 = log(N / ESS). */
static void test_barrier_resampled(void) {
  runner r;
  set_up(&r, &smc_kernel_klmc, TOY_GAUSSIAN, 2, 60, 6, 0.25);
  r.config.ess_threshold = 1.0;
  run(&r);
  double off = 0.0;
  for (int t = 0; t < 6; t++)
    off = fmax(off, fabs(r.lcb[t] - sqrt(log(60.0 / r.ess[t]))));
  CHECK_NEAR(off, 0.0, 1e-7);
  release(&r);
}

/* Dead particles are left out where they were dead before, and count as
 * weights of zero where they die. */
static void test_barrier_of_dead(void) {
  runner r;
  set_up(&r, &smc_kernel_mala, TOY_HALF, 1, 200, 4, 0.3);
  r.config.ess_threshold = 0.0;
  run(&r);
  long alive = 0;
  for (int k = 0; k < 200; k++)
    alive += r.state.weights[k] > 0.0;
  CHECK(r.status == SMC_OK && alive > 50 && alive < 150);
  double bound = sqrt(log(200.0 / (double)alive));
  CHECK(r.lcb[0] >= bound - 1e-9 && r.lcb[0] < bound + 0.2);
  for (int t = 1; t < 4; t++)
    CHECK(isfinite(r.lcb[t]) && r.lcb[t] >= 0.0 && isfinite(r.length[t]));
  release(&r);
}

static void check_adaptive(const smc_kernel *kernel, double wanted, int tuned,
                           toy_shape shape) {
  const int n = 500;
  runner r;
  set_up(&r, kernel, shape, 2, n, MAX_STEPS, 0.4);
  r.config.lambda = NULL;
  r.config.adaptive_ess = wanted;
  if (tuned)
    r.config.step_size = NULL;
  run(&r);
  int steps = r.trace.n_done;
  CHECK(r.status == SMC_OK && steps > 1 && steps < MAX_STEPS);
  long not_rising = 0, not_wanted = 0, not_resampled = 0;
  for (int t = 0; t < steps; t++) {
    bool last = t == steps - 1;
    not_rising += !(r.lambda_used[t] > (t > 0 ? r.lambda_used[t - 1] : 0.0));
    not_wanted += last ? r.ess[t] < wanted * n * 0.99
                       : fabs(r.ess[t] / (wanted * n) - 1.0) > 0.01;
    not_resampled += r.resampled[t] != !last;
  }
  CHECK_NONE(not_rising, steps, "temperatures rise");
  CHECK_NONE(not_wanted, steps, "the effective sample size is the wanted one");
  CHECK_NONE(not_resampled, steps, "all steps but the last resample");
  CHECK(r.lambda_used[steps - 1] == 1.0);
  CHECK_NEAR(r.log_z[steps - 1], log(3.0), 0.25);

  /* What was found, given, makes the same run: but for the resampling. */
  runner again;
  set_up(&again, kernel, shape, 2, n, steps, 0.4);
  memcpy(again.lambda, r.lambda_used, (size_t)steps * sizeof(double));
  if (tuned)
    memcpy(again.given_h, r.step_size, (size_t)steps * sizeof(double));
  again.config.ess_threshold = 1.0;
  run(&again);
  CHECK(again.log_z[steps - 1] == r.log_z[steps - 1]);
  release(&again);
  release(&r);
}

static void test_adaptive(void) {
  static const smc_kernel *const kernels[] = {&smc_kernel_mala,
                                              &smc_kernel_rwmh};
  static const double wanted[] = {0.5, 0.8, 0.95};
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 3; j++)
      for (int tuned = 0; tuned < 2; tuned++)
        check_adaptive(kernels[i], wanted[j], tuned, TOY_GAUSSIAN);

  /* Never more than n_steps; the last goes to 1 whatever it costs. */
  for (int n_steps = 1; n_steps <= 3; n_steps++) {
    runner r;
    set_up(&r, &smc_kernel_mala, TOY_GAUSSIAN, 2, 200, n_steps, 0.4);
    r.config.lambda = NULL;
    r.config.adaptive_ess = 0.99;
    run(&r);
    CHECK(r.status == SMC_OK && r.trace.n_done == n_steps);
    CHECK(r.lambda_used[n_steps - 1] == 1.0 && r.resampled[n_steps - 1] == 0);
    CHECK(r.ess[n_steps - 1] < 0.99 * 200);
    release(&r);
  }

  /* Half of the particles are dead at any temperature above 0: one poor step,
   * and then it goes on. */
  runner r;
  set_up(&r, &smc_kernel_mala, TOY_HALF, 2, 400, MAX_STEPS, 0.3);
  r.config.lambda = NULL;
  r.config.adaptive_ess = 0.8;
  run(&r);
  int steps = r.trace.n_done;
  CHECK(r.status == SMC_OK && steps > 2 && steps < MAX_STEPS);
  CHECK(r.lambda_used[0] > 0.0 && r.lambda_used[0] < 1e-6);
  CHECK(r.ess[0] > 100.0 && r.ess[0] < 300.0);
  for (int t = 1; t < steps - 1; t++)
    CHECK_NEAR(r.ess[t], 320.0, 4.0);
  CHECK(steps > 0 && r.lambda_used[steps - 1] == 1.0);
  release(&r);
}

/* a function of the key --------------------------------------------------- */

static bool same_result(const runner *a, const runner *b) {
  int n = a->config.n_particles, n_steps = a->config.n_steps;
  size_t dn = (size_t)(a->config.d * n), t = (size_t)n_steps;
  const size_t real = sizeof(double);
  return memcmp(a->log_z, b->log_z, t * real) == 0 &&
         memcmp(a->ess, b->ess, t * real) == 0 &&
         memcmp(a->step_size, b->step_size, t * real) == 0 &&
         memcmp(a->state.cloud.x, b->state.cloud.x, dn * real) == 0 &&
         memcmp(a->state.weights, b->state.weights, (size_t)n * real) == 0;
}

static void test_reproducible(void) {
  static const smc_kernel *const kernels[] = {
      &smc_kernel_lmc, &smc_kernel_klmc, &smc_kernel_mala, &smc_kernel_rwmh,
      &smc_kernel_hmc};
  for (int i = 0; i < 5; i++) {
    runner a, b;
    set_up(&a, kernels[i], TOY_SKEWED, 3, 50, 6, 0.1);
    a.config.step_size = NULL;
    a.config.ess_threshold = 0.9;
    a.config.kernel_options.n_moves = 2;
    double *before_last = take_doubles(3 * 50);
    a.target.last_x = before_last;
    run(&a);
    set_up(&b, kernels[i], TOY_SKEWED, 3, 50, 6, 0.1);
    b.config.step_size = NULL;
    b.config.ess_threshold = 0.9;
    b.config.kernel_options.n_moves = 2;
    run(&b);
    CHECK(a.status == SMC_OK && same_result(&a, &b));
    release(&b);

    /* The schedule that was tuned gives, with the same key, the same run:
     * the tuner draws from streams of its own. */
    memcpy(b.given_h, a.step_size, sizeof b.given_h);
    memcpy(b.given_rho, a.refresh_rate, sizeof b.given_rho);
    b.config.step_size = b.given_h;
    run(&b);
    CHECK(same_result(&a, &b));
    release(&b);

    for (int which = 0; which < 2; which++) {
      b.config.key[which]++;
      run(&b);
      CHECK(!same_result(&a, &b) && last_log_z(&a) != last_log_z(&b));
      release(&b);
      b.config.key[which]--;
    }
    release(&a);
    free(before_last);
  }
}

/* A target that keeps the points of every call. */
typedef struct recorder {
  toy toy;
  int n_calls;
  double *x[200];
} recorder;

static int record_points(void *data, int d, int n, const double *x,
                         double *logp, double *grad) {
  recorder *r = data;
  size_t bytes = (size_t)d * (size_t)n * sizeof(double);
  if (r->n_calls < 200)
    r->x[r->n_calls] = memcpy(take_memory(bytes), x, bytes);
  r->n_calls++;
  return toy_target(&r->toy, d, n, x, logp, grad);
}

/* With one step and all N particles in the sub-sample, tuner and move start
 * from the same positions; yet no noise of the one is that of the other. */
static void test_noise_is_fresh(void) {
  enum { n = 40 };
  recorder record = {.toy = {.shape = TOY_GAUSSIAN}};
  runner r;
  set_up(&r, &smc_kernel_lmc, TOY_GAUSSIAN, 1, n, 1, 0.1);
  r.tuner.n_subsample = n;
  r.config.step_size = NULL;
  r.path.target = record_points;
  r.path.data = &record;
  run(&r);
  CHECK(r.status == SMC_OK && record.n_calls == 2 + r.n_objective_evals[0]);
  const double *start = record.x[0], *moved = record.x[record.n_calls - 1];
  double h = r.step_size[0];
  long shared = 0;
  for (int c = 1; c < record.n_calls - 1; c++) {
    double nearest = INFINITY;
    for (int k = 0; k < n; k++)
      nearest = fmin(nearest, fabs(record.x[c][k] - moved[k]));
    shared += nearest == 0.0;
  }
  CHECK(shared == 0 && h > 0.0);
  /* Trials share their noise: at step sizes this small, their displacements
   * are proportional. That of the move is not correlated with them. */
  double a = 0.0, b = 0.0, ab = 0.0;
  for (int k = 0; k < n; k++) {
    double u = record.x[1][k] - start[k], v = record.x[2][k] - start[k];
    a += u * u;
    b += v * v;
    ab += u * v;
  }
  CHECK(ab / sqrt(a * b) > 0.99);
  double c = 0.0, ac = 0.0;
  for (int k = 0; k < n; k++) {
    double slope = (1.0 - start[k]) / 0.49; /* of the target */
    double v = moved[k] - start[k] - h * slope;
    c += v * v;
    ac += (record.x[1][k] - start[k]) * v;
  }
  CHECK(fabs(ac / sqrt(a * c)) < 4.0 / sqrt(n));
  for (int i = 0; i < record.n_calls && i < 200; i++)
    free(record.x[i]);
  release(&r);
}

/* what goes wrong --------------------------------------------------------- */

static void test_target_fails(void) {
  runner r;
  for (int k = 1; k <= 6; k++) { /* the start, then one call a step */
    set_up(&r, &smc_kernel_lmc, TOY_GAUSSIAN, 2, 16, 5, 0.1);
    r.target.fail_at = k;
    r.target.code = 30 + k;
    run(&r);
    CHECK(r.status == SMC_TARGET_FAILED && r.path.failure == 30 + k);
    CHECK(r.trace.step == k - 1 && r.target.calls == k);
    CHECK(r.trace.n_done == (k > 1 ? k - 2 : 0));
    release(&r);
  }

  /* While tuning: at once, and with the code, whichever call it is. */
  static const smc_kernel *const kernels[] = {
      &smc_kernel_lmc, &smc_kernel_klmc, &smc_kernel_mala, &smc_kernel_rwmh,
      &smc_kernel_hmc};
  for (int i = 0; i < 5; i++) {
    set_up(&r, kernels[i], TOY_GAUSSIAN, 2, 16, 3, 0.1);
    r.config.step_size = NULL;
    run(&r);
    int needed = r.target.calls;
    release(&r);
    CHECK(r.status == SMC_OK && needed > 20);
    long late = 0, code = 0, status = 0, step = 0;
    for (int k = 1; k <= needed; k++) {
      set_up(&r, kernels[i], TOY_GAUSSIAN, 2, 16, 3, 0.1);
      r.config.step_size = NULL;
      r.target.fail_at = k;
      r.target.code = -k;
      run(&r);
      status += r.status != SMC_TARGET_FAILED;
      late += r.target.calls != k;
      code += r.path.failure != -k;
      step += r.trace.n_done != (r.trace.step > 0 ? r.trace.step - 1 : 0);
      release(&r);
    }
    check_that(status == 0, __FILE__, __LINE__,
               "%s: %ld of %d failures of the target went unnoticed",
               kernels[i]->name, status, needed);
    check_that(late == 0, __FILE__, __LINE__,
               "%s: the target was called again after %ld of %d failures",
               kernels[i]->name, late, needed);
    check_that(code == 0, __FILE__, __LINE__,
               "%s: the target's code was lost after %ld of %d failures",
               kernels[i]->name, code, needed);
    check_that(step == 0, __FILE__, __LINE__, "%s: the step is wrong",
               kernels[i]->name);
  }
}

static void test_all_dead(void) {
  static const smc_kernel *const kernels[] = {
      &smc_kernel_lmc, &smc_kernel_klmc, &smc_kernel_mala, &smc_kernel_rwmh,
      &smc_kernel_hmc};
  for (int i = 0; i < 5; i++)
    for (int tuned = 0; tuned < 2; tuned++) {
      runner r;
      set_up(&r, kernels[i], TOY_IMPOSSIBLE, 2, 16, 5, 0.1);
      if (tuned)
        r.config.step_size = NULL;
      run(&r);
      CHECK(r.status == SMC_ALL_DEAD && r.trace.step == 1 &&
            r.trace.n_done == 0);
      if (tuned && !kernels[i]->adjusted)
        CHECK(r.tuner_status[0] == SMC_SEARCH_INFEASIBLE);
      release(&r);
    }
}

/* A step size that is far too large loses particles, or all of them; never
 * the run's good sense. */
static void test_wild_step_sizes(void) {
  static const double sizes[] = {1e-300, 1e-12, 10.0, 1e10, 1e150, 1e300};
  static const smc_kernel *const kernels[] = {
      &smc_kernel_lmc, &smc_kernel_klmc, &smc_kernel_mala, &smc_kernel_rwmh,
      &smc_kernel_hmc};
  long bad = 0;
  for (int i = 0; i < 5; i++)
    for (int s = 0; s < 6; s++) {
      runner r;
      set_up(&r, kernels[i], TOY_SKEWED, 3, 16, 5, sizes[s]);
      run(&r);
      if (r.status == SMC_OK) {
        for (int t = 0; t < 5; t++)
          bad += !isfinite(r.log_z[t]) || !(r.ess[t] >= 1.0 - 1e-9);
        for (int j = 0; j < 3 * 16; j++)
          bad += !isfinite(r.state.cloud.x[j]);
      } else {
        bad += r.status != SMC_ALL_DEAD || kernels[i]->adjusted;
      }
      release(&r);
    }
  CHECK_NONE(bad, 24, "wild step sizes leave a finite result or none");
}

/* A tuned run converges at every step, to a good estimate. */
static void test_tuned(void) {
  runner r;
  set_up(&r, &smc_kernel_lmc, TOY_GAUSSIAN, 2, 400, 8, NAN);
  r.config.step_size = NULL;
  run(&r);
  long not_converged = 0;
  for (int t = 0; t < 8; t++)
    not_converged += r.tuner_status[t] != SMC_SEARCH_CONVERGED ||
                     !(r.step_size[t] > 0.01 && r.step_size[t] < 2.0);
  CHECK_NONE(not_converged, 8, "searches converge to sensible sizes");
  CHECK_NEAR(last_log_z(&r), log(3.0), 0.2);
  release(&r);
}

void test_smc(void) {
  test_unbiased_lmc();
  test_unbiased_others();
  test_unbiased_with_reference();
  test_unbiased_with_covariance();
  test_half_space();
  test_counts();
  test_barrier();
  test_barrier_resampled();
  test_barrier_of_dead();
  test_adaptive();
  test_reproducible();
  test_noise_is_fresh();
  test_target_fails();
  test_all_dead();
  test_wild_step_sizes();
  test_tuned();
}
