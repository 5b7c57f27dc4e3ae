/* match.h: batch and match, which fits a normal distribution to the gradients
 * of a target at its draws (Cai et al., 2024).
 *
 * Points are rows here, n x d matrices by columns, as in R: the sums are over
 * points.
 */
#ifndef SMC_MATCH_H
#define SMC_MATCH_H

#include "arena.h"

/* N(mean, L L'). L: d x d, lower triangular with zeros above; or where it is
 * diagonal, that diagonal. */
typedef struct smc_gaussian {
  int d;
  bool is_diagonal;
  double *mean, *L;
} smc_gaussian;

/* How many doubles L has. */
static inline size_t smc_factor_size(int d, bool is_diagonal) {
  return is_diagonal ? (size_t)d : (size_t)d * (size_t)d;
}

double smc_log_det(const smc_gaussian *normal);

/* draws ------------------------------------------------------------------- */

/* What is needed for n points at a time, of d coordinates. */
typedef struct smc_match {
  int d, most; /* coordinates, and points at a time                           */
  bool is_diagonal;
  int rows;        /* of `slopes` so far                                      */
  double *slopes;  /* (d + most) x d: gradients, whose products add up to those
                      of all                                                  */
  double *squares; /* d x d: the sum of the products of points, and I; or where
                      is_diagonal, of these and of `slopes` the diagonal */
  double *work[2]; /* d x max(d, most); or d x most                        */
  double *points[2];  /* most x d: points and gradients                       */
  double *means[2];   /* d: of points and gradients                           */
  smc_gaussian inner; /* the match, in the coordinates of the normal          */
  double *scratch;
} smc_match;

smc_match smc_match_layout(smc_arena *arena, int d, int most, bool is_diagonal);

/* x: out, the points mean + L z; n <= most. */
void smc_draw(const smc_match *match, const smc_gaussian *normal, int n,
              const double *z, double *x);

/* g <- g L: gradients at points x as those in the coordinates z. */
void smc_pull_back(const smc_match *match, const smc_gaussian *normal, int n,
                   double *g);

/* squares: out, |z|^2 of n points z (n x d). */
void smc_squares(int n, int d, const double *z, double *squares);

/* The evidence lower bound: the mean of log target - log normal over n draws of
 * the normal, at which the target has these log densities, and its standard
 * error. If some draws have density 0, it is the bound by the normal truncated
 * to the support; -Inf and NaN if fewer than two draws are inside. */
typedef struct smc_elbo {
  double value, error;
} smc_elbo;

smc_elbo smc_elbo_of(int n, int d, const double *squares,
                     const double *log_density, double log_det);

/* Whether the first one is higher after its error is subtracted: the largest of
 * many noisy values is biased upwards. */
bool smc_elbo_is_better(smc_elbo one, smc_elbo other);

/* matches ----------------------------------------------------------------- */

/* Weighted points, which are some rows of matrices. */
typedef struct smc_points {
  int n;           /* how many                                              */
  size_t n_rows;   /* of the matrices                                       */
  const double *z; /* n_rows x d  the points                                */
  const double *g; /* n_rows x d  the gradients of the log target there     */
  const int *row;  /* n           their rows, from 1; NULL for the first n  */
  const double *w; /* n           their weights, of sum 1                   */
} smc_points;

/* Fits match->inner, a normal distribution, to points and gradients, starting
 * from N(0, I), of which less is left the larger lambda is. For a normal target
 * the fit is exact for any points, if there are more of them than dimensions;
 * without points it is N(0, I). Returns whether there is a fit. */
bool smc_match_points(smc_match *match, const smc_points *points,
                      double lambda);

/* The normal whose coordinates in `normal` are match->inner, which may be
 * diagonal where `normal` is not. */
void smc_compose(const smc_match *match, smc_gaussian *normal);

#endif
