/* map_tails.c: coordinates that are skew, or have heavier tails than a normal
 * distribution, by the sinh-arcsinh transformation (Jones and Pewsey, 2009),
 *   u_j = location_j + scale_j sinh((asinh(z_j) + skew_j) / tail_j).
 *
 * tail = 1 is normal tails, less is heavier ones, more is lighter ones; skew > 0 stretches what is
 * above the centre. With skew 0 and tail 1 the map is affine.
 */
#include "map.h"
#include "vecmath.h"

enum { LOCATION, SCALE, SKEW, TAIL }; /* d each; scale, tail > 0 */

static bool is_valid(const smc_map *map) {
  const smc_values *p = map->parameters;
  for (int i = LOCATION; i <= TAIL; i++)
    if (!p[i].x || p[i].size != (size_t)map->d)
      return false;
  for (int j = 0; j < map->d; j++)
    if (!(p[SCALE].x[j] > 0.0 && p[TAIL].x[j] > 0.0))
      return false;
  return true;
}

/* Most coordinates of a fitted map are neither skew nor heavy: these take no
 * hyperbolic functions. */
static bool is_affine(const smc_map *map, int j) {
  return map->parameters[SKEW].x[j] == 0.0 && map->parameters[TAIL].x[j] == 1.0;
}

static double angle(const smc_map *map, int j, double z) {
  return (asinh(z) + map->parameters[SKEW].x[j]) / map->parameters[TAIL].x[j];
}

static void forward(const smc_map *map, int n, const double *from, double *to,
                    double *scratch) {
  (void)scratch;
  const double *location = map->parameters[LOCATION].x;
  const double *scale = map->parameters[SCALE].x;
  for (int k = 0; k < n; k++, from += map->d, to += map->d)
    for (int j = 0; j < map->d; j++)
      to[j] = location[j] +
              scale[j] *
                  (is_affine(map, j) ? from[j] : sinh(angle(map, j, from[j])));
}

static void inverse(const smc_map *map, int n, const double *from, double *to,
                    double *scratch) {
  (void)scratch;
  const smc_values *p = map->parameters;
  for (int k = 0; k < n; k++, from += map->d, to += map->d)
    for (int j = 0; j < map->d; j++) {
      double off = (from[j] - p[LOCATION].x[j]) / p[SCALE].x[j];
      to[j] = is_affine(map, j)
                  ? off
                  : sinh(p[TAIL].x[j] * asinh(off) - p[SKEW].x[j]);
    }
}

/* At z: du / dz of coordinate j, its logarithm, and the derivative of that. */
typedef struct stretch {
  double slope, log_slope, log_slope_slope;
} stretch;

static stretch stretch_at(const smc_map *map, int j, double z) {
  double scale = map->parameters[SCALE].x[j], tail = map->parameters[TAIL].x[j];
  if (is_affine(map, j))
    return (stretch){scale, scale == 1.0 ? 0.0 : log(scale), 0.0};
  double a = angle(map, j, z);
  double of_angle = 1.0 / (tail * sqrt(1.0 + z * z)); /* da / dz */
  stretch s = {.slope = scale * cosh(a) * of_angle};
  s.log_slope = log(s.slope);
  s.log_slope_slope = tanh(a) * of_angle - z / (1.0 + z * z);
  return s;
}

static void pull_back(const smc_map *map, int n, const double *z, double *logp,
                      double *grad, double *scratch) {
  (void)scratch;
  for (int k = 0; k < n; k++)
    for (int j = 0; j < map->d; j++) {
      size_t at = smc_size(map->d, k) + (size_t)j;
      stretch s = stretch_at(map, j, z[at]);
      logp[k] += s.log_slope;
      if (grad)
        grad[at] = grad[at] * s.slope + s.log_slope_slope;
    }
}

static void push_forward(const smc_map *map, int n, const double *z,
                         double *logp, double *grad, double *scratch) {
  (void)scratch;
  for (int k = 0; k < n; k++)
    for (int j = 0; j < map->d; j++) {
      size_t at = smc_size(map->d, k) + (size_t)j;
      stretch s = stretch_at(map, j, z[at]);
      logp[k] -= s.log_slope;
      if (grad)
        grad[at] = (grad[at] - s.log_slope_slope) / s.slope;
    }
}

const smc_map_kind smc_map_tails = {
    .name = "tails",
    .names = {"location", "scale", "skew", "tail"},
    .is_valid = is_valid,
    .forward = forward,
    .inverse = inverse,
    .pull_back = pull_back,
    .push_forward = push_forward,
};
