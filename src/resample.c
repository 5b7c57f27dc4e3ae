#include "resample.h"

#include <stdbool.h>

/* from points in [0, 1) to ancestors -------------------------------------- */

/* The last particle that has weight: where rounding would run past the end,
 * the walks below stop here. */
static int last_alive(int n, const double *w) {
  int last = n - 1;
  while (last > 0 && !(w[last] > 0.0))
    last--;
  return last;
}

/* Invert the weights' distribution function at m ascending points in [0, 1):
 * ancestors[k] is the first i with w_0 + .. + w_i > point[k]. */
static void invert(int n, const double *w, int m, const double *point,
                   int *ancestors) {
  int i = 0, last = last_alive(n, w);
  double cumulative = w[0];
  for (int k = 0; k < m; k++) {
    while (i < last && !(cumulative > point[k]))
      cumulative += w[++i];
    ancestors[k] = i;
  }
}

/* m ascending uniforms, by the spacings of m + 1 exponential variables. */
static void sorted_uniforms(int m, double *u) {
  double sum = 0.0;
  for (int k = 0; k <= m; k++) {
    sum -= log(u[k]);
    u[k] = sum;
  }
  for (int k = 0; k < m; k++)
    u[k] /= sum;
}

/* from numbers of children to ancestors ----------------------------------- */

/* children: n whole numbers that sum to m. */
static void spread(int n, const double *children, int *ancestors) {
  for (int i = 0, k = 0; i < n; i++)
    for (int c = 0; c < (int)children[i]; c++)
      ancestors[k++] = i;
}

/* Srinivasan sampling process: the fractions of m w are paired off; of two,
 * one is rounded, the other keeps what is left, so that each keeps its mean.
 * Gerber, Chopin and Whiteley (2019). */
static void ssp(int n, const double *w, int m, const double *u,
                double *children) {
  int open = 0; /* the particle whose fraction is not rounded yet */
  double total = 0.0, p = 0.0;
  for (int i = 0; i < n; i++) {
    children[i] = floor(m * w[i]);
    total += children[i];
    double q = m * w[i] - children[i];
    if (i == 0) {
      p = q;
      continue;
    }
    double sum = p + q;
    if (sum < 1.0) { /* the loser is rounded down, the winner takes it all */
      bool open_wins = u[i] * sum < p || q == 0.0;
      open = open_wins ? open : i;
      p = sum;
    } else { /* the winner is rounded up, the loser keeps the rest */
      bool open_wins = u[i] * (2.0 - sum) < 1.0 - q;
      children[open_wins ? open : i] += 1.0;
      total += 1.0;
      open = open_wins ? i : open;
      p = sum - 1.0;
    }
  }
  /* The fraction left is 0 or 1 but for rounding, which may also have moved
   * the total: the particle left open makes up the difference. */
  children[open] += m - total;
  while (children[open] < 0.0) {
    int largest = 0;
    for (int i = 1; i < n; i++)
      if (children[i] > children[largest])
        largest = i;
    children[largest] -= 1.0;
    children[open] += 1.0;
  }
}

/* The whole parts of m w, and the rest multinomially in proportion to what
 * they leave. u: m + 1 uniforms; rest: n doubles of scratch. */
static void residual(int n, const double *w, int m, double *u, double *rest,
                     int *ancestors) {
  int kept = 0;
  double sum = 0.0;
  for (int i = 0; i < n; i++) {
    double whole = floor(m * w[i] + 1e-9); /* 49 * (1 / 49) is below 1 */
    for (int c = 0; c < (int)whole && kept < m; c++)
      ancestors[kept++] = i;
    rest[i] = fmax(m * w[i] - whole, 0.0);
    sum += rest[i];
  }
  if (kept == m)
    return;
  for (int i = 0; i < n; i++)
    rest[i] /= sum;
  sorted_uniforms(m - kept, u);
  invert(n, rest, m - kept, u, ancestors + kept);
}

static void sort_ascending(int m, int n, int *ancestors, double *count) {
  for (int i = 0; i < n; i++)
    count[i] = 0.0;
  for (int k = 0; k < m; k++)
    count[ancestors[k]] += 1.0;
  spread(n, count, ancestors);
}

/* the schemes ------------------------------------------------------------- */

size_t smc_resample_scratch(int n, int m) {
  return (size_t)n + (size_t)(n > m ? n : m) + 1;
}

void smc_resample(smc_resampling scheme, int n, const double *w, int m,
                  const smc_stream *stream, int *ancestors, double *scratch) {
  const uint32_t shared = 0; /* uniforms belong to no particle */
  double *children = scratch, *u = scratch + n;
  switch (scheme) {
  case SMC_RESAMPLE_SSP:
    smc_uniforms(stream, shared, n, u);
    ssp(n, w, m, u, children);
    spread(n, children, ancestors);
    return;
  case SMC_RESAMPLE_SYSTEMATIC:
    smc_uniforms(stream, shared, 1, u);
    for (int k = m - 1; k >= 0; k--)
      u[k] = (k + u[0]) / m;
    invert(n, w, m, u, ancestors);
    return;
  case SMC_RESAMPLE_STRATIFIED:
    smc_uniforms(stream, shared, m, u);
    for (int k = 0; k < m; k++)
      u[k] = (k + u[k]) / m;
    invert(n, w, m, u, ancestors);
    return;
  case SMC_RESAMPLE_RESIDUAL:
    smc_uniforms(stream, shared, m + 1, u);
    residual(n, w, m, u, children, ancestors);
    sort_ascending(m, n, ancestors, children);
    return;
  case SMC_RESAMPLE_MULTINOMIAL:
    smc_uniforms(stream, shared, m + 1, u);
    sorted_uniforms(m, u);
    invert(n, w, m, u, ancestors);
    return;
  }
}
