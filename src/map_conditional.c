/* map_conditional.c: coordinates whose location and scale depend on others, as
 * those of a funnel depend on its neck, and those of a banana on its long axis.
 *
 * Some coordinates of z, the conditioning variables D, act on the
 * rest,
 *   u_j = exp(slope_j . z_D) (z_j + shift_j . z_D + curve_j . (z_D^2 - 1)),
 * and are themselves left as they are, u_k = z_k. Where location and spread of
 * u depend on a conditioning variable in this way, those of z do not, and one
 * step size suits it all. In the narrow end of a neck the location is pinched
 * with the scale: what the terms say far out does no harm there. That in the
 * squares has mean zero under N(0, I).
 *
 * Ordered with the conditioning first the Jacobian is triangular, and its
 * diagonal is that of the scales.
 */
#include "map.h"
#include "vecmath.h"

/* conditioning: coordinates, counted from 0. The others: d x n_conditioning
 * each, column-major, 0 for the conditioning; a curve that is not given is
 * zero. */
enum { CONDITIONING, SHIFT, SLOPE, CURVE };

static int n_conditioning(const smc_map *map) {
  return (int)map->parameters[CONDITIONING].size;
}

static const double *coefficients(const smc_map *map, int i) {
  return map->parameters[i].x;
}

static int conditioning(const smc_map *map, int i) {
  return (int)map->parameters[CONDITIONING].x[i];
}

/* Whether conditioning variable i is a coordinate, and no conditioning variable
 * before it is the same. */
static bool is_new_condition(const smc_map *map, int i) {
  double given = map->parameters[CONDITIONING].x[i];
  if (!(given >= 0.0 && given < map->d) || given != floor(given))
    return false;
  for (int before = 0; before < i; before++)
    if (conditioning(map, before) == conditioning(map, i))
      return false;
  return true;
}

/* Whether nothing acts on the conditioning. */
static bool spares_conditioning(const smc_map *map, const double *values) {
  for (int i = 0; i < n_conditioning(map); i++)
    for (int by = 0; by < n_conditioning(map); by++)
      if (values[smc_size(map->d, by) + (size_t)conditioning(map, i)] != 0.0)
        return false;
  return true;
}

static bool is_valid(const smc_map *map) {
  const smc_values *p = map->parameters;
  if (!p[CONDITIONING].x || p[CONDITIONING].size > (size_t)map->d ||
      !p[SHIFT].x || !p[SLOPE].x)
    return false;
  for (int i = 0; i < n_conditioning(map); i++)
    if (!is_new_condition(map, i))
      return false;
  for (int i = SHIFT; i <= CURVE; i++)
    if (p[i].x && (p[i].size != smc_size(map->d, n_conditioning(map)) ||
                   !spares_conditioning(map, p[i].x)))
      return false;
  return true;
}

/* values_j . z_D, for one particle. */
static double combine(const smc_map *map, const double *values, int j,
                      const double *z) {
  double sum = 0.0;
  for (int i = 0; i < n_conditioning(map); i++)
    sum += values[smc_size(map->d, i) + (size_t)j] * z[conditioning(map, i)];
  return sum;
}

/* curve_j . (z_D^2 - 1) */
static double bend(const smc_map *map, int j, const double *z) {
  const double *curve = coefficients(map, CURVE);
  double sum = 0.0;
  for (int i = 0; curve && i < n_conditioning(map); i++) {
    double at = z[conditioning(map, i)];
    sum += curve[smc_size(map->d, i) + (size_t)j] * (at * at - 1.0);
  }
  return sum;
}

/* z_j and its location, before they are scaled. */
static double placed(const smc_map *map, int j, const double *z) {
  return z[j] + combine(map, coefficients(map, SHIFT), j, z) + bend(map, j, z);
}

static double scale_of(const smc_map *map, int j, const double *z) {
  double log_scale = combine(map, coefficients(map, SLOPE), j, z);
  return log_scale == 0.0 ? 1.0 : exp(log_scale);
}

static void forward(const smc_map *map, int n, const double *from, double *to,
                    double *scratch) {
  (void)scratch;
  for (int k = 0; k < n; k++, from += map->d, to += map->d)
    for (int j = 0; j < map->d; j++)
      to[j] = scale_of(map, j, from) * placed(map, j, from);
}

/* The derivative of the location of coordinate j by conditioning variable i. */
static double location_slope(const smc_map *map, int i, int j,
                             const double *z) {
  const double *curve = coefficients(map, CURVE);
  size_t at = smc_size(map->d, i) + (size_t)j;
  double linear = coefficients(map, SHIFT)[at];
  return curve ? linear + 2.0 * curve[at] * z[conditioning(map, i)] : linear;
}

/* One particle: its gradient in u becomes that in z. What a conditioning
 * variable collects does not count again when its own turn comes: its
 * coefficients are 0. */
static void pull_back_gradient(const smc_map *map, const double *z,
                               double *grad) {
  const double *slope = coefficients(map, SLOPE);
  for (int j = 0; j < map->d; j++) {
    double by_placed = grad[j] * scale_of(map, j, z);
    double by_log_scale = by_placed * placed(map, j, z) + 1.0; /* Jacobian: 1 */
    for (int i = 0; i < n_conditioning(map); i++)
      grad[conditioning(map, i)] +=
          location_slope(map, i, j, z) * by_placed +
          slope[smc_size(map->d, i) + (size_t)j] * by_log_scale;
    grad[j] = by_placed;
  }
}

static void pull_back(const smc_map *map, int n, const double *from,
                      double *logp, double *grad, double *scratch) {
  (void)scratch;
  for (int k = 0; k < n; k++, from += map->d) {
    for (int j = 0; j < map->d; j++)
      logp[k] += combine(map, coefficients(map, SLOPE), j, from);
    if (grad)
      pull_back_gradient(map, from, grad + smc_size(map->d, k));
  }
}

const smc_map_kind smc_map_conditional = {
    .name = "conditional",
    .names = {"conditioning", "shift", "slope", "curve"},
    .is_valid = is_valid,
    .forward = forward,
    .pull_back = pull_back,
};
