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

static void pull_back(const smc_map *map, int n, const double *from,
                      double *logp, double *grad, double *scratch) {
  const double *log_determinant = map->work;
  (void)from;
  for (int k = 0; k < n; k++)
    logp[k] += *log_determinant;
  if (grad)
    scale_gradients(map, n, grad, scratch);
}

const smc_map_kind smc_map_affine = {
    .name = "affine",
    .names = {"mean", "sd", "chol"},
    .is_valid = is_valid,
    .layout = layout,
    .scratch = scratch_size,
    .forward = forward,
    .pull_back = pull_back,
};
