/* tuner.h: choose the parameters of the next move.
 *
 * At step t the incremental divergence between proposal and target path is
 * estimated on B particles, drawn in proportion to their weights, with noise
 * that is drawn once and kept (sample average approximation), and minimised
 * over the logarithm of the step size.
 */
#ifndef SMC_TUNER_H
#define SMC_TUNER_H

#include "kernel.h"
#include "minimize.h"
#include "resample.h"

typedef struct smc_tuner_options {
  int n_subsample;           /* B                                          */
  double regularization;     /* tau >= 0                                   */
  double step_size_guess;    /* > 0: where the search starts at t = 1      */
  double step_size_anchor;   /* > 0: what tau pulls h_1 towards            */
  smc_search_options search; /* over log h                                 */
} smc_tuner_options;

/* The tuner's memory; all arrays belong to the arena. */
typedef struct smc_tuner {
  const smc_tuner_options *options;
  smc_resampling resampling;
  smc_cloud from, to; /* B particles, and where they are moved to         */
  double *noise;      /* d x B                                            */
  double *log_g;      /* B                                                */
  int *ancestors;     /* B                                                */
  double *scratch;    /* for drawing B out of N                           */
} smc_tuner;

/* What came of the tuning of one step. */
typedef struct smc_tuning {
  double step_size;
  int n_evals; /* values of the objective, each B evaluations              */
  smc_search_status status;
} smc_tuning;

/* Lay out a tuner for clouds of n particles. */
void smc_tuner_layout(smc_tuner *tuner, smc_arena *arena, int d, int n,
                      bool velocities);

/* Tune the parameters of `current` for the step described by `m`, of which
 * path, options, step, previous and current.lambda are read.
 *
 *   key    in  the run's key
 *   cloud  in  the particles before the move
 *   w      in  their normalised weights
 *
 * status is SMC_SEARCH_FAILED when the target failed; every other status is
 * accompanied by a usable step size. */
smc_tuning smc_tune(smc_tuner *tuner, const smc_kernel *kernel, smc_move m,
                    const uint32_t key[2], const smc_cloud *cloud,
                    const double *w);

#endif
