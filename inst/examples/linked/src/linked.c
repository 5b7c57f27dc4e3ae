/* linked.c: a target in C, and a run of the sampler from C. */
#define R_NO_REMAP
#include <Rinternals.h>
#include <autosmc_api.h>

#include <math.h>

/* the target -------------------------------------------------------------- */

enum { MEAN_IS_NOT_FINITE = 7 };

/* An autosmc_init_fn. data: a double vector of length d. */
void *target_normal_init(SEXP data) { return REAL(data); }

/* An autosmc_target_fn. data: d doubles, the mean. */
int target_normal(void *data, int d, int n, const double *x, double *logp,
                  double *grad) {
  const double *mean = data;
  for (int i = 0; i < d; i++)
    if (!isfinite(mean[i]))
      return MEAN_IS_NOT_FINITE;
  for (int k = 0; k < n; k++) { /* particle k is column k of x */
    size_t first = (size_t)d * (size_t)k;
    logp[k] = 0.0;
    for (int i = 0; i < d; i++) {
      double r = x[first + (size_t)i] - mean[i];
      logp[k] -= 0.5 * r * r;
      if (grad)
        grad[first + (size_t)i] = -r;
    }
  }
  return 0;
}

/* the run ----------------------------------------------------------------- */

SEXP log_evidence(SEXP mean, SEXP seed) {
  autosmc_settings settings = {0};
  autosmc_result result = {0};
  settings.kernel = "klmc";
  settings.d = Rf_length(mean);
  settings.n_particles = 256;
  settings.n_steps = 16;
  settings.seed = (uint32_t)Rf_asReal(seed);

  /* a run that tunes, for its step sizes and refreshment rates alone */
  settings.run = 2147483648u; /* as smc() numbers its first round */
  result.step_size = (double *)R_alloc(16, sizeof(double));
  result.refresh_rate = (double *)R_alloc(16, sizeof(double));
  if (autosmc_run(target_normal, REAL(mean), &settings, &result))
    Rf_error("%s", result.message);

  /* and a fresh one with these, for an unbiased estimate */
  settings.run = 1; /* as smc() numbers its first island */
  settings.step_size = result.step_size;
  settings.refresh_rate = result.refresh_rate;
  if (autosmc_run(target_normal, REAL(mean), &settings, &result))
    Rf_error("%s", result.message);
  return Rf_ScalarReal(result.log_z);
}

/* what R sees ------------------------------------------------------------- */

#define ROUTINE(f) ((DL_FUNC)(void (*)(void))(f))

static const R_CallMethodDef call_methods[] = {
    {"log_evidence", ROUTINE(log_evidence), 2}, {NULL, NULL, 0}};

/* Targets are looked up by name, not called by R: -1 for any arguments. */
static const R_CMethodDef targets[] = {
    {"target_normal", ROUTINE(target_normal), -1, NULL},
    {"target_normal_init", ROUTINE(target_normal_init), -1, NULL},
    {NULL, NULL, 0, NULL}};

void R_init_linked(DllInfo *dll) {
  R_registerRoutines(dll, targets, call_methods, NULL, NULL);
  R_useDynamicSymbols(dll, FALSE);
}
