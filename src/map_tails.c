/* map_tails.c: coordinates that are skew, or have heavier tails than a normal
 * distribution, by the sinh-arcsinh transformation (Jones and Pewsey, 2009),
 *   u_j = location_j + scale_j sinh((asinh(z_j) + skew_j) / tail_j).
 *
 * tail = 1 is normal tails, less is heavier ones; skew > 0 stretches what is
 * above the centre. With skew 0 and tail 1 the map is affine.
 */
#include "map.h"
#include "vecmath.h"

enum { LOCATION, SCALE, SKEW, TAIL }; /* d each; scale > 0, 0 < tail <= 1 */

static bool is_valid(const smc_map *map) {
  const smc_values *p = map->parameters;
  for (int i = LOCATION; i <= TAIL; i++)
    if (!p[i].x || p[i].size != (size_t)map->d)
      return false;
  for (int j = 0; j < map->d; j++)
    if (!(p[SCALE].x[j] > 0.0 && p[TAIL].x[j] > 0.0 && p[TAIL].x[j] <= 1.0))
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

/* Adds the log of du / dz of coordinate j to logp; its gradient in u, *g,
 * becomes that in z, unless g is NULL. */
static void pull_back_coordinate(const smc_map *map, int j, double z,
                                 double *logp, double *g) {
  double a = angle(map, j, z), tail = map->parameters[TAIL].x[j];
  double slope = 1.0 / (tail * sqrt(1.0 + z * z));                /* da / dz */
  double stretch = map->parameters[SCALE].x[j] * cosh(a) * slope; /* du / dz */
  *logp += log(stretch);
  if (g)
    *g = *g * stretch + tanh(a) * slope - z / (1.0 + z * z);
}

static void pull_back(const smc_map *map, int n, const double *from,
                      double *logp, double *grad, double *scratch) {
  (void)scratch;
  const double *scale = map->parameters[SCALE].x;
  for (int k = 0; k < n; k++, from += map->d)
    for (int j = 0; j < map->d; j++) {
      double *g = grad ? &grad[smc_size(map->d, k) + (size_t)j] : NULL;
      if (!is_affine(map, j)) {
        pull_back_coordinate(map, j, from[j], &logp[k], g);
      } else if (scale[j] != 1.0) {
        logp[k] += log(scale[j]);
        if (g)
          *g *= scale[j];
      }
    }
}

const smc_map_kind smc_map_tails = {
    .name = "tails",
    .names = {"location", "scale", "skew", "tail"},
    .is_valid = is_valid,
    .forward = forward,
    .pull_back = pull_back,
};
