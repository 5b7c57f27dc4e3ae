/* map_polynomial.c: coordinates that are nearly normal given others, with a
 * mean and a precision that depend on these in any smooth way.
 *
 * Some coordinates of z, the given ones t, are left as they are. The others, in
 * some order, become
 *   u = m + L^-T D^(-1/2) z,
 * where L is lower triangular with ones on its diagonal, and D is diagonal. So
 * u has the mean m and the precision L D L^T where z is standard normal. The
 * entries of m and L, and the logarithms of those of D, are polynomials of
 *   s = tanh((t - centre) / width),
 * which go no further where t is far from where they were fitted. L is sparse
 * where the order is a good one.
 *
 * With the given coordinates first the Jacobian is triangular by blocks, and
 * its determinant is that of D^(-1/2).
 */
#include "map.h"
#include "triangle.h"
#include "vecmath.h"

#include <string.h>

/* order: the p others; the rest are given, in their order. entries: p x p, of
 * the lower triangle in that order: 0, or the number of the entry. centre,
 * width: of the given coordinates. degrees: a row for each of these, a column a
 * term. factor: entries x terms, of L, and on the diagonal of log D; mean: p x
 * terms. */
enum { ORDER, ENTRIES, CENTRE, WIDTH, DEGREES, FACTOR, MEAN };

enum { MOST_DEGREE = 8 };

static const double *parameter(const smc_map *map, int i) {
  return map->parameters[i].x;
}

static int n_given(const smc_map *map) {
  return (int)map->parameters[CENTRE].size;
}

static int n_terms(const smc_map *map) {
  return (int)map->parameters[DEGREES].size / n_given(map);
}

static int n_entries(const smc_map *map) {
  return (int)map->parameters[FACTOR].size / n_terms(map);
}

static bool is_degree(double x) {
  return x >= 0.0 && x <= MOST_DEGREE && x == floor(x);
}

static bool is_valid(const smc_map *map) {
  const smc_values *given = map->parameters;
  for (int i = ORDER; i <= MEAN; i++)
    if (!given[i].x)
      return false;
  size_t p = given[ORDER].size, k = given[CENTRE].size;
  if (k == 0 || k + p != (size_t)map->d || given[WIDTH].size != k)
    return false;
  size_t terms = given[DEGREES].size / k;
  if (terms == 0 || given[DEGREES].size != terms * k ||
      given[MEAN].size != p * terms || given[FACTOR].size % terms != 0)
    return false;
  for (size_t i = 0; i < given[DEGREES].size; i++)
    if (!is_degree(given[DEGREES].x[i]))
      return false;
  for (size_t i = 0; i < k; i++)
    if (!(given[WIDTH].x[i] > 0.0))
      return false;
  return smc_triangle_is_valid(map->d, &given[ORDER], &given[ENTRIES],
                               given[FACTOR].size / terms);
}

static void layout(smc_map *map, smc_arena *arena) {
  smc_triangle *at = smc_take(arena, 1, 1, sizeof(smc_triangle));
  smc_triangle triangle = smc_triangle_layout(
      arena, map->d, &map->parameters[ORDER], &map->parameters[ENTRIES]);
  map->work = at;
  if (arena->base)
    *at = triangle;
}

/* What is computed for one point. */
typedef struct point {
  double *s, *slope; /* of each given coordinate, and ds / dt          */
  double *terms;     /* an entry each                                   */
  double *L, *L_bar; /* with log D on the diagonal; derivatives by them */
  double *mean, *sd; /* p each, as all below: m, and D^(-1/2)           */
  double *c, *off;   /* c = D^(-1/2) z, L^T off = c, u = m + off        */
  double *c_bar;     /* the derivatives by c                            */
} point;

static size_t scratch_size(const smc_map *map) {
  return 2 * (size_t)n_given(map) + (size_t)n_terms(map) +
         2 * (size_t)n_entries(map) + 5 * map->parameters[ORDER].size;
}

static point point_in(const smc_map *map, double *scratch) {
  size_t p = map->parameters[ORDER].size;
  point at = {.s = scratch};
  at.slope = at.s + n_given(map);
  at.terms = at.slope + n_given(map);
  at.L = at.terms + n_terms(map);
  at.L_bar = at.L + n_entries(map);
  at.mean = at.L_bar + n_entries(map);
  at.sd = at.mean + p;
  at.c = at.sd + p;
  at.off = at.c + p;
  at.c_bar = at.off + p;
  return at;
}

static double power(double x, int degree) {
  double value = 1.0;
  for (int i = 0; i < degree; i++)
    value *= x;
  return value;
}

/* Term i, or with k >= 0 its derivative by s_k. */
static double term(const smc_map *map, int i, const double *s, int k) {
  const double *degrees = parameter(map, DEGREES) + smc_size(n_given(map), i);
  double value = 1.0;
  for (int j = 0; j < n_given(map); j++) {
    int degree = (int)degrees[j];
    if (j != k)
      value *= power(s[j], degree);
    else
      value *= degree == 0 ? 0.0 : degree * power(s[j], degree - 1);
  }
  return value;
}

/* What depends on the given coordinates alone. */
static void factorise(const smc_map *map, const double *z, const point *to) {
  const smc_triangle *at = map->work;
  for (int k = 0; k < at->n_given; k++) {
    double width = parameter(map, WIDTH)[k];
    double s = tanh((z[at->given[k]] - parameter(map, CENTRE)[k]) / width);
    to->s[k] = s;
    to->slope[k] = (1.0 - s * s) / width;
  }
  int terms = n_terms(map);
  for (int i = 0; i < terms; i++)
    to->terms[i] = term(map, i, to->s, -1);
  smc_sums_of_terms(n_entries(map), terms, parameter(map, FACTOR), to->terms,
                    to->L);
  smc_sums_of_terms(at->p, terms, parameter(map, MEAN), to->terms, to->mean);
  for (int v = 0; v < at->p; v++)
    to->sd[v] = exp(-0.5 * to->L[at->diagonal[v]]);
}

/* The same, and what depends on z. */
static void compute(const smc_map *map, const double *z, const point *to) {
  const smc_triangle *at = map->work;
  factorise(map, z, to);
  for (int v = 0; v < at->p; v++)
    to->off[v] = to->c[v] = to->sd[v] * z[at->coordinate[v]];
  smc_triangle_solve_transposed(at, to->L, to->off);
}

static void forward(const smc_map *map, int n, const double *from, double *to,
                    double *scratch) {
  const smc_triangle *triangle = map->work;
  point at = point_in(map, scratch);
  for (int k = 0; k < n; k++, from += map->d, to += map->d) {
    compute(map, from, &at);
    memcpy(to, from, (size_t)map->d * sizeof(double));
    for (int v = 0; v < triangle->p; v++)
      to[triangle->coordinate[v]] = at.mean[v] + at.off[v];
  }
}

static void inverse(const smc_map *map, int n, const double *from, double *to,
                    double *scratch) {
  const smc_triangle *triangle = map->work;
  point at = point_in(map, scratch);
  for (int k = 0; k < n; k++, from += map->d, to += map->d) {
    factorise(map, from, &at);
    memcpy(to, from, (size_t)map->d * sizeof(double));
    for (int v = 0; v < triangle->p; v++)
      at.off[v] = from[triangle->coordinate[v]] - at.mean[v];
    smc_triangle_multiply_transposed(triangle, at.L, at.off);
    for (int v = 0; v < triangle->p; v++)
      to[triangle->coordinate[v]] = at.off[v] / at.sd[v];
  }
}

/* gradients ---------------------------------------------------------------- */

/* From the derivatives by c, and by u, which are those by the mean: those by
 * log D and L, with those of the log Jacobian, then those by the terms, which
 * go to the gradient by the given coordinates, `sign` times. */
static void add_derivatives(const smc_map *map, const point *at,
                            const double *by_u, double sign, double *grad) {
  const smc_triangle *by = map->work;
  int entries = n_entries(map);
  memset(at->L_bar, 0, (size_t)entries * sizeof(double));
  for (int v = 0; v < by->p; v++) {
    at->L_bar[by->diagonal[v]] = -0.5 * (at->c[v] * at->c_bar[v] + 1.0);
    for (int i = by->start[v]; i < by->start[v + 1]; i++)
      at->L_bar[by->number[i]] = -at->c_bar[v] * at->off[by->row[i]];
  }
  for (int i = 0; i < n_terms(map); i++) {
    const double *of_L = parameter(map, FACTOR) + smc_size(entries, i);
    const double *of_mean = parameter(map, MEAN) + smc_size(by->p, i);
    double sum = smc_add_products(entries, of_L, at->L_bar, 0.0);
    sum = smc_add_products(by->p, of_mean, by_u, sum);
    for (int k = 0; k < by->n_given; k++)
      grad[by->given[k]] += sign * sum * term(map, i, at->s, k) * at->slope[k];
  }
}

/* Half the log determinant of D. */
static double half_log_determinant(const smc_map *map, const point *at) {
  const smc_triangle *by = map->work;
  double sum = 0.0;
  for (int v = 0; v < by->p; v++)
    sum += 0.5 * at->L[by->diagonal[v]];
  return sum;
}

static void pull_back(const smc_map *map, int n, const double *z, double *logp,
                      double *grad, double *scratch) {
  const smc_triangle *by = map->work;
  point at = point_in(map, scratch);
  double *by_u = at.mean; /* which is no longer needed */
  for (int k = 0; k < n; k++, z += map->d) {
    compute(map, z, &at);
    logp[k] -= half_log_determinant(map, &at);
    if (!grad)
      continue;
    double *of_point = grad + smc_size(map->d, k);
    for (int v = 0; v < by->p; v++)
      at.c_bar[v] = by_u[v] = of_point[by->coordinate[v]];
    smc_triangle_solve(by, at.L, at.c_bar);
    for (int v = 0; v < by->p; v++)
      of_point[by->coordinate[v]] = at.c_bar[v] * at.sd[v];
    add_derivatives(map, &at, by_u, 1.0, of_point);
  }
}

static void push_forward(const smc_map *map, int n, const double *z,
                         double *logp, double *grad, double *scratch) {
  const smc_triangle *by = map->work;
  point at = point_in(map, scratch);
  double *by_u = at.mean; /* which is no longer needed */
  for (int k = 0; k < n; k++, z += map->d) {
    compute(map, z, &at);
    logp[k] += half_log_determinant(map, &at);
    if (!grad)
      continue;
    double *of_point = grad + smc_size(map->d, k);
    for (int v = 0; v < by->p; v++)
      at.c_bar[v] = by_u[v] = of_point[by->coordinate[v]] / at.sd[v];
    smc_triangle_multiply(by, at.L, by_u);
    for (int v = 0; v < by->p; v++)
      of_point[by->coordinate[v]] = by_u[v];
    add_derivatives(map, &at, by_u, -1.0, of_point);
  }
}

const smc_map_kind smc_map_polynomial = {
    .name = "polynomial",
    .names = {"order", "entries", "centre", "width", "degrees", "factor",
              "mean"},
    .is_valid = is_valid,
    .layout = layout,
    .scratch = scratch_size,
    .forward = forward,
    .inverse = inverse,
    .pull_back = pull_back,
    .push_forward = push_forward,
};
