#include "minimize.h"

#include <math.h>
#include <stdbool.h>

/* Two arguments closer than this are the same point: the sums by which the
 * bracketing returns to a point it has been to differ by rounding only. */
static const double same_point = 1e-10;

/* A bracket narrower than this has no room for a point that is not one of its
 * own three. */
static const double narrowest = 1e-9;

static double tolerance_of(const smc_search *s) {
  return fmax(s->options->tolerance, narrowest);
}

static bool over(const smc_search *s) {
  return s->status != SMC_SEARCH_CONVERGED;
}

/* values ------------------------------------------------------------------ */

smc_search smc_search_begin(smc_objective_fn objective, void *context,
                            const smc_search_options *options) {
  smc_search s;
  s.objective = objective;
  s.context = context;
  s.options = options;
  s.status = SMC_SEARCH_CONVERGED;
  s.n_evals = 0;
  return s;
}

double smc_search_value(smc_search *s, double x) {
  for (int i = 0; i < s->n_evals; i++)
    if (fabs(s->x[i] - x) < same_point)
      return s->y[i];
  if (over(s))
    return INFINITY;
  if (s->n_evals >= s->options->max_evals) {
    s->status = SMC_SEARCH_EXHAUSTED;
    return INFINITY;
  }
  double y;
  if (s->objective(s->context, x, &y)) {
    s->status = SMC_SEARCH_FAILED;
    return INFINITY;
  }
  s->x[s->n_evals] = x;
  s->y[s->n_evals] = y;
  s->n_evals++;
  return y;
}

double smc_search_best(const smc_search *s, double otherwise) {
  double best = otherwise, lowest = INFINITY;
  for (int i = 0; i < s->n_evals; i++)
    if (s->y[i] < lowest) {
      lowest = s->y[i];
      best = s->x[i];
    }
  return best;
}

/* Keep x within the limits; to stand on one ends the search. */
static double limited(smc_search *s, double x) {
  if (x > s->options->lower && x < s->options->upper)
    return x;
  if (!over(s))
    s->status = SMC_SEARCH_AT_LIMIT;
  return fmin(fmax(x, s->options->lower), s->options->upper);
}

/* the three stages -------------------------------------------------------- */

double smc_find_feasible(smc_search *s, double x0) {
  double x = x0;
  while (!isfinite(smc_search_value(s, x)) && !over(s))
    x = limited(s, x + s->options->backoff);
  return over(s) ? x0 : x;
}

/* To the right only a value that is truly lower leads on: a tie, or a value
 * that is not finite, ends the bracket there. */
static smc_bracket walk_right(smc_search *s, double x0) {
  smc_bracket b = {x0, x0, x0};
  double step = s->options->bracket_start;
  double y = smc_search_value(s, x0);
  while (!over(s)) {
    b.upper = limited(s, x0 + step);
    double y_upper = smc_search_value(s, b.upper);
    if (!(y_upper < y))
      break;
    b.middle = b.upper;
    y = y_upper;
    step *= s->options->bracket_growth;
  }
  return b;
}

/* To the left a tie leads on, and so does a value that is not finite: the
 * bracket ends at a finite value above that of a finite middle point. */
static smc_bracket walk_left(smc_search *s, smc_bracket b) {
  double x0 = b.middle, step = s->options->bracket_start;
  double y = smc_search_value(s, x0);
  while (!over(s)) {
    b.lower = limited(s, x0 - step);
    double y_lower = smc_search_value(s, b.lower);
    if (isfinite(y_lower) && isfinite(y) && y < y_lower)
      break;
    if (y_lower <= y) {
      if (b.lower < b.middle)
        b.upper = b.middle;
      b.middle = b.lower;
      y = y_lower;
    }
    step *= s->options->bracket_growth;
  }
  return b;
}

smc_bracket smc_bracket_minimum(smc_search *s, double x) {
  return walk_left(s, walk_right(s, x));
}

/* A point in the wider half, so that a bracket whose middle is not at the
 * golden ratio is brought to it. */
static double golden_point(smc_bracket b) {
  const double fraction = 0.3819660112501051; /* (3 - sqrt 5) / 2 */
  double left = b.middle - b.lower, right = b.upper - b.middle;
  return b.middle + fraction * (right > left ? right : -left);
}

/* The vertex of the parabola through the bracket; NaN where an end is not
 * finite. It lies within the bracket, since its middle is the lowest. */
static double vertex(smc_search *s, smc_bracket b) {
  double left = b.middle - b.lower, right = b.upper - b.middle;
  double y = smc_search_value(s, b.middle);
  double fall = smc_search_value(s, b.lower) - y;
  double rise = smc_search_value(s, b.upper) - y;
  double x = b.middle + 0.5 * (right * right * fall - left * left * rise) /
                            (right * fall + left * rise);
  return isfinite(x) ? x : NAN;
}

/* Ties move left. */
static smc_bracket shrink(smc_bracket b, double x, double y_x, double y) {
  bool right = x > b.middle;
  if (y_x < y || (!right && y_x == y))
    return right ? (smc_bracket){b.middle, x, b.upper}
                 : (smc_bracket){b.lower, x, b.middle};
  return right ? (smc_bracket){b.lower, b.middle, x}
               : (smc_bracket){x, b.middle, b.upper};
}

/* The next point of the parabolic search: the vertex; or where the middle is
 * all but there, a point just far enough into the wider half to bring the
 * bracket's end near. NaN where the parabola is not to be trusted. */
static double parabolic_point(smc_search *s, smc_bracket b) {
  const double trusted_width = 1.0; /* parabolas fit narrow brackets only */
  double v = b.upper - b.lower < trusted_width ? vertex(s, b) : NAN;
  double least = 0.49 * tolerance_of(s);
  bool right = b.upper - b.middle > b.middle - b.lower;
  if (fabs(v - b.middle) <= least)
    v = b.middle + (right ? least : -least);
  return v;
}

double smc_narrow(smc_search *s, smc_bracket b) {
  double width, last_width = INFINITY;
  while (!over(s) && (width = b.upper - b.lower) > tolerance_of(s)) {
    double x = NAN;
    if (s->options->method == SMC_SEARCH_PARABOLIC && width < 0.7 * last_width)
      x = parabolic_point(s, b); /* else it creeps */
    if (!isfinite(x))
      x = golden_point(b);
    last_width = width;
    b = shrink(b, x, smc_search_value(s, x), smc_search_value(s, b.middle));
  }
  double v = s->options->method == SMC_SEARCH_PARABOLIC ? vertex(s, b) : NAN;
  return isfinite(v) ? v : b.middle;
}

double smc_minimize(smc_search *s, double x) {
  smc_bracket b = smc_bracket_minimum(s, x);
  double minimum = smc_narrow(s, b);
  if (!over(s))
    return minimum;
  if (s->status == SMC_SEARCH_FAILED)
    return x;
  double best = smc_search_best(s, x);
  if (!isfinite(smc_search_value(s, best)))
    s->status = SMC_SEARCH_INFEASIBLE;
  return best;
}
