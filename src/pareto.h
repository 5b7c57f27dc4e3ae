/* pareto.h: whether the tail of a sample falls like a power, by a generalised
 * Pareto distribution of what exceeds a quantile.
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

/* The distribution of n positive values in ascending order, with weights that
 * are worth so many draws (Zhang and Stephens, 2009). */
smc_pareto smc_fit_pareto(int n, const smc_weighted *excess, double n_draws);

/* The shape of the upper tail of n values, which are the part of this weight
 * that is largest. NaN for one of too few draws, for one that is a single
 * value, and for one that ends before such a distribution does, with less
 * chance than `level`: a small mode apart is no tail. n_draws: how many draws
 * all values are worth. What is in `values` is not kept. */
double smc_tail_shape(int n, smc_weighted *values, double part, double n_draws,
                      double level);

#endif
