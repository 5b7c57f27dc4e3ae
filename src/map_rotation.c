/* map_rotation.c: x = Q u, with Q orthogonal. */
#include "map.h"
#include "vecmath.h"

#include <string.h>

enum { AXES };

/* How far the products of Q's columns may be from those of the identity. */
static const double rounding = 1e-8;

static const double *column(const smc_map *map, int j) {
  return map->parameters[AXES].x + smc_size(map->d, j);
}

static double product(int d, const double *x, const double *y) {
  double sum = 0.0;
  SMC_SIMD_SUM
  for (int i = 0; i < d; i++)
    sum += x[i] * y[i];
  return sum;
}

static bool is_valid(const smc_map *map) {
  const smc_values *p = map->parameters;
  int d = map->d;
  if (!p[AXES].x || p[AXES].size != smc_size(d, d))
    return false;
  for (int j = 0; j < d; j++)
    for (int i = 0; i <= j; i++)
      if (!(fabs(product(d, column(map, i), column(map, j)) - (i == j)) <
            rounding))
        return false;
  return true;
}

/* Room for one gradient. */
static size_t scratch_size(const smc_map *map) { return (size_t)map->d; }

static void forward(const smc_map *map, int n, const double *from, double *to,
                    double *scratch) {
  (void)scratch;
  int d = map->d;
  memset(to, 0, smc_size(d, n) * sizeof(double));
  for (int k = 0; k < n; k++, from += d, to += d)
    for (int j = 0; j < d; j++) {
      const double *axis = column(map, j);
      double along = from[j];
      SMC_SIMD
      for (int i = 0; i < d; i++)
        to[i] += along * axis[i];
    }
}

static void pull_back(const smc_map *map, int n, const double *from,
                      double *logp, double *grad, double *scratch) {
  int d = map->d;
  double *in_u = scratch;
  (void)from;
  (void)logp;
  for (int k = 0; grad && k < n; k++, grad += d) {
    for (int j = 0; j < d; j++)
      in_u[j] = product(d, column(map, j), grad);
    memcpy(grad, in_u, (size_t)d * sizeof(double));
  }
}

const smc_map_kind smc_map_rotation = {
    .name = "rotation",
    .names = {"axes"},
    .is_valid = is_valid,
    .scratch = scratch_size,
    .forward = forward,
    .pull_back = pull_back,
};
