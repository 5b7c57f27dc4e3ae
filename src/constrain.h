/* constrain.h: bounded variables as variables on the whole line.
 *
 * The sampler sees u, the user x, each d x n, column-major:
 *   no bound    x = u
 *   lower       x = lower + exp(u)
 *   upper       x = upper - exp(u)
 *   both        x = lower + (upper - lower) / (1 + exp(-u))
 */
#ifndef SMC_CONSTRAIN_H
#define SMC_CONSTRAIN_H

typedef struct smc_bounds {
  const double *lower; /* d, -Inf for none; NULL when no variable is bounded */
  const double *upper; /* d, Inf for none; likewise                          */
} smc_bounds;

/* x(u); x may be u. What rounding would put on a bound or beyond it, u = NaN
 * among it, becomes the nearest number inside. */
void smc_constrain(smc_bounds bounds, int d, int n, const double *u, double *x);

/* u(x), with the same care; u may be x. */
void smc_unconstrain(smc_bounds bounds, int d, int n, const double *x,
                     double *u);

/* Take log densities and gradients (or NULL) at x(u) over to u: logp gains the
 * log Jacobian, grad becomes that in u. Where x(u) would overflow logp becomes
 * -Inf. */
void smc_pull_back(smc_bounds bounds, int d, int n, const double *u,
                   double *logp, double *grad);

#endif
