/* kernel.h: what a Markov kernel is to the sampler.
 *
 * A kernel is one const struct in one file. To add one: write kernel_NAME.c,
 * declare its struct here, and add it to the table in kernel.c.
 */
#ifndef SMC_KERNEL_H
#define SMC_KERNEL_H

#include "path.h"

/* Which normalised kernel L_{t-1}(x_t, .) LMC is weighed against. */
typedef enum smc_backward {
  SMC_BACKWARD_TIME_CORRECT = 0,    /* K_{t-1}, with h_{t-1} and g_{t-1}    */
  SMC_BACKWARD_FORWARD = 1,         /* K_t, with h_t and g_t                */
  SMC_BACKWARD_DETAILED_BALANCE = 2 /* the reversal of K_t; biased          */
} smc_backward;

/* What the user chose for a kernel; each kernel reads what concerns it. */
typedef struct smc_kernel_options {
  smc_backward backward; /* LMC */
} smc_kernel_options;

/* One temperature and the parameters of the kernel there. */
typedef struct smc_level {
  double lambda;
  double step_size; /* h > 0; NaN at t = 0                             */
} smc_level;

/* One move of a cloud from level t - 1 to level t. */
typedef struct smc_move {
  smc_path *path;
  const smc_kernel_options *options;
  int step;           /* t, from 1                                        */
  smc_level previous; /* level t - 1                                      */
  smc_level current;  /* level t                                          */
  const smc_cloud *from;
  smc_cloud *to;       /* out: the moved cloud; shares nothing with from  */
  const double *noise; /* d x n standard normals                          */
  double *log_g;       /* out: n log incremental weights, may be NaN      */
  bool weights_only;   /* log_g is all that is wanted: `to` is thrown away
                          and gradients at it that log_g does not need are
                          not asked of the target                         */
} smc_move;

typedef struct smc_kernel {
  const char *name;
  bool velocities; /* particles carry a velocity */

  /* Move the cloud: fills `to` and log_g with one evaluation of the target a
   * particle, and is a pure function of what it is given, so that the tuner
   * calls the very same one. Returns 0, or 1 when the target failed. */
  int (*move)(const smc_move *m);
} smc_kernel;

extern const smc_kernel smc_kernel_lmc;

/* The kernel of that name; NULL when there is none. */
const smc_kernel *smc_find_kernel(const char *name);

#endif
