/* r_api.c: the run as the C code of other packages asks for it. */
#include "r_interface.h"

#include "vecmath.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

_Static_assert((int)AUTOSMC_OK == (int)SMC_OK &&
                   (int)AUTOSMC_TARGET_FAILED == (int)SMC_TARGET_FAILED &&
                   (int)AUTOSMC_ALL_DEAD == (int)SMC_ALL_DEAD,
               "a status of the core is handed on as it is");

/* settings ---------------------------------------------------------------- */

static SEXP reals_or_nil(const double *x, int n) {
  if (!x || n < 1)
    return R_NilValue;
  SEXP value = Rf_allocVector(REALSXP, n);
  memcpy(REAL(value), x, (size_t)n * sizeof(double));
  return value;
}

/* R checks the settings and fills in its defaults, so that there is one home
 * for both. Returns what r_run_begin() reads; or a string, which says what is
 * wrong. */
static SEXP checked_config(const autosmc_settings *s) {
  static const char *const names[] = {
      "kernel",      "d",      "n_particles", "n_steps",      "seed",
      "run",         "lambda", "step_size",   "refresh_rate", "reference_mean",
      "reference_sd"};
  SEXP list = PROTECT(r_new_list(names, sizeof names / sizeof names[0]));
  if (s->kernel)
    SET_VECTOR_ELT(list, 0, Rf_mkString(s->kernel));
  SET_VECTOR_ELT(list, 1, Rf_ScalarInteger(s->d));
  SET_VECTOR_ELT(list, 2, Rf_ScalarInteger(s->n_particles));
  SET_VECTOR_ELT(list, 3, Rf_ScalarInteger(s->n_steps));
  SET_VECTOR_ELT(list, 4, Rf_ScalarReal(s->seed));
  SET_VECTOR_ELT(list, 5, Rf_ScalarReal(s->run));
  SET_VECTOR_ELT(list, 6, reals_or_nil(s->lambda, s->n_steps));
  SET_VECTOR_ELT(list, 7, reals_or_nil(s->step_size, s->n_steps));
  SET_VECTOR_ELT(list, 8, reals_or_nil(s->refresh_rate, s->n_steps));
  SET_VECTOR_ELT(list, 9, reals_or_nil(s->reference_mean, s->d));
  SET_VECTOR_ELT(list, 10, reals_or_nil(s->reference_sd, s->d));
  SEXP config = r_call_package("api_config", list);
  UNPROTECT(1);
  return config;
}

/* results ----------------------------------------------------------------- */

static void copy_if_wanted(int n, const double *from, double *to) {
  if (to)
    memcpy(to, from, (size_t)n * sizeof(double));
}

static void take_arrays(const r_run *run, autosmc_result *result) {
  int n = run->config.n_particles, n_steps = run->config.n_steps;
  if (result->particles)
    smc_path_to_user(&run->path, n, run->state.cloud.x, result->particles);
  if (result->log_weights)
    smc_normalise_log(n, run->state.log_weights, result->log_weights);
  copy_if_wanted(n_steps, run->trace.step_size, result->step_size);
  copy_if_wanted(n_steps, run->trace.refresh_rate, result->refresh_rate);
}

static void take_outcome(const r_run *run, int status, autosmc_result *result) {
  const size_t size = sizeof result->message;
  result->n_evals = run->path.n_evals;
  result->step = run->trace.step;
  if (status == AUTOSMC_OK) {
    result->log_z = run->trace.log_z[run->config.n_steps - 1];
    take_arrays(run, result);
  } else if (status == AUTOSMC_TARGET_FAILED) {
    result->failure = run->path.failure;
    snprintf(result->message, size,
             "the target returned the code %d at step %d", result->failure,
             result->step);
  } else {
    result->log_z = -INFINITY;
    snprintf(result->message, size,
             "no particle is left at step %d: every weight is zero",
             result->step);
  }
}

/* the run ----------------------------------------------------------------- */

typedef struct api_call {
  autosmc_target_fn target;
  void *data;
  int d;
  SEXP config;
  autosmc_result *result;
  r_run run;
  int status;
} api_call;

static SEXP call_body(void *data) {
  api_call *c = data;
  r_run *run = &c->run;
  const void *memory = vmaxget();
  SEXP held =
      PROTECT(r_run_begin(run, R_NilValue, c->config, R_NilValue, c->d));
  if (held == R_NilValue) {
    snprintf(c->result->message, sizeof c->result->message,
             "the run takes %.3g bytes of memory, which R has not",
             run->needed);
  } else {
    run->target = (r_target){
        .evaluate = R_NilValue, .native = c->target, .contexts = &c->data};
    c->status = smc_run(&run->state, &run->path, &run->config, &run->trace);
    take_outcome(run, c->status, c->result);
  }
  UNPROTECT(1);
  vmaxset(memory);
  return R_NilValue;
}

static void call_cleanup(void *data, Rboolean jumped) {
  (void)jumped;
  smc_team_end(&((api_call *)data)->run.team);
}

static int run_configured(autosmc_target_fn target, void *data, int d,
                          SEXP config, autosmc_result *result) {
  api_call c = {.target = target,
                .data = data,
                .d = d,
                .config = config,
                .result = result,
                .status = AUTOSMC_BAD_SETTINGS};
  R_UnwindProtect(call_body, &c, call_cleanup, &c, NULL);
  return c.status;
}

int r_api_run(autosmc_target_fn target, void *data,
              const autosmc_settings *settings, size_t settings_size,
              autosmc_result *result, size_t result_size) {
  const size_t size = sizeof result->message;
  autosmc_settings known = {0};
  int status = AUTOSMC_BAD_SETTINGS;
  result->log_z = NAN;
  result->n_evals = 0.0;
  result->step = result->failure = 0;
  result->message[0] = '\0';
  if (settings_size > sizeof known || result_size > sizeof *result) {
    snprintf(result->message, size,
             "the caller was compiled for a later version of autosmc");
    return status;
  }
  memcpy(&known, settings, settings_size);
  SEXP config = PROTECT(checked_config(&known));
  if (Rf_isString(config))
    snprintf(result->message, size, "%s", CHAR(STRING_ELT(config, 0)));
  else
    status = run_configured(target, data, known.d, config, result);
  UNPROTECT(1);
  return status;
}
