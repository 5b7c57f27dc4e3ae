/* map_conditional.c: coordinates whose location and scale depend on others, as
 * those of a funnel depend on its neck, and those of a banana on its long axis.
 *
 * Some coordinates of z, the conditioning variables D, act on the
 * rest,
 *   u_j = exp(slope_j . z_D) (z_j + shift_j . z_D + curve_j . (b(z_D) - 1)),
 * and are themselves left as they are, u_k = z_k. Where location and spread of
 * u depend on a conditioning variable in this way, those of z do not, and one
 * step size suits it all. In the narrow end of a neck the location is pinched
 * with the scale: what the terms say far out does no harm there.
 *
 * The bends b are functions of one conditioning variable each: the square, or
 * with a knee of width k at c
 *   8 k^2 log(cosh((z - c) / (2 k))),
 * which is (z - c)^2 near c, and straight beyond the knee. Together with a
 * straight line it is the logarithm of a sum of two exponentials.
 *
 * Ordered with the conditioning first the Jacobian is triangular, and its
 * diagonal is that of the scales.
 */
#include "map.h"
#include "vecmath.h"

/* conditioning: coordinates. shift, slope: d x n_conditioning, column-major;
 * curve: d x bends; 0 for the conditioning. bent: for each bend the number of
 * the conditioning variable that it is a function of; width and place of its
 * knee, where width 0 is the square. Without a curve nothing bends, and without
 * these three the bends are the squares of all conditioning variables. */
enum { CONDITIONING, SHIFT, SLOPE, CURVE, BENT, WIDTH, PLACE };

static int n_conditioning(const smc_map *map) {
  return (int)map->parameters[CONDITIONING].size;
}

static const double *coefficients(const smc_map *map, int i) {
  return map->parameters[i].x;
}

static int conditioning(const smc_map *map, int i) {
  return (int)map->parameters[CONDITIONING].x[i] - 1;
}

/* Whether conditioning variable i is a coordinate, and no conditioning variable
 * before it is the same. */
static bool is_new_condition(const smc_map *map, int i) {
  double given = map->parameters[CONDITIONING].x[i];
  if (!(given >= 1.0 && given <= map->d) || given != floor(given))
    return false;
  for (int before = 0; before < i; before++)
    if (conditioning(map, before) == conditioning(map, i))
      return false;
  return true;
}

static int n_bends(const smc_map *map) {
  if (!coefficients(map, CURVE))
    return 0;
  return coefficients(map, BENT) ? (int)map->parameters[BENT].size
                                 : n_conditioning(map);
}

/* The conditioning variable of a bend. */
static int bent(const smc_map *map, int bend) {
  const double *variable = coefficients(map, BENT);
  return variable ? (int)variable[bend] - 1 : bend;
}

/* Whether these are coefficients of so many columns, none for the conditioning
 * variables. */
static bool acts_on_others(const smc_map *map, smc_values values, int columns) {
  if (values.size != smc_size(map->d, columns))
    return false;
  for (int i = 0; i < n_conditioning(map); i++)
    for (int by = 0; by < columns; by++)
      if (values.x[smc_size(map->d, by) + (size_t)conditioning(map, i)] != 0.0)
        return false;
  return true;
}

static bool has_valid_knees(const smc_map *map) {
  const smc_values *p = map->parameters;
  if (!p[BENT].x)
    return !p[WIDTH].x && !p[PLACE].x;
  if (!p[CURVE].x || !p[WIDTH].x || !p[PLACE].x ||
      p[WIDTH].size != p[BENT].size || p[PLACE].size != p[BENT].size)
    return false;
  for (size_t i = 0; i < p[BENT].size; i++) {
    double variable = p[BENT].x[i];
    if (!(variable >= 1.0 && variable <= n_conditioning(map) &&
          variable == floor(variable) && p[WIDTH].x[i] >= 0.0))
      return false;
  }
  return true;
}

static bool is_valid(const smc_map *map) {
  const smc_values *p = map->parameters;
  if (!p[CONDITIONING].x || p[CONDITIONING].size > (size_t)map->d ||
      !p[SHIFT].x || !p[SLOPE].x || !has_valid_knees(map))
    return false;
  for (int i = 0; i < n_conditioning(map); i++)
    if (!is_new_condition(map, i))
      return false;
  return acts_on_others(map, p[SHIFT], n_conditioning(map)) &&
         acts_on_others(map, p[SLOPE], n_conditioning(map)) &&
         (!p[CURVE].x || acts_on_others(map, p[CURVE], n_bends(map)));
}

/* values_j . z_D, for one particle. */
static double combine(const smc_map *map, const double *values, int j,
                      const double *z) {
  double sum = 0.0;
  for (int i = 0; i < n_conditioning(map); i++)
    sum += values[smc_size(map->d, i) + (size_t)j] * z[conditioning(map, i)];
  return sum;
}

static size_t scratch_size(const smc_map *map) {
  return 2 * (size_t)n_bends(map);
}

/* The bends of one particle, less 1, and their slopes. */
typedef struct bends {
  double *value, *slope;
} bends;

static bends bends_at(const smc_map *map, const double *z, double *scratch) {
  bends at = {.value = scratch, .slope = scratch + n_bends(map)};
  const double *width = coefficients(map, WIDTH);
  for (int i = 0; i < n_bends(map); i++) {
    double given = z[conditioning(map, bent(map, i))];
    if (!width || width[i] == 0.0) {
      at.value[i] = given * given - 1.0;
      at.slope[i] = 2.0 * given;
      continue;
    }
    double part = (given - coefficients(map, PLACE)[i]) / (2.0 * width[i]);
    /* cosh itself may overflow */
    double log_cosh = fabs(part) + log1p(exp(-2.0 * fabs(part))) - log(2.0);
    at.value[i] = 8.0 * width[i] * width[i] * log_cosh - 1.0;
    at.slope[i] = 4.0 * width[i] * tanh(part);
  }
  return at;
}

/* What is added to z_j before it is scaled. */
static double location(const smc_map *map, int j, const double *z, bends at) {
  double sum = combine(map, coefficients(map, SHIFT), j, z);
  for (int i = 0; i < n_bends(map); i++)
    sum +=
        coefficients(map, CURVE)[smc_size(map->d, i) + (size_t)j] * at.value[i];
  return sum;
}

static double scale_of(const smc_map *map, int j, const double *z) {
  double log_scale = combine(map, coefficients(map, SLOPE), j, z);
  return log_scale == 0.0 ? 1.0 : exp(log_scale);
}

static void forward(const smc_map *map, int n, const double *from, double *to,
                    double *scratch) {
  for (int k = 0; k < n; k++, from += map->d, to += map->d) {
    bends at = bends_at(map, from, scratch);
    for (int j = 0; j < map->d; j++)
      to[j] = scale_of(map, j, from) * (from[j] + location(map, j, from, at));
  }
}

/* The conditioning variables, of which all is made, are the same. */
static void inverse(const smc_map *map, int n, const double *from, double *to,
                    double *scratch) {
  for (int k = 0; k < n; k++, from += map->d, to += map->d) {
    bends at = bends_at(map, from, scratch);
    for (int j = 0; j < map->d; j++)
      to[j] = from[j] / scale_of(map, j, from) - location(map, j, from, at);
  }
}

/* Of one particle, from what is known of coordinate j, its derivative by z_j:
 * those by the conditioning variables gain `sign` times what it gives them,
 * with its part of the log Jacobian. Its own as one of these is not touched:
 * there its coefficients are 0. */
static void add_derivatives(const smc_map *map, int j, const double *z,
                            bends at, double by_z, double sign, double *grad) {
  double by_location = sign * by_z;
  double by_log_scale = sign * (by_z * (z[j] + location(map, j, z, at)) + 1.0);
  for (int i = 0; i < n_conditioning(map); i++) {
    size_t of = smc_size(map->d, i) + (size_t)j;
    grad[conditioning(map, i)] += coefficients(map, SHIFT)[of] * by_location +
                                  coefficients(map, SLOPE)[of] * by_log_scale;
  }
  for (int i = 0; i < n_bends(map); i++)
    grad[conditioning(map, bent(map, i))] +=
        coefficients(map, CURVE)[smc_size(map->d, i) + (size_t)j] *
        at.slope[i] * by_location;
}

static double log_jacobian(const smc_map *map, const double *z) {
  double sum = 0.0;
  for (int j = 0; j < map->d; j++)
    sum += combine(map, coefficients(map, SLOPE), j, z);
  return sum;
}

static void pull_back(const smc_map *map, int n, const double *z, double *logp,
                      double *grad, double *scratch) {
  for (int k = 0; k < n; k++, z += map->d) {
    logp[k] += log_jacobian(map, z);
    if (!grad)
      continue;
    bends at = bends_at(map, z, scratch);
    double *of_point = grad + smc_size(map->d, k);
    for (int j = 0; j < map->d; j++) {
      of_point[j] *= scale_of(map, j, z);
      add_derivatives(map, j, z, at, of_point[j], 1.0, of_point);
    }
  }
}

static void push_forward(const smc_map *map, int n, const double *z,
                         double *logp, double *grad, double *scratch) {
  for (int k = 0; k < n; k++, z += map->d) {
    logp[k] -= log_jacobian(map, z);
    if (!grad)
      continue;
    bends at = bends_at(map, z, scratch);
    double *of_point = grad + smc_size(map->d, k);
    for (int j = 0; j < map->d; j++) {
      add_derivatives(map, j, z, at, of_point[j], -1.0, of_point);
      of_point[j] /= scale_of(map, j, z);
    }
  }
}

const smc_map_kind smc_map_conditional = {
    .name = "conditional",
    .names = {"conditioning", "shift", "slope", "curve", "bent", "width",
              "place"},
    .is_valid = is_valid,
    .scratch = scratch_size,
    .forward = forward,
    .inverse = inverse,
    .pull_back = pull_back,
    .push_forward = push_forward,
};
