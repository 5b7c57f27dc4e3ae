/* test_map_rotation.c: orthogonal maps. */
#include "toy.h"

#include <stdlib.h>
#include <string.h>

enum { D = TOY_D, N = TOY_N };

/* I - 2 v v' / v'v, for v = (1, 2, 0, -1), turned in its first two columns. */
static void fill_axes(double *axes) {
  static const double v[D] = {1.0, 2.0, 0.0, -1.0};
  for (int j = 0; j < D; j++)
    for (int i = 0; i < D; i++)
      axes[i + D * j] = (i == j) - 2.0 * v[i] * v[j] / 6.0;
  for (int i = 0; i < D; i++) {
    double a = axes[i], b = axes[i + D];
    axes[i] = 0.6 * a + 0.8 * b;
    axes[i + D] = -0.8 * a + 0.6 * b;
  }
}

/* Lengths stay, and so do products of gradients with directions; log densities
 * as well. */
static void test_rotation(const double *axes) {
  smc_map map = toy_rotation(D, axes);
  double *scratch = take_doubles(map.kind->scratch(&map));

  double z[D * N], x[D * N], g[D * N], by_x[D * N], log_p[N], off = 0.0;
  toy_fill(z, 903);
  toy_fill(g, 904);
  memcpy(by_x, g, sizeof g);
  memset(log_p, 0, sizeof log_p);
  map.kind->forward(&map, N, z, x, scratch);
  map.kind->pull_back(&map, N, z, log_p, g, scratch);
  map.kind->pull_back(&map, N, z, log_p, NULL, scratch);
  for (int k = 0; k < N; k++) {
    double lengths = 0.0, products = 0.0;
    for (int i = D * k; i < D * (k + 1); i++) {
      lengths += x[i] * x[i] - z[i] * z[i];
      products += by_x[i] * x[i] - g[i] * z[i];
    }
    off = fmax(off, fabs(lengths) + fabs(products) + fabs(log_p[k]));
  }
  CHECK_NEAR(off, 0.0, 1e-12);
  CHECK_NEAR(x[0],
             axes[0] * z[0] + axes[D] * z[1] + axes[2 * D] * z[2] +
                 axes[3 * D] * z[3],
             1e-14);
  free(scratch);
}

static void test_validity(const double *axes) {
  double longer[D * D], skewed[D * D], unknown[D * D];
  for (int i = 0; i < D * D; i++) {
    longer[i] = 1.001 * axes[i];
    skewed[i] = unknown[i] = axes[i];
  }
  skewed[1] += 1e-3;
  unknown[2] = NAN;
  smc_map good = toy_rotation(D, axes);
  CHECK(good.kind->is_valid(&good));
  smc_map bad[] = {toy_rotation(D, longer), toy_rotation(D, skewed),
                   toy_rotation(D, unknown), toy_rotation(D, NULL),
                   toy_rotation(D, axes)};
  bad[4].parameters[0].size = D;
  toy_check_invalid(5, bad, "a rotation is checked");
}

void test_map_rotation(void) {
  double axes[D * D];
  fill_axes(axes);
  test_rotation(axes);
  smc_map map = toy_rotation(D, axes);
  toy_check_gradient(&map, 904);
  toy_check_inverse(&map, 905);
  test_validity(axes);
}
