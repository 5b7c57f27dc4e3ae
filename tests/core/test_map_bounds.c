/* test_map_bounds.c: bounded variables on the whole line. */
#include "toy.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

/* One variable of every kind. */
enum { D = 6 };
static const double lower[D] = {-INFINITY, 0.0, 5.0, -INFINITY, 0.0, -2.0};
static const double upper[D] = {INFINITY, INFINITY, INFINITY, -3.0, 1.0, 7.0};

/* The map of d variables, both ways, and back with densities. */
typedef struct limits {
  const double *lower, *upper;
} limits;

static const limits bounds = {lower, upper};

static void constrain(limits b, int d, int n, const double *u, double *x) {
  smc_map map = toy_bounds(d, b.lower, b.upper);
  map.kind->forward(&map, n, u, x, NULL);
}

static void unconstrain(limits b, int d, int n, const double *x, double *u) {
  smc_map map = toy_bounds(d, b.lower, b.upper);
  map.kind->inverse(&map, n, x, u, NULL);
}

static void pull_back(limits b, int d, int n, const double *u, double *logp,
                      double *grad) {
  smc_map map = toy_bounds(d, b.lower, b.upper);
  map.kind->pull_back(&map, n, u, logp, grad, NULL);
}

/* inside, whatever comes --------------------------------------------------- */

static bool is_inside(double low, double high, double x) {
  return low < x && x < high && isfinite(x);
}

static void test_inside(void) {
  static const double lows[] = {0.0,       5.0, -5.0, -1e308, 1e-300, -INFINITY,
                                -INFINITY, 0.0, 5.0,  -1e308, -1e-310};
  static const double highs[] = {INFINITY,    INFINITY, INFINITY, INFINITY,
                                 INFINITY,    0.0,      1e10,     1.0,
                                 5.0 + 1e-14, 1e308,    1e-310};
  static const double us[] = {NAN,    INFINITY, -INFINITY, 1e308, -1e308, 800.0,
                              -800.0, 710.0,    -745.0,    40.0,  -40.0,  0.0};
  const int n_bounds = sizeof lows / sizeof lows[0];
  const int n_us = sizeof us / sizeof us[0];
  long outside = 0, dead = 0;
  for (int i = 0; i < n_bounds; i++)
    for (int k = 0; k < n_us; k++) {
      limits b = {lows + i, highs + i};
      double x, again, back, log_p = 0.0, grad = 0.0;
      constrain(b, 1, 1, us + k, &x);
      outside += !is_inside(lows[i], highs[i], x);
      /* and so there and back again, as for draws from a reference */
      unconstrain(b, 1, 1, &x, &back);
      constrain(b, 1, 1, &back, &again);
      outside += !isfinite(back) || !is_inside(lows[i], highs[i], again);
      pull_back(b, 1, 1, us + k, &log_p, &grad);
      dead += isfinite(us[k]) && fabs(us[k]) < 700.0 && !isfinite(log_p + grad);
    }
  CHECK_NONE(outside, n_bounds * n_us, "x is a number strictly inside");
  CHECK_NONE(dead, n_bounds * n_us, "a moderate u has a Jacobian");

  /* Draws on a bound are taken to the nearest number inside. */
  for (int i = 1; i < D; i++) {
    limits b = {lower + i, upper + i};
    for (int end = 0; end < 2; end++) {
      double u, x = end ? upper[i] : lower[i];
      unconstrain(b, 1, 1, &x, &u);
      CHECK(isfinite(u));
    }
  }

  /* No number lies between: on a bound, but not beyond it. */
  double low = 1.0, high = nextafter(1.0, 2.0), u = 0.3, x;
  constrain((limits){&low, &high}, 1, 1, &u, &x);
  CHECK(x >= low && x <= high);
}

/* the maps ------------------------------------------------------------------
 */

static void fill(int n, double size, uint64_t seed, double *u) {
  dice r = {seed};
  for (int j = 0; j < D * n; j++)
    u[j] = size * dice_normal(&r);
}

static void test_maps(void) {
  enum { n = 200 };
  double u[D * n], x[D * n], back[D * n];
  fill(n, 3.0, 500, u);
  constrain(bounds, D, n, u, x);
  unconstrain(bounds, D, n, x, back);
  double off = 0.0, off_back = 0.0;
  long changed = 0;
  for (int k = 0; k < n; k++) {
    const double *v = u + D * k;
    double expected[D] = {v[0],
                          exp(v[1]),
                          5.0 + exp(v[2]),
                          -3.0 - exp(v[3]),
                          1.0 / (1.0 + exp(-v[4])),
                          -2.0 + 9.0 / (1.0 + exp(-v[5]))};
    for (int i = 0; i < D; i++) {
      off = fmax(off, fabs(x[i + D * k] / expected[i] - 1.0));
      /* the distance from a bound is known to a few units of rounding */
      off_back =
          fmax(off_back, fabs(back[i + D * k] - v[i]) * exp(-fabs(v[i])));
    }
    changed += x[D * k] != v[0] || back[D * k] != v[0];
  }
  CHECK_NONE(changed, n, "what is not bounded is not touched");
  CHECK_NEAR(off, 0.0, 1e-13);
  CHECK_NEAR(off_back, 0.0, 1e-14);

  /* The way back may be taken in place. */
  unconstrain(bounds, D, n, x, x);
  CHECK(memcmp(x, back, sizeof x) == 0);

  /* Both ends of an interval are resolved where floating point can. */
  double ends[2] = {-300.0, 300.0}, low = 0.0, high = 1.0;
  constrain((limits){&low, &high}, 1, 1, &ends[0], &x[0]);
  CHECK_NEAR(x[0] / exp(-300.0), 1.0, 1e-12);
  low = -1.0;
  high = 0.0;
  constrain((limits){&low, &high}, 1, 1, &ends[1], &x[0]);
  CHECK_NEAR(x[0] / -exp(-300.0), 1.0, 1e-12);
}

/* densities ---------------------------------------------------------------- */

/* log p(u) = log p(x(u)) + log |dx/du|, for a toy's density p. */
static void density_at(int n, const double *u, double *log_p, double *grad) {
  double *x = take_doubles((size_t)(D * n));
  constrain(bounds, D, n, u, x);
  for (int k = 0; k < n; k++)
    log_p[k] =
        toy_log_density(TOY_GAUSSIAN, D, x + D * k, grad ? grad + D * k : NULL);
  pull_back(bounds, D, n, u, log_p, grad);
  free(x);
}

static void test_pull_back(void) {
  enum { n = 100 };
  const double step = 1e-5;
  double u[D * n], x[D * n], log_p[n], grad[D * n], without[n];
  double moved[D * n], plus[n], minus[n], x_plus[D * n], x_minus[D * n];
  fill(n, 1.0, 501, u);
  constrain(bounds, D, n, u, x);
  density_at(n, u, log_p, grad);
  density_at(n, u, without, NULL);
  CHECK(memcmp(log_p, without, sizeof log_p) == 0);

  double off_gradient = 0.0, log_jacobian[n] = {0.0}, off = 0.0;
  for (int i = 0; i < D; i++) {
    for (int sign = -1; sign < 2; sign += 2) {
      memcpy(moved, u, sizeof u);
      for (int k = 0; k < n; k++)
        moved[i + D * k] += sign * step;
      density_at(n, moved, sign > 0 ? plus : minus, NULL);
      constrain(bounds, D, n, moved, sign > 0 ? x_plus : x_minus);
    }
    for (int k = 0; k < n; k++) {
      int at = i + D * k;
      double slope = (plus[k] - minus[k]) / (2.0 * step);
      off_gradient =
          fmax(off_gradient, fabs(grad[at] - slope) / (1.0 + fabs(slope)));
      log_jacobian[k] += log(fabs(x_plus[at] - x_minus[at]) / (2.0 * step));
    }
  }
  for (int k = 0; k < n; k++) {
    double p = toy_log_density(TOY_GAUSSIAN, D, x + D * k, NULL);
    off = fmax(off, fabs(log_p[k] - p - log_jacobian[k]));
  }
  CHECK_NEAR(off_gradient, 0.0, 1e-6);
  CHECK_NEAR(off, 0.0, 1e-6);
}

/* ratios ------------------------------------------------------------------- */

/* Two chains, of three and two numbers, the second right after the first, and
 * variables that are none. */
enum { CHAINED = 7 };
static const double is_ratio[CHAINED] = {0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0};

static smc_map ratios_of(const double *ratio) {
  static const double none[CHAINED] = {-INFINITY, -INFINITY, -INFINITY,
                                       -INFINITY, -INFINITY, -INFINITY,
                                       -INFINITY};
  static const double nor[CHAINED] = {INFINITY, INFINITY, INFINITY, INFINITY,
                                      INFINITY, INFINITY, INFINITY};
  smc_map map = toy_bounds(CHAINED, none, nor);
  map.parameters[4] = (smc_values){ratio, CHAINED};
  return map;
}

/* log p(u) of a toy's density p of x(u). */
static double density_of_ratios(const double *u, double *grad) {
  smc_map map = ratios_of(is_ratio);
  double x[CHAINED];
  map.kind->forward(&map, 1, u, x, NULL);
  double log_p = toy_log_density(TOY_GAUSSIAN, CHAINED, x, grad);
  map.kind->pull_back(&map, 1, u, &log_p, grad, NULL);
  return log_p;
}

static void test_ratios(void) {
  enum { n = 100 };
  const double step = 1e-5;
  smc_map map = ratios_of(is_ratio);
  double off = 0.0, off_back = 0.0, off_gradient = 0.0, off_density = 0.0;
  dice r = {502};
  for (int k = 0; k < n; k++) {
    double u[CHAINED], x[CHAINED], back[CHAINED], grad[CHAINED];
    for (int i = 0; i < CHAINED; i++)
      u[i] = 3.0 * dice_normal(&r);
    map.kind->forward(&map, 1, u, x, NULL);
    map.kind->inverse(&map, 1, x, back, NULL);
    double second = exp(u[1]) * (1.0 + exp(u[2])); /* after exp(u[1]) */
    double expected[CHAINED] = {
        u[0], u[1], u[1] + u[2], log(second) + u[3], u[4], u[4] + u[5], u[6]};
    double log_p = density_of_ratios(u, grad);
    off_density =
        fmax(off_density,
             fabs(log_p - toy_log_density(TOY_GAUSSIAN, CHAINED, x, NULL)));
    for (int i = 0; i < CHAINED; i++) {
      off = fmax(off, fabs(x[i] - expected[i]));
      off_back = fmax(off_back, fabs(back[i] - u[i]));
      double at = u[i];
      u[i] = at + step;
      double plus = density_of_ratios(u, NULL);
      u[i] = at - step;
      double slope = (plus - density_of_ratios(u, NULL)) / (2.0 * step);
      u[i] = at;
      off_gradient =
          fmax(off_gradient, fabs(grad[i] - slope) / (1.0 + fabs(slope)));
    }
  }
  CHECK_NEAR(off, 0.0, 1e-13);
  CHECK_NEAR(off_back, 0.0, 1e-13);
  CHECK_NEAR(off_density, 0.0, 0.0); /* the Jacobian is 1 */
  CHECK_NEAR(off_gradient, 0.0, 1e-6);

  /* Only a variable without bounds may be one, after another. */
  static const double first[CHAINED] = {1.0};
  map = ratios_of(first);
  CHECK(!map.kind->is_valid(&map));
  map = ratios_of(is_ratio);
  CHECK(map.kind->is_valid(&map));
  double low[CHAINED];
  memcpy(low, map.parameters[0].x, sizeof low);
  low[1] = 0.0;
  map.parameters[0].x = low;
  CHECK(!map.kind->is_valid(&map));
}

/* The Jacobian integrates to the length of the interval. */
static void test_length(void) {
  const double step = 0.01;
  double low = -2.0, high = 7.0, sum = 0.0;
  for (double u = -60.0; u < 60.0; u += step) {
    double log_p = 0.0;
    pull_back((limits){&low, &high}, 1, 1, &u, &log_p, NULL);
    sum += step * exp(log_p);
  }
  CHECK_NEAR(sum, 9.0, 1e-9);
}

static void test_far_out(void) {
  double at[4] = {-800.0, -800.0, 800.0, 800.0}, grad[4] = {0.0};
  double lows[4] = {0.0, 0.0, 0.0, 0.0},
         highs[4] = {INFINITY, 1.0, 1.0, INFINITY};
  const double expected[4] = {-800.0, -800.0, -800.0, -INFINITY};
  const double slopes[4] = {1.0, 1.0, -1.0, NAN};
  for (int i = 0; i < 4; i++) {
    double log_p = 0.0;
    pull_back((limits){lows + i, highs + i}, 1, 1, at + i, &log_p, grad + i);
    CHECK(log_p == expected[i]);
    CHECK(i == 3 || grad[i] == slopes[i]);
  }
  /* The width itself overflows. */
  double low = -1.5e308, high = 1.5e308, u = 0.0, log_p = 0.0;
  pull_back((limits){&low, &high}, 1, 1, &u, &log_p, NULL);
  CHECK_NEAR(log_p, log(3.0) + 308.0 * log(10.0) - log(4.0), 1e-10);
}

/* Turned variables are the same numbers, in another order: x moves on by a part
 * of the width, and what has gone beyond one bound is at the other. */
static void test_turned(void) {
  enum { n = 500 };
  static const double turn[2] = {0.25, 0.0};
  static const double low[2] = {-2.0, 0.0}, high[2] = {7.0, 1.0};
  double u[2 * n], plain[2 * n], x[2 * n], back[2 * n], off = 0.0;
  smc_map map = toy_bounds(2, low, high), turned = map;
  turned.parameters[2] = (smc_values){turn, 2};
  CHECK(map.kind->is_valid(&map) && turned.kind->is_valid(&turned));
  dice r = {502};
  for (int j = 0; j < 2 * n; j++)
    u[j] = 3.0 * dice_normal(&r);
  map.kind->forward(&map, n, u, plain, NULL);
  turned.kind->forward(&turned, n, u, x, NULL);
  turned.kind->inverse(&turned, n, x, back, NULL);
  long outside = 0, moved = 0;
  for (int k = 0; k < n; k++) {
    double expected = plain[2 * k] + 0.25 * 9.0;
    expected -= expected >= 7.0 ? 9.0 : 0.0;
    off = fmax(off, fabs(x[2 * k] - expected));
    off = fmax(off, fabs(back[2 * k] - u[2 * k]) * exp(-fabs(u[2 * k])));
    outside += !is_inside(-2.0, 7.0, x[2 * k]);
    moved += x[2 * k + 1] != plain[2 * k + 1];
  }
  CHECK_NEAR(off, 0.0, 1e-14 * 9.0);
  CHECK_NONE(outside, n, "what is turned stays inside");
  CHECK_NONE(moved, n, "what is not turned stays");

  /* The density of what is turned is that of what is not. */
  double log_p[n] = {0.0}, log_turned[n] = {0.0};
  double grad[2 * n], grad_turned[2 * n];
  for (int j = 0; j < 2 * n; j++)
    grad[j] = grad_turned[j] = 1.0;
  map.kind->pull_back(&map, n, u, log_p, grad, NULL);
  turned.kind->pull_back(&turned, n, u, log_turned, grad_turned, NULL);
  CHECK(memcmp(log_p, log_turned, sizeof log_p) == 0);
  CHECK(memcmp(grad, grad_turned, sizeof grad) == 0);
}

/* Edged variables: one with bounds is a multiple of u between the edges, and
 * one without is the logit of such a place; the density ends there. */
static void test_truncated(void) {
  enum { n = 401 };
  static const double truncated[3] = {1.0, 1.0, 0.0};
  static const double low[3] = {-2.0, -INFINITY, 0.0};
  static const double high[3] = {7.0, INFINITY, 1.0};
  const double step = 1e-6;
  smc_map map = toy_bounds(3, low, high);
  map.parameters[3] = (smc_values){truncated, 3};
  CHECK(map.kind->is_valid(&map));
  double off = 0.0, off_back = 0.0, off_slope = 0.0, off_gradient = 0.0;
  long alive = 0, outside = 0;
  for (int k = 0; k < n; k++) {
    /* from -3 to 3, with the third variable in its place */
    double v = -3.0 + 6.0 * k / (n - 1.0), u[3] = {v, v, 0.3};
    double x[3], back[3], log_p = 0.0, grad[3] = {1.0, 1.0, 1.0};
    map.kind->forward(&map, 1, u, x, NULL);
    map.kind->pull_back(&map, 1, u, &log_p, grad, NULL);
    outside += !is_inside(-2.0, 7.0, x[0]) || !isfinite(x[1]);
    if (fabs(v) >= 2.0) {
      alive += log_p != -INFINITY;
      continue;
    }
    map.kind->inverse(&map, 1, x, back, NULL);
    off = fmax(off, fabs(x[0] - (2.5 + 9.0 / 4.0 * v)));
    off = fmax(off, fabs(2.0 * tanh(0.5 * x[1]) - v));
    off_back = fmax(off_back, fabs(back[0] - v) + fabs(back[1] - v));

    double plus[3] = {v, v + step, 0.3}, minus[3] = {v, v - step, 0.3};
    double x_plus[3], x_minus[3], more = 0.0, less = 0.0;
    if (fabs(v) > 1.99)
      continue; /* the differences would cross the edge, or be inexact */
    map.kind->forward(&map, 1, plus, x_plus, NULL);
    map.kind->forward(&map, 1, minus, x_minus, NULL);
    map.kind->pull_back(&map, 1, plus, &more, NULL, NULL);
    map.kind->pull_back(&map, 1, minus, &less, NULL, NULL);
    double slope = (x_plus[1] - x_minus[1]) / (2.0 * step);
    double between = -0.3 - 2.0 * log1p(exp(-0.3)); /* of the third */
    off_slope =
        fmax(off_slope, fabs(log_p - log(9.0 / 4.0) - log(slope) - between));
    double change = (more - less) / (2.0 * step);
    off_gradient = fmax(off_gradient, fabs(grad[1] - slope - change) / slope);
    off_gradient = fmax(off_gradient, fabs(grad[0] - 9.0 / 4.0));
  }
  CHECK_NONE(alive, n, "there is no density beyond an edge");
  CHECK_NONE(outside, n, "x is between the bounds wherever u is");
  CHECK_NEAR(off, 0.0, 1e-13);
  CHECK_NEAR(off_back, 0.0, 1e-13);
  CHECK_NEAR(off_slope, 0.0, 1e-6);
  CHECK_NEAR(off_gradient, 0.0, 1e-6);
}

/* Each kind of variable, and a ratio, both ways. */
static void test_both_ways(void) {
  static const double low[TOY_D] = {-INFINITY, -INFINITY, 0.0, -1.0};
  static const double high[TOY_D] = {INFINITY, INFINITY, INFINITY, 2.0};
  static const double ratio[TOY_D] = {0.0, 1.0, 0.0, 0.0};
  smc_map map = toy_bounds(TOY_D, low, high);
  map.parameters[4] = (smc_values){ratio, TOY_D};
  CHECK(map.kind->is_valid(&map));
  toy_check_gradient(&map, 503);
  toy_check_jacobian(&map, 504);
  toy_check_inverse(&map, 505);
}

/* Sums of angles, one after the other: what goes beyond a bound enters at the
 * other. */
static void test_sums(void) {
  static const double low[TOY_D] = {0.0, -INFINITY, -1.0, 0.0};
  static const double high[TOY_D] = {1.0, INFINITY, 3.0, 2.0};
  static const double turn[TOY_D] = {0.25, 0.0, 0.0, 0.0};
  static const double sums[6] = {1.0, 3.0, -2.0, 4.0, 1.0, 1.0};
  smc_map map = toy_bounds(TOY_D, low, high), plain = map;
  map.parameters[2] = plain.parameters[2] = (smc_values){turn, TOY_D};
  map.parameters[5] = (smc_values){sums, 6};
  CHECK(map.kind->is_valid(&map));
  double u[TOY_D] = {0.3, 0.2, -1.0, 2.0}, x[TOY_D], y[TOY_D];
  plain.kind->forward(&plain, 1, u, x, NULL);
  map.kind->forward(&map, 1, u, y, NULL);
  double first = x[0] - 2.0 * (x[2] + 1.0) / 4.0;
  first -= floor(first);
  double last = x[3] + 2.0 * first;
  CHECK_NEAR(y[0], first, 1e-14);
  CHECK_NEAR(y[3], last - 2.0 * floor(last / 2.0), 1e-14);
  CHECK(y[1] == x[1] && y[2] == x[2]);
  toy_check_gradient(&map, 506);
  toy_check_jacobian(&map, 507);
  toy_check_inverse(&map, 508);

  static const double odd[][3] = {{1.0, 1.0, 1.0}, {1.0, 2.0, 1.0},
                                  {5.0, 1.0, 1.0}, {1.0, 0.0, 1.0},
                                  {1.0, 3.0, 0.5}, {1.0, 3.0, NAN}};
  enum { n_odd = sizeof odd / sizeof odd[0] };
  smc_map bad[n_odd + 1];
  for (int i = 0; i <= n_odd; i++) {
    bad[i] = map;
    bad[i].parameters[5] =
        i < n_odd ? (smc_values){odd[i], 3} : (smc_values){sums, 5};
  }
  toy_check_invalid(n_odd + 1, bad, "sums of angles are checked");

  /* The second as the logit of an angle, in sums with others. */
  static const double turns[TOY_D] = {0.25, 1.0, 0.0, 0.0};
  static const double with_logit[6] = {2.0, 3.0, 1.0, 1.0, 2.0, -1.0};
  map.parameters[2] = (smc_values){turns, TOY_D};
  map.parameters[5] = (smc_values){with_logit, 6};
  CHECK(map.kind->is_valid(&map) && map.kind->scratch(&map) == TOY_D);
  map.kind->forward(&map, 1, u, y, NULL);
  double part = 1.0 / (1.0 + exp(-u[1])) + (x[2] + 1.0) / 4.0;
  part -= floor(part);
  CHECK_NEAR(y[1], log(part / (1.0 - part)), 1e-13);
  CHECK_NEAR(y[0], x[0] - part - floor(x[0] - part), 1e-14);
  toy_check_jacobian(&map, 509);
  toy_check_inverse(&map, 510);
  /* where it stays as it is, and so is not beside a bound */
  map.parameters[5] = (smc_values){with_logit + 3, 3};
  toy_check_gradient(&map, 511);
}

void test_map_bounds(void) {
  test_both_ways();
  test_sums();
  test_inside();
  test_maps();
  test_pull_back();
  test_ratios();
  test_length();
  test_far_out();
  test_turned();
  test_truncated();
}
