/* map_affine.c: x = mean + L u, with L diagonal or lower triangular. */
#include "map.h"
#include "product.h"
#include "vecmath.h"

#include <limits.h>

enum { MEAN, SD, CHOL };

static const double *parameter(const smc_map *map, int i) {
  return map->parameters[i].x;
}

static bool is_valid(const smc_map *map) {
  const smc_values *p = map->parameters;
  size_t d = (size_t)map->d;
  if (!p[MEAN].x || p[MEAN].size != d || !p[SD].x == !p[CHOL].x)
    return false;
  return p[SD].x ? p[SD].size == d : p[CHOL].size == d * d;
}

/* Entry i of the diagonal of L. */
static double diagonal(const smc_map *map, int i) {
  return parameter(map, SD) ? parameter(map, SD)[i]
                            : parameter(map, CHOL)[smc_size(map->d + 1, i)];
}

/* L, or its transpose, where it is triangular. */
static smc_matrix factor(const smc_map *map, bool transposed) {
  return smc_triangle(parameter(map, CHOL), map->d, transposed);
}

static void layout(smc_map *map, smc_arena *arena) {
  double *log_determinant = smc_take_doubles(arena, 1, 1);
  if (!arena->base)
    return;
  *log_determinant = 0.0;
  for (int i = 0; i < map->d; i++)
    *log_determinant += log(diagonal(map, i));
  map->work = log_determinant;
}

/* That of a product. */
static size_t scratch_size(const smc_map *map) {
  smc_matrix l = factor(map, false);
  return parameter(map, CHOL) ? smc_product_scratch(&l, INT_MAX) : 0;
}

/* the map ----------------------------------------------------------------- */

static void forward(const smc_map *map, int n, const double *from, double *to,
                    double *scratch) {
  const double *mean = parameter(map, MEAN), *sd = parameter(map, SD);
  if (!sd) {
    smc_matrix l = factor(map, false);
    smc_multiply(&l, n, from, scratch, to);
  }
  for (int k = 0; k < n; k++, from += map->d, to += map->d)
    for (int i = 0; i < map->d; i++)
      to[i] = mean[i] + (sd ? sd[i] * from[i] : to[i]);
}

/* x <- L^-1 x, or with L' in the place of L, of one column. */
static void solve(const smc_map *map, bool transposed, double *x) {
  const double *L = parameter(map, CHOL);
  int d = map->d;
  for (int turn = 0; turn < d; turn++) {
    int j = transposed ? d - 1 - turn : turn;
    const double *column = L + smc_size(d, j);
    double sum = 0.0;
    if (transposed) {
      SMC_SIMD_SUM
      for (int i = j + 1; i < d; i++)
        sum += column[i] * x[i];
    }
    double solved = x[j] = (x[j] - sum) / column[j];
    if (!transposed) {
      SMC_SIMD
      for (int i = j + 1; i < d; i++)
        x[i] -= column[i] * solved;
    }
  }
}

/* x <- L^-1 x, or with L' in the place of L, of n columns. */
static void divide(const smc_map *map, bool transposed, int n, double *x) {
  const double *sd = parameter(map, SD);
  for (int k = 0; k < n; k++, x += map->d) {
    for (int i = 0; sd && i < map->d; i++)
      x[i] /= sd[i];
    if (!sd)
      solve(map, transposed, x);
  }
}

static void inverse(const smc_map *map, int n, const double *from, double *to,
                    double *scratch) {
  const double *mean = parameter(map, MEAN);
  (void)scratch;
  for (int k = 0; k < n; k++)
    for (int i = 0; i < map->d; i++) {
      size_t at = smc_size(map->d, k) + (size_t)i;
      to[at] = from[at] - mean[i];
    }
  divide(map, false, n, to);
}

/* grad <- L' grad, for n columns. */
static void scale_gradients(const smc_map *map, int n, double *grad,
                            double *scratch) {
  const double *sd = parameter(map, SD);
  if (!sd) {
    smc_matrix l = factor(map, true);
    smc_multiply(&l, n, grad, scratch, grad);
    return;
  }
  for (int k = 0; k < n; k++, grad += map->d)
    for (int i = 0; i < map->d; i++)
      grad[i] *= sd[i];
}

static void pull_back(const smc_map *map, int n, const double *z, double *logp,
                      double *grad, double *scratch) {
  const double *log_determinant = map->work;
  (void)z;
  for (int k = 0; k < n; k++)
    logp[k] += *log_determinant;
  if (grad)
    scale_gradients(map, n, grad, scratch);
}

static void push_forward(const smc_map *map, int n, const double *z,
                         double *logp, double *grad, double *scratch) {
  const double *log_determinant = map->work;
  (void)z, (void)scratch;
  for (int k = 0; k < n; k++)
    logp[k] -= *log_determinant;
  if (grad)
    divide(map, true, n, grad);
}

const smc_map_kind smc_map_affine = {
    .name = "affine",
    .names = {"mean", "sd", "chol"},
    .is_valid = is_valid,
    .layout = layout,
    .scratch = scratch_size,
    .forward = forward,
    .inverse = inverse,
    .pull_back = pull_back,
    .push_forward = push_forward,
};
