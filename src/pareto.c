#include "pareto.h"

#include "vecmath.h"

#include <stdlib.h>

/* Draws in a tail that tell its shape: to 0.1, for an exponential one. */
static const double least_draws = 100.0;

static double weight_of(int n, const smc_weighted *values) {
  double sum = 0.0;
  for (int k = 0; k < n; k++)
    sum += values[k].w;
  return sum;
}

/* The grid of Zhang and Stephens over theta = -shape / scale has so many
 * points.
 */
enum { MOST_POINTS = 1024 };

static int points_of_grid(double n_draws) {
  return 30 + (int)fmin(floor(sqrt(n_draws)), MOST_POINTS - 30);
}

/* The likeliest shape given theta. */
static double shape_given(double theta, int n, const smc_weighted *excess) {
  double sum = 0.0;
  for (int k = 0; k < n; k++)
    sum += excess[k].w * log(1.0 - theta * excess[k].x);
  return sum;
}

/* The first value at which the cumulated weight reaches this. */
static double quantile(const smc_weighted *values, double weight) {
  double sum = values->w;
  for (; sum < weight; sum += values->w)
    values++;
  return values->x;
}

/* theta is the mean of the profile likelihood over the grid, and the shape the
 * likeliest one given theta. */
smc_pareto smc_fit_pareto(int n, const smc_weighted *excess, double n_draws) {
  int m = points_of_grid(n_draws);
  double total = weight_of(n, excess), largest = excess[n - 1].x;
  double quartile = quantile(excess, 0.25 * total);
  double theta[MOST_POINTS], log_likelihood[MOST_POINTS], mean = 0.0;
  for (int j = 0; j < m; j++) {
    theta[j] = 1.0 / largest + (1.0 - sqrt(m / (j + 0.5))) / (3.0 * quartile);
    double shape = shape_given(theta[j], n, excess) / total;
    log_likelihood[j] = n_draws * (log(-theta[j] / shape) - shape - 1.0);
  }
  smc_normalise(m, log_likelihood, log_likelihood);
  for (int j = 0; j < m; j++)
    mean += log_likelihood[j] * theta[j];
  double shape = shape_given(mean, n, excess) / total;
  return (smc_pareto){shape, -shape / mean};
}

/* tails -------------------------------------------------------------------- */

static void swap(smc_weighted *a, smc_weighted *b) {
  smc_weighted was = *a;
  *a = *b;
  *b = was;
}

/* The value such that those above it have no more than this weight, and with it
 * at least as much. The values are parted in place, as by quicksort, of which
 * only one side is followed. */
static double upper_quantile(int n, smc_weighted *values, double weight) {
  while (n > 1) {
    double pivot = values[n / 2].x, above = 0.0, equal = 0.0;
    int n_above = 0, end = n; /* then those equal, and from `end` on the rest */
    for (int k = 0; k < end;) {
      if (values[k].x > pivot) {
        above += values[k].w;
        swap(&values[k++], &values[n_above++]);
      } else if (values[k].x < pivot) {
        swap(&values[k], &values[--end]);
      } else {
        equal += values[k++].w;
      }
    }
    if (above >= weight) {
      n = n_above;
    } else if (above + equal >= weight || end == n) {
      return pivot;
    } else {
      weight -= above + equal;
      values += end;
      n -= end;
    }
  }
  return values->x;
}

static int ascending(const void *a, const void *b) {
  double x = ((const smc_weighted *)a)->x, y = ((const smc_weighted *)b)->x;
  return (x > y) - (x < y);
}

double smc_tail_shape(int n, smc_weighted *values, double part, double n_draws,
                      double level) {
  double total = weight_of(n, values);
  double from = upper_quantile(n, values, part * total);
  int n_tail = 0;
  for (int k = 0; k < n; k++)
    if (values[k].x > from)
      swap(&values[k], &values[n_tail++]);
  double draws = n_draws * weight_of(n_tail, values) / total;
  if (!(draws >= least_draws))
    return NAN;
  qsort(values, (size_t)n_tail, sizeof *values, ascending);
  for (int k = 0; k < n_tail; k++)
    values[k].x -= from;
  double largest = values[n_tail - 1].x;
  smc_pareto tail = smc_fit_pareto(n_tail, values, draws);
  if (tail.shape <= 0.0) /* one that ends is not heavy, wherever its end is */
    return tail.shape;
  double above =
      pow(1.0 + tail.shape * largest / tail.scale, -1.0 / tail.shape);
  double chance = pow(1.0 - above, draws); /* that the largest is below this */
  return chance >= level ? tail.shape : NAN;
}
