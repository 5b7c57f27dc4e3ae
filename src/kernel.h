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

/* What replaces K_0 in the time-correct backward kernel, at t = 1. */
typedef enum smc_first_backward {
  SMC_FIRST_REFERENCE = 0,  /* L_0 = q                                      */
  SMC_FIRST_INDEPENDENT = 1 /* the reference's own LMC kernel, with h_1     */
} smc_first_backward;

/* What the step size of a Metropolis-adjusted kernel is tuned for. */
typedef enum smc_adjusted_objective {
  SMC_OBJECTIVE_ESJD = 0,      /* expected squared jump distance            */
  SMC_OBJECTIVE_ACCEPTANCE = 1 /* a given mean acceptance                   */
} smc_adjusted_objective;

/* What the user chose for a kernel; each kernel reads what concerns it. */
typedef struct smc_kernel_options {
  smc_backward backward;             /* LMC                                */
  smc_first_backward first_backward; /* LMC, time-correct                  */
  smc_adjusted_objective objective;  /* MALA, RWMH, pCN, HMC                  */
  double target_acceptance;          /* the same: in (0, 1)                */
  int n_moves;                       /* the same: moves a step, >= 1       */
} smc_kernel_options;

/* One temperature and the parameters of the kernel there. */
typedef struct smc_level {
  double lambda;
  double step_size;     /* h > 0; NaN at t = 0                            */
  double refresh_rate;  /* rho in (0, 1]; NaN where it does not apply     */
  double log_step_size; /* filled in by smc_kernel_move(), since every
                           particle needs it                              */
} smc_level;

/* One move of a cloud from level t - 1 to level t. */
typedef struct smc_move {
  smc_path *path;
  const smc_kernel_options *options;
  int step;           /* t, from 1                                        */
  smc_level previous; /* level t - 1                                      */
  smc_level current;  /* level t                                          */
  const smc_cloud *from;
  smc_cloud *to;       /* out: the moved cloud; shares nothing with from */
  const double *noise; /* d x n standard normals; or NULL: each block has
                          them drawn from `stream`, into the scratch of
                          its thread                                    */
  smc_stream stream;
  double *drawn;         /* d x SMC_LARGEST_BLOCK for each thread          */
  const double *uniform; /* n, for acceptance; NULL in a trial            */
  double *log_g;         /* out: n log incremental weights, may be NaN;
                            not written by adjusted kernels. What propose()
                            leaves there is weigh()'s                     */
  double *acceptance;    /* out: n probabilities; adjusted kernels only   */
  bool trial; /* the tuner's: `to` is thrown away. Gradients that log_g does
                 not need are not asked of the target, and proposals are
                 left in `to`, accepted or not                            */
} smc_move;

typedef struct smc_kernel {
  const char *name;
  bool gradients; /* needs gradients                                       */
  bool refreshes; /* particles carry a velocity, refreshed at a rate        */
  bool adjusted;  /* Metropolis-adjusted, so invariant for level t: may be
                     repeated within a step, and fills `acceptance`. The
                     weight does not depend on the move: particles are weighed
                     by detailed balance, and resampled, before the move, so
                     that it parts duplicates and the tuner sees particles of
                     level t                                               */

  /* The two halves of a move of particle k, before and after it is evaluated:
   * where it goes, by its d normals, and what it weighs. Pure functions of what
   * they are given, on any thread, for several particles at once. */
  void (*propose)(const smc_move *m, int k, const double *noise);
  void (*weigh)(const smc_move *m, int k);

  /* Whether this move needs the gradients at `to`. NULL: as all do. */
  bool (*needs_gradients)(const smc_move *m);

  /* What the tuner minimises, of a trial that has been moved; may be NaN. */
  double (*objective)(const smc_move *m);
} smc_kernel;

extern const smc_kernel smc_kernel_lmc;
extern const smc_kernel smc_kernel_klmc;
extern const smc_kernel smc_kernel_mala;
extern const smc_kernel smc_kernel_rwmh;
extern const smc_kernel smc_kernel_pcn;
extern const smc_kernel smc_kernel_hmc;

/* The kernel of that name; NULL when there is none. */
const smc_kernel *smc_find_kernel(const char *name);

/* The arrays of a cloud that this kernel needs with this reference. */
smc_cloud_parts smc_kernel_parts(const smc_kernel *kernel,
                                 const smc_reference *reference);

/* Move the cloud: fills `to` and log_g with one evaluation of the target a
 * particle, and is a pure function of what it is given, so that the tuner
 * calls the very same one. Returns 0, or 1 when the target failed. */
int smc_kernel_move(const smc_kernel *kernel, const smc_move *m);

/* The incremental divergence up to a constant: minus the mean of log_g.
 * Particles that start where the target has density 0, as draws from the
 * reference may, are left out: most of them die at any step size, and would
 * dominate the mean. NaN when none is left. */
double smc_divergence(const smc_move *m);

/* log gamma_t(x) - log gamma_{t-1}(x) of particle k: the incremental weight
 * of a kernel against its reversal, where detailed balance holds. */
static inline double smc_detailed_balance(const smc_cloud *cloud, int k,
                                          double lambda_previous,
                                          double lambda) {
  return smc_annealed(cloud, k, lambda) -
         smc_annealed(cloud, k, lambda_previous);
}

#endif
