/* api_test.c: autosmc_run() as R tests it, with anything for settings. */
#define R_NO_REMAP
#include <Rinternals.h>
#include <autosmc_api.h>

#include <math.h>
#include <string.h>

/* a target ---------------------------------------------------------------- */

enum mode { NORMAL, IMPOSSIBLE, RETURN_CODE, RAISE_ERROR };

typedef struct target {
  enum mode mode;
  int calls_left; /* before it does what mode says */
} target;

/* exp(-|x - 1|^2 / 2), while all goes well */
static int evaluate(void *data, int d, int n, const double *x, double *logp,
                    double *grad) {
  target *t = data;
  enum mode mode = t->calls_left-- > 0 ? NORMAL : t->mode;
  if (mode == RETURN_CODE)
    return 42;
  if (mode == RAISE_ERROR)
    Rf_error("raised by the target");
  for (int k = 0; k < n; k++) {
    logp[k] = mode == IMPOSSIBLE ? -INFINITY : 0.0;
    for (int i = 0; i < d; i++) {
      double r = x[i + d * k] - 1.0;
      logp[k] -= 0.5 * r * r;
      if (grad)
        grad[i + d * k] = -r;
    }
  }
  return 0;
}

/* the call ---------------------------------------------------------------- */

static SEXP element(SEXP list, const char *name) {
  SEXP names = Rf_getAttrib(list, R_NamesSymbol);
  for (int i = 0; i < Rf_length(list); i++)
    if (strcmp(CHAR(STRING_ELT(names, i)), name) == 0)
      return VECTOR_ELT(list, i);
  return R_NilValue;
}

static const double *reals(SEXP list, const char *name) {
  SEXP value = element(list, name);
  return value == R_NilValue ? NULL : REAL(value);
}

static autosmc_settings read_settings(SEXP list) {
  autosmc_settings s = {0};
  SEXP kernel = element(list, "kernel");
  s.kernel = kernel == R_NilValue ? NULL : CHAR(Rf_asChar(kernel));
  s.d = Rf_asInteger(element(list, "d"));
  s.n_particles = Rf_asInteger(element(list, "n_particles"));
  s.n_steps = Rf_asInteger(element(list, "n_steps"));
  s.seed = (uint32_t)Rf_asReal(element(list, "seed"));
  s.run = (uint32_t)Rf_asReal(element(list, "run"));
  s.lambda = reals(list, "lambda");
  s.step_size = reals(list, "step_size");
  s.refresh_rate = reals(list, "refresh_rate");
  s.reference_mean = reals(list, "reference_mean");
  s.reference_sd = reals(list, "reference_sd");
  return s;
}

/* settings: a list named as the fields of autosmc_settings are; mode: c(what
 * the target does, from which call on). Arrays begin as -1. Returns
 * list(status, log_z, n_evals, step, failure, message, particles, log_weights,
 * step_size, refresh_rate). */
SEXP api_test(SEXP settings, SEXP mode) {
  target t = {(enum mode)INTEGER(mode)[0], INTEGER(mode)[1]};
  autosmc_settings s = read_settings(settings);
  autosmc_result r = {0};
  double **arrays[] = {&r.particles, &r.log_weights, &r.step_size,
                       &r.refresh_rate};
  int d = s.d > 0 ? s.d : 1, n = s.n_particles > 0 ? s.n_particles : 1;
  int n_steps = s.n_steps > 0 ? s.n_steps : 1;
  int sizes[] = {d * n, n, n_steps, n_steps};
  SEXP out = PROTECT(Rf_allocVector(VECSXP, 10));
  for (int i = 0; i < 4; i++) {
    SET_VECTOR_ELT(out, 6 + i, Rf_allocVector(REALSXP, sizes[i]));
    *arrays[i] = REAL(VECTOR_ELT(out, 6 + i));
    for (int j = 0; j < sizes[i]; j++)
      (*arrays[i])[j] = -1.0;
  }
  SET_VECTOR_ELT(out, 0, Rf_ScalarInteger(autosmc_run(evaluate, &t, &s, &r)));
  SET_VECTOR_ELT(out, 1, Rf_ScalarReal(r.log_z));
  SET_VECTOR_ELT(out, 2, Rf_ScalarReal(r.n_evals));
  SET_VECTOR_ELT(out, 3, Rf_ScalarInteger(r.step));
  SET_VECTOR_ELT(out, 4, Rf_ScalarInteger(r.failure));
  SET_VECTOR_ELT(out, 5, Rf_mkString(r.message));
  UNPROTECT(1);
  return out;
}

/* other versions ---------------------------------------------------------- */

/* A run by a caller whose structs are so many bytes longer than here, with no
 * arrays of results. The settings have no room for the last field, so that one
 * that is shorter by it must not have it read. Returns list(status, message,
 * log_z). */
SEXP api_test_sizes(SEXP settings, SEXP more) {
  target t = {NORMAL, 0};
  autosmc_settings s = read_settings(settings);
  autosmc_result r = {0};
  autosmc_run_fn run =
      (autosmc_run_fn)(void (*)(void))R_GetCCallable("autosmc", "autosmc_run");
  double poison = NAN;
  s.reference_sd = &poison;
  int status = run(evaluate, &t, &s, sizeof s + INTEGER(more)[0], &r,
                   sizeof r + INTEGER(more)[1]);
  SEXP out = PROTECT(Rf_allocVector(VECSXP, 3));
  SET_VECTOR_ELT(out, 0, Rf_ScalarInteger(status));
  SET_VECTOR_ELT(out, 1, Rf_mkString(r.message));
  SET_VECTOR_ELT(out, 2, Rf_ScalarReal(r.log_z));
  UNPROTECT(1);
  return out;
}
