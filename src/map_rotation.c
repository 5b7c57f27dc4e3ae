/* map_rotation.c: x = Q u, with Q orthogonal. */
#include "map.h"
#include "product.h"
#include "vecmath.h"

#include <limits.h>

enum { AXES };

/* How far the products of Q's columns may be from those of the identity. */
static const double rounding = 1e-8;

static const double *column(const smc_map *map, int j) {
  return map->parameters[AXES].x + smc_size(map->d, j);
}

static bool is_valid(const smc_map *map) {
  const smc_values *p = map->parameters;
  int d = map->d;
  if (!p[AXES].x || p[AXES].size != smc_size(d, d))
    return false;
  for (int j = 0; j < d; j++)
    for (int i = 0; i <= j; i++)
      if (!(fabs(smc_dot(d, column(map, i), column(map, j)) - (i == j)) <
            rounding))
        return false;
  return true;
}

/* Q, or its transpose, which is its inverse. */
static smc_matrix axes(const smc_map *map, bool transposed) {
  return (smc_matrix){.x = map->parameters[AXES].x,
                      .rows = map->d,
                      .columns = map->d,
                      .transposed = transposed};
}

static size_t scratch_size(const smc_map *map) {
  smc_matrix q = axes(map, false);
  return smc_product_scratch(&q, INT_MAX);
}

/* the map ----------------------------------------------------------------- */

static void forward(const smc_map *map, int n, const double *from, double *to,
                    double *scratch) {
  smc_matrix q = axes(map, false);
  smc_multiply(&q, n, from, scratch, to);
}

static void inverse(const smc_map *map, int n, const double *from, double *to,
                    double *scratch) {
  smc_matrix q = axes(map, true);
  smc_multiply(&q, n, from, scratch, to);
}

static void pull_back(const smc_map *map, int n, const double *z, double *logp,
                      double *grad, double *scratch) {
  (void)z, (void)logp;
  if (grad)
    inverse(map, n, grad, grad, scratch);
}

static void push_forward(const smc_map *map, int n, const double *z,
                         double *logp, double *grad, double *scratch) {
  (void)z, (void)logp;
  if (grad)
    forward(map, n, grad, grad, scratch);
}

const smc_map_kind smc_map_rotation = {
    .name = "rotation",
    .names = {"axes"},
    .is_valid = is_valid,
    .scratch = scratch_size,
    .forward = forward,
    .inverse = inverse,
    .pull_back = pull_back,
    .push_forward = push_forward,
};
