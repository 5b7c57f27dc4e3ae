/* r_border.h: what the files that speak with R share. */
#ifndef R_BORDER_H
#define R_BORDER_H

#define R_NO_REMAP
#define STRICT_R_HEADERS
#include <R.h>
#include <Rinternals.h>

#include "constrain.h"
#include "smc.h"

#include <autosmc_api.h>

/* The element of a named list; R_NilValue when there is none. */
SEXP r_element(SEXP list, const char *name);

/* A target, or a reference, as the border holds it, between the core and what R
 * was given. */
typedef struct r_target {
  SEXP evaluate; /* R function of (x, gradient), or R_NilValue             */
  SEXP on_step;  /* R function of (step, lambda, ess, log_z), called as steps
                    begin; ess and log_z are those of the step before      */
  const smc_trace *trace;
  int last_step; /* the step on_step was last told of                      */

  autosmc_target_fn native; /* C routine, or NULL                          */
  autosmc_release_fn release;
  void *context;
  int has_context; /* init has returned, release is owed                   */

  smc_bounds bounds; /* of the user's scale, which the core does not see   */
  double *x;         /* points on that scale, when there are bounds        */
} r_target;

/* Read the list that R's target_border() makes of a target, and make its
 * context, for at most n points at once. In memory of the caller's. */
void r_target_begin(r_target *target, SEXP list, int n, SEXP on_step,
                    const smc_trace *trace);

/* An autosmc_target_fn over an r_target: looks for an interrupt, tells R of
 * the step, and asks the target itself, on the user's scale. May leave by a
 * long jump. */
int r_target_evaluate(void *data, int d, int n, const double *u, double *logp,
                      double *grad);

/* Give the context back; safe to call at any time, and twice. */
void r_target_end(r_target *target);

/* A run and what it works with. The trace's arrays belong to R, those of the
 * state to R_alloc(). */
typedef struct r_run {
  smc_tuner_options tuner; /* config points here where there is tuning      */
  r_target reference;      /* path points here where R functions are given  */
  smc_config config;
  smc_path path;
  smc_trace trace;
  smc_state state;
} r_run;

/* Read the list that R's core_config() makes of a run in d dimensions, and lay
 * everything out. The list and the target stay in place, and the caller's,
 * until the run has ended. Returns the list that the trace is written to,
 * which the caller protects. */
SEXP r_run_begin(r_run *run, r_target *target, SEXP config, int d);

/* A list of n elements with names, all of them NULL. */
SEXP r_new_list(const char *const *names, int n);

/* out: the transpose (columns x rows) of a rows x columns matrix. */
void r_transpose(int rows, int columns, const double *in, double *out);

/* .Call entries */
SEXP r_smc_run(SEXP target, SEXP config, SEXP on_step);
SEXP r_evaluate(SEXP target, SEXP x, SEXP gradient);

/* The entry for C, an autosmc_run_fn. */
int r_api_run(autosmc_target_fn target, void *data,
              const autosmc_settings *settings, size_t settings_size,
              autosmc_result *result, size_t result_size);

#endif
