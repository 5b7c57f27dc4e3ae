/* autosmc_api.h: run the sampler from the C or C++ code of another package.
 *
 * In the package's DESCRIPTION stand `Imports: autosmc` and `LinkingTo:
 * autosmc`, and in its NAMESPACE something imported from autosmc, so that it
 * is loaded. The one function is autosmc_run(), at the end of this file.
 *
 * Later versions may add fields at the end of the structs, and nothing else.
 * Set them to zero before use (`= {0}` in C, `= {}` in C++): zero is the
 * default of every such field, so that code that was compiled against an
 * older header runs unchanged.
 */
#ifndef AUTOSMC_API_H
#define AUTOSMC_API_H

#include "autosmc.h"

#include <R_ext/Rdynload.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is to be run. All of it is read only, belongs to the caller, and is
 * not kept. What is not named here is as it is by default in R's smc(). */
typedef struct autosmc_settings {
  const char *kernel;   /* "klmc", "hmc", "lmc", "mala", "rwmh" or "pcn"     */
  int d;                /* dimension of a point, at least 1                 */
  int n_particles;      /* at least 2                                       */
  int n_steps;          /* at least 1                                       */
  uint32_t seed;        /* fixes, together with run, all randomness         */
  uint32_t run;         /* tells the runs of a seed apart: smc() has 1, 2, ...
                           for its islands and 2^31, ... for its rounds     */
  const double *lambda; /* n_steps temperatures that rise to 1; NULL for
                           (t / n_steps)^2, t = 1, ..., n_steps             */
  const double *step_size;      /* n_steps, positive; NULL to tune them, which
                                   makes log_z a biased estimate            */
  const double *refresh_rate;   /* n_steps, in (0, 1]: for "klmc", and with
                                   step_size only; NULL otherwise           */
  const double *reference_mean; /* d; NULL for zeros                        */
  const double *reference_sd;   /* d, positive; NULL for ones               */
} autosmc_settings;

/* What comes of it. The arrays are the caller's memory, or NULL where one is
 * not wanted; they are written when the run is AUTOSMC_OK, and only then. */
typedef struct autosmc_result {
  double *particles;    /* d x n_particles, column-major: one column a draw */
  double *log_weights;  /* n_particles; their exponentials sum to one       */
  double *step_size;    /* n_steps: those of the run, given or tuned        */
  double *refresh_rate; /* n_steps; NaN for kernels that have none          */

  double log_z;   /* out: log evidence; -Inf when AUTOSMC_ALL_DEAD, NaN after
                     any other failure                                      */
  double n_evals; /* out: points at which the target was evaluated          */
  int step;       /* out: the step reached: 0 at the draws from the
                     reference, n_steps at the end                          */
  int failure;    /* out: what the target returned, if not 0                */
  char message[256]; /* out: what went wrong, in words; "" if nothing       */
} autosmc_result;

/* How a run ended. */
enum {
  AUTOSMC_OK = 0,
  AUTOSMC_TARGET_FAILED = 1, /* the target returned another value than 0    */
  AUTOSMC_ALL_DEAD = 2,      /* no particle is left with a weight above 0   */
  AUTOSMC_BAD_SETTINGS = 3   /* nothing was run; also where R has not the
                                memory that it takes                       */
};

/* What is registered under the name "autosmc_run". The sizes are those of the
 * structs as the caller was compiled with them. */
typedef int (*autosmc_run_fn)(autosmc_target_fn target, void *data,
                              const autosmc_settings *settings,
                              size_t settings_size, autosmc_result *result,
                              size_t result_size);

/* One run of the sampler on a target.
 *
 *   target    in      evaluates the log density: see autosmc.h
 *   data      in/out  the target's context, handed on to it; or NULL
 *   settings  in      what is to be run
 *   result    in/out  the arrays to be filled; then the estimate
 *
 * Returns one of the values above. To be called on R's main thread. Memory is
 * R's and given back before the return. Failures are returned; by a long jump
 * over the caller leave only the user's interrupt, an R error that the target
 * itself raises, and R running out of memory. A caller that holds what R
 * cannot free (memory from malloc(), C++ objects with destructors) calls by
 * way of R_UnwindProtect().
 */
static inline int autosmc_run(autosmc_target_fn target, void *data,
                              const autosmc_settings *settings,
                              autosmc_result *result) {
  autosmc_run_fn run =
      (autosmc_run_fn)(void (*)(void))R_GetCCallable("autosmc", "autosmc_run");
  return run(target, data, settings, sizeof *settings, result, sizeof *result);
}

#ifdef __cplusplus
}
#endif

#endif
