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
      to[j] = location[j] + scale[j] * sinh(angle(map, j, from[j]));
}

static void pull_back(const smc_map *map, int n, const double *from,
                      double *logp, double *grad, double *scratch) {
  (void)scratch;
  const double *scale = map->parameters[SCALE].x;
  const double *tail = map->parameters[TAIL].x;
  for (int k = 0; k < n; k++, from += map->d)
    for (int j = 0; j < map->d; j++) {
      double z = from[j], a = angle(map, j, z);
      double slope = 1.0 / (tail[j] * sqrt(1.0 + z * z)); /* da / dz */
      double stretch = scale[j] * cosh(a) * slope;        /* du / dz */
      logp[k] += log(stretch);
      if (grad) {
        double *g = &grad[smc_size(map->d, k) + (size_t)j];
        *g = *g * stretch + tanh(a) * slope - z / (1.0 + z * z);
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
