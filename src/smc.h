/* smc.h: annealed sequential Monte Carlo with kernels tuned step by step. */
#ifndef SMC_SMC_H
#define SMC_SMC_H

#include "tuner.h"

/* What is to be run. Everything belongs to the caller. */
typedef struct smc_config {
  const smc_kernel *kernel;
  smc_kernel_options kernel_options;
  int d;
  int n_particles;      /* N                                             */
  int n_steps;          /* T                                             */
  double adaptive_ess;  /* when lambda is NULL: each temperature is the highest
                           that leaves this fraction of N as effective sample
                           size; for adjusted kernels                     */
  const double *lambda; /* T temperatures, rising to 1; or NULL          */
  const double *step_size;    /* T step sizes, or NULL to tune them           */
  const double *refresh_rate; /* T rates; read when step_size is given, for
                                 kernels that refresh */
  const smc_tuner_options *tuner; /* read when step_size is NULL           */
  smc_resampling resampling;
  double ess_threshold;    /* resample below this fraction of N             */
  uint32_t key[2];         /* seed, run                                     */
  double *const *matrices; /* memory of d x N doubles each for the matrices of
                              the particles, twice those of a cloud, so that
                              the caller can go on with them; or NULL: they
                              are in the arena                           */
} smc_config;

/* The course of the run, written step by step. Every array is the caller's
 * and has T elements; row t - 1 is step t. */
typedef struct smc_trace {
  double *lambda;
  double *step_size;
  double *refresh_rate; /* NaN where it does not apply                */
  double *acceptance;   /* mean over particles and moves; likewise    */
  double *lcb;          /* local communication barrier                       */
  double *length;       /* of the step along the path of temperatures        */
  double *ess;
  int *resampled;
  double *log_z; /* so far                                      */
  int *n_objective_evals;
  double *n_target_evals; /* of the step; step 1 has the initial ones    */
  int *tuner_status;      /* smc_search_status; -1 where nothing is tuned */
  int step;               /* under way: 0 for the start, then 1..T       */
  int n_done;             /* steps with a complete row                   */
} smc_trace;

typedef enum smc_status {
  SMC_OK = 0,
  SMC_TARGET_FAILED = 1, /* path->failure has the target's return code     */
  SMC_ALL_DEAD = 2       /* every weight became zero at trace->step         */
} smc_status;

/* The particles and the memory of a run; all arrays belong to the arena. */
typedef struct smc_state {
  smc_cloud cloud; /* at the end: the final particles                */
  smc_cloud next;  /* where they are moved or resampled to           */
  smc_tuner tuner;
  double *log_weights; /* N, unnormalised                                 */
  double *weights;     /* N, normalised                                  */
  double log_sum;      /* log of the sum of those that are not           */
  double *log_g;       /* N                                              */
  double *uniform;     /* N, for adjusted kernels                        */
  double *acceptance;  /* N, likewise                                    */
  double *drawn; /* d x SMC_LARGEST_BLOCK for each thread: normals of a block */
  int *ancestors;  /* N                                              */
  int *origins;    /* N: from which of the first particles each descends     */
  double *scratch; /* for resampling, and the weights from before a step */
  double log_z;    /* up to the last resampling                      */
  double pace;     /* of gathering those resampled: see parallel.h   */
} smc_state;

/* Lay out the memory of a run, and of its path, whose reference is there
 * already. Called twice: see arena.h. */
void smc_layout(smc_state *state, smc_path *path, const smc_config *config,
                smc_arena *arena);

/* Run. The target may leave by a long jump at any evaluation: nothing is held
 * here but the arena. */
smc_status smc_run(smc_state *state, smc_path *path, const smc_config *config,
                   smc_trace *trace);

#endif
