/* map_neck.c: coordinates whose scale falls on one side of a variable, and
 * whose location moves from one value to another, as those of a hierarchy do.
 *
 * One coordinate of z, the variable, acts on the rest,
 *   u_j = z_j W_j^(bend_j / 2) + pull_j W_j,
 *   W_j = 1 / (1 + exp(-2 rate (z_k - centre_j))),
 * and is itself left as it is, u_k = z_k. Above the centre W_j is 1, and
 * nothing depends on the variable; below it the scale falls as
 * exp(bend_j rate z_k), and the location goes to 0. (The other way round where
 * the rate is negative.) This is exact for effects
 * theta_j ~ N(mu, tau^2) that are measured with normal errors, given log tau:
 * W_j is the share of tau^2 in their variance.
 *
 * The Jacobian is triangular with the variable first, and its diagonal is that
 * of the scales.
 */
#include "map.h"
#include "vecmath.h"

enum { VARIABLE, RATE, CENTRE, BEND, PULL };

static double parameter(const smc_map *map, int i, int j) {
  return map->parameters[i].x[j];
}

static int variable(const smc_map *map) {
  return (int)parameter(map, VARIABLE, 0) - 1;
}

static bool is_valid(const smc_map *map) {
  const smc_values *p = map->parameters;
  if (!p[VARIABLE].x || p[VARIABLE].size != 1 || !p[RATE].x ||
      p[RATE].size != 1)
    return false;
  for (int i = CENTRE; i <= PULL; i++)
    if (!p[i].x || p[i].size != (size_t)map->d)
      return false;
  double given = parameter(map, VARIABLE, 0);
  if (!(given >= 1.0 && given <= map->d) || given != floor(given) ||
      parameter(map, RATE, 0) == 0.0 || !isfinite(parameter(map, RATE, 0)))
    return false;
  int k = variable(map);
  return parameter(map, BEND, k) == 0.0 && parameter(map, PULL, k) == 0.0;
}

/* Most coordinates may be as they are: where all but a few are normal given
 * these, for one. */
static bool is_moved(const smc_map *map, int j) {
  return parameter(map, BEND, j) != 0.0 || parameter(map, PULL, j) != 0.0;
}

/* log W_j at a value of the variable, which may overflow on neither side. */
static double log_share(const smc_map *map, int j, double at) {
  double below =
      -2.0 * parameter(map, RATE, 0) * (at - parameter(map, CENTRE, j));
  return below > 0.0 ? -below - log1p(exp(-below)) : -log1p(exp(below));
}

/* Of coordinate j at a value of the variable. */
typedef struct shape {
  double log_w, log_scale, scale, location;
} shape;

static shape shape_at(const smc_map *map, int j, double at) {
  shape s = {.log_w = log_share(map, j, at)};
  s.log_scale = parameter(map, BEND, j) / 2.0 * s.log_w;
  s.scale = exp(s.log_scale);
  s.location = parameter(map, PULL, j) * exp(s.log_w);
  return s;
}

static void forward(const smc_map *map, int n, const double *from, double *to,
                    double *scratch) {
  (void)scratch;
  for (int i = 0; i < n; i++, from += map->d, to += map->d)
    for (int j = 0; j < map->d; j++) {
      to[j] = from[j];
      if (is_moved(map, j)) {
        shape at = shape_at(map, j, from[variable(map)]);
        to[j] = from[j] * at.scale + at.location;
      }
    }
}

static void inverse(const smc_map *map, int n, const double *from, double *to,
                    double *scratch) {
  (void)scratch;
  for (int i = 0; i < n; i++, from += map->d, to += map->d)
    for (int j = 0; j < map->d; j++) {
      to[j] = from[j];
      if (is_moved(map, j)) {
        shape at = shape_at(map, j, from[variable(map)]);
        to[j] = (from[j] - at.location) / at.scale;
      }
    }
}

/* What u_j gives to the derivative by the variable, with its part of the log
 * Jacobian, where by_u is the derivative by it. */
static double by_variable(const smc_map *map, int j, shape at, double z,
                          double by_u) {
  /* d log W / dz_k = 2 rate (1 - W) */
  double slope = 2.0 * parameter(map, RATE, 0) * -expm1(at.log_w);
  return slope * (parameter(map, BEND, j) / 2.0 * (by_u * at.scale * z + 1.0) +
                  by_u * at.location);
}

static void pull_back(const smc_map *map, int n, const double *z, double *logp,
                      double *grad, double *scratch) {
  (void)scratch;
  int k = variable(map);
  for (int i = 0; i < n; i++, z += map->d) {
    double *of_point = grad ? grad + smc_size(map->d, i) : NULL;
    for (int j = 0; j < map->d; j++) {
      if (!is_moved(map, j))
        continue;
      shape at = shape_at(map, j, z[k]);
      logp[i] += at.log_scale;
      if (!grad)
        continue;
      of_point[k] += by_variable(map, j, at, z[j], of_point[j]);
      of_point[j] *= at.scale;
    }
  }
}

static void push_forward(const smc_map *map, int n, const double *z,
                         double *logp, double *grad, double *scratch) {
  (void)scratch;
  int k = variable(map);
  for (int i = 0; i < n; i++, z += map->d) {
    double *of_point = grad ? grad + smc_size(map->d, i) : NULL;
    for (int j = 0; j < map->d; j++) {
      if (!is_moved(map, j))
        continue;
      shape at = shape_at(map, j, z[k]);
      logp[i] -= at.log_scale;
      if (!grad)
        continue;
      of_point[j] /= at.scale;
      of_point[k] -= by_variable(map, j, at, z[j], of_point[j]);
    }
  }
}

const smc_map_kind smc_map_neck = {
    .name = "neck",
    .names = {"variable", "rate", "centre", "bend", "pull"},
    .is_valid = is_valid,
    .forward = forward,
    .inverse = inverse,
    .pull_back = pull_back,
    .push_forward = push_forward,
};
