/* map_bounds.c: bounded variables x as variables u on the whole line.
 *   no bound    x = u
 *   lower       x = lower + exp(u)
 *   upper       x = upper - exp(u)
 *   both        x = lower + (upper - lower) / (1 + exp(-u))
 * Between two bounds x may be turned, as an angle is: by a part of the width,
 * with what would go beyond one bound entering at the other. Or it may be
 * truncated, x = middle + (upper - lower) / 4 u for -2 < u < 2, which has the
 * slope of the others at u = 0: beyond that the log density is -Inf, and x next
 * to a bound.
 *
 * To an angle, as the map has it so far, a multiple of another may be added:
 * both are measured from their lower bounds, as parts of their widths, and what
 * goes beyond a bound enters at the other. The log Jacobian of that is 0. A
 * variable without bounds may be the logit of an angle, as a part of its width:
 * all this is done to that part.
 *
 * A variable may be a ratio. Let x be the logs of the differences of numbers
 * that rise, s_1 = exp(x_1) and s_k = s_{k-1} + exp(x_k). Then
 *   x_1 = u_1
 *   x_k = log(s_{k-1}) + u_k
 * and s_k = s_{k-1} (1 + exp(u_k)), so that a power of s_k is a product of
 * functions of one variable each. The log Jacobian is 0.
 *
 * What rounding would put on a bound or beyond it, u = NaN among it, becomes
 * the nearest number inside. Where x(u) would overflow the log density becomes
 * -Inf.
 */
#include "map.h"
#include "vecmath.h"

#include <float.h>
#include <string.h>

typedef enum kind { FREE, ABOVE, BELOW, BETWEEN, TRUNCATED, LOGIT } kind;

static kind kind_of(double lower, double upper, bool is_truncated) {
  if (lower == -INFINITY)
    return upper < INFINITY ? BELOW : is_truncated ? LOGIT : FREE;
  if (upper == INFINITY)
    return ABOVE;
  return is_truncated ? TRUNCATED : BETWEEN;
}

/* Where the scale of truncated variables ends on both sides: there x is on a
 * bound.
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
  case TRUNCATED:
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
  if (kind == TRUNCATED)
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
  case TRUNCATED:
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

/* ratios ------------------------------------------------------------------ */

/* log(1 + exp(u)) */
static double softplus(double u) { return fmax(u, 0.0) + log1p(exp(-fabs(u))); }

static double sigmoid(double u) { return 1.0 / (1.0 + exp(-u)); }

/* d variables of one point: x holds u, and is replaced. */
static void ratios_to_x(int d, const double *is_ratio, double *x) {
  double log_sum = 0.0; /* of the chain, up to the variable before */
  for (int i = 0; i < d; i++) {
    double u = x[i];
    if (is_ratio[i] != 0.0)
      x[i] += log_sum;
    log_sum = is_ratio[i] != 0.0 ? log_sum + softplus(u) : u;
  }
}

static void ratios_to_u(int d, const double *is_ratio, double *u) {
  double log_sum = 0.0;
  for (int i = 0; i < d; i++) {
    double x = u[i];
    if (is_ratio[i] != 0.0)
      u[i] -= log_sum;
    log_sum = is_ratio[i] != 0.0 ? log_sum + softplus(u[i]) : x;
  }
}

/* The gradient by x becomes that by u, or the other way: each variable moves
 * all after it. */
static void ratios_differentiate(int d, const double *is_ratio, const double *u,
                                 bool back, double *grad) {
  double after = 0.0; /* of the gradient by x */
  for (int i = d - 1; i >= 0; i--) {
    double moved = after * (is_ratio[i] != 0.0 ? sigmoid(u[i]) : 1.0);
    double by_x = back ? grad[i] : grad[i] - moved;
    grad[i] = back ? by_x + moved : by_x;
    after = is_ratio[i] != 0.0 ? after + by_x : 0.0;
  }
}

/* blocks ------------------------------------------------------------------ */

/* d each; -Inf and Inf for no bounds. Of variables with two bounds, and of
 * those that are logits of angles, TURN is from 0 to 1, of others 0; of those
 * with two or none EDGES is 1 or 0, and of those with none and one without
 * before them RATIO is; or not there, where none is turned, truncated, or a
 * ratio. SUMS has three numbers for each sum, in their order: the variable that
 * is changed, the one of which a multiple is added, both counted from 1, and
 * how often. */
enum { LOWER, UPPER, TURN, EDGES, RATIO, SUMS };

/* Variable i. A logit of an angle is an angle from 0 to 1 up to the last step.
 */
typedef struct variable {
  double lower, upper, turn;
  kind kind;
  bool is_logit;
} variable;

static variable variable_of(const smc_map *map, int i) {
  const smc_values *p = map->parameters;
  variable v = {.lower = p[LOWER].x[i],
                .upper = p[UPPER].x[i],
                .turn = p[TURN].x ? p[TURN].x[i] : 0.0};
  v.kind = kind_of(v.lower, v.upper, p[EDGES].x && p[EDGES].x[i] != 0.0);
  if (v.kind == FREE && v.turn > 0.0) {
    v.kind = BETWEEN;
    v.lower = 0.0;
    v.upper = 1.0;
    v.is_logit = true;
  }
  return v;
}

static bool may_be_ratio(const smc_map *map, int i) {
  return i > 0 && variable_of(map, i - 1).kind == FREE &&
         variable_of(map, i).kind == FREE;
}

static bool are_ratios_valid(const smc_map *map) {
  smc_values ratio = map->parameters[RATIO];
  if (ratio.x && ratio.size != (size_t)map->d)
    return false;
  for (int i = 0; ratio.x && i < map->d; i++)
    if (ratio.x[i] != 0.0 && !may_be_ratio(map, i))
      return false;
  return true;
}

/* One of the sums, or its inverse. */
typedef struct sum {
  int to, of;
  double times;  /* how often the part of the width is added               */
  double widths; /* the width of `to` by that of `of`                      */
  double lower, upper; /* of `to` */
  double from;         /* the lower bound of `of` */
} sum;

static size_t n_sums(const smc_map *map) {
  return map->parameters[SUMS].size / 3;
}

static sum sum_of(const smc_map *map, size_t i) {
  const double *values = map->parameters[SUMS].x + 3 * i;
  int to = (int)values[0] - 1, of = (int)values[1] - 1;
  variable a = variable_of(map, to), b = variable_of(map, of);
  return (sum){.to = to,
               .of = of,
               .times = values[2],
               .widths = (a.upper - a.lower) / (b.upper - b.lower),
               .lower = a.lower,
               .upper = a.upper,
               .from = b.lower};
}

static bool is_angle(const smc_map *map, double i) {
  return smc_is_coordinate(i, map->d) &&
         variable_of(map, (int)i - 1).kind == BETWEEN;
}

static bool are_sums_valid(const smc_map *map) {
  smc_values sums = map->parameters[SUMS];
  bool are_valid = sums.size % 3 == 0;
  for (size_t i = 0; are_valid && i < sums.size; i += 3) {
    const double *s = sums.x + i;
    are_valid = is_angle(map, s[0]) && is_angle(map, s[1]) && s[0] != s[1] &&
                s[2] == floor(s[2]);
  }
  return are_valid;
}

/* x of one point, by a sum or, with sign -1, by its inverse. */
static void add(sum s, double sign, double *x) {
  double width = s.upper - s.lower;
  double moved =
      x[s.to] - s.lower + sign * s.times * s.widths * (x[s.of] - s.from);
  moved -= width * floor(moved / width);
  x[s.to] = inside(s.lower, s.upper, s.lower + moved);
}

static void sums_to_x(const smc_map *map, double *x) {
  for (size_t i = 0; i < n_sums(map); i++)
    add(sum_of(map, i), 1.0, x);
}

static void sums_from_x(const smc_map *map, double *x) {
  for (size_t i = n_sums(map); i-- > 0;)
    add(sum_of(map, i), -1.0, x);
}

/* The gradient by x becomes that by what is added up, or the other way. */
static void sums_differentiate(const smc_map *map, bool back, double *grad) {
  size_t n = n_sums(map);
  for (size_t i = 0; i < n; i++) {
    sum s = sum_of(map, back ? n - 1 - i : i);
    grad[s.of] += (back ? 1.0 : -1.0) * s.times * s.widths * grad[s.to];
  }
}

static bool has_logits(const smc_map *map) {
  for (int i = 0; i < map->d; i++)
    if (variable_of(map, i).is_logit)
      return true;
  return false;
}

/* At n points, angles as parts of their widths become logits, or the other way.
 */
static void to_logits(const smc_map *map, int n, bool back, double *x) {
  for (int i = 0; i < map->d; i++)
    for (int k = 0; k < n && variable_of(map, i).is_logit; k++) {
      double *at = x + smc_size(map->d, k) + i;
      *at = back ? sigmoid(*at) : log(*at) - log1p(-*at);
    }
}

static bool is_valid(const smc_map *map) {
  const smc_values *p = map->parameters;
  size_t d = (size_t)map->d;
  return p[LOWER].x && p[UPPER].x && p[LOWER].size == d && p[UPPER].size == d &&
         (!p[TURN].x || p[TURN].size == d) &&
         (!p[EDGES].x || p[EDGES].size == d) && are_ratios_valid(map) &&
         are_sums_valid(map);
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

/* As forward(), up to the logits. */
static void to_parts(const smc_map *map, int n, const double *from,
                     double *to) {
  const double *is_ratio = map->parameters[RATIO].x;
  apply(to_x, map, n, from, to);
  for (int k = 0; k < n; k++) {
    double *x = to + smc_size(map->d, k);
    if (is_ratio)
      ratios_to_x(map->d, is_ratio, x);
    sums_to_x(map, x);
  }
}

static void forward(const smc_map *map, int n, const double *from, double *to,
                    double *scratch) {
  (void)scratch;
  to_parts(map, n, from, to);
  to_logits(map, n, false, to);
}

/* What is on a bound or beyond it is taken to the nearest number inside. */
static void inverse(const smc_map *map, int n, const double *from, double *to,
                    double *scratch) {
  const double *is_ratio = map->parameters[RATIO].x;
  (void)scratch;
  if (to != from)
    memcpy(to, from, smc_size(map->d, n) * sizeof(double));
  to_logits(map, n, true, to);
  for (int k = 0; k < n; k++)
    sums_from_x(map, to + smc_size(map->d, k));
  apply(to_u, map, n, to, to);
  for (int k = 0; is_ratio && k < n; k++)
    ratios_to_u(map->d, is_ratio, to + smc_size(map->d, k));
}

/* Room for the parts of one point. */
static size_t scratch_size(const smc_map *map) {
  return has_logits(map) ? (size_t)map->d : 0;
}

/* Of the logits at n points z; nothing where there are none. */
static void take_logits(const smc_map *map, int n, const double *z, bool back,
                        double *logp, double *grad, double *scratch) {
  if (!has_logits(map))
    return;
  for (int k = 0; k < n; k++) {
    size_t first = smc_size(map->d, k);
    to_parts(map, 1, z + first, scratch);
    for (int i = 0; i < map->d; i++) {
      if (!variable_of(map, i).is_logit)
        continue;
      double p = scratch[i], slope = p * (1.0 - p), turning = 1.0 - 2.0 * p;
      logp[k] += back ? -log(slope) : log(slope);
      if (grad) {
        double g = grad[first + (size_t)i];
        grad[first + (size_t)i] =
            back ? (g - turning) / slope : g * slope + turning;
      }
    }
  }
}

/* Of variable i at n points u; nothing where it is as it is. */
static void take(const smc_map *map, int i, int n, const double *u, bool back,
                 double *logp, double *grad) {
  variable v = variable_of(map, i);
  /* halved, as the width itself may overflow */
  double log_width = log(0.5 * v.upper - 0.5 * v.lower) + log(2.0);
  for (int k = 0; k < n && v.kind != FREE; k++) {
    size_t at = smc_size(map->d, k) + (size_t)i;
    jacobian j = jacobian_at(v.kind, log_width, u[at]);
    logp[k] += back ? j.log_slope : -j.log_slope;
    if (grad)
      grad[at] = back ? grad[at] * j.slope + j.log_slope_slope
                      : (grad[at] - j.log_slope_slope) / j.slope;
  }
}

static void pull_back(const smc_map *map, int n, const double *z, double *logp,
                      double *grad, double *scratch) {
  const double *is_ratio = map->parameters[RATIO].x;
  take_logits(map, n, z, true, logp, grad, scratch);
  for (int k = 0; grad && k < n; k++) {
    size_t first = smc_size(map->d, k);
    sums_differentiate(map, true, grad + first);
    if (is_ratio)
      ratios_differentiate(map->d, is_ratio, z + first, true, grad + first);
  }
  for (int i = 0; i < map->d; i++)
    take(map, i, n, z, true, logp, grad);
}

static void push_forward(const smc_map *map, int n, const double *z,
                         double *logp, double *grad, double *scratch) {
  const double *is_ratio = map->parameters[RATIO].x;
  for (int i = 0; i < map->d; i++)
    take(map, i, n, z, false, logp, grad);
  for (int k = 0; grad && k < n; k++) {
    size_t first = smc_size(map->d, k);
    if (is_ratio)
      ratios_differentiate(map->d, is_ratio, z + first, false, grad + first);
    sums_differentiate(map, false, grad + first);
  }
  take_logits(map, n, z, false, logp, grad, scratch);
}

const smc_map_kind smc_map_bounds = {
    .name = "bounds",
    .names = {"lower", "upper", "turn", "truncated", "ratio", "sums"},
    .is_valid = is_valid,
    .scratch = scratch_size,
    .forward = forward,
    .inverse = inverse,
    .pull_back = pull_back,
    .push_forward = push_forward,
};
