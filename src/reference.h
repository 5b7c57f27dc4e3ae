/* reference.h: where the path starts.
 *
 * A reference is a normalised density and its draws. Three kinds are densities
 * of the coordinates z: standard normal, standard Student t, and a mixture of
 * normals; the last is a callback like the target's, on the user's scale, with
 * draws that are given.
 */
#ifndef SMC_REFERENCE_H
#define SMC_REFERENCE_H

#include "rng.h"

#include <autosmc.h>
#include <stdbool.h>

typedef enum smc_reference_type {
  SMC_REFERENCE_NORMAL = 0,  /* N(0, I)                                     */
  SMC_REFERENCE_STUDENT = 1, /* multivariate t, location 0, scale I         */
  SMC_REFERENCE_MIXTURE = 2, /* normal distributions with weights           */
  SMC_REFERENCE_CALLBACK = 3
} smc_reference_type;

/* Component k is the distribution of mean_k + W_k^-1 e, where e ~ N(0, I). The
 * arrays are the caller's. */
typedef struct smc_mixture {
  int n;                 /* components                                      */
  const double *weights; /* n, positive, of sum 1                           */
  const double *means;   /* d x n                                           */
  const double *factors; /* d x d x n: the W, lower triangular with positive
                            diagonals, column-major                         */
} smc_mixture;

typedef struct smc_reference {
  smc_reference_type type;
  double df;                 /* of Student's t, positive                    */
  smc_mixture mixture;       /* of that                                     */
  autosmc_target_fn density; /* of a callback, and its context              */
  void *data;
  const double *draws; /* of a callback: d x N, in the coordinates z; the
                          caller's                                          */
} smc_reference;

/* Whether the density is one of the user's x, so that the chain of maps has to
 * take it back to z; else it is one of z. */
bool smc_reference_is_on_user_scale(const smc_reference *reference);

/* z: out, d x n, the draws of particles first, ..., first + n - 1; particle
 * k's depend on key and k alone. */
void smc_reference_sample(const smc_reference *reference, const uint32_t key[2],
                          int d, int first, int n, double *z);

/* Log densities at the n points `at`, and their gradients (d x n, or NULL).
 * Returns 0, or what the callback returned. */
int smc_reference_evaluate(const smc_reference *reference, int d, int n,
                           const double *at, double *log_q, double *grad);

#endif
