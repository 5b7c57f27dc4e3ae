/* test_map.c: maps one after the other. */
#include "toy.h"

#include <stdlib.h>
#include <string.h>

enum { D = 3, N = 20, N_MAPS = 4, MOST = 9 };

static const double children_of_first[2] = {2, 3};
static const double children_of_last[2] = {1, 2};
static const double features_of_first[16] = {1, 1, 1, 0, 0, 0, 0, 0,
                                             1, 2, 1, 0, 0, 0, 0, 0};
static const double features_of_last[8] = {3, 1, 1, 0};
static const double location_by_first[4] = {0.7, 0.1, 0.5, -0.2};
static const double location_by_last[2] = {-0.3, 0.4};
static const double log_scale_by_first[4] = {0.4, -0.3, 0.0, 0.1};
static const double log_scale_by_last[2] = {0.2, -0.5};
static const double mean[D] = {0.4, -0.3, 0.2};
static const double chol[D * D] = {0.8, 0.2, -0.1, NAN, 1.1,
                                   0.3, NAN, NAN,  0.6};
static const double lower[D] = {-INFINITY, 0.0, -1.0};
static const double upper[D] = {INFINITY, INFINITY, 2.0};

/* Several kinds, two of moments in a row. */
static void fill_maps(smc_map *maps) {
  maps[0] = toy_moments(D, 2, children_of_first, 2, features_of_first,
                        location_by_first, log_scale_by_first);
  maps[1] = toy_moments(D, 2, children_of_last, 1, features_of_last,
                        location_by_last, log_scale_by_last);
  maps[2] = toy_affine(D, mean, NULL, chol);
  maps[3] = toy_bounds(D, lower, upper);
}

static void fill(double *z, uint64_t seed) {
  dice r = {seed};
  for (int j = 0; j < D * N; j++)
    z[j] = 0.3 * dice_normal(&r);
}

static char *lay_out(smc_chain *chain, int n) {
  smc_arena arena = {.base = NULL};
  smc_chain_layout(chain, &arena, n, 1);
  char *block = take_memory(arena.used);
  arena = (smc_arena){.base = block};
  smc_chain_layout(chain, &arena, n, 1);
  return block;
}

static void density(const smc_chain *chain, const double *z, double *log_p,
                    double *grad) {
  const double *x = smc_chain_forward(chain, N, z);
  for (int k = 0; k < N; k++)
    log_p[k] =
        toy_log_density(TOY_SKEWED, D, x + D * k, grad ? grad + D * k : NULL);
  smc_chain_pull_back(chain, N, z, log_p, grad);
}

/* log |dx / dz| of every point, by the determinant of differences. */
static void log_jacobians(const smc_chain *chain, const double *z,
                          double *out) {
  const double step = 1e-5;
  double slope[D][D * N], moved[D * N];
  for (int i = 0; i < D; i++) {
    memset(slope[i], 0, sizeof slope[i]);
    for (int sign = -1; sign <= 1; sign += 2) {
      for (int j = 0; j < D * N; j++)
        moved[j] = z[j] + (j % D == i ? sign * step : 0.0);
      const double *x = smc_chain_forward(chain, N, moved);
      for (int j = 0; j < D * N; j++)
        slope[i][j] += sign * x[j] / (2.0 * step);
    }
  }
  for (int k = 0; k < N; k++) {
    const double *a = slope[0] + D * k, *b = slope[1] + D * k;
    const double *c = slope[2] + D * k;
    out[k] = log(fabs(a[0] * (b[1] * c[2] - b[2] * c[1]) -
                      a[1] * (b[0] * c[2] - b[2] * c[0]) +
                      a[2] * (b[0] * c[1] - b[1] * c[0])));
  }
}

/* The density gains the Jacobian of the whole, and the gradient is that of the
 * new density, by central differences. */
static void test_chain(void) {
  const double step = 1e-5;
  double z[D * N], log_p[N], grad[D * N], jacobian[N], plain[N];
  double moved[D * N], side[2][N], off = 0.0, off_gradient = 0.0;
  smc_map maps[N_MAPS];
  fill_maps(maps);
  for (int i = 0; i < N_MAPS; i++)
    CHECK(maps[i].kind->is_valid(&maps[i]));
  smc_chain chain = toy_chain(N_MAPS, maps);
  char *block = lay_out(&chain, N);
  fill(z, 710);
  log_jacobians(&chain, z, jacobian);
  density(&chain, z, log_p, grad);
  const double *x = smc_chain_points(&chain, N_MAPS, z);
  for (int k = 0; k < N; k++) {
    plain[k] = toy_log_density(TOY_SKEWED, D, x + D * k, NULL);
    off = fmax(off, fabs(log_p[k] - plain[k] - jacobian[k]));
  }
  CHECK_NEAR(off, 0.0, 1e-6);
  for (int i = 0; i < D; i++) {
    for (int s = 0; s < 2; s++) {
      for (int j = 0; j < D * N; j++)
        moved[j] = z[j] + (j % D == i ? (2 * s - 1) * step : 0.0);
      density(&chain, moved, side[s], NULL);
    }
    for (int k = 0; k < N; k++) {
      double slope = (side[1][k] - side[0][k]) / (2.0 * step);
      off_gradient = fmax(off_gradient,
                          fabs(grad[D * k + i] - slope) / (1.0 + fabs(slope)));
    }
  }
  CHECK_NEAR(off_gradient, 0.0, 1e-6);
  free(block);
}

/* The points on the way, and one point by itself. */
static void test_points(void) {
  double z[D * N], x[D * N], before[D * N], bounded[D * N];
  smc_map maps[N_MAPS];
  fill_maps(maps);
  smc_chain chain = toy_chain(N_MAPS, maps);
  char *block = lay_out(&chain, N);
  fill(z, 711);
  memcpy(x, smc_chain_forward(&chain, N, z), sizeof x);
  memcpy(before, smc_chain_points(&chain, N_MAPS - 1, z), sizeof x);
  maps[3].kind->forward(&maps[3], N, before, bounded, NULL);
  CHECK(memcmp(x, bounded, sizeof x) == 0);
  CHECK(smc_chain_points(&chain, 0, z) == z);

  for (int i = 0; i < D; i++)
    z[D * 7 + i] = 0.0;
  smc_chain_forward_one(&chain, 7, z);
  const double *again = smc_chain_points(&chain, N_MAPS, z);
  CHECK(memcmp(again, x, 7 * D * sizeof *x) == 0);
  CHECK(memcmp(again + 8 * D, x + 8 * D, (N - 8) * D * sizeof *x) == 0);
  CHECK(memcmp(again + 7 * D, x + 7 * D, D * sizeof *x) != 0);
  memcpy(x, again, sizeof x);
  CHECK(memcmp(smc_chain_forward(&chain, N, z), x, sizeof x) == 0);

  /* Bounds hide what the maps before them have done; the chain does not. */
  CHECK(smc_chain_is_finite(&chain, 7));
  z[D * 7] = 1e5;
  x[0] = smc_chain_forward(&chain, N, z)[D * 7 + 1];
  CHECK(isfinite(x[0]) && !smc_chain_is_finite(&chain, 7));
  CHECK(smc_chain_is_finite(&chain, 6));
  free(block);

  smc_chain none = {.d = D};
  CHECK(smc_chain_forward(&none, N, z) == z && smc_chain_is_finite(&none, 0));
}

/* Products with a triangular matrix are made in blocks: any numbers of rows and
 * of points, whole blocks or not, give the sums as they are written down. */
static double triangular_error(int d, int n, dice *r) {
  double mean[MOST], chol[MOST * MOST], z[MOST * MOST], grad[MOST * MOST];
  double pulled[MOST * MOST], log_p[MOST] = {0.0}, error = 0.0;
  for (int j = 0; j < d * d; j++)
    chol[j] = j / d > j % d ? NAN : 0.5 + fabs(dice_normal(r));
  for (int j = 0; j < d * n; j++) {
    z[j] = dice_normal(r);
    grad[j] = pulled[j] = dice_normal(r);
    mean[j % d] = dice_normal(r);
  }
  smc_map map = toy_affine(d, mean, NULL, chol);
  smc_chain chain = toy_chain(1, &map);
  char *block = lay_out(&chain, n);
  const double *x = smc_chain_forward(&chain, n, z);
  smc_chain_pull_back(&chain, n, z, log_p, pulled);
  for (int k = 0; k < n; k++)
    for (int i = 0; i < d; i++) {
      double image = mean[i], slope = 0.0;
      for (int j = 0; j <= i; j++)
        image += chol[i + d * j] * z[j + d * k];
      for (int j = i; j < d; j++)
        slope += chol[j + d * i] * grad[j + d * k];
      error = fmax(error, fabs(x[i + d * k] - image));
      error = fmax(error, fabs(pulled[i + d * k] - slope));
    }
  free(block);
  return error;
}

static void test_triangular(void) {
  dice r = {77};
  double error = 0.0;
  for (int d = 1; d <= MOST; d++)
    for (int n = 1; n <= MOST; n++)
      error = fmax(error, triangular_error(d, n, &r));
  CHECK_NEAR(error, 0.0, 1e-12);
}

/* The inverse finds the points, and those on the way, and what one way does to
 * log densities and gradients the other undoes. */
static void test_inverse(void) {
  double z[D * N], back[D * N], log_p[N], grad[D * N], plain, of_plain[D];
  double off = 0.0, off_density = 0.0, off_gradient = 0.0;
  smc_map maps[N_MAPS];
  fill_maps(maps);
  smc_chain chain = toy_chain(N_MAPS, maps);
  char *block = lay_out(&chain, N);
  fill(z, 712);
  density(&chain, z, log_p, grad);
  double x[D * N], middle[D * N];
  memcpy(x, smc_chain_points(&chain, N_MAPS, z), sizeof x);
  memcpy(middle, smc_chain_points(&chain, 2, z), sizeof middle);
  memset(chain.images, 0, sizeof x * N_MAPS);
  smc_chain_inverse(&chain, N, x, back);
  CHECK(memcmp(smc_chain_points(&chain, N_MAPS, back), x, sizeof x) == 0);
  for (int i = 0; i < D * N; i++) {
    off = fmax(off, fabs(back[i] - z[i]));
    off = fmax(off, fabs(smc_chain_points(&chain, 2, back)[i] - middle[i]));
  }
  smc_chain_push_forward(&chain, N, back, log_p, grad);
  for (int k = 0; k < N; k++) {
    plain = toy_log_density(TOY_SKEWED, D, x + D * k, of_plain);
    off_density = fmax(off_density, fabs(log_p[k] - plain));
    for (int i = 0; i < D; i++)
      off_gradient = fmax(off_gradient, fabs(grad[D * k + i] - of_plain[i]));
  }
  CHECK_NEAR(off, 0.0, 1e-12);
  CHECK_NEAR(off_density, 0.0, 1e-11);
  CHECK_NEAR(off_gradient, 0.0, 1e-11);
  smc_chain_inverse(&chain, N, back, back); /* in place */
  free(block);
  smc_chain none = {.d = D};
  smc_chain_inverse(&none, N, x, back);
  CHECK(memcmp(x, back, sizeof x) == 0);
}

/* A map that lacks one of these is none. */
static void test_kinds(void) {
  for (int i = 0; smc_map_kinds[i]; i++) {
    const smc_map_kind *kind = smc_map_kinds[i];
    CHECK(kind->is_valid && kind->forward && kind->inverse && kind->pull_back &&
          kind->push_forward);
  }
}

static void test_names(void) {
  CHECK(smc_find_map("affine") == &smc_map_affine);
  CHECK(smc_find_map("bounds") == &smc_map_bounds);
  CHECK(smc_find_map("moments") == &smc_map_moments);
  CHECK(!smc_find_map("") && !smc_find_map("affin"));

  smc_map bad[] = {toy_affine(D, NULL, mean, NULL),
                   toy_affine(D, mean, NULL, NULL),
                   toy_affine(D, mean, lower, chol),
                   toy_affine(D, mean, NULL, chol), toy_bounds(D, lower, NULL)};
  bad[3].parameters[2].size = D;
  toy_check_invalid(5, bad, "parameters are checked");
}

void test_map(void) {
  test_chain();
  test_points();
  test_inverse();
  test_triangular();
  test_kinds();
  test_names();
}
