/* map_moments.c: coordinates whose location and scale depend on others, as
 * those of a funnel depend on its neck, and those of a banana on its long axis.
 *
 * Some coordinates of z, the children, become
 *   u_j = m_j + exp(s_j) z_j,
 * where m_j and s_j are linear combinations of features of the others, which
 * are left as they are. With these first the Jacobian is triangular, and its
 * diagonal is that of the scales.
 *
 * A feature is the product of at most two factors; each depends on one
 * coordinate t, as a function of y = rate (t - centre). One without factors is
 * the constant 1.
 */
#include "map.h"
#include "vecmath.h"

#include <string.h>

/* features ---------------------------------------------------------------- */

enum { LINEAR = 1, SQUARE, CUBE, EXPONENTIAL, SOFTPLUS };

/* variable: the coordinate, counted from 1; 0 for no factor. */
typedef struct factor {
  double variable, kind, rate, centre;
} factor;

typedef struct feature {
  factor factor[2];
} feature;

enum { FEATURE_SIZE = sizeof(feature) / sizeof(double) };

/* The value of a factor, and its derivative by the coordinate. */
static double factor_at(const factor *of, const double *z, double *slope) {
  *slope = 0.0;
  if (of->variable == 0.0)
    return 1.0;
  double y = of->rate * (z[(size_t)of->variable - 1] - of->centre);
  double value = y, by_y = 1.0;
  switch ((int)of->kind) {
  case SQUARE:
    value = y * y;
    by_y = 2.0 * y;
    break;
  case CUBE:
    value = y * y * y;
    by_y = 3.0 * y * y;
    break;
  case EXPONENTIAL:
    value = by_y = exp(y);
    break;
  case SOFTPLUS:
    value = fmax(y, 0.0) + log1p(exp(-fabs(y)));
    by_y = 1.0 / (1.0 + exp(-y));
    break;
  }
  *slope = of->rate * by_y;
  return value;
}

/* The values of n features at a point z; slopes, 2 a feature: their derivatives
 * by the coordinates of their factors. */
static void features_at(int n, const double *features, const double *z,
                        double *values, double *slopes) {
  const feature *of = (const feature *)features;
  for (int k = 0; k < n; k++) {
    double a = factor_at(&of[k].factor[0], z, &slopes[2 * k]);
    double b = factor_at(&of[k].factor[1], z, &slopes[2 * k + 1]);
    values[k] = a * b;
    slopes[2 * k] *= b;
    slopes[2 * k + 1] *= a;
  }
}

/* The derivative `by` of something by feature k goes to those by coordinates.
 */
static void feature_back(const double *features, int k, double by,
                         const double *slopes, double *grad) {
  const feature *of = (const feature *)features + k;
  for (int i = 0; i < 2; i++)
    if (of->factor[i].variable != 0.0)
      grad[(size_t)of->factor[i].variable - 1] += by * slopes[2 * k + i];
}

static bool is_factor(int d, const factor *of, const smc_values *order) {
  if (of->variable == 0.0)
    return true;
  return smc_is_coordinate(of->variable, d) &&
         !smc_has_value(order, of->variable) && of->kind >= LINEAR &&
         of->kind <= SOFTPLUS && of->kind == floor(of->kind) &&
         isfinite(of->rate) && isfinite(of->centre);
}

static bool features_are_valid(int d, const smc_values *features,
                               const smc_values *order) {
  if (!features->x || features->size == 0 || features->size % FEATURE_SIZE != 0)
    return false;
  const feature *of = (const feature *)features->x;
  for (size_t k = 0; k < features->size / FEATURE_SIZE; k++)
    if (!is_factor(d, &of[k].factor[0], order) ||
        !is_factor(d, &of[k].factor[1], order))
      return false;
  return true;
}

/* parameters --------------------------------------------------------------- */

/* order: the p children. location, log_scale: p x n_features, column-major. */
enum { ORDER, FEATURES, LOCATION, LOG_SCALE };

static const double *parameter(const smc_map *map, int i) {
  return map->parameters[i].x;
}

static int n_children(const smc_map *map) {
  return (int)map->parameters[ORDER].size;
}

static int n_features(const smc_map *map) {
  return (int)(map->parameters[FEATURES].size / FEATURE_SIZE);
}

static bool is_valid(const smc_map *map) {
  const smc_values *p = map->parameters;
  if (!p[ORDER].x || p[ORDER].size == 0 ||
      !smc_are_coordinates(&p[ORDER], map->d) ||
      !features_are_valid(map->d, &p[FEATURES], &p[ORDER]))
    return false;
  size_t size = p[ORDER].size * (size_t)n_features(map);
  return p[LOCATION].x && p[LOG_SCALE].x && p[LOCATION].size == size &&
         p[LOG_SCALE].size == size;
}

/* What is computed for one point: features and their slopes; location and log
 * scale of each child; derivatives by these. */
typedef struct point {
  double *values, *slopes, *m, *s, *m_bar, *s_bar;
} point;

static size_t scratch_size(const smc_map *map) {
  return 3 * (size_t)n_features(map) + 4 * (size_t)n_children(map);
}

static point point_in(const smc_map *map, double *scratch) {
  point at = {.values = scratch};
  at.slopes = at.values + n_features(map);
  at.m = at.slopes + 2 * n_features(map);
  at.s = at.m + n_children(map);
  at.m_bar = at.s + n_children(map);
  at.s_bar = at.m_bar + n_children(map);
  return at;
}

static int child(const smc_map *map, int v) {
  return (int)parameter(map, ORDER)[v] - 1;
}

static void compute(const smc_map *map, const double *z, const point *to) {
  int p = n_children(map), n = n_features(map);
  features_at(n, parameter(map, FEATURES), z, to->values, to->slopes);
  memset(to->m, 0, 2 * (size_t)p * sizeof(double));
  for (int k = 0; k < n; k++) {
    const double *m = parameter(map, LOCATION) + smc_size(p, k);
    const double *s = parameter(map, LOG_SCALE) + smc_size(p, k);
    for (int v = 0; v < p; v++) {
      /* a feature may be infinite where it has no part */
      if (m[v] != 0.0)
        to->m[v] += m[v] * to->values[k];
      if (s[v] != 0.0)
        to->s[v] += s[v] * to->values[k];
    }
  }
}

static void forward(const smc_map *map, int n, const double *from, double *to,
                    double *scratch) {
  point at = point_in(map, scratch);
  for (int k = 0; k < n; k++, from += map->d, to += map->d) {
    compute(map, from, &at);
    memcpy(to, from, (size_t)map->d * sizeof(double));
    for (int v = 0; v < n_children(map); v++)
      to[child(map, v)] = at.m[v] + exp(at.s[v]) * from[child(map, v)];
  }
}

static void inverse(const smc_map *map, int n, const double *from, double *to,
                    double *scratch) {
  point at = point_in(map, scratch);
  for (int k = 0; k < n; k++, from += map->d, to += map->d) {
    compute(map, from, &at);
    memcpy(to, from, (size_t)map->d * sizeof(double));
    for (int v = 0; v < n_children(map); v++)
      to[child(map, v)] = (from[child(map, v)] - at.m[v]) * exp(-at.s[v]);
  }
}

/* Of one point z, from the derivatives m_bar by the images of the children:
 * what these and the log Jacobian give to the coordinates that features depend
 * on, `sign` times. */
static void add_derivatives(const smc_map *map, const point *at,
                            const double *z, double sign, double *grad) {
  int p = n_children(map);
  for (int v = 0; v < p; v++)
    at->s_bar[v] = at->m_bar[v] * exp(at->s[v]) * z[child(map, v)] + 1.0;
  for (int k = 0; k < n_features(map); k++) {
    const double *m = parameter(map, LOCATION) + smc_size(p, k);
    const double *s = parameter(map, LOG_SCALE) + smc_size(p, k);
    double by = 0.0;
    for (int v = 0; v < p; v++)
      by += m[v] * at->m_bar[v] + s[v] * at->s_bar[v];
    if (by != 0.0)
      feature_back(parameter(map, FEATURES), k, sign * by, at->slopes, grad);
  }
}

static double log_jacobian(const smc_map *map, const point *at) {
  double sum = 0.0;
  for (int v = 0; v < n_children(map); v++)
    sum += at->s[v];
  return sum;
}

static void pull_back(const smc_map *map, int n, const double *z, double *logp,
                      double *grad, double *scratch) {
  point at = point_in(map, scratch);
  for (int k = 0; k < n; k++, z += map->d) {
    compute(map, z, &at);
    logp[k] += log_jacobian(map, &at);
    if (!grad)
      continue;
    double *of_point = grad + smc_size(map->d, k);
    for (int v = 0; v < n_children(map); v++) {
      at.m_bar[v] = of_point[child(map, v)];
      of_point[child(map, v)] *= exp(at.s[v]);
    }
    add_derivatives(map, &at, z, 1.0, of_point);
  }
}

static void push_forward(const smc_map *map, int n, const double *z,
                         double *logp, double *grad, double *scratch) {
  point at = point_in(map, scratch);
  for (int k = 0; k < n; k++, z += map->d) {
    compute(map, z, &at);
    logp[k] -= log_jacobian(map, &at);
    if (!grad)
      continue;
    double *of_point = grad + smc_size(map->d, k);
    for (int v = 0; v < n_children(map); v++)
      of_point[child(map, v)] = at.m_bar[v] =
          of_point[child(map, v)] * exp(-at.s[v]);
    add_derivatives(map, &at, z, -1.0, of_point);
  }
}

const smc_map_kind smc_map_moments = {
    .name = "moments",
    .names = {"order", "features", "location", "log_scale"},
    .is_valid = is_valid,
    .scratch = scratch_size,
    .forward = forward,
    .inverse = inverse,
    .pull_back = pull_back,
    .push_forward = push_forward,
};
