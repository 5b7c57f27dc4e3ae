/* r_border.h: what the files that speak with R share. */
#ifndef R_BORDER_H
#define R_BORDER_H

#define R_NO_REMAP
#define STRICT_R_HEADERS
#include <R.h>
#include <Rinternals.h>

#include "smc.h"

/* The element of a named list; R_NilValue when there is none. */
SEXP r_element(SEXP list, const char *name);

/* A target as the border holds it, between the core and what R was given. */
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
} r_target;

/* Read the list that R's run_sampler() makes of a target, and make its
 * context. In memory of the caller's. */
void r_target_begin(r_target *target, SEXP list, SEXP on_step,
                    const smc_trace *trace);

/* An autosmc_target_fn over an r_target: looks for an interrupt, tells R of
 * the step, and asks the target itself. May leave by a long jump. */
int r_target_evaluate(void *data, int d, int n, const double *x, double *logp,
                      double *grad);

/* Give the context back; safe to call at any time, and twice. */
void r_target_end(r_target *target);

/* out: the transpose (columns x rows) of a rows x columns matrix. */
void r_transpose(int rows, int columns, const double *in, double *out);

/* .Call entries */
SEXP r_smc_run(SEXP target, SEXP config, SEXP on_step);
SEXP r_evaluate(SEXP target, SEXP x, SEXP gradient);

#endif
