/* test_estimates.c: the bridge on two normal distributions, and the tails of
 * samples by their quantiles. */
#include "bridge.h"
#include "check.h"
#include "pareto.h"

#include <stdlib.h>

/* the bridge --------------------------------------------------------------- */

enum { N = 2000, N_ORIGINS = 200, N_ISLANDS = 4 };

/* log Z = 5 of a normal target of sd 1.2 around 0.3, from draws of N(0, 1). */
static smc_bridge_estimate bridge_normals(dice *r) {
  static double log_y[N], log_x[N], w[N];
  static int origin[N], island[N];
  double scratch[2 * N + N_ORIGINS + N_ISLANDS], sum = 0.0;
  for (int k = 0; k < N; k++) {
    double y = dice_normal(r), x = 0.3 + 1.2 * dice_normal(r);
    double own = (y - 0.3) / 1.2, other = (x - 0.3) / 1.2;
    log_y[k] = 5.0 - own * own / 2.0 - log(1.2) + y * y / 2.0;
    log_x[k] = 5.0 - other * other / 2.0 - log(1.2) + x * x / 2.0;
    origin[k] = k % N_ORIGINS + 7;
    island[k] = k % N_ISLANDS + 1;
    sum += w[k] = dice_between(r, 0.5, 1.5);
  }
  for (int k = 0; k < N; k++)
    w[k] /= sum;
  smc_bridge_draws draws = {.n_y = N,
                            .n_x = N,
                            .log_y = log_y,
                            .log_x = log_x,
                            .w = w,
                            .origins = {origin, 7, N_ORIGINS},
                            .islands = {island, 1, N_ISLANDS}};
  return smc_bridge(&draws, scratch);
}

static void test_bridge(void) {
  dice r = {71};
  sample estimates = {0}, errors = {0};
  for (int k = 0; k < 200; k++) {
    smc_bridge_estimate estimate = bridge_normals(&r);
    sample_add(&estimates, estimate.log_z);
    sample_add(&errors, (estimate.log_z - 5.0) * (estimate.log_z - 5.0) /
                            estimate.variance);
  }
  CHECK_NEAR(sample_mean(&estimates), 5.0, 5.0 * sample_error(&estimates));
  CHECK(sample_error(&estimates) < 1e-3);
  /* of groups the larger of two variances is taken */
  CHECK(sample_mean(&errors) > 0.3 && sample_mean(&errors) < 1.5);
}

/* tails -------------------------------------------------------------------- */

static smc_weighted *pareto_draws(dice *r, int n, double shape, double apart) {
  smc_weighted *x = take_memory((size_t)n * sizeof *x);
  for (int k = 0; k < n; k++) {
    x[k].x = (pow(dice_unit(r), -shape) - 1.0) / shape + apart;
    x[k].w = 2.0;
  }
  return x;
}

static void test_tails(void) {
  enum { DRAWS = 4000 };
  const double shapes[] = {-0.3, 0.3, 0.7, 1.0};
  dice r = {72};
  for (int i = 0; i < 4; i++) {
    sample found = {0};
    for (int k = 0; k < 50; k++) {
      smc_weighted *x = pareto_draws(&r, DRAWS, shapes[i], 1e3);
      sample_add(&found, smc_tail_shape(DRAWS, x, 0.1, DRAWS, 1e-9));
      free(x);
    }
    /* the prior of Zhang and Stephens is worth some draws of 400 */
    CHECK_NEAR(sample_mean(&found), shapes[i],
               5.0 * sample_error(&found) + 0.02);
  }
  smc_weighted *x = pareto_draws(&r, DRAWS, 0.5, 0.0);
  /* too few draws, however many values */
  CHECK(isnan(smc_tail_shape(DRAWS, x, 0.1, 900.0, 0.01)));
  for (int k = 0; k < DRAWS; k++)
    x[k].x = k % 2;
  CHECK(isnan(smc_tail_shape(DRAWS, x, 0.1, DRAWS, 0.01)));
  /* many values above a gap, in a range that ends: a mode apart */
  for (int k = 0; k < DRAWS; k++)
    x[k].x = k % 20 ? dice_normal(&r) : 1e6 + dice_normal(&r);
  CHECK(!(smc_tail_shape(DRAWS, x, 0.1, DRAWS, 0.01) > 0.0));
  free(x);
}

void test_estimates(void) {
  test_bridge();
  test_tails();
}
