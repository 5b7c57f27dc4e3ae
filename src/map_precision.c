/* map_precision.c: coordinates that are normal given others, with a precision
 * and a location that depend on these, as effects of groups are given the
 * scales and correlations of a model.
 *
 * Some coordinates of z, in some order, become
 *   u = m + L^-T D^(-1/2) z,  L D L^T = Q,  Q m = r,
 * where L is lower triangular with ones on its diagonal, and D is diagonal. So
 * u has the mean m and the precision Q where z is standard normal. The rest of
 * the coordinates are left as they are. The entries of Q and r are sums of
 * terms, products of a factor of each of some of these, the given ones t,
 * exp(power t) t^degree / (cosh(rate t)^fall (1 + t^2)^(root / 2)). Q is
 * sparse, and so is L where the order is a good one. What is left of a diagonal
 * entry when its turn comes is D, and no less than a bound: far from where the
 * terms were fitted Q may be no precision.
 *
 * With the given coordinates first the Jacobian is triangular by blocks, and
 * its determinant is that of D^(-1/2).
 */
#include "map.h"
#include "triangle.h"
#include "vecmath.h"

#include <float.h>
#include <string.h>

/* order: the p coordinates that change. given: those that the terms depend on.
 * entries: p x p, of the lower triangle of L in that order: 0, or the number of
 * the entry. factors: a `factor` for each given coordinate and term. precision:
 * entries x terms; pull: p x terms, of r. least: p, of D. */
enum { ORDER, GIVEN, ENTRIES, FACTORS, PRECISION, PULL, LEAST };

typedef struct factor {
  double power, degree, fall, rate, root;
} factor;

enum { FACTOR_SIZE = sizeof(factor) / sizeof(double) };

static const double *parameter(const smc_map *map, int i) {
  return map->parameters[i].x;
}

static int n_others(const smc_map *map) {
  return (int)map->parameters[ORDER].size;
}

static int n_given(const smc_map *map) {
  return (int)map->parameters[GIVEN].size;
}

static int given(const smc_map *map, int k) {
  return (int)parameter(map, GIVEN)[k] - 1;
}

static int n_terms(const smc_map *map) {
  return (int)(map->parameters[FACTORS].size / FACTOR_SIZE /
               (size_t)n_given(map));
}

static int n_entries(const smc_map *map) {
  return (int)(map->parameters[PRECISION].size / (size_t)n_terms(map));
}

/* The number of the entry in row a and column b <= a, from 0; -1 for none. */
static int entry(const smc_map *map, int a, int b) {
  return smc_triangle_entry(&map->parameters[ENTRIES], n_others(map), a, b);
}

/* validity ---------------------------------------------------------------- */

/* Whether L has all entries that its elimination fills. */
static bool is_closed(const smc_map *map) {
  int p = n_others(map);
  for (int v = 0; v < p; v++)
    for (int b = v + 1; b < p; b++)
      for (int a = b; entry(map, b, v) >= 0 && a < p; a++)
        if (entry(map, a, v) >= 0 && entry(map, a, b) < 0)
          return false;
  return true;
}

/* Whether the given are coordinates that do not change. */
static bool are_given(const smc_map *map) {
  smc_values at = map->parameters[GIVEN];
  for (size_t k = 0; k < at.size; k++)
    if (!smc_is_coordinate(at.x[k], map->d) ||
        smc_has_value(&map->parameters[ORDER], at.x[k]))
      return false;
  return true;
}

static bool is_valid(const smc_map *map) {
  const smc_values *p = map->parameters;
  for (int i = ORDER; i <= LEAST; i++)
    if (!p[i].x || p[i].size == 0)
      return false;
  size_t others = p[ORDER].size, size = FACTOR_SIZE * p[GIVEN].size;
  size_t terms = p[FACTORS].size / size;
  if (terms == 0 || p[FACTORS].size != terms * size ||
      p[PULL].size != others * terms || p[PRECISION].size % terms != 0 ||
      p[LEAST].size != others)
    return false;
  for (size_t v = 0; v < others; v++)
    if (!(p[LEAST].x[v] > 0.0))
      return false;
  return smc_triangle_is_valid(map->d, &p[ORDER], &p[ENTRIES],
                               p[PRECISION].size / terms) &&
         are_given(map) && is_closed(map);
}

/* layout ------------------------------------------------------------------ */

/* Where column v is eliminated, its entry j and those after it meet the column
 * whose number is the row of j. Mostly these are all that this column has, and
 * follow each other in the numbers: run[j] is that of the first of them, and -1
 * where they do not.
 */
typedef struct columns {
  smc_triangle triangle; /* first, so that this may be taken for it */
  int *run;
} columns;

static const int *runs(const smc_map *map) {
  return ((const columns *)map->work)->run;
}

/* Of the entries j ... end - 1 of a column; see above. */
static int first_of_run(const smc_map *map, const smc_triangle *at, int j,
                        int end) {
  int first = entry(map, at->row[j], at->row[j]);
  for (int i = j; i < end; i++)
    if (entry(map, at->row[i], at->row[j]) != first + i - j ||
        at->number[i] != at->number[j] + i - j)
      return -1;
  return first;
}

static void layout(smc_map *map, smc_arena *arena) {
  int p = n_others(map);
  columns *at = smc_take(arena, 1, 1, sizeof(columns));
  columns taken = {.triangle = smc_triangle_layout(arena, map->d,
                                                   &map->parameters[ORDER],
                                                   &map->parameters[ENTRIES]),
                   .run = smc_take_ints(arena, p * (p - 1) / 2, 1)};
  map->work = at;
  if (arena->base) {
    *at = taken;
    const smc_triangle *triangle = &at->triangle;
    for (int v = 0; v < p; v++)
      for (int j = triangle->start[v]; j < triangle->start[v + 1]; j++)
        at->run[j] = first_of_run(map, triangle, j, triangle->start[v + 1]);
  }
}

/* What is computed for one point. */
typedef struct point {
  double *terms;
  double *Q, *Q_bar;     /* an entry each: D and L; derivatives by them      */
  double *r, *r_bar;     /* p each, as all below                             */
  double *y, *c, *u;     /* L y = r, c = D^-1 y + D^(-1/2) z, L^T u = c      */
  double *d_bar, *c_bar; /* derivatives                                      */
} point;

static size_t scratch_size(const smc_map *map) {
  return (size_t)n_terms(map) + 2 * (size_t)n_entries(map) +
         7 * (size_t)n_others(map);
}

static point point_in(const smc_map *map, double *scratch) {
  int p = n_others(map);
  point at = {.terms = scratch};
  at.Q = at.terms + n_terms(map);
  at.Q_bar = at.Q + n_entries(map);
  at.r = at.Q_bar + n_entries(map);
  at.r_bar = at.r + p;
  at.y = at.r_bar + p;
  at.c = at.y + p;
  at.u = at.c + p;
  at.d_bar = at.u + p;
  at.c_bar = at.d_bar + p;
  return at;
}

/* one point --------------------------------------------------------------- */

/* Entry j of a column, and those after it to the end of this, are taken from
 * those that they meet, `share` times each. */
static void eliminate(const smc_map *map, int j, int end, double share,
                      double *Q) {
  const smc_triangle *at = map->work;
  if (runs(map)[j] < 0) {
    for (int i = j; i < end; i++)
      Q[entry(map, at->row[i], at->row[j])] -= share * Q[at->number[i]];
    return;
  }
  const double *own = Q + at->number[j];
  double *met = Q + runs(map)[j];
  SMC_SIMD
  for (int i = 0; i < end - j; i++)
    met[i] -= share * own[i];
}

/* Q becomes D, on its diagonal, and L. */
static void factorise(const smc_map *map, double *Q) {
  const smc_triangle *at = map->work;
  for (int v = 0; v < n_others(map); v++) {
    double *d = &Q[at->diagonal[v]], least = parameter(map, LEAST)[v];
    *d = *d > least ? *d : least; /* also where it is no number */
    for (int j = at->start[v]; j < at->start[v + 1]; j++) {
      double share = Q[at->number[j]] / *d;
      eliminate(map, j, at->start[v + 1], share, Q);
      Q[at->number[j]] = share;
    }
  }
}

/* The factors of term i. */
static const factor *factors_of(const smc_map *map, int i) {
  return (const factor *)parameter(map, FACTORS) + smc_size(n_given(map), i);
}

static double log_cosh(double x) {
  return fabs(x) + log1p(exp(-2.0 * fabs(x))) - log(2.0);
}

/* Given coordinate k, and never 0: slopes are taken relative to the term. */
static double given_value(const smc_map *map, const double *z, int k) {
  double t = z[given(map, k)];
  return t == 0.0 ? DBL_MIN : t;
}

static double term(const smc_map *map, int i, const double *z) {
  const factor *of = factors_of(map, i);
  double sum = 0.0, powers = 1.0;
  for (int k = 0; k < n_given(map); k++) {
    double t = given_value(map, z, k);
    sum += of[k].power * t;
    if (of[k].fall != 0.0)
      sum -= of[k].fall * log_cosh(of[k].rate * t);
    if (of[k].root != 0.0)
      sum -= 0.5 * of[k].root * log1p(t * t);
    if (of[k].degree != 0.0)
      powers *= pow(t, of[k].degree);
  }
  return powers * exp(sum);
}

/* The derivative of the logarithm of a factor. */
static double factor_slope(const factor *of, double t) {
  double slope = of->power - of->fall * of->rate * tanh(of->rate * t);
  if (of->root != 0.0)
    slope -= of->root * t / (1.0 + t * t);
  if (of->degree != 0.0)
    slope += of->degree / t;
  return slope;
}

/* Q and r, as terms have them. */
static void evaluate_terms(const smc_map *map, const double *z,
                           const point *to) {
  int terms = n_terms(map);
  for (int i = 0; i < terms; i++)
    to->terms[i] = term(map, i, z);
  smc_sums_of_terms(n_entries(map), terms, parameter(map, PRECISION), to->terms,
                    to->Q);
  smc_sums_of_terms(n_others(map), terms, parameter(map, PULL), to->terms,
                    to->r);
}

/* What depends on the given coordinates alone. */
static void solve(const smc_map *map, const double *z, const point *to) {
  evaluate_terms(map, z, to);
  factorise(map, to->Q);
  memcpy(to->y, to->r, (size_t)n_others(map) * sizeof(double));
  smc_triangle_solve(map->work, to->Q, to->y);
}

/* The same, and what depends on z. */
static void compute(const smc_map *map, const double *z, const point *to) {
  const smc_triangle *at = map->work;
  int p = n_others(map);
  solve(map, z, to);
  for (int v = 0; v < p; v++) {
    double d = to->Q[at->diagonal[v]];
    to->u[v] = to->c[v] = to->y[v] / d + z[at->coordinate[v]] / sqrt(d);
  }
  smc_triangle_solve_transposed(at, to->Q, to->u);
}

static void forward(const smc_map *map, int n, const double *from, double *to,
                    double *scratch) {
  const smc_triangle *triangle = map->work;
  point at = point_in(map, scratch);
  for (int k = 0; k < n; k++, from += map->d, to += map->d) {
    compute(map, from, &at);
    memcpy(to, from, (size_t)map->d * sizeof(double));
    for (int v = 0; v < triangle->p; v++)
      to[triangle->coordinate[v]] = at.u[v];
  }
}

static void inverse(const smc_map *map, int n, const double *from, double *to,
                    double *scratch) {
  const smc_triangle *triangle = map->work;
  point at = point_in(map, scratch);
  for (int k = 0; k < n; k++, from += map->d, to += map->d) {
    solve(map, from, &at);
    memcpy(to, from, (size_t)map->d * sizeof(double));
    for (int v = 0; v < triangle->p; v++)
      at.c[v] = from[triangle->coordinate[v]];
    smc_triangle_multiply_transposed(triangle, at.Q, at.c);
    for (int v = 0; v < triangle->p; v++) {
      double d = at.Q[triangle->diagonal[v]];
      to[triangle->coordinate[v]] = (at.c[v] - at.y[v] / d) * sqrt(d);
    }
  }
}

void smc_precision_pivots(const smc_map *map, int n, const double *z,
                          double *scratch, double *pivots, double *diagonal) {
  const smc_triangle *at = map->work;
  point to = point_in(map, scratch);
  for (int k = 0; k < n; k++, z += map->d) {
    evaluate_terms(map, z, &to);
    for (int v = 0; v < at->p; v++)
      *diagonal++ = to.Q[at->diagonal[v]];
    factorise(map, to.Q);
    for (int v = 0; v < at->p; v++)
      *pivots++ = to.Q[at->diagonal[v]];
  }
}

/* gradients ---------------------------------------------------------------- */

/* From the derivatives by c: those by D, L and r, with those of the log
 * Jacobian. */
static void differentiate_solution(const smc_map *map, const point *at,
                                   const double *z) {
  const smc_triangle *by = map->work;
  int p = n_others(map);
  memset(at->Q_bar, 0, (size_t)n_entries(map) * sizeof(double));
  for (int v = 0; v < p; v++) {
    double d = at->Q[by->diagonal[v]], root = sqrt(d);
    at->r_bar[v] = at->c_bar[v] / d; /* for now, that by y */
    at->d_bar[v] =
        -at->r_bar[v] * (at->y[v] + 0.5 * root * z[by->coordinate[v]]) / d -
        0.5 / d;
  }
  smc_triangle_solve_transposed(by, at->Q, at->r_bar);
  for (int v = 0; v < p; v++)
    for (int i = by->start[v]; i < by->start[v + 1]; i++)
      at->Q_bar[by->number[i]] =
          -at->u[by->row[i]] * at->c_bar[v] - at->r_bar[by->row[i]] * at->y[v];
}

/* The way back of eliminate(): the derivatives by the entries that are met give
 * `factor` times themselves to those by the column's own. Returns the product
 * of what is met with this column of L. */
static double eliminate_back(const smc_map *map, int j, int end, double factor,
                             const double *L, double *bar) {
  const smc_triangle *by = map->work;
  double sum = 0.0;
  if (runs(map)[j] < 0) {
    for (int i = j; i < end; i++) {
      double met = bar[entry(map, by->row[i], by->row[j])];
      bar[by->number[i]] += factor * met;
      sum += met * L[by->number[i]];
    }
    return sum;
  }
  const double *met = bar + runs(map)[j], *of_L = L + by->number[j];
  double *own = bar + by->number[j];
  SMC_SIMD_SUM
  for (int i = 0; i < end - j; i++) {
    own[i] += factor * met[i];
    sum += met[i] * of_L[i];
  }
  return sum;
}

/* Derivatives by D and L become those by Q: the factorisation backwards. */
static void differentiate_factors(const smc_map *map, const point *at) {
  const smc_triangle *by = map->work;
  const double *L = at->Q;
  double *bar = at->Q_bar;
  for (int v = n_others(map) - 1; v >= 0; v--) {
    int diagonal = by->diagonal[v];
    double d = L[diagonal], by_d = at->d_bar[v];
    for (int j = by->start[v]; j < by->start[v + 1]; j++) {
      double of_j = L[by->number[j]];
      double sum = eliminate_back(map, j, by->start[v + 1], -of_j * d, L, bar);
      bar[by->number[j]] -= sum * d;
      by_d -= sum * of_j;
    }
    for (int i = by->start[v]; i < by->start[v + 1]; i++) {
      bar[by->number[i]] /= d;
      by_d -= bar[by->number[i]] * L[by->number[i]];
    }
    /* a bound does not move */
    bar[diagonal] = d > parameter(map, LEAST)[v] ? by_d : 0.0;
  }
}

/* The derivatives by Q and r go to those by the given coordinates, `sign`
 * times. */
static void differentiate_terms(const smc_map *map, const point *at,
                                const double *z, double sign, double *grad) {
  int p = n_others(map), entries = n_entries(map);
  for (int i = 0; i < n_terms(map); i++) {
    const double *of_Q = parameter(map, PRECISION) + smc_size(entries, i);
    const double *of_r = parameter(map, PULL) + smc_size(p, i);
    double sum = smc_add_products(entries, of_Q, at->Q_bar, 0.0);
    sum = smc_add_products(p, of_r, at->r_bar, sum);
    for (int k = 0; k < n_given(map); k++)
      grad[given(map, k)] +=
          sign * sum * at->terms[i] *
          factor_slope(factors_of(map, i) + k, given_value(map, z, k));
  }
}

static void add_derivatives(const smc_map *map, const point *at,
                            const double *z, double sign, double *grad) {
  differentiate_solution(map, at, z);
  differentiate_factors(map, at);
  differentiate_terms(map, at, z, sign, grad);
}

/* Half the log determinant of D. */
static double half_log_determinant(const smc_map *map, const point *at) {
  const smc_triangle *by = map->work;
  double sum = 0.0;
  for (int v = 0; v < by->p; v++)
    sum += 0.5 * log(at->Q[by->diagonal[v]]);
  return sum;
}

static void pull_back(const smc_map *map, int n, const double *z, double *logp,
                      double *grad, double *scratch) {
  const smc_triangle *by = map->work;
  point at = point_in(map, scratch);
  for (int k = 0; k < n; k++, z += map->d) {
    compute(map, z, &at);
    logp[k] -= half_log_determinant(map, &at);
    if (!grad)
      continue;
    double *of_point = grad + smc_size(map->d, k);
    for (int v = 0; v < by->p; v++)
      at.c_bar[v] = of_point[by->coordinate[v]];
    smc_triangle_solve(by, at.Q, at.c_bar);
    for (int v = 0; v < by->p; v++)
      of_point[by->coordinate[v]] = at.c_bar[v] / sqrt(at.Q[by->diagonal[v]]);
    add_derivatives(map, &at, z, 1.0, of_point);
  }
}

static void push_forward(const smc_map *map, int n, const double *z,
                         double *logp, double *grad, double *scratch) {
  const smc_triangle *by = map->work;
  point at = point_in(map, scratch);
  double *by_u = at.r; /* which is no longer needed */
  for (int k = 0; k < n; k++, z += map->d) {
    compute(map, z, &at);
    logp[k] += half_log_determinant(map, &at);
    if (!grad)
      continue;
    double *of_point = grad + smc_size(map->d, k);
    for (int v = 0; v < by->p; v++)
      at.c_bar[v] = by_u[v] =
          of_point[by->coordinate[v]] * sqrt(at.Q[by->diagonal[v]]);
    smc_triangle_multiply(by, at.Q, by_u);
    for (int v = 0; v < by->p; v++)
      of_point[by->coordinate[v]] = by_u[v];
    add_derivatives(map, &at, z, -1.0, of_point);
  }
}

const smc_map_kind smc_map_precision = {
    .name = "precision",
    .names = {"order", "given", "entries", "factors", "precision", "pull",
              "least"},
    .is_valid = is_valid,
    .layout = layout,
    .scratch = scratch_size,
    .forward = forward,
    .inverse = inverse,
    .pull_back = pull_back,
    .push_forward = push_forward,
};
