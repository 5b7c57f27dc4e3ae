/* pareto.h: the weight of the tail of a sample, by a generalised Pareto
 * distribution of the excesses over a quantile.
 */
#ifndef SMC_PARETO_H
#define SMC_PARETO_H

typedef struct smc_pareto {
  double shape, scale;
} smc_pareto;

/* A value of the sample with its weight. */
typedef struct smc_weighted {
  double x, w;
} smc_weighted;

/* The distribution of n positive values in ascending order, whose weights have
 * the effective sample size n_draws (Zhang and Stephens, 2009). */
smc_pareto smc_fit_pareto(int n, const smc_weighted *excess, double n_draws);

/* The shape (Pareto k) of the upper tail of n values: the largest ones, with
 * this part of the weight. NaN if the tail has too few draws, is a single
 * value, or ends so early that the fitted distribution would do so with a
 * probability below `level`: a small separate mode is no tail. n_draws: the
 * effective sample size of all values. `values` is overwritten. */
double smc_tail_shape(int n, smc_weighted *values, double part, double n_draws,
                      double level);

#endif
