/* test_match.c: the equation of batch and match, by products written out, and
 * ELBOs of distributions whose evidence is known. */
#include "check.h"
#include "match.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_D = 12, N = 150 };

static smc_match new_match(int d, int most, bool is_diagonal, void **memory) {
  smc_arena arena = {0};
  smc_match_layout(&arena, d, most, is_diagonal);
  *memory = take_memory(arena.used);
  arena = (smc_arena){.base = *memory};
  return smc_match_layout(&arena, d, most, is_diagonal);
}

/* matches -------------------------------------------------------------------
 */

/* mean: out, the weighted mean of x (N x d), some rows; products: out, d x d,
 * lambda times the covariance, and the share of the mean. */
static void moments(const smc_points *points, int d, const double *x,
                    double lambda, double *mean, double *products) {
  for (int j = 0; j < d; j++) {
    mean[j] = 0.0;
    for (int k = 0; k < points->n; k++)
      mean[j] += points->w[k] * x[points->row[k] - 1 + N * j];
  }
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++) {
      double sum = lambda / (1.0 + lambda) * mean[i] * mean[j];
      for (int k = 0; k < points->n; k++)
        sum += lambda * points->w[k] *
               (x[points->row[k] - 1 + N * i] - mean[i]) *
               (x[points->row[k] - 1 + N * j] - mean[j]);
      products[i + d * j] = sum;
    }
}

static void multiply(int d, const double *a, const double *b, double *out) {
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++) {
      out[i + d * j] = 0.0;
      for (int k = 0; k < d; k++)
        out[i + d * j] += a[i + d * k] * b[k + d * j];
    }
}

/* By how much S U S + S differs from V = I + the products of points, and the
 * mean from share (S mean of g + mean of z); relative to V. */
static double error_of_match(const smc_match *match, const smc_points *points,
                             double lambda) {
  double V[MOST_D * MOST_D], U[MOST_D * MOST_D], S[MOST_D * MOST_D];
  double one[MOST_D * MOST_D], two[MOST_D * MOST_D], z[MOST_D], g[MOST_D];
  int d = match->d;
  double error = 0.0, largest = 1.0, share = lambda / (1.0 + lambda);
  const double *L = match->inner.L;
  moments(points, d, points->z, lambda, z, V);
  moments(points, d, points->g, lambda, g, U);
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++) {
      S[i + d * j] = 0.0;
      for (int k = 0; k < d && !match->is_diagonal; k++)
        S[i + d * j] += L[i + d * k] * L[j + d * k];
      if (match->is_diagonal && i == j)
        S[i + d * j] = L[i] * L[i];
      V[i + d * j] += i == j;
      if (match->is_diagonal && i != j)
        U[i + d * j] = V[i + d * j] = 0.0;
      largest = fmax(largest, fabs(V[i + d * j]));
    }
  multiply(d, S, U, one);
  multiply(d, one, S, two);
  for (int i = 0; i < d; i++) {
    double mean = z[i];
    for (int j = 0; j < d; j++) {
      error = fmax(error, fabs(two[i + d * j] + S[i + d * j] - V[i + d * j]));
      mean += S[i + d * j] * g[j];
    }
    error = fmax(error, fabs(share * mean - match->inner.mean[i]));
  }
  return error / largest;
}

static void test_equation(void) {
  dice r = {61};
  double z[N * MOST_D], g[N * MOST_D], w[N], error = 0.0;
  int row[N];
  for (int d = 1; d <= MOST_D; d++)
    for (int kind = 0; kind < 12; kind++) {
      void *memory;
      bool is_diagonal = kind % 2;
      double lambda = pow(10.0, dice_between(&r, -1.0, 3.0)), sum = 0.0;
      smc_points points = {.n_rows = N, .z = z, .g = g, .row = row, .w = w};
      for (int i = 0; i < N * d; i++) {
        z[i] = dice_normal(&r);
        g[i] = -z[i] * exp(2.0 * (i / N) / MOST_D) + dice_normal(&r);
      }
      for (int k = 0; k < N; k += kind % 3 == 2 ? 37 : 1) { /* few, or many */
        row[points.n] = k + 1;
        sum += w[points.n++] = dice_unit(&r);
      }
      for (int k = 0; k < points.n; k++)
        w[k] /= sum;
      smc_match match = new_match(d, 20, is_diagonal, &memory);
      CHECK(smc_match_points(&match, &points, lambda));
      error = fmax(error, error_of_match(&match, &points, lambda));
      free(memory);
    }
  CHECK_NEAR(error, 0.0, 1e-8);
}

/* Of a normal density, from one point more than dimensions, far from its mean,
 * where standard deviations differ by a factor of 100. */
static void test_exact(void) {
  enum { D = 5 };
  dice r = {62};
  void *memory;
  double z[(D + 1) * D], g[(D + 1) * D], error = 0.0;
  for (int j = 0; j < D; j++)
    for (int k = 0; k <= D; k++) {
      z[k + (D + 1) * j] = 10.0 + dice_normal(&r);
      g[k + (D + 1) * j] = -pow(10.0, j - 2.0) * (z[k + (D + 1) * j] - j);
    }
  smc_match match = new_match(D, D + 1, false, &memory);
  smc_points points = {.n = D + 1, .n_rows = D + 1, .z = z, .g = g};
  CHECK(smc_match_points(&match, &points, 1e8));
  for (int j = 0; j < D; j++) {
    double sd = pow(10.0, (2.0 - j) / 2.0);
    error = fmax(error, fabs(match.inner.L[(D + 1) * j] / sd - 1.0));
    error = fmax(error, fabs(match.inner.mean[j] - j) / (1.0 + sd));
  }
  CHECK_NEAR(error, 0.0, 1e-3);
  z[0] = g[0] = NAN;
  CHECK(!smc_match_points(&match, &points, 1.0));
  free(memory);
}

/* Draws, gradients and what is composed of two normals. */
static void test_coordinates(void) {
  enum { D = 3, MOST = 4 };
  for (int kind = 0; kind < 3; kind++) {
    bool is_diagonal = kind == 1, is_matched_diagonal = kind > 0;
    void *memory;
    double mean[D] = {1.0, 2.0, 3.0};
    double L[D * D] = {2.0, 1.0, -1.0, 0.0, 3.0, 0.5, 0.0, 0.0, 4.0};
    double sd[D] = {2.0, 3.0, 4.0}, z[2 * D] = {1, 0, -1, 2, 0.5, 0.25};
    double x[2 * D], y[2 * D], g[2 * D] = {1, 2, 3, 4, 5, 6};
    smc_gaussian normal = {D, is_diagonal, mean, is_diagonal ? sd : L};
    smc_match match = new_match(D, MOST, is_matched_diagonal, &memory);
    smc_draw(&match, &normal, 2, z, x);
    CHECK_NEAR(x[1], 1.0 + 2.0 * z[1], 1e-14);
    CHECK_NEAR(x[4], is_diagonal ? 5.0 : 3.0 - z[0] + 0.5 * z[2] + 4 * z[4],
               1e-14);
    smc_pull_back(&match, &normal, 2, g);
    CHECK_NEAR(g[1], is_diagonal ? 4.0 : 2 * 2.0 + 4.0 - 6.0, 1e-14);
    CHECK_NEAR(g[4], 5.0 * 4.0, 1e-14);
    CHECK_NEAR(smc_log_det(&normal), log(24.0), 1e-14);
    /* the inner normal's draws, and then those of the outer one there */
    for (int i = 0; i < D; i++)
      match.inner.mean[i] = i - 1.0;
    for (int i = 0; i < (is_matched_diagonal ? D : D * D); i++)
      match.inner.L[i] = is_matched_diagonal ? i + 0.5 : L[i] / 2.0;
    smc_gaussian inner = match.inner;
    smc_draw(&match, &inner, 2, z, y);
    smc_draw(&match, &normal, 2, y, x);
    smc_compose(&match, &normal);
    smc_draw(&match, &normal, 2, z, y);
    double error = 0.0;
    for (int i = 0; i < 2 * D; i++)
      error = fmax(error, fabs(x[i] - y[i]));
    CHECK_NEAR(error, 0.0, 1e-13);
    free(memory);
  }
}

/* ELBOs -------------------------------------------------------------------- */

/* The target is the normal itself, cut off: its possible part is the target,
 * but for a factor, and the error is that of the share alone. */
static void test_elbo(void) {
  enum { D = 2 };
  double z[N * D], squares[N], log_density[N], log_det = 0.7;
  dice r = {63};
  for (int i = 0; i < N * D; i++)
    z[i] = dice_normal(&r);
  smc_squares(N, D, z, squares);
  for (int cut = 0; cut < 3; cut++) {
    int n = 0;
    for (int k = 0; k < N; k++) {
      bool is_possible = cut == 0 || z[k] > cut - 1.0;
      double square = z[k] * z[k] + z[k + N] * z[k + N];
      log_density[k] = is_possible
                           ? -square / 2.0 - log(6.283185307179586) - log_det
                           : -INFINITY;
      n += is_possible;
    }
    double share = (double)n / N;
    smc_elbo elbo = smc_elbo_of(N, D, squares, log_density, log_det);
    CHECK_NEAR(elbo.value, log(share), 1e-12);
    CHECK_NEAR(elbo.error, sqrt((1.0 - share) / n), 1e-7);
  }
  for (int k = 1; k < N; k++)
    log_density[k] = -INFINITY;
  smc_elbo none = smc_elbo_of(N, D, squares, log_density, log_det);
  CHECK(none.value == -INFINITY && isnan(none.error));
  smc_elbo lucky = {1.0, 0.5}, sure = {0.8, 0.1};
  CHECK(smc_elbo_is_better(sure, lucky) && !smc_elbo_is_better(lucky, sure));
  CHECK(smc_elbo_is_better(sure, none) && !smc_elbo_is_better(none, sure));
}

void test_match(void) {
  test_equation();
  test_exact();
  test_coordinates();
  test_elbo();
}
