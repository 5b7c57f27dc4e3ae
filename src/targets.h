/* targets.h: the built-in benchmark targets.
 *
 * Each is written as a user's own compiled target would be: an evaluation
 * routine of type autosmc_target_fn and, where it has data, an init routine
 * of type autosmc_init_fn (see autosmc.h). In every one of them
 *
 *   data  in/out  the context from the init routine; unused without one
 *   d     in      dimension of a point
 *   n     in      number of points
 *   x     in      d x n, column-major: one column a point; all finite
 *   logp  out     n log densities; overflow gives -Inf or NaN
 *   grad  out     d x n gradients, laid out as x; or NULL, then not computed
 *
 * and the result is 0; TARGET_BAD_DIM when d is not what the target or its data
 * have; or TARGET_NO_CONTEXT when there is an init routine that was not called.
 * Contexts and work space come from R_alloc(): nothing to release.
 */
#ifndef TARGETS_H
#define TARGETS_H

#include <stddef.h>

struct SEXPREC;

enum {
  TARGET_BAD_DIM = 1,    /* returned when d does not fit the target */
  TARGET_NO_CONTEXT = 2, /* returned when data is missing */
  TARGET_BLOCK = 128     /* points that share one matrix product */
};

#define TARGET_LOG_SQRT_2PI 0.918938533204672741780329736406

/* Column k (counted from 0) of a matrix with d rows. */
static inline size_t target_column(int d, int k) {
  return (size_t)d * (size_t)k;
}

/* Independent normals N(mean_i, sd_i^2), normalised.
 *   init: list(mean, sd): two double vectors of length d, sd > 0 */
void *target_gaussian_init(struct SEXPREC *data);
int target_gaussian(void *data, int d, int n, const double *x, double *logp,
                    double *grad);

/* Neal's funnel, normalised: x_1 ~ N(0, 3^2), x_i | x_1 ~ N(0, exp(x_1)).
 *   no init: any d >= 1, data is not used */
int target_funnel(void *data, int d, int n, const double *x, double *logp,
                  double *grad);

/* Latent Brownian motion with a gap in the observations.
 *   no init: d = 32 (30 positions, then the two raw scales) */
int target_brownian(void *data, int d, int n, const double *x, double *logp,
                    double *grad);

/* Bayesian logistic regression with a N(0, I) prior.
 *   init: list(x, y): m x d double matrix, m doubles that are 0 or 1 */
void *target_sonar_init(struct SEXPREC *data);
int target_sonar(void *data, int d, int n, const double *x, double *logp,
                 double *grad);

/* Log-Gaussian Cox process in whitened coordinates: f = chol x + mu.
 *   init: list(counts, chol, mu, area): d doubles, d x d double matrix of
 *         which the lower triangle is read, two doubles */
void *target_pines_init(struct SEXPREC *data);
int target_pines(void *data, int d, int n, const double *x, double *logp,
                 double *grad);

#endif
