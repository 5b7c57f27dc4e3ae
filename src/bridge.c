#include "bridge.h"

#include "vecmath.h"

/* Steps of the iteration, which converges in ten or so; and the difference of
 * two at which it has. */
enum { MOST_STEPS = 500 };
static const double tolerance = 1e-8;

/* The sum of the squares of what the elements of x in each group add up to.
 * sums: scratch. */
static double sum_of_squares(int n, const double *x, const smc_groups *groups,
                             double *sums) {
  memset(sums, 0, (size_t)groups->n * sizeof(double));
  for (int k = 0; k < n; k++)
    sums[groups->group[k] - groups->first] += x[k];
  return smc_sum_of_squares(groups->n, sums);
}

/* How many groups have members. */
static int count_groups(int n, const smc_groups *groups, double *members) {
  int count = 0;
  memset(members, 0, (size_t)groups->n * sizeof(double));
  for (int k = 0; k < n; k++)
    count += members[groups->group[k] - groups->first]++ == 0.0;
  return count;
}

/* The terms of both means where the estimate is r: l / (s_2 l + s_1 r) at the
 * draws y, and r / (s_2 l + s_1 r) at the draws x, with l the ratios and s the
 * shares of the samples. */
static void find_terms(const smc_bridge_draws *draws, const double *share,
                       double log_r, double *y, double *x) {
  for (int k = 0; k < draws->n_y; k++)
    y[k] = 1.0 / (share[1] + share[0] * exp(log_r - draws->log_y[k]));
  for (int k = 0; k < draws->n_x; k++)
    x[k] = 1.0 / (share[0] + share[1] * exp(draws->log_x[k] - log_r));
}

static double mean_of(int n, const double *y) {
  double sum = 0.0;
  for (int k = 0; k < n; k++)
    sum += y[k];
  return sum / n;
}

static double weighted_sum(int n, const double *w, const double *x) {
  double sum = 0.0;
  for (int k = 0; k < n; k++)
    sum += w[k] * x[k];
  return sum;
}

/* The relative variance of a mean of n independent terms. */
static double variance_of_mean(int n, const double *y, double mean) {
  double sum = 0.0;
  for (int k = 0; k < n; k++)
    sum += (y[k] / mean - 1.0) * (y[k] / mean - 1.0);
  return sum / (n - 1.0) / n;
}

/* The equation is
 *   mean[l(y) / (s_2 l(y) + s_1 r)] = r sum(w [1 / (s_2 l(x) + s_1 r)]);
 * the second sample's share is by how many independent draws its genealogies
 * are worth. The variance of log r is that of the two means; particles of one
 * genealogy, or of one island, count as one, whichever gives more. */
smc_bridge_estimate smc_bridge(const smc_bridge_draws *draws, double *scratch) {
  int n_y = draws->n_y, n_x = draws->n_x;
  double *y = scratch, *x = y + n_y, *sums = x + n_x;
  const double *w = draws->w;
  double worth = 1.0 / sum_of_squares(n_x, w, &draws->origins, sums);
  double share[2] = {n_y / (n_y + worth), worth / (n_y + worth)};
  double log_r = weighted_sum(n_x, w, draws->log_x), last;
  int step = 0;
  do {
    last = log_r;
    find_terms(draws, share, log_r, y, x);
    log_r += log(mean_of(n_y, y)) - log(weighted_sum(n_x, w, x));
  } while (isfinite(log_r) && fabs(log_r - last) >= tolerance &&
           ++step < MOST_STEPS);
  find_terms(draws, share, log_r, y, x);
  double of_y = variance_of_mean(n_y, y, mean_of(n_y, y));
  double sum = weighted_sum(n_x, w, x);
  for (int k = 0; k < n_x; k++)
    x[k] = w[k] * (x[k] / sum - 1.0);
  double by_origin = sum_of_squares(n_x, x, &draws->origins, sums);
  double by_island = sum_of_squares(n_x, x, &draws->islands, sums);
  double k = count_groups(n_x, &draws->islands, sums);
  return (smc_bridge_estimate){
      log_r, of_y + fmax(by_origin, by_island * k / (k - 1.0))};
}
