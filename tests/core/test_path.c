/* test_path.c: the path from reference to target, and what is made of values
 * that are not finite. */
#include "path.h"
#include "toy.h"

#include <stdlib.h>
#include <string.h>

/* the annealed density ---------------------------------------------------- */

static void test_annealed(void) {
  double log_p[3] = {-INFINITY, -1.5, 4.0}, log_q[3] = {-2.5, -3.5, -INFINITY};
  double grad_p[3] = {5.0, 6.0, 0.0}, grad_q[3] = {1.0, -2.0, 0.0};
  smc_cloud c = {.d = 1,
                 .n = 3,
                 .log_p = log_p,
                 .log_q = log_q,
                 .grad_p = grad_p,
                 .grad_q = grad_q};
  CHECK(smc_annealed(&c, 0, 0.0) == -2.5);
  CHECK(smc_annealed(&c, 0, 1e-300) == -INFINITY);
  CHECK(smc_annealed(&c, 0, 1.0) == -INFINITY);
  CHECK(smc_annealed(&c, 1, 0.0) == -3.5);
  CHECK(smc_annealed(&c, 1, 1.0) == -1.5);
  CHECK(smc_annealed(&c, 1, 0.25) == -3.0);
  CHECK(smc_annealed(&c, 2, 1.0) == 4.0);
  smc_slope slope = smc_annealed_slope(&c, 0.25);
  CHECK(smc_slope_at(&slope, 1) == 0.0);
  slope = smc_annealed_slope(&c, 0.0);
  CHECK(smc_slope_at(&slope, 0) == 1.0);
  slope = smc_annealed_slope(&c, 1.0);
  CHECK(smc_slope_at(&slope, 0) == 5.0);
  double x[3] = {-2.0, 0.5, 1.0};
  c.grad_q = NULL;
  c.x = x;
  slope = smc_annealed_slope(&c, 0.25);
  CHECK(smc_slope_at(&slope, 0) == 2.75);
}

/* evaluation -------------------------------------------------------------- */

static void fill_normal(smc_cloud *c, uint64_t seed) {
  dice r = {seed};
  for (int j = 0; j < c->d * c->n; j++)
    c->x[j] = 2.0 * dice_normal(&r);
}

static void test_standard_reference(void) {
  enum { d = 3, n = 50 };
  toy t = {.shape = TOY_SKEWED};
  smc_path path = {.target = toy_target, .data = &t, .d = d};
  char *scratch = toy_path_layout(&path, n), *block;
  smc_cloud c = toy_cloud(d, n, false, true, &block);
  fill_normal(&c, 300);
  double off = 0.0, grad[d];
  CHECK(smc_path_evaluate(&path, &c, true, NULL) == 0);
  for (int k = 0; k < n; k++) {
    double log_q = 0.0;
    double log_p = toy_log_density(TOY_SKEWED, d, c.x + d * k, grad);
    for (int i = 0; i < d; i++) {
      log_q += log_normal(c.x[d * k + i], 0.0, 1.0);
      off = fmax(off, fabs(c.grad_q[d * k + i] + c.x[d * k + i]));
      off = fmax(off, fabs(c.grad_p[d * k + i] - grad[i]));
    }
    off = fmax(off, fabs(c.log_q[k] - log_q));
    off = fmax(off, fabs(c.log_p[k] - log_p));
  }
  CHECK_NEAR(off, 0.0, 1e-12);
  CHECK(path.n_evals == n && t.points == n && t.calls == 1);

  /* Without gradients none are asked for, and none are touched. */
  for (int j = 0; j < d * n; j++)
    c.grad_p[j] = c.grad_q[j] = -7.0;
  CHECK(smc_path_evaluate(&path, &c, false, NULL) == 0);
  long touched = 0;
  for (int j = 0; j < d * n; j++)
    touched += c.grad_p[j] != -7.0 || c.grad_q[j] != -7.0;
  CHECK(touched == 0 && t.gradient_calls == 1);
  CHECK(path.n_evals == 2 * n);
  free(block);
  free(scratch);
}

/* With mean and sd, densities and gradients are those of x = mean + sd z in
 * the coordinates z. */
static void test_change_of_variables(void) {
  enum { d = 3, n = 40 };
  static const double mean[d] = {2.0, -1.0, 0.5}, sd[d] = {0.3, 4.0, 1.5};
  toy t = {.shape = TOY_GAUSSIAN};
  double *x = take_doubles(d * n);
  t.last_x = x;
  smc_map map = toy_affine(d, mean, sd, NULL);
  smc_path path = {
      .target = toy_target, .data = &t, .d = d, .chain = toy_chain(1, &map)};
  char *scratch = toy_path_layout(&path, n), *block;
  smc_cloud c = toy_cloud(d, n, false, true, &block);
  fill_normal(&c, 301);
  CHECK(smc_path_evaluate(&path, &c, true, NULL) == 0);

  /* Where x ~ N(1, 0.7^2), z ~ N((1 - mean) / sd, (0.7 / sd)^2). */
  double off = 0.0, off_user = 0.0, off_gradient = 0.0;
  for (int k = 0; k < n; k++) {
    double log_p = log(3.0), log_q = 0.0;
    for (int i = 0; i < d; i++) {
      double z = c.x[d * k + i], s = 0.7 / sd[i], m = (1.0 - mean[i]) / sd[i];
      log_p += log_normal(z, m, s * s);
      log_q += log_normal(z, 0.0, 1.0);
      off_user = fmax(off_user, fabs(x[d * k + i] - (mean[i] + sd[i] * z)));
    }
    off = fmax(off, fabs(c.log_p[k] - log_p) / (1.0 + fabs(log_p)));
    off = fmax(off, fabs(c.log_q[k] - log_q));
  }
  CHECK_NEAR(off, 0.0, 1e-12);
  CHECK_NEAR(off_user, 0.0, 1e-14);

  /* Gradients by central differences in z. */
  t.shape = TOY_SKEWED;
  t.last_x = NULL;
  const double step = 1e-5;
  char *block_plus, *block_minus;
  smc_cloud plus = toy_cloud(d, n, false, true, &block_plus);
  smc_cloud minus = toy_cloud(d, n, false, true, &block_minus);
  for (int j = 0; j < d * n; j++)
    c.x[j] *= 0.3;
  smc_path_evaluate(&path, &c, true, NULL);
  for (int i = 0; i < d; i++) {
    memcpy(plus.x, c.x, d * n * sizeof(double));
    memcpy(minus.x, c.x, d * n * sizeof(double));
    for (int k = 0; k < n; k++) {
      plus.x[d * k + i] += step;
      minus.x[d * k + i] -= step;
    }
    smc_path_evaluate(&path, &plus, false, NULL);
    smc_path_evaluate(&path, &minus, false, NULL);
    for (int k = 0; k < n; k++) {
      double slope_p = (plus.log_p[k] - minus.log_p[k]) / (2.0 * step);
      double slope_q = (plus.log_q[k] - minus.log_q[k]) / (2.0 * step);
      double size = 1.0 + fabs(slope_p);
      off_gradient =
          fmax(off_gradient, fabs(c.grad_p[d * k + i] - slope_p) / size);
      off_gradient = fmax(off_gradient, fabs(c.grad_q[d * k + i] - slope_q));
    }
  }
  CHECK_NEAR(off_gradient, 0.0, 1e-6);

  const double z[d] = {1.0, -1.0, 2.0};
  double user[d];
  smc_path_to_user(&path, 1, z, user);
  CHECK(user[0] == 2.3 && user[1] == -5.0 && user[2] == 3.5);
  free(block);
  free(block_plus);
  free(block_minus);
  free(scratch);
  free(x);
}

/* With a triangular L: x = mean + L z, the density gains log|L|, and the
 * gradient in z is L' times the one in x. What is outside the triangle is
 * never read. */
static void test_triangular(int d, int n, uint64_t seed) {
  const size_t dd = (size_t)(d * d), dn = (size_t)(d * n);
  double *mean = take_doubles((size_t)d), *chol = take_doubles(dd);
  double *x = take_doubles(dn);
  double log_det = 0.0;
  dice r = {seed};
  for (int j = 0; j < d; j++) {
    mean[j] = dice_normal(&r);
    for (int i = 0; i < d; i++) {
      bool inside = i >= j;
      double value = i == j ? dice_between(&r, 0.3, 2.0) : dice_normal(&r);
      chol[i + d * j] = inside ? value : NAN;
      log_det += i == j ? log(value) : 0.0;
    }
  }
  toy t = {.shape = TOY_SKEWED, .last_x = x};
  smc_map map = toy_affine(d, mean, NULL, chol);
  smc_path path = {
      .target = toy_target, .data = &t, .d = d, .chain = toy_chain(1, &map)};
  char *scratch = toy_path_layout(&path, n), *blocks[3];
  smc_cloud c = toy_cloud(d, n, false, true, &blocks[0]);
  smc_cloud plus = toy_cloud(d, n, false, true, &blocks[1]);
  smc_cloud minus = toy_cloud(d, n, false, true, &blocks[2]);
  fill_normal(&c, seed + 1);
  for (size_t j = 0; j < dn; j++)
    c.x[j] *= 0.4;
  CHECK(smc_path_evaluate(&path, &c, true, NULL) == 0);
  CHECK(path.n_evals == n && t.calls == 1 && t.points == n);

  double off_user = 0.0, off_p = 0.0, off_q = 0.0, off_gradient = 0.0;
  double *expected = take_doubles(dn);
  for (int k = 0; k < n; k++) {
    const double *z = c.x + d * k;
    double log_q = 0.0;
    for (int i = 0; i < d; i++) {
      double sum = mean[i];
      for (int j = 0; j <= i; j++)
        sum += chol[i + d * j] * z[j];
      expected[i + d * k] = sum;
      log_q += log_normal(z[i], 0.0, 1.0);
      off_user = fmax(off_user, fabs(x[i + d * k] - sum));
      off_q = fmax(off_q, fabs(c.grad_q[i + d * k] + z[i]));
    }
    double log_p =
        toy_log_density(TOY_SKEWED, d, expected + d * k, NULL) + log_det;
    off_p = fmax(off_p, fabs(c.log_p[k] - log_p) / (1.0 + fabs(log_p)));
    off_q = fmax(off_q, fabs(c.log_q[k] - log_q));
  }
  double *user = take_memory(dn * sizeof *user);
  smc_path_to_user(&path, n, c.x, user);
  for (size_t j = 0; j < dn; j++)
    off_user = fmax(off_user, fabs(user[j] - expected[j]));
  free(user);
  CHECK_NEAR(off_user, 0.0, 1e-12);
  CHECK_NEAR(off_p, 0.0, 1e-11);
  CHECK_NEAR(off_q, 0.0, 1e-12);

  /* Gradients by central differences in z. */
  const double step = 1e-5;
  t.last_x = NULL;
  for (int i = 0; i < d; i++) {
    memcpy(plus.x, c.x, dn * sizeof(double));
    memcpy(minus.x, c.x, dn * sizeof(double));
    for (int k = 0; k < n; k++) {
      plus.x[d * k + i] += step;
      minus.x[d * k + i] -= step;
    }
    smc_path_evaluate(&path, &plus, false, NULL);
    smc_path_evaluate(&path, &minus, false, NULL);
    for (int k = 0; k < n; k++) {
      double slope = (plus.log_p[k] - minus.log_p[k]) / (2.0 * step);
      double off = fabs(c.grad_p[d * k + i] - slope) / (1.0 + fabs(slope));
      off_gradient = fmax(off_gradient, off);
    }
  }
  CHECK_NEAR(off_gradient, 0.0, 1e-6);
  for (int i = 0; i < 3; i++)
    free(blocks[i]);
  free(scratch);
  free(expected);
  free(x);
  free(chol);
  free(mean);
}

/* A diagonal matrix is the same map, whichever way it is given. */
static void test_diagonal_is_triangular(void) {
  enum { d = 3, n = 10 };
  static const double mean[d] = {2.0, -1.0, 0.5}, sd[d] = {0.3, 4.0, 1.5};
  static const double chol[d * d] = {0.3, 0.0, 0.0, 0.0, 4.0,
                                     0.0, 0.0, 0.0, 1.5};
  toy t = {.shape = TOY_SKEWED};
  smc_map maps[2] = {toy_affine(d, mean, sd, NULL),
                     toy_affine(d, mean, NULL, chol)};
  smc_path paths[2];
  smc_cloud c[2];
  char *blocks[2], *scratch[2];
  double off = 0.0;
  for (int i = 0; i < 2; i++) {
    paths[i] = (smc_path){.target = toy_target,
                          .data = &t,
                          .d = d,
                          .chain = toy_chain(1, &maps[i])};
    scratch[i] = toy_path_layout(&paths[i], n);
    c[i] = toy_cloud(d, n, false, true, &blocks[i]);
    fill_normal(&c[i], 320);
    smc_path_evaluate(&paths[i], &c[i], true, NULL);
  }
  for (int k = 0; k < n; k++)
    off = fmax(off, fabs(c[0].log_p[k] / c[1].log_p[k] - 1.0));
  for (int j = 0; j < d * n; j++)
    off = fmax(off, fabs(c[0].grad_p[j] - c[1].grad_p[j]) /
                        (1.0 + fabs(c[0].grad_p[j])));
  CHECK_NEAR(off, 0.0, 1e-13);
  for (int i = 0; i < 2; i++) {
    free(blocks[i]);
    free(scratch[i]);
  }
}

/* what is not finite ------------------------------------------------------ */

/* Particle k: what the table says; complains when it is shown NaN. */
static const double told_log_p[6] = {NAN, INFINITY, -INFINITY, 1.0, 2.0, 3.0};
static const double told_grad[6] = {1.0, 1.0, 1.0, NAN, -INFINITY, 5.0};
static int n_not_finite_shown;

static int tell(void *data, int d, int n, const double *x, double *logp,
                double *grad) {
  (void)data;
  for (int k = 0; k < n; k++) {
    logp[k] = told_log_p[k];
    for (int i = 0; i < d; i++) {
      n_not_finite_shown += !isfinite(x[d * k + i]);
      if (grad)
        grad[d * k + i] = i == 1 ? told_grad[k] : 4.0;
    }
  }
  return 0;
}

static void test_not_finite(void) {
  enum { d = 2, n = 6 };
  smc_path path = {.target = tell, .d = d};
  char *scratch = toy_path_layout(&path, n), *block;
  for (int gradients = 0; gradients < 2; gradients++) {
    smc_cloud c = toy_cloud(d, n, false, gradients != 0, &block);
    fill_normal(&c, 302);
    CHECK(smc_path_evaluate(&path, &c, gradients != 0, NULL) == 0);
    CHECK(c.log_p[0] == -INFINITY && c.log_p[1] == -INFINITY &&
          c.log_p[2] == -INFINITY);
    CHECK(c.log_p[3] == 1.0 && c.log_p[4] == 2.0 && c.log_p[5] == 3.0);
    if (gradients) {
      CHECK(c.grad_p[6] == 0.0 && c.grad_p[7] == 0.0);
      CHECK(c.grad_p[8] == 0.0 && c.grad_p[9] == 0.0);
      CHECK(c.grad_p[10] == 4.0 && c.grad_p[11] == 5.0);
      CHECK(c.grad_p[0] == 4.0 && c.grad_p[1] == 1.0);
    }
    free(block);
  }

  /* Positions that have run away. */
  static const double bad[5] = {NAN, INFINITY, -INFINITY, 1e200, -1.7e308};
  smc_cloud c = toy_cloud(d, n, false, true, &block);
  fill_normal(&c, 303);
  for (int k = 0; k < 5; k++)
    c.x[d * k + 1] = bad[k];
  c.x[10] = c.x[11] = 1e100; /* far out, but with a finite log density */
  path.n_evals = 0.0;
  CHECK(smc_path_evaluate(&path, &c, true, NULL) == 0);
  long wrong = 0;
  for (int k = 0; k < 5; k++) {
    wrong += c.x[d * k] != 0.0 || c.x[d * k + 1] != 0.0;
    wrong += c.log_p[k] != -INFINITY || c.log_q[k] != -INFINITY;
    wrong += !(isfinite(c.grad_p[d * k]) && isfinite(c.grad_q[d * k + 1]));
    wrong += smc_annealed(&c, k, 0.0) != -INFINITY;
    wrong += smc_annealed(&c, k, 0.5) != -INFINITY;
    wrong += smc_annealed(&c, k, 1.0) != -INFINITY;
  }
  CHECK_NONE(wrong, 5, "a particle that has overflowed is dead at the origin");
  /* so low that differences have no digits left */
  CHECK(c.x[10] == 1e100 && c.log_q[5] < -1e199 && c.log_p[5] == -INFINITY);
  CHECK(path.n_evals == n && n_not_finite_shown == 0);
  CHECK(path.n_impossible == 9); /* three of every call */
  free(block);
  free(scratch);
}

/* A target's log density so low, or so high, that differences have no digits
 * left is none, and one that is merely far from 0 is. */
static int far_off(void *data, int d, int n, const double *x, double *logp,
                   double *grad) {
  static const double values[4] = {-1e14, -2e15, 1e14, 2e15};
  (void)data, (void)x;
  for (int k = 0; k < n; k++) {
    logp[k] = values[k];
    for (int i = 0; grad && i < d; i++)
      grad[d * k + i] = 0.0;
  }
  return 0;
}

static void test_far_off(void) {
  smc_path path = {.target = far_off, .d = 1};
  char *scratch = toy_path_layout(&path, 4), *block;
  smc_cloud c = toy_cloud(1, 4, false, true, &block);
  fill_normal(&c, 305);
  CHECK(smc_path_evaluate(&path, &c, true, NULL) == 0);
  CHECK(c.log_p[0] == -1e14 && c.log_p[1] == -INFINITY);
  CHECK(c.log_p[2] == 1e14 && c.log_p[3] == -INFINITY);
  free(block);
  free(scratch);
}

static void test_failure(void) {
  toy t = {.shape = TOY_GAUSSIAN, .fail_at = 2, .code = -17};
  smc_path path = {.target = toy_target, .data = &t, .d = 1};
  char *scratch = toy_path_layout(&path, 4), *block;
  smc_cloud c = toy_cloud(1, 4, false, true, &block);
  fill_normal(&c, 304);
  CHECK(smc_path_evaluate(&path, &c, true, NULL) == 0 && path.failure == 0);
  CHECK(smc_path_evaluate(&path, &c, true, NULL) == 1 && path.failure == -17);
  free(block);
  free(scratch);
}

/* x_0 and v_0 come from streams of their own. */
static void test_sample(void) {
  enum { d = 2, n = 50000 };
  const uint32_t key[2] = {5, 6};
  char *block;
  smc_cloud c = toy_cloud(d, n, true, false, &block);
  const smc_path path = {.d = d};
  smc_path_sample(&path, key, &c);
  double sum = 0.0, sum2 = 0.0, product = 0.0;
  for (int j = 0; j < d * n; j++) {
    sum += c.x[j];
    sum2 += c.x[j] * c.x[j];
    product += c.x[j] * c.v[j];
  }
  CHECK_NEAR(sum / (d * n), 0.0, 4.0 / sqrt(d * n));
  CHECK_NEAR(sum2 / (d * n), 1.0, 4.0 * sqrt(2.0 / (d * n)));
  CHECK_NEAR(product / (d * n), 0.0, 4.0 / sqrt(d * n));
  free(block);
}

/* a reference of its own --------------------------------------------------- */

/* A cloud, and a path from 3 N(x; 1, 0.7^2 I), which is no density but will do,
 * to the skewed target. */
typedef struct callback {
  toy target, reference;
  smc_path path;
  smc_cloud cloud;
  char *block, *scratch;
} callback;

static void begin_callback(callback *c, int d, int n) {
  *c = (callback){.target = {.shape = TOY_SKEWED},
                  .reference = {.shape = TOY_GAUSSIAN}};
  c->path = (smc_path){.target = toy_target,
                       .data = &c->target,
                       .d = d,
                       .reference = {.type = SMC_REFERENCE_CALLBACK,
                                     .density = toy_target,
                                     .data = &c->reference}};
  c->scratch = toy_path_layout(&c->path, n);
  c->cloud = toy_cloud(d, n, true, true, &c->block);
}

static void end_callback(callback *c) {
  free(c->block);
  free(c->scratch);
}

static void test_callback(void) {
  enum { d = 3, n = 50 };
  callback c;
  begin_callback(&c, d, n);

  /* The start is what was given, with velocities from their own stream. */
  const uint32_t key[2] = {5, 6};
  char *block;
  smc_cloud usual = toy_cloud(d, n, true, true, &block);
  smc_path none = {.d = d};
  double start[d * n];
  fill_normal(&c.cloud, 330);
  memcpy(start, c.cloud.x, sizeof start);
  c.path.reference.draws = start;
  smc_path_sample(&c.path, key, &c.cloud);
  smc_path_sample(&none, key, &usual);
  CHECK(memcmp(c.cloud.x, start, sizeof start) == 0);
  CHECK(memcmp(c.cloud.v, usual.v, sizeof start) == 0);
  CHECK(memcmp(c.cloud.x, usual.x, sizeof start) != 0);

  /* One call of each; the target's evaluations alone are counted. */
  CHECK(smc_path_evaluate(&c.path, &c.cloud, true, NULL) == 0);
  CHECK(c.target.calls == 1 && c.reference.calls == 1);
  CHECK(c.path.n_evals == n);
  long wrong = 0;
  for (int k = 0; k < n; k++) {
    const double *x = c.cloud.x + d * k;
    double grad_p[d], grad_q[d];
    wrong += c.cloud.log_p[k] != toy_log_density(TOY_SKEWED, d, x, grad_p);
    wrong += c.cloud.log_q[k] != toy_log_density(TOY_GAUSSIAN, d, x, grad_q);
    wrong += memcmp(c.cloud.grad_p + d * k, grad_p, sizeof grad_p) != 0;
    wrong += memcmp(c.cloud.grad_q + d * k, grad_q, sizeof grad_q) != 0;
  }
  CHECK_NONE(wrong, n, "the densities are those of target and reference");

  for (int j = 0; j < d * n; j++)
    c.cloud.grad_q[j] = -7.0;
  CHECK(smc_path_evaluate(&c.path, &c.cloud, false, NULL) == 0);
  CHECK(c.reference.gradient_calls == 1 && c.cloud.grad_q[0] == -7.0);
  free(block);
  end_callback(&c);
}

static void test_reference_not_finite(void) {
  enum { d = 2, n = 6 };
  callback c;
  begin_callback(&c, d, n);
  c.path.reference.density = tell;
  c.target.shape = TOY_GAUSSIAN;
  fill_normal(&c.cloud, 331);
  c.cloud.x[10] = INFINITY; /* its reference would be finite */
  CHECK(smc_path_evaluate(&c.path, &c.cloud, true, NULL) == 0);
  long wrong = 0;
  for (int k = 0; k < n; k++) {
    bool dead = k < 3 || k == 5;
    wrong += dead != (c.cloud.log_q[k] == -INFINITY);
    wrong += dead != (c.cloud.log_p[k] == -INFINITY);
  }
  CHECK_NONE(wrong, n, "where the reference is not finite, nothing is");
  CHECK(c.cloud.log_q[3] == 1.0 && c.cloud.log_q[4] == 2.0);
  CHECK(c.cloud.x[10] == 0.0 && c.cloud.x[11] == 0.0);
  CHECK(c.cloud.grad_q[6] == 0.0 && c.cloud.grad_q[7] == 0.0);
  CHECK(c.cloud.grad_q[0] == 4.0 && c.cloud.grad_q[1] == 1.0);
  CHECK(c.cloud.grad_p[6] != 0.0);
  end_callback(&c);
}

static void test_reference_fails(void) {
  callback c;
  begin_callback(&c, 1, 4);
  c.reference.fail_at = 2;
  c.reference.code = -18;
  fill_normal(&c.cloud, 332);
  CHECK(smc_path_evaluate(&c.path, &c.cloud, true, NULL) == 0);
  CHECK(smc_path_evaluate(&c.path, &c.cloud, true, NULL) == 1);
  CHECK(c.path.failure == -18 && c.target.calls == 2);
  end_callback(&c);
}

/* Maps may overflow where z does not: the target never sees it, not even where
 * bounds would hide it. */
static void check_overflow(int n_maps, smc_map *maps, const double *origin) {
  enum { d = 2, n = 3 };
  double seen[d * n];
  toy t = {.shape = TOY_GAUSSIAN, .last_x = seen};
  smc_path path = {.target = toy_target,
                   .data = &t,
                   .d = d,
                   .chain = toy_chain(n_maps, maps)};
  char *scratch = toy_path_layout(&path, n), *block;
  smc_cloud c = toy_cloud(d, n, false, true, &block);
  const double z[d * n] = {0.5, 1.0, 800.0, 1.0, 800.0, -1.0};
  memcpy(c.x, z, sizeof z);
  CHECK(smc_path_evaluate(&path, &c, true, NULL) == 0);
  CHECK(isfinite(c.log_p[0]) && isfinite(c.log_q[0]));
  if (n_maps == 2)
    CHECK_NEAR(seen[1], -2.0 + 0.25 + 0.075 + exp(0.5), 1e-12);
  for (int k = 1; k < n; k++) {
    CHECK(seen[d * k] == origin[0] && seen[d * k + 1] == origin[1]);
    CHECK(c.x[d * k] == 0.0 && c.x[d * k + 1] == 0.0);
    CHECK(c.log_p[k] == -INFINITY && c.log_q[k] == -INFINITY);
    CHECK(c.grad_q[d * k] == 0.0 && isfinite(c.grad_p[d * k]));
  }
  free(block);
  free(scratch);
}

static void test_overflow(void) {
  static const double mean[2] = {1.5, -2.0}, chol[4] = {2.0, 0.5, 0.0, 1.0};
  static const double child = 2.0, by_first[8] = {1, 1, 1, 0};
  static const double location = 0.15, log_scale = 1.0;
  static const double lower[2] = {-INFINITY, -4.0}, upper[2] = {INFINITY, 4.0};
  smc_map maps[3] = {
      toy_moments(2, 1, &child, 1, by_first, &location, &log_scale),
      toy_affine(2, mean, NULL, chol), toy_bounds(2, lower, upper)};
  double inside[2] = {1.5, -4.0 / (1.0 + exp(-2.0)) + 4.0 / (1.0 + exp(2.0))};
  check_overflow(2, maps, mean);
  check_overflow(3, maps, inside);
}

void test_path(void) {
  test_overflow();
  test_annealed();
  test_standard_reference();
  test_change_of_variables();
  test_triangular(1, 8, 310); /* full groups of particles, and others */
  test_triangular(3, 20, 312);
  test_triangular(5, 7, 314);
  test_triangular(5, 1, 316);
  test_triangular(11, 17, 318);
  test_diagonal_is_triangular();
  test_not_finite();
  test_far_off();
  test_failure();
  test_sample();
  test_callback();
  test_reference_not_finite();
  test_reference_fails();
}
