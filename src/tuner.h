/* tuner.h: choose the parameters of the next move.
 *
 * At step t the kernel's objective (for the unadjusted ones, the incremental
 * divergence between proposal and target path) is estimated on B particles,
 * drawn in proportion to their weights, with noise that is drawn once and kept
 * (sample average approximation), and minimised over the logarithm of the step
 * size; for kernels that refresh, by coordinate descent over that and a grid of
 * refreshment rates.
 */
#ifndef SMC_TUNER_H
#define SMC_TUNER_H

#include "kernel.h"
#include "minimize.h"
#include "resample.h"

#define SMC_MAX_REFRESH_GRID 16

typedef struct smc_tuner_options {
  int n_subsample;            /* B                                          */
  double regularization;      /* tau >= 0                                   */
  double step_size_guess;     /* > 0: where the search starts at t = 1      */
  double step_size_anchor;    /* > 0: what tau pulls h_1 towards            */
  int n_refresh;              /* length of the grid, 1 to the maximum       */
  const double *refresh_grid; /* rates in (0, 1], the first tried first; one
                                NaN for kernels that do not refresh        */
  smc_search_options search;  /* over log h                                 */
} smc_tuner_options;

/* The tuner's memory; all arrays belong to the arena. */
typedef struct smc_tuner {
  const smc_tuner_options *options;
  smc_resampling resampling;
  smc_cloud from, to; /* B particles, and where they are moved to         */
  double *noise;      /* d x B                                            */
  double *log_g;      /* B                                                */
  double *acceptance; /* B                                                */
  int *ancestors;     /* B                                                */
  double *scratch;    /* for drawing B out of N                           */
} smc_tuner;

/* What came of the tuning of one step. */
typedef struct smc_tuning {
  double step_size;
  double refresh_rate;
  int n_evals; /* values of the objective, each B evaluations              */
  smc_search_status status;
} smc_tuning;

/* Lay out a tuner for clouds of n particles with these parts. */
void smc_tuner_layout(smc_tuner *tuner, smc_arena *arena, smc_cloud_parts parts,
                      int d, int n);

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
