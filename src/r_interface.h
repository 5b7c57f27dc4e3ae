/* r_interface.h: what the files of the interface to R share. */
#ifndef R_INTERFACE_H
#define R_INTERFACE_H

#define R_NO_REMAP
#define STRICT_R_HEADERS
#include <R.h>
#include <Rinternals.h>

#include "smc.h"

#include <autosmc_api.h>

/* R's objects ---------------------------------------------------------------
 */

/* The element of a named list; R_NilValue when there is none. */
SEXP r_element(SEXP list, const char *name);

/* A list of n elements with names, all of them NULL. */
SEXP r_new_list(const char *const *names, int n);

/* Names for the columns of a matrix; R_NilValue for none. */
void r_name_columns(SEXP x, SEXP names);

/* out: the transpose (columns x rows) of a rows x columns matrix. */
void r_transpose(int rows, int columns, const double *in, double *out);

/* The same of such a matrix that is part of one with in_rows rows, and into a
 * part of one with out_rows. */
void r_transpose_part(int rows, int columns, const double *in, int in_rows,
                      double *out, int out_rows);

/* Call a function of the package's namespace with one argument. The result is
 * not protected. */
SEXP r_call_package(const char *function, SEXP argument);

/* An R error: so many bytes of memory cannot be allocated. */
void r_lack_memory(double bytes);

/* A vector of numbers, or of bytes; R_NilValue when R has no memory for it. Not
 * protected. */
SEXP r_try_allocate(SEXPTYPE type, double length);

/* targets ------------------------------------------------------------------ */

/* A target, or a reference, between the core and what R was given. */
typedef struct r_target {
  SEXP evaluate; /* R function of (x, gradient), or R_NilValue             */
  autosmc_target_fn native; /* else a C routine                            */
  autosmc_release_fn release;
  void (*settle)(void *context); /* called on the main thread, after all calls
                                    for some points, by a Stan program: all
                                    threads have the same context. Or NULL */
  void **contexts; /* one for each thread that may call it; NULL in it
                      where there is no init                               */
  int n_contexts;  /* for which init has returned, and release is owed     */
  smc_team *team;  /* the caller's, where it may be called from several
                      threads; else NULL                                   */
  double pace;     /* see parallel.h                                       */
  double n_calls;  /* of the user's function, by what `evaluate` says of them */
} r_target;

/* Read the list that R's target_interface() makes of a target, and make its
 * contexts, for the threads of a team if it may be called from several. May
 * leave by a long jump. */
void r_target_begin(r_target *target, SEXP list, smc_team *team);

/* An autosmc_target_fn over an r_target, on the threads of its team. May leave
 * by a long jump. */
int r_target_evaluate(void *data, int d, int n, const double *x, double *logp,
                      double *grad);

/* Give the contexts back; safe to call at any time, and twice. */
void r_target_end(r_target *target);

/* maps --------------------------------------------------------------------- */

/* The chain of a list of maps, in order from z to the unconstrained scale, and
 * then the bounds in a target's list, if there are any. The parameters stay
 * R's. */
smc_chain r_read_chain(SEXP maps, SEXP target_list, int d);

/* Memory of R's for n points, and scratch for so many threads. */
void r_lay_out_chain(smc_chain *chain, int n, int n_threads);

/* runs --------------------------------------------------------------------- */

/* A run and what it works with. The trace's arrays and the memory of path and
 * state belong to R. */
typedef struct r_run {
  smc_tuner_options tuner; /* config points here where there is tuning     */
  r_target target;         /* path points here                             */
  r_target reference;      /* and here where R functions are given         */
  smc_config config;
  smc_team team; /* path points here                                         */
  smc_path path;
  smc_trace trace;
  smc_state state;
  double *matrices[8]; /* those of two clouds; config points here too  */
  SEXP matrix_list;    /* the vectors of R that they are               */
  SEXP trace_list;     /* of trace, as R sees it                       */
  SEXP on_step;        /* R function of (step, lambda, ess, log_z), called as
                          steps begin; ess and log_z are those of the step
                          before. Or R_NilValue                                  */
  int last_step; /* the step on_step was last told of                      */
  double needed; /* bytes of work space                                    */
} r_run;

/* Read the list that R's core_config() makes of a run in d dimensions, and lay
 * everything out; the target is still to begin, and the team is the caller's to
 * end, also after a long jump. The lists stay the caller's,
 * and the run where it is, until it has ended. Returns an object that holds the
 * run's memory, which the caller protects; R_NilValue when R has not as much.
 */
SEXP r_run_begin(r_run *run, SEXP target_list, SEXP config, SEXP on_step,
                 int d);

/* .Call entries */
SEXP r_smc_run(SEXP target, SEXP config, SEXP on_step);
SEXP r_evaluate(SEXP target, SEXP x, SEXP gradient, SEXP threads);
SEXP r_chain(SEXP maps, SEXP x, SEXP g, SEXP back, SEXP threads);
SEXP r_precision_pivots(SEXP map, SEXP x);
SEXP r_at_each_point(SEXP call, SEXP env, SEXP x, SEXP names);
SEXP r_bind_points(SEXP values, SEXP n_columns);
SEXP r_multiply(SEXP a, SEXP b);
SEXP r_multiply_rows(SEXP x, SEXP rows, SEXP centre, SEXP b);
SEXP r_cross_product(SEXP a, SEXP b);
SEXP r_put_rows(SEXP x, SEXP first, SEXP y);
SEXP r_with_room(SEXP x, SEXP n);
SEXP r_sweep(SEXP x, SEXP by, SEXP op);
SEXP r_scaled_rows(SEXP x, SEXP rows, SEXP centre, SEXP w);
SEXP r_weighted_sums(SEXP x, SEXP w, SEXP squared, SEXP centre, SEXP rows);
SEXP r_weighty_rows(SEXP log_weights, SEXP least);
SEXP r_concentration(SEXP x, SEXP groups);
SEXP r_number_groups(SEXP groups);
SEXP r_t_values(SEXP x, SEXP y, SEXP w, SEXP group, SEXP rows);
SEXP r_climb(SEXP evaluate, SEXP at, SEXP most_evals, SEXP tolerance);
SEXP r_normals_along(SEXP evaluate, SEXP paths, SEXP most, SEXP draws,
                     SEXP diagonal);
SEXP r_normal_factor(SEXP path, SEXP point, SEXP diagonal);
SEXP r_refine(SEXP evaluate, SEXP normals, SEXP draws, SEXP batches,
              SEXP diagonal);
SEXP r_match_normal(SEXP z, SEXP g, SEXP w, SEXP lambda, SEXP rows,
                    SEXP diagonal);
SEXP r_bridge(SEXP log_y, SEXP log_x, SEXP w, SEXP origins, SEXP islands);
SEXP r_tail_shapes(SEXP x, SEXP rows, SEXP w, SEXP n_draws, SEXP part,
                   SEXP level, SEXP both);
SEXP r_carries_gradient(SEXP values);
SEXP r_file_of_routine(SEXP address);
SEXP r_hash(SEXP bytes);
SEXP r_data_or_null(SEXP x);
SEXP r_bridgestan_describe(SEXP data);
SEXP r_bridgestan_outputs(SEXP data, SEXP x, SEXP blocks);
SEXP r_bridgestan_why(SEXP data, SEXP x);

/* The routines of a target of BridgeStan's, as autosmc.h has them. */
int target_bridgestan(void *context, int d, int n, const double *x,
                      double *logp, double *grad);
void *target_bridgestan_init(SEXP data);
void target_bridgestan_release(void *context);

/* The entry for C, an autosmc_run_fn. */
int r_api_run(autosmc_target_fn target, void *data,
              const autosmc_settings *settings, size_t settings_size,
              autosmc_result *result, size_t result_size);

#endif
