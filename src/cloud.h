/* cloud.h: particles, with what is known of the densities at each of them. */
#ifndef SMC_CLOUD_H
#define SMC_CLOUD_H

#include "arena.h"

#include <stdbool.h>

/* All matrices are d x n, column-major: one column a particle. The arrays
 * belong to the arena they were laid out in. Log densities and gradients of
 * target and reference are kept side by side, so that every temperature
 * between the two is a linear combination of what is here. */
typedef struct smc_cloud {
  int d, n;
  double *x;      /* d x n  positions                                  */
  double *v;      /* d x n  velocities; NULL for kernels without       */
  double *grad_p; /* d x n  gradients of the log target; NULL likewise   */
  double *grad_q; /* d x n  gradients of the log reference; NULL also
                            where these are -x, those of N(0, I)         */
  double *log_p;  /* n      log target, finite or -Inf                 */
  double *log_q;  /* n      log reference                              */
} smc_cloud;

/* What is kept of particles beside their positions and log densities. */
typedef struct smc_cloud_parts {
  bool velocities, grad_p, grad_q;
} smc_cloud_parts;

/* Lay out a cloud of n particles with these. matrices: the caller's memory for
 * its matrices, as many as smc_cloud_matrices() says, or NULL: then they are in
 * the arena, as all else is. */
smc_cloud smc_cloud_layout(smc_arena *arena, int d, int n,
                           smc_cloud_parts parts, double *const *matrices);

int smc_cloud_matrices(smc_cloud_parts parts);

/* The particles first, ..., first + n - 1, in the same memory. */
smc_cloud smc_cloud_part(const smc_cloud *cloud, int first, int n);

/* Copy the particles from[index[k]] to to[k], k = 0..to->n - 1, with all that
 * is kept beside them. The clouds must not share memory. */
void smc_cloud_gather(const smc_cloud *from, const int *index, smc_cloud *to);

/* Copy particle k from one cloud to the same place in another, but for its
 * velocity. */
void smc_cloud_copy(const smc_cloud *from, int k, smc_cloud *to);

/* Exchange two clouds of the same shape. */
void smc_cloud_swap(smc_cloud *a, smc_cloud *b);

#endif
