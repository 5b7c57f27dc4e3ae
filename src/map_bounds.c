/* map_bounds.c: bounded variables x as variables u on the whole line.
 *   no bound    x = u
 *   lower       x = lower + exp(u)
 *   upper       x = upper - exp(u)
 *   both        x = lower + (upper - lower) / (1 + exp(-u))
 * Between two bounds x may be turned, as an angle is: by a part of the width,
 * with what would go beyond one bound entering at the other. Or it may be
 * edged, x = middle + (upper - lower) / 4 u for -2 < u < 2, which has the slope
 * of the others at u = 0: beyond that the log density is -Inf, and x next to a
 * bound.
 *
 * What rounding would put on a bound or beyond it, u = NaN among it, becomes
 * the nearest number inside. Where x(u) would overflow the log density becomes
 * -Inf.
 */
#include "map.h"
#include "vecmath.h"

#include <float.h>

typedef enum kind { FREE, ABOVE, BELOW, BETWEEN, EDGED, LOGIT } kind;

static kind kind_of(double lower, double upper, bool is_edged) {
  if (lower == -INFINITY)
    return upper < INFINITY ? BELOW : is_edged ? LOGIT : FREE;
  if (upper == INFINITY)
    return ABOVE;
  return is_edged ? EDGED : BETWEEN;
}

/* Where the scale of edged variables ends on both sides: there x is on a bound.
 */
static const double edge = 2.0;

/* The nearest number inside the bounds: a density may be infinite at a bound,
 * and so may u be. */
static double inside(double lower, double upper, double x) {
  double least = nextafter(lower, INFINITY);
  double most = nextafter(upper, -INFINITY);
  return fmin(fmax(x, least), most); /* least for NaN */
}

/* one variable ------------------------------------------------------------ */

/* x between two bounds, turned by a part of the width, from -1 to 1. */
static double turned(double lower, double upper, double turn, double x) {
  double width = upper - lower;
  x += turn * width;
  return x >= upper ? x - width : x < lower ? x + width : x;
}

static double to_x(kind kind, double lower, double upper, double turn,
                   double u) {
  double x;
  switch (kind) {
  case ABOVE:
    return inside(lower, upper, lower + exp(u));
  case BELOW:
    return inside(lower, upper, upper - exp(u));
  case BETWEEN: /* each weight has its own small end to full precision */
    x = lower / (1.0 + exp(u)) + upper / (1.0 + exp(-u));
    return inside(lower, upper, turn > 0.0 ? turned(lower, upper, turn, x) : x);
  case EDGED:
    x = 0.5 * lower + 0.5 * upper + (0.25 * upper - 0.25 * lower) * u;
    return inside(lower, upper, x);
  case LOGIT:
    return fabs(u) < edge ? log1p(0.5 * u) - log1p(-0.5 * u) : 0.0;
  case FREE:
    break;
  }
  return u;
}

static double to_u(kind kind, double lower, double upper, double turn,
                   double x) {
  if (kind == FREE)
    return x;
  if (kind == LOGIT)
    return 2.0 * tanh(0.5 * x);
  if (kind == BETWEEN && turn > 0.0)
    x = turned(lower, upper, -turn, x);
  x = inside(lower, upper, x);
  if (kind == EDGED)
    return (x - 0.5 * lower - 0.5 * upper) / (0.25 * upper - 0.25 * lower);
  double above = log(fmin(x - lower, DBL_MAX));
  double below = log(fmin(upper - x, DBL_MAX));
  return kind == ABOVE ? above : kind == BELOW ? below : above - below;
}

/* At u: dx / du, its logarithm, and the derivative of that. */
typedef struct jacobian {
  double slope, log_slope, log_slope_slope;
} jacobian;

static jacobian jacobian_at(kind kind, double log_width, double u) {
  double small = exp(-fabs(u)); /* both: the lesser odds */
  jacobian j = {1.0, 0.0, 0.0};
  switch (kind) {
  case ABOVE:
  case BELOW:
    j.slope = exp(u);
    j.log_slope = j.slope < INFINITY ? u : -INFINITY;
    j.log_slope_slope = 1.0;
    if (kind == BELOW)
      j.slope = -j.slope;
    break;
  case BETWEEN:
    j.log_slope = log_width - fabs(u) - 2.0 * log1p(small);
    j.slope = exp(j.log_slope);
    j.log_slope_slope = -copysign((1.0 - small) / (1.0 + small), u);
    break;
  case EDGED:
    j.log_slope = fabs(u) < edge ? log_width - log(4.0) : -INFINITY;
    j.slope = exp(log_width) / 4.0;
    break;
  case LOGIT:
    if (fabs(u) < edge) {
      j.slope = 1.0 / (1.0 - 0.25 * u * u);
      j.log_slope = log(j.slope);
      j.log_slope_slope = 0.5 * u * j.slope;
    } else {
      j.log_slope = -INFINITY;
    }
    break;
  case FREE:
    break;
  }
  return j;
}

/* blocks ------------------------------------------------------------------ */

/* d each; -Inf and Inf for no bounds. Of variables with two bounds TURN is from
 * 0 to 1, and of those with two or none EDGES is 1 or 0; or not there, where
 * none is turned, or edged. */
enum { LOWER, UPPER, TURN, EDGES };

static bool is_valid(const smc_map *map) {
  const smc_values *p = map->parameters;
  size_t d = (size_t)map->d;
  return p[LOWER].x && p[UPPER].x && p[LOWER].size == d && p[UPPER].size == d &&
         (!p[TURN].x || p[TURN].size == d) &&
         (!p[EDGES].x || p[EDGES].size == d);
}

/* Variable i. */
typedef struct variable {
  double lower, upper, turn;
  kind kind;
} variable;

static variable variable_of(const smc_map *map, int i) {
  const smc_values *p = map->parameters;
  variable v = {.lower = p[LOWER].x[i],
                .upper = p[UPPER].x[i],
                .turn = p[TURN].x ? p[TURN].x[i] : 0.0};
  v.kind = kind_of(v.lower, v.upper, p[EDGES].x && p[EDGES].x[i] != 0.0);
  return v;
}

typedef double variable_map(kind kind, double lower, double upper, double turn,
                            double at);

static void apply(variable_map *f, const smc_map *map, int n,
                  const double *from, double *to) {
  for (int i = 0; i < map->d; i++) {
    variable v = variable_of(map, i);
    for (int k = 0; k < n; k++) {
      size_t at = smc_size(map->d, k) + (size_t)i;
      to[at] = f(v.kind, v.lower, v.upper, v.turn, from[at]);
    }
  }
}

static void forward(const smc_map *map, int n, const double *from, double *to,
                    double *scratch) {
  (void)scratch;
  apply(to_x, map, n, from, to);
}

void smc_bounds_inverse(const smc_map *map, int n, const double *x, double *u) {
  apply(to_u, map, n, x, u);
}

static void pull_back(const smc_map *map, int n, const double *from,
                      double *logp, double *grad, double *scratch) {
  (void)scratch;
  for (int i = 0; i < map->d; i++) {
    variable v = variable_of(map, i);
    /* halved, as the width itself may overflow */
    double log_width = log(0.5 * v.upper - 0.5 * v.lower) + log(2.0);
    for (int k = 0; k < n && v.kind != FREE; k++) {
      size_t at = smc_size(map->d, k) + (size_t)i;
      jacobian j = jacobian_at(v.kind, log_width, from[at]);
      logp[k] += j.log_slope;
      if (grad)
        grad[at] = grad[at] * j.slope + j.log_slope_slope;
    }
  }
}

const smc_map_kind smc_map_bounds = {
    .name = "bounds",
    .names = {"lower", "upper", "turn", "edged"},
    .is_valid = is_valid,
    .forward = forward,
    .pull_back = pull_back,
};
