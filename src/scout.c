#include "scout.h"

#include "vecmath.h"

/* Pairs from which a path estimates the curvature (Nocedal and Wright, 2006,
 * recommend 3 to 20). */
enum { MOST_PAIRS = 20 };

/* A step must rise by this part of what its slope promises, as is usual for
 * line searches (Nocedal and Wright, 2006). */
static const double sufficient_rise = 1e-4;

/* Cosine of a step and the change of the gradient, below which their product is
 * rounding. */
static const double least_curvature = 1e-10;

/* Part of a whole step below which nothing is left but rounding. */
static const double shortest_step = 1e-14;

/* the inverse Hessian ------------------------------------------------------ */

static const double *point(const smc_climb *climb, const double *matrix,
                           int k) {
  return matrix + smc_size(climb->d, k);
}

/* The pair of differences that ends at point k: s of the points, y of minus the
 * gradients. */
static void take_pair(const smc_climb *climb, int k, double *s, double *y) {
  const double *x = point(climb, climb->x, k), *g = point(climb, climb->g, k);
  int d = climb->d;
  for (int i = 0; i < d; i++) {
    s[i] = x[i] - (x - d)[i];
    y[i] = (g - d)[i] - g[i];
  }
}

/* ends: out, the points at which the last pairs up to point k end, in their
 * order. Returns how many there are. */
static int last_pairs(const smc_climb *climb, int k, int *ends) {
  int n = 0, first = k;
  for (; first > 0 && n < MOST_PAIRS; first--)
    n += climb->is_pair[first];
  n = 0;
  for (int j = first + 1; j <= k; j++)
    if (climb->is_pair[j])
      ends[n++] = j;
  return n;
}

/* direction <- H g at the last point, by the two loops of limited-memory BFGS.
 */
static void newton_step(smc_climb *climb) {
  int ends[MOST_PAIRS], d = climb->d, last = climb->n - 1;
  int n = last_pairs(climb, last, ends);
  double back[MOST_PAIRS], *out = climb->direction, *s = climb->s,
                           *y = climb->y;
  const double *alpha = point(climb, climb->alpha, last);
  memcpy(out, point(climb, climb->g, last), (size_t)d * sizeof(double));
  for (int j = n - 1; j >= 0; j--) {
    take_pair(climb, ends[j], s, y);
    back[j] = smc_dot(d, s, out) / smc_dot(d, s, y);
    smc_add(d, -back[j], y, out);
  }
  for (int i = 0; i < d; i++)
    out[i] *= alpha[i];
  for (int j = 0; j < n; j++) {
    take_pair(climb, ends[j], s, y);
    smc_add(d, back[j] - smc_dot(d, y, out) / smc_dot(d, s, y), s, out);
  }
}

/* The diagonal at the last point, after the pair that ends there, from that at
 * the point before it (Zhang et al., 2022, algorithm 3); n: how many pairs
 * there are. */
static void update_diagonal(smc_climb *climb, int n) {
  int d = climb->d;
  const double *s = climb->s, *y = climb->y;
  double *alpha = climb->alpha + smc_size(d, climb->n - 1);
  const double *old = alpha - d;
  double a = 0.0, b = smc_dot(d, s, y), c = 0.0, size = smc_dot(d, y, y);
  bool is_valid = true;
  for (int i = 0; i < d; i++) {
    a += y[i] * y[i] * old[i];
    c += s[i] * s[i] / old[i];
  }
  for (int i = 0; i < d; i++) {
    double less = a * s[i] * s[i] / (b * c * old[i] * old[i]);
    double inverse = a / (b * old[i]) + y[i] * y[i] / b - less;
    alpha[i] = n == 1 ? b / size : 1.0 / inverse;
    is_valid &= isfinite(alpha[i]) && alpha[i] > 0.0;
  }
  if (!is_valid)
    memcpy(alpha, old, (size_t)d * sizeof(double));
}

/* paths -------------------------------------------------------------------- */

smc_climb smc_climb_layout(smc_arena *arena, int d, int most_points) {
  return (smc_climb){.d = d,
                     .x = smc_take_doubles(arena, d, most_points),
                     .g = smc_take_doubles(arena, d, most_points),
                     .f = smc_take_doubles(arena, most_points, 1),
                     .alpha = smc_take_doubles(arena, d, most_points),
                     .is_pair = smc_take_ints(arena, most_points, 1),
                     .direction = smc_take_doubles(arena, d, 1),
                     .s = smc_take_doubles(arena, d, 1),
                     .y = smc_take_doubles(arena, d, 1),
                     .length = 1.0};
}

/* Set out for the next point. Before anything is known of the curvature a small
 * slope says nothing. */
static void aim(smc_climb *climb) {
  int last = climb->n - 1, d = climb->d, ends[MOST_PAIRS];
  const double *g = point(climb, climb->g, last);
  bool is_known = last_pairs(climb, last, ends) > 0;
  if (is_known) {
    newton_step(climb);
  } else {
    double size = sqrt(smc_dot(d, g, g));
    for (int i = 0; i < d; i++)
      climb->direction[i] = size > 0.0 ? g[i] / size * climb->length : g[i];
  }
  climb->gain = smc_dot(d, climb->direction, g);
  climb->t = 1.0;
  climb->is_done = !isfinite(climb->gain) ||
                   climb->gain <= (is_known ? climb->tolerance : 0.0);
}

void smc_climb_begin(smc_climb *climb, const double *x, double f,
                     const double *g) {
  size_t size = (size_t)climb->d * sizeof(double);
  memcpy(climb->x, x, size);
  memcpy(climb->g, g, size);
  for (int i = 0; i < climb->d; i++)
    climb->alpha[i] = 1.0;
  climb->f[0] = f;
  climb->is_pair[0] = 0;
  climb->n = 1;
  aim(climb);
}

/* The shorter step is that to the vertex of a parabola through what is known.
 */
static void shorten(smc_climb *climb, double f) {
  double t = climb->t, rise = (f - climb->f[climb->n - 1]) / t;
  double vertex = t * climb->gain / (2.0 * (climb->gain - rise));
  climb->t = isfinite(f) ? fmin(fmax(vertex, t / 10.0), t / 2.0) : t / 10.0;
  climb->is_done = climb->t < shortest_step;
}

/* Go to the trial point. Where the density is not concave the next step is
 * longer. */
static void go(smc_climb *climb, double f, const double *g) {
  int d = climb->d, now = climb->n, ends[MOST_PAIRS];
  size_t from = smc_size(d, now - 1), to = smc_size(d, now),
         size = (size_t)d * sizeof(double);
  for (int i = 0; i < d; i++)
    climb->x[to + (size_t)i] = smc_climb_trial(climb, i);
  memcpy(climb->g + to, g, size);
  memcpy(climb->alpha + to, climb->alpha + from, size);
  climb->f[now] = f;
  climb->n++;
  const double *s = climb->s, *y = climb->y;
  take_pair(climb, now, climb->s, climb->y);
  double cosine = smc_dot(d, s, y) / sqrt(smc_dot(d, s, s) * smc_dot(d, y, y));
  climb->is_pair[now] = cosine > least_curvature;
  if (climb->is_pair[now])
    update_diagonal(climb, last_pairs(climb, now, ends));
  else
    climb->length *= 2.0;
}

/* Armijo's rule. */
void smc_climb_advance(smc_climb *climb, double f, const double *g) {
  double rise = sufficient_rise * climb->t * climb->gain;
  if (f >= climb->f[climb->n - 1] + rise) {
    go(climb, f, g);
    aim(climb);
  } else {
    shorten(climb, f);
  }
}

/* normals along a path ----------------------------------------------------- */

smc_climb_normal smc_climb_normal_layout(smc_arena *arena, int d) {
  return (smc_climb_normal){.d = d,
                            .mean = smc_take_doubles(arena, d, 1),
                            .root = smc_take_doubles(arena, d, 1),
                            .s = smc_take_doubles(arena, d, MOST_PAIRS),
                            .q = smc_take_doubles(arena, d, MOST_PAIRS),
                            .scratch = smc_take_doubles(arena, d, 1)};
}

static double *pair(const smc_climb_normal *normal, double *matrix, int j) {
  return matrix + smc_size(normal->d, j);
}

void smc_climb_normal_scale(const smc_climb_normal *normal, double *z) {
  int d = normal->d;
  for (int i = 0; i < d; i++)
    z[i] *= normal->root[i];
  for (int j = 0; j < normal->n_pairs; j++)
    smc_add(d, smc_dot(d, pair(normal, normal->q, j), z),
            pair(normal, normal->s, j), z);
}

/* x <- S' x */
static void scale_transposed(const smc_climb_normal *normal, double *x) {
  int d = normal->d;
  for (int j = normal->n_pairs - 1; j >= 0; j--)
    smc_add(d, smc_dot(d, pair(normal, normal->s, j), x),
            pair(normal, normal->q, j), x);
  for (int i = 0; i < d; i++)
    x[i] *= normal->root[i];
}

/* x <- S^-1 x, and x <- S'^-1 x. */
static void unscale(const smc_climb_normal *normal, double *x) {
  int d = normal->d;
  for (int j = normal->n_pairs - 1; j >= 0; j--) {
    const double *s = pair(normal, normal->s, j),
                 *q = pair(normal, normal->q, j);
    smc_add(d, -smc_dot(d, q, x) / (1.0 + smc_dot(d, q, s)), s, x);
  }
  for (int i = 0; i < d; i++)
    x[i] /= normal->root[i];
}

static void unscale_transposed(const smc_climb_normal *normal, double *x) {
  int d = normal->d;
  for (int i = 0; i < d; i++)
    x[i] /= normal->root[i];
  for (int j = 0; j < normal->n_pairs; j++) {
    const double *s = pair(normal, normal->s, j),
                 *q = pair(normal, normal->q, j);
    smc_add(d, -smc_dot(d, s, x) / (1.0 + smc_dot(d, q, s)), q, x);
  }
}

/* The factor after one more pair, which ends at point k. With B = (S S')^-1 and
 * rho = 1 / s'y, H = (I + s q') S S' (I + q s') is that of the BFGS formula for
 * q = c B s - rho y, c = sqrt(rho / s'B s): then q's = c s'B s - 1. */
static void add_pair(const smc_climb *climb, int k, smc_climb_normal *normal) {
  int d = normal->d;
  double *s = pair(normal, normal->s, normal->n_pairs);
  double *q = pair(normal, normal->q, normal->n_pairs), *y = normal->scratch;
  take_pair(climb, k, s, y);
  memcpy(q, s, (size_t)d * sizeof(double));
  unscale(normal, q);
  double rho = 1.0 / smc_dot(d, s, y), square = smc_dot(d, q, q);
  double c = sqrt(rho / square);
  unscale_transposed(normal, q);
  for (int i = 0; i < d; i++)
    q[i] = c * q[i] - rho * y[i];
  normal->log_det += log(c * square);
  normal->n_pairs++;
}

bool smc_climb_normal_at(const smc_climb *climb, int k, bool diagonal,
                         smc_climb_normal *normal) {
  int d = climb->d, ends[MOST_PAIRS], n = last_pairs(climb, k, ends);
  const double *alpha = point(climb, climb->alpha, k);
  normal->n_pairs = 0;
  normal->log_det = 0.0;
  for (int i = 0; i < d; i++) {
    normal->root[i] = sqrt(alpha[i]);
    normal->log_det += log(normal->root[i]);
  }
  double of_diagonal = normal->log_det;
  for (int j = 0; j < n; j++)
    add_pair(climb, ends[j], normal);
  double *step = normal->scratch;
  memcpy(step, point(climb, climb->g, k), (size_t)d * sizeof(double));
  scale_transposed(normal, step);
  smc_climb_normal_scale(normal, step);
  for (int i = 0; i < d; i++)
    normal->mean[i] = point(climb, climb->x, k)[i] + step[i];
  if (diagonal) {
    normal->n_pairs = 0;
    normal->log_det = of_diagonal;
  }
  return n > 0 && isfinite(normal->log_det) && smc_all_finite(d, normal->mean);
}

double smc_climb_laplace(const smc_climb *climb, int k,
                         const smc_climb_normal *normal) {
  int d = climb->d;
  const double *x = point(climb, climb->x, k), *g = point(climb, climb->g, k);
  double *step = normal->scratch;
  for (int i = 0; i < d; i++)
    step[i] = normal->mean[i] - x[i];
  return climb->f[k] + smc_dot(d, step, g) / 2.0 + normal->log_det +
         d / 2.0 * log(SMC_TWO_PI);
}
