/* test_kernels.c: the incremental weights and acceptance probabilities of
 * every kernel, against the same written out with densities of normals. */
#include "kernel.h"
#include "toy.h"

#include <stdlib.h>
#include <string.h>

enum { D = 3, N = 30 };

/* written out ------------------------------------------------------------- */

static double log_reference(const double *x) {
  double sum = 0.0;
  for (int i = 0; i < D; i++)
    sum += log_normal(x[i], 0.0, 1.0);
  return sum;
}

static double log_gamma(const double *x, double lambda) {
  double log_p = toy_log_density(TOY_SKEWED, D, x, NULL);
  return (1.0 - lambda) * log_reference(x) + lambda * log_p;
}

/* out: the gradient of log_gamma. */
static void gradient_at(const double *x, double lambda, double *out) {
  toy_log_density(TOY_SKEWED, D, x, out);
  for (int i = 0; i < D; i++)
    out[i] = lambda * out[i] - (1.0 - lambda) * x[i];
}

/* The density of a Langevin move, as a product of densities. */
static double log_langevin(const double *x, const double *to, double lambda,
                           double h) {
  double gradient[D], density = 1.0;
  gradient_at(x, lambda, gradient);
  for (int i = 0; i < D; i++) {
    double u = to[i] - (x[i] + h * gradient[i]);
    density *=
        exp(-u * u / (2.0 * 2.0 * h)) / sqrt(6.283185307179586 * 2.0 * h);
  }
  return log(density);
}

/* one move ---------------------------------------------------------------- */

typedef struct bench {
  toy target;
  smc_path path;
  smc_kernel_options options;
  smc_cloud from, to;
  smc_move move;
  double noise[D * N], uniform[N], log_g[N], acceptance[N];
  char *block_from, *block_to, *scratch;
} bench;

static void begin(bench *b, const smc_kernel *kernel, int step) {
  memset(b, 0, sizeof *b);
  b->target.shape = TOY_SKEWED;
  b->path = (smc_path){.target = toy_target, .data = &b->target, .d = D};
  b->scratch = toy_path_layout(&b->path, N);
  b->from =
      toy_cloud(D, N, kernel->refreshes, kernel->gradients, &b->block_from);
  b->to = toy_cloud(D, N, kernel->refreshes, kernel->gradients, &b->block_to);
  dice r = {400};
  for (int j = 0; j < D * N; j++) {
    b->from.x[j] = dice_normal(&r);
    if (b->from.v)
      b->from.v[j] = dice_normal(&r);
    b->noise[j] = dice_normal(&r);
  }
  for (int k = 0; k < N; k++)
    b->uniform[k] = dice_unit(&r);
  smc_path_evaluate(&b->path, &b->from, kernel->gradients, NULL);
  b->move = (smc_move){.path = &b->path,
                       .options = &b->options,
                       .step = step,
                       .from = &b->from,
                       .to = &b->to,
                       .noise = b->noise,
                       .uniform = b->uniform,
                       .log_g = b->log_g,
                       .acceptance = b->acceptance};
  b->move.previous = step == 1 ? (smc_level){0.0, NAN, NAN, NAN}
                               : (smc_level){0.3, 0.11, 0.6, NAN};
  b->move.current = (smc_level){0.55, 0.07, 0.35, NAN};
}

static void end(bench *b) {
  free(b->scratch);
  free(b->block_from);
  free(b->block_to);
}

/* The cloud moved to has the densities and gradients of where it stands. */
static double cache_error(const bench *b, bool gradients) {
  double off = 0.0, grad[D];
  for (int k = 0; k < N; k++) {
    const double *x = b->to.x + D * k;
    off = fmax(off, fabs(b->to.log_q[k] - log_reference(x)));
    off = fmax(off,
               fabs(b->to.log_p[k] - toy_log_density(TOY_SKEWED, D, x, grad)));
    for (int i = 0; i < D && gradients; i++) {
      off = fmax(off, fabs(b->to.grad_p[D * k + i] - grad[i]));
      off = fmax(off, fabs(b->to.grad_q[D * k + i] + x[i]));
    }
  }
  return off;
}

/* lmc --------------------------------------------------------------------- */

static double lmc_log_g(const bench *b, int k) {
  smc_level now = b->move.current, before = b->move.previous;
  const double *x = b->from.x + D * k, *y = b->to.x + D * k;
  double forward = log_langevin(x, y, now.lambda, now.step_size), backward;
  double ratio = log_gamma(y, now.lambda) - log_gamma(x, before.lambda);
  switch (b->options.backward) {
  case SMC_BACKWARD_DETAILED_BALANCE:
    return log_gamma(x, now.lambda) - log_gamma(x, before.lambda);
  case SMC_BACKWARD_FORWARD:
    backward = log_langevin(y, x, now.lambda, now.step_size);
    return ratio + backward - forward;
  case SMC_BACKWARD_TIME_CORRECT:
    break;
  }
  if (b->move.step > 1)
    backward = log_langevin(y, x, before.lambda, before.step_size);
  else if (b->options.first_backward == SMC_FIRST_INDEPENDENT)
    backward = log_langevin(y, x, 0.0, now.step_size);
  else
    backward = log_reference(x);
  return ratio + backward - forward;
}

static void test_lmc(smc_backward backward, smc_first_backward first,
                     int step) {
  bench b;
  double off = 0.0, off_x = 0.0, off_trial = 0.0, gradient[D], kept[N];
  begin(&b, &smc_kernel_lmc, step);
  b.options.backward = backward;
  b.options.first_backward = first;
  int calls = b.target.calls;
  CHECK(smc_kernel_move(&smc_kernel_lmc, &b.move) == 0);
  CHECK(b.target.calls == calls + 1 && b.path.n_evals == 2 * N);
  double h = b.move.current.step_size;
  for (int k = 0; k < N; k++) {
    gradient_at(b.from.x + D * k, b.move.current.lambda, gradient);
    for (int i = 0; i < D; i++) {
      int j = D * k + i;
      double y = b.from.x[j] + h * gradient[i] + sqrt(2.0 * h) * b.noise[j];
      off_x = fmax(off_x, fabs(b.to.x[j] - y));
    }
    off = fmax(off, fabs(b.log_g[k] - lmc_log_g(&b, k)));
  }
  CHECK_NEAR(off_x, 0.0, 1e-13);
  CHECK_NEAR(off, 0.0, 1e-11);
  CHECK_NEAR(cache_error(&b, true), 0.0, 1e-12);

  /* A trial weighs alike, and asks no gradients where it can do without. */
  memcpy(kept, b.log_g, sizeof kept);
  int asked = b.target.gradient_calls;
  b.move.trial = true;
  CHECK(smc_kernel_move(&smc_kernel_lmc, &b.move) == 0);
  for (int k = 0; k < N; k++)
    off_trial = fmax(off_trial, fabs(b.log_g[k] - kept[k]));
  CHECK(off_trial == 0.0);
  bool without = step == 1 && backward == SMC_BACKWARD_TIME_CORRECT &&
                 first == SMC_FIRST_REFERENCE;
  if (without)
    CHECK(b.target.gradient_calls == asked);
  else if (backward != SMC_BACKWARD_DETAILED_BALANCE)
    CHECK(b.target.gradient_calls == asked + 1);
  double divergence = 0.0;
  for (int k = 0; k < N; k++)
    divergence -= kept[k] / N;
  CHECK_NEAR(smc_kernel_lmc.objective(&b.move), divergence, 1e-12);
  end(&b);
}

/* klmc -------------------------------------------------------------------- */

static void test_klmc(int step) {
  bench b;
  double off = 0.0, off_x = 0.0, g[D], v[D], x[D];
  begin(&b, &smc_kernel_klmc, step);
  CHECK(smc_kernel_move(&smc_kernel_klmc, &b.move) == 0);
  CHECK(b.path.n_evals == 2 * N);
  double h = b.move.current.step_size, rho = b.move.current.refresh_rate;
  double lambda = b.move.current.lambda;
  for (int k = 0; k < N; k++) {
    const double *from = b.from.x + D * k;
    double log_g = -log_gamma(from, b.move.previous.lambda);
    gradient_at(from, lambda, g);
    for (int i = 0; i < D; i++) {
      int j = D * k + i;
      v[i] = sqrt(1.0 - rho * rho) * b.from.v[j] + rho * b.noise[j];
      log_g -= log_normal(v[i], 0.0, 1.0);
      v[i] += 0.5 * h * g[i];
      x[i] = from[i] + h * v[i];
    }
    gradient_at(x, lambda, g);
    log_g += log_gamma(x, lambda);
    for (int i = 0; i < D; i++) {
      v[i] += 0.5 * h * g[i];
      log_g += log_normal(v[i], 0.0, 1.0);
      off_x = fmax(off_x, fabs(b.to.x[D * k + i] - x[i]));
      off_x = fmax(off_x, fabs(b.to.v[D * k + i] - v[i]));
    }
    off = fmax(off, fabs(b.log_g[k] - log_g));
  }
  CHECK_NEAR(off_x, 0.0, 1e-13);
  CHECK_NEAR(off, 0.0, 1e-12);
  CHECK_NEAR(cache_error(&b, true), 0.0, 1e-12);
  end(&b);
}

/* mala, rwmh and pcn ------------------------------------------------------ */

static void test_metropolis(const smc_kernel *kernel, double h) {
  bench b;
  bool mala = kernel == &smc_kernel_mala;
  bool pcn = kernel == &smc_kernel_pcn;
  double off = 0.0, off_x = 0.0, jump = 0.0, mean = 0.0, g[D], proposal[D * N];
  begin(&b, kernel, 2);
  b.move.current.step_size = h;
  double lambda = b.move.current.lambda, expected[N];
  for (int k = 0; k < N; k++) {
    const double *x = b.from.x + D * k;
    double *y = proposal + D * k, length2 = 0.0;
    gradient_at(x, lambda, g);
    for (int i = 0; i < D; i++) {
      double z = b.noise[D * k + i];
      if (mala)
        y[i] = x[i] + h * g[i] + sqrt(2.0 * h) * z;
      else if (pcn)
        y[i] = exp(-h) * x[i] + sqrt(1.0 - exp(-2.0 * h)) * z;
      else
        y[i] = x[i] + sqrt(h) * z;
      length2 += (y[i] - x[i]) * (y[i] - x[i]);
    }
    double ratio = log_gamma(y, lambda) - log_gamma(x, lambda);
    if (mala)
      ratio += log_langevin(y, x, lambda, h) - log_langevin(x, y, lambda, h);
    if (pcn)
      ratio += log_reference(x) - log_reference(y);
    expected[k] = fmin(1.0, exp(ratio));
    jump += expected[k] * length2 / N;
    mean += expected[k] / N;
  }

  CHECK(smc_kernel_move(kernel, &b.move) == 0);
  CHECK(b.path.n_evals == 2 * N);
  int accepted = 0;
  for (int k = 0; k < N; k++) {
    bool accept = b.uniform[k] < expected[k];
    accepted += accept;
    off = fmax(off, fabs(b.acceptance[k] - expected[k]));
    for (int i = 0; i < D; i++) {
      int j = D * k + i;
      off_x =
          fmax(off_x, fabs(b.to.x[j] - (accept ? proposal[j] : b.from.x[j])));
    }
  }
  CHECK_NEAR(off, 0.0, 1e-11);
  CHECK_NEAR(off_x, 0.0, 1e-13);
  CHECK(accepted > 0 && accepted < N);
  CHECK_NEAR(cache_error(&b, mala), 0.0, 1e-12);

  /* The objectives, of a trial that needs no coins and keeps proposals. */
  b.move.trial = true;
  b.move.uniform = NULL;
  b.options.objective = SMC_OBJECTIVE_ESJD;
  CHECK(smc_kernel_move(kernel, &b.move) == 0);
  CHECK_NEAR(kernel->objective(&b.move), -jump, 1e-11);
  b.options.objective = SMC_OBJECTIVE_ACCEPTANCE;
  b.options.target_acceptance = 0.4;
  CHECK_NEAR(kernel->objective(&b.move), pow(log(mean / 0.4), 2.0), 1e-11);
  end(&b);
}

/* hmc ----------------------------------------------------------------------*/

/* The excess of the annealed log density over that of N(0, I) kicks the
 * velocity before and after a turn, and a rejection turns it round. */
static void test_hmc(double h) {
  bench b;
  double off = 0.0, off_x = 0.0, rho = 0.6, g[D];
  begin(&b, &smc_kernel_hmc, 2);
  b.move.current.step_size = h;
  b.move.current.refresh_rate = rho;
  double lambda = b.move.current.lambda;
  CHECK(smc_kernel_move(&smc_kernel_hmc, &b.move) == 0);
  CHECK(b.path.n_evals == 2 * N);
  int accepted = 0;
  for (int k = 0; k < N; k++) {
    const double *from = b.from.x + D * k;
    double start[D], x[D], v[D], angle = atan(h), kick = tan(0.5 * angle),
                                 log_ratio = 0.0;
    gradient_at(from, lambda, g);
    for (int i = 0; i < D; i++) {
      int j = D * k + i;
      start[i] = sqrt(1.0 - rho * rho) * b.from.v[j] + rho * b.noise[j];
      double kicked = start[i] + kick * (g[i] + from[i]);
      x[i] = cos(angle) * from[i] + sin(angle) * kicked;
      v[i] = cos(angle) * kicked - sin(angle) * from[i];
    }
    gradient_at(x, lambda, g);
    for (int i = 0; i < D; i++) {
      v[i] += kick * (g[i] + x[i]);
      log_ratio += log_normal(v[i], 0.0, 1.0) - log_normal(start[i], 0.0, 1.0);
    }
    log_ratio += log_gamma(x, lambda) - log_gamma(from, lambda);
    double expected = fmin(1.0, exp(log_ratio));
    bool accept = b.uniform[k] < expected;
    accepted += accept;
    off = fmax(off, fabs(b.acceptance[k] - expected));
    for (int i = 0; i < D; i++) {
      int j = D * k + i;
      off_x = fmax(off_x, fabs(b.to.x[j] - (accept ? x[i] : from[i])));
      off_x = fmax(off_x, fabs(b.to.v[j] - (accept ? v[i] : -start[i])));
    }
  }
  CHECK_NEAR(off, 0.0, 1e-11);
  CHECK_NEAR(off_x, 0.0, 1e-13);
  CHECK(accepted > 0 && accepted < N);
  CHECK_NEAR(cache_error(&b, true), 0.0, 1e-12);
  end(&b);
}

/* runaways ---------------------------------------------------------------- */

/* A step size so large that everything overflows weighs nothing, is never
 * accepted, and leaves nothing that is not finite behind. */
static void test_overflow(const smc_kernel *kernel) {
  bench b;
  begin(&b, kernel, 2);
  b.move.current.step_size = 1e200;
  CHECK(smc_kernel_move(kernel, &b.move) == 0);
  long bad = 0;
  for (int k = 0; k < N; k++) {
    if (kernel->adjusted)
      bad += b.acceptance[k] != 0.0;
    else
      bad += b.log_g[k] > -INFINITY;
  }
  for (int j = 0; j < D * N; j++)
    bad += !isfinite(b.to.x[j]);
  CHECK_NONE(bad, N, "what overflows is dead");
  end(&b);
}

/* The tuner's divergence leaves out what starts where the target is
 * impossible, and nothing else. */
/* Gradients of N(0, I) are the same to the last bit, kept or not. */
static void test_gradients_not_kept(const smc_kernel *kernel) {
  bench kept, other;
  begin(&kept, kernel, 2);
  begin(&other, kernel, 2);
  other.from.grad_q = other.to.grad_q = NULL;
  CHECK(smc_kernel_move(kernel, &kept.move) == 0);
  CHECK(smc_kernel_move(kernel, &other.move) == 0);
  CHECK(memcmp(kept.to.x, other.to.x, D * N * sizeof(double)) == 0);
  CHECK(memcmp(kept.log_g, other.log_g, sizeof kept.log_g) == 0);
  CHECK(memcmp(kept.acceptance, other.acceptance, sizeof kept.acceptance) == 0);
  end(&kept);
  end(&other);
}

static void test_divergence(void) {
  double log_g[3] = {-1.0, -INFINITY, -4.0};
  double log_p[3] = {0.0, -INFINITY, 0.0};
  smc_cloud from = {.d = 1, .n = 3, .log_p = log_p};
  smc_move m = {.from = &from, .log_g = log_g};
  CHECK_NEAR(smc_divergence(&m), 2.5, 1e-15);
  log_p[1] = 0.0;
  CHECK(!isfinite(smc_divergence(&m)));
  log_p[0] = log_p[1] = log_p[2] = -INFINITY;
  CHECK(!isfinite(smc_divergence(&m)));
}

void test_kernels(void) {
  for (int step = 1; step <= 2; step++) {
    test_lmc(SMC_BACKWARD_TIME_CORRECT, SMC_FIRST_REFERENCE, step);
    test_lmc(SMC_BACKWARD_TIME_CORRECT, SMC_FIRST_INDEPENDENT, step);
    test_lmc(SMC_BACKWARD_FORWARD, SMC_FIRST_REFERENCE, step);
    test_lmc(SMC_BACKWARD_DETAILED_BALANCE, SMC_FIRST_REFERENCE, step);
    test_klmc(step);
  }
  test_metropolis(&smc_kernel_mala, 0.3);
  test_metropolis(&smc_kernel_rwmh, 0.8);
  test_metropolis(&smc_kernel_pcn, 0.5);
  test_hmc(0.3);
  test_hmc(2.0);
  test_overflow(&smc_kernel_lmc);
  test_overflow(&smc_kernel_klmc);
  test_overflow(&smc_kernel_mala);
  test_overflow(&smc_kernel_rwmh);
  test_gradients_not_kept(&smc_kernel_lmc);
  test_gradients_not_kept(&smc_kernel_klmc);
  test_gradients_not_kept(&smc_kernel_mala);
  test_gradients_not_kept(&smc_kernel_hmc);
  test_divergence();
  CHECK(smc_find_kernel("lmc") == &smc_kernel_lmc);
  CHECK(smc_find_kernel("klmc") == &smc_kernel_klmc);
  CHECK(smc_find_kernel("mala") == &smc_kernel_mala);
  CHECK(smc_find_kernel("rwmh") == &smc_kernel_rwmh);
  CHECK(smc_find_kernel("pcn") == &smc_kernel_pcn);
  CHECK(smc_find_kernel("hmc") == &smc_kernel_hmc);
  CHECK(smc_find_kernel("nuts") == NULL);
}
