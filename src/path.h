/* path.h: from the reference to the target, and the only caller of a target.
 *
 * Particles live in coordinates z in which the reference is q(z) = N(0, I);
 * the target's own are x = mean + L z, with L diagonal or lower triangular. A
 * Gaussian reference other than N(0, I) is this change of coordinates and
 * nothing else: kernels and tuner do not know of it, and it preconditions them
 * for free. A reference with driven coordinates is x = mean + L u(z): see
 * driven.h.
 *
 * A reference that is not Gaussian is a callback like the target's, with draws
 * that are given; then z = x.
 */
#ifndef SMC_PATH_H
#define SMC_PATH_H

#include "cloud.h"
#include "driven.h"
#include "rng.h"

#include <autosmc.h>

typedef struct smc_path {
  autosmc_target_fn target;
  void *data;         /* context of the target; the caller's              */
  int d;              /* dimension                                        */
  const double *mean; /* d, of the reference; NULL for N(0, I)            */
  const double *sd;   /* d, the diagonal of L, positive; or NULL          */
  const double *chol; /* d x d, L in its lower triangle; or NULL          */
  const double *chol_transposed; /* d x d, its transpose                  */
  smc_driven driven;             /* only when mean is given               */
  double *mapped; /* scratch, d x (largest cloud), when mean is given */
  double *packed; /* scratch for products with L, when chol is given  */
  autosmc_target_fn reference; /* normalised; NULL for a Gaussian       */
  void *reference_data;        /* its context                            */
  const double *start; /* d x N, its draws; read with reference only      */
  double *log_q;       /* scratch, (largest cloud), likewise              */
  double n_evals;      /* evaluations of the target so far                 */
  int failure;         /* the return code of a callback, when not 0         */
  void (*pause)(void *data); /* called between the parts of a step: may leave
                         by a long jump; NULL for none                    */
} smc_path;

/* Scratch for clouds of at most n particles. */
void smc_path_layout(smc_path *path, smc_arena *arena, int n);

/* Fill cloud->x with draws from the reference, and velocities, where there are
 * any, from N(0, I). */
void smc_path_sample(const smc_path *path, const uint32_t key[2],
                     smc_cloud *cloud);

/* Fill the densities, and when asked the gradients, at cloud->x, with
 * cloud->n evaluations of the target in one call. Returns 0, or 1 when the
 * target or the reference failed (path->failure says how).
 *
 * What is not finite becomes harmless here: such a log density, or one so low
 * that it would drown all others, becomes -Inf (that of the reference takes the
 * target's with it), and a gradient with such an entry becomes zero (the kernel
 * that uses it is then another one at that point, but still a normalised one).
 * A particle whose own position has overflowed is put to the origin with log
 * densities -Inf, so that it counts as an evaluation and the target never sees
 * NaN. */
int smc_path_evaluate(smc_path *path, smc_cloud *cloud, bool gradients);

/* out: n points of the target's own coordinates, for the d x n points z. */
void smc_path_to_user(const smc_path *path, int n, const double *z,
                      double *out);

/* log gamma_t of particle i. At the ends of the path one density alone is
 * used, never 0 * (-Inf). */
static inline double smc_annealed(const smc_cloud *c, int i, double lambda) {
  if (lambda == 0.0)
    return c->log_q[i];
  if (lambda == 1.0)
    return c->log_p[i];
  return (1.0 - lambda) * c->log_q[i] + lambda * c->log_p[i];
}

/* Coordinate j (counted over all particles) of the gradient of log gamma_t. */
static inline double smc_annealed_gradient(const smc_cloud *c, size_t j,
                                           double lambda) {
  return (1.0 - lambda) * c->grad_q[j] + lambda * c->grad_p[j];
}

#endif
