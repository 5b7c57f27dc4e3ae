/* r_run.c: one run, and one evaluation, of a target, as R asks for them. */
#include "r_border.h"
#include "vecmath.h"

#include <string.h>

/* reading the arguments, which R has checked ------------------------------ */

static double real_of(SEXP list, const char *name) {
  return Rf_asReal(r_element(list, name));
}

static int int_of(SEXP list, const char *name) {
  return Rf_asInteger(r_element(list, name));
}

static const double *reals_or_null(SEXP list, const char *name) {
  SEXP value = r_element(list, name);
  return value == R_NilValue ? NULL : REAL(value);
}

/* The position of a string in a NULL-terminated table of names. */
static int choice_of(SEXP list, const char *name, const char *const *table) {
  const char *value = CHAR(Rf_asChar(r_element(list, name)));
  for (int i = 0; table[i]; i++)
    if (strcmp(table[i], value) == 0)
      return i;
  Rf_error("internal error: no `%s` called \"%s\"", name, value);
}

static const char *const resampling_names[] = {
    [SMC_RESAMPLE_SSP] = "ssp",
    [SMC_RESAMPLE_SYSTEMATIC] = "systematic",
    [SMC_RESAMPLE_STRATIFIED] = "stratified",
    [SMC_RESAMPLE_RESIDUAL] = "residual",
    [SMC_RESAMPLE_MULTINOMIAL] = "multinomial",
    NULL};

static const char *const backward_names[] = {
    [SMC_BACKWARD_TIME_CORRECT] = "time_correct",
    [SMC_BACKWARD_FORWARD] = "forward",
    [SMC_BACKWARD_DETAILED_BALANCE] = "detailed_balance",
    NULL};

static const char *const first_backward_names[] = {
    [SMC_FIRST_REFERENCE] = "reference",
    [SMC_FIRST_INDEPENDENT] = "independent",
    NULL};

static const char *const objective_names[] = {[SMC_OBJECTIVE_ESJD] = "esjd",
                                              [SMC_OBJECTIVE_ACCEPTANCE] =
                                                  "acceptance",
                                              NULL};

static const char *const search_names[] = {
    [SMC_SEARCH_PARABOLIC] = "parabolic", [SMC_SEARCH_GOLDEN] = "golden", NULL};

/* Every kernel's list has all of these; what does not concern it is ignored. */
static smc_kernel_options read_kernel_options(SEXP list) {
  return (smc_kernel_options){
      .backward = (smc_backward)choice_of(list, "backward", backward_names),
      .first_backward = (smc_first_backward)choice_of(list, "first_backward",
                                                      first_backward_names),
      .objective =
          (smc_adjusted_objective)choice_of(list, "objective", objective_names),
      .target_acceptance = real_of(list, "target_acceptance"),
      .n_moves = int_of(list, "n_moves")};
}

static smc_tuner_options read_tuner(SEXP list) {
  SEXP grid = r_element(list, "refresh_grid");
  return (smc_tuner_options){
      .n_subsample = int_of(list, "n_subsample"),
      .regularization = real_of(list, "regularization"),
      .step_size_guess = real_of(list, "step_size_guess"),
      .step_size_anchor = real_of(list, "step_size_anchor"),
      .n_refresh = (int)Rf_xlength(grid),
      .refresh_grid = REAL(grid),
      .search = {.method =
                     (smc_search_method)choice_of(list, "search", search_names),
                 .bracket_start = real_of(list, "bracket_start"),
                 .bracket_growth = real_of(list, "bracket_growth"),
                 .backoff = real_of(list, "backoff"),
                 .tolerance = real_of(list, "tolerance"),
                 .lower = -80.0,     /* limits of log h, and of the number  */
                 .upper = 40.0,      /* of evaluations: only the degenerate */
                 .max_evals = 150}}; /* searches come near either       */
}

/* tuner: out, read where the step sizes are not given. */
static smc_config read_config(SEXP list, int d, smc_tuner_options *tuner) {
  SEXP kernel = r_element(list, "kernel");
  const char *name = CHAR(Rf_asChar(r_element(kernel, "name")));
  smc_config config = {
      .kernel = smc_find_kernel(name),
      .kernel_options = read_kernel_options(kernel),
      .d = d,
      .n_particles = int_of(list, "n_particles"),
      .n_steps = int_of(list, "n_steps"),
      .adaptive_ess = real_of(list, "adaptive_ess"),
      .lambda = reals_or_null(list, "lambda"),
      .step_size = reals_or_null(list, "step_size"),
      .refresh_rate = reals_or_null(list, "refresh_rate"),
      .tuner = tuner,
      .resampling =
          (smc_resampling)choice_of(list, "resampling", resampling_names),
      .ess_threshold = real_of(list, "ess_threshold"),
      .key = {(uint32_t)real_of(list, "seed"), (uint32_t)real_of(list, "run")}};
  if (!config.kernel)
    Rf_error("internal error: no kernel called \"%s\"", name);
  if (!config.step_size)
    *tuner = read_tuner(r_element(list, "tuner"));
  return config;
}

/* the trace and the result, in R's memory --------------------------------- */

SEXP r_new_list(const char *const *names, int n) {
  SEXP list = PROTECT(Rf_allocVector(VECSXP, n));
  SEXP list_names = PROTECT(Rf_allocVector(STRSXP, n));
  for (int i = 0; i < n; i++)
    SET_STRING_ELT(list_names, i, Rf_mkChar(names[i]));
  Rf_setAttrib(list, R_NamesSymbol, list_names);
  UNPROTECT(2);
  return list;
}

static double *new_reals(SEXP list, int i, int n) {
  SET_VECTOR_ELT(list, i, Rf_allocVector(REALSXP, n));
  return REAL(VECTOR_ELT(list, i));
}

static int *new_ints(SEXP list, int i, SEXPTYPE type, int n) {
  SEXP value = Rf_allocVector(type, n);
  SET_VECTOR_ELT(list, i, value);
  return type == LGLSXP ? LOGICAL(value) : INTEGER(value);
}

/* A list of T-vectors, into which the trace writes. */
static SEXP new_trace(smc_trace *trace, int n_steps) {
  static const char *const names[] = {"lambda",
                                      "step_size",
                                      "refresh_rate",
                                      "acceptance",
                                      "ess",
                                      "lcb",
                                      "log_z",
                                      "n_target_evals",
                                      "n_objective_evals",
                                      "tuner_status",
                                      "resampled"};
  double **const reals[] = {&trace->lambda,       &trace->step_size,
                            &trace->refresh_rate, &trace->acceptance,
                            &trace->ess,          &trace->lcb,
                            &trace->log_z,        &trace->n_target_evals};
  const int n_reals = sizeof reals / sizeof reals[0];
  SEXP list = PROTECT(r_new_list(names, n_reals + 3));
  for (int i = 0; i < n_reals; i++)
    *reals[i] = new_reals(list, i, n_steps);
  trace->n_objective_evals = new_ints(list, n_reals, INTSXP, n_steps);
  trace->tuner_status = new_ints(list, n_reals + 1, INTSXP, n_steps);
  trace->resampled = new_ints(list, n_reals + 2, LGLSXP, n_steps);
  UNPROTECT(1);
  return list;
}

/* Element i of the list: the n x d transpose of x. */
static void new_matrix(SEXP list, int i, int d, int n, const double *x) {
  SET_VECTOR_ELT(list, i, Rf_allocMatrix(REALSXP, n, d));
  r_transpose(d, n, x, REAL(VECTOR_ELT(list, i)));
}

/* `unconstrained` are the particles before they are put within their bounds;
 * NULL where there are none. `coordinates` are the z of path.h, `gradients`
 * those of the log target there; NULL for kernels without. */
static SEXP new_result(smc_status status, const r_run *run, SEXP trace_list,
                       smc_bounds bounds) {
  static const char *const names[] = {
      "status",    "failure",       "step",        "n_done",
      "trace",     "n_evals",       "particles",   "log_weights",
      "origins",   "unconstrained", "coordinates", "gradients"};
  const smc_state *state = &run->state;
  int d = state->cloud.d, n = state->cloud.n;
  SEXP result = PROTECT(r_new_list(names, 12));
  SET_VECTOR_ELT(result, 0, Rf_ScalarInteger((int)status));
  SET_VECTOR_ELT(result, 1, Rf_ScalarInteger(run->path.failure));
  SET_VECTOR_ELT(result, 2, Rf_ScalarInteger(run->trace.step));
  SET_VECTOR_ELT(result, 3, Rf_ScalarInteger(run->trace.n_done));
  SET_VECTOR_ELT(result, 4, trace_list);
  SET_VECTOR_ELT(result, 5, Rf_ScalarReal(run->path.n_evals));
  smc_path_to_user(&run->path, n, state->cloud.x, state->noise);
  if (bounds.lower) {
    new_matrix(result, 9, d, n, state->noise);
    smc_constrain(bounds, d, n, state->noise, state->noise);
  }
  new_matrix(result, 6, d, n, state->noise);
  double *log_weights = new_reals(result, 7, n);
  memcpy(log_weights, state->log_weights, (size_t)n * sizeof(double));
  int *origins = new_ints(result, 8, INTSXP, n);
  memcpy(origins, state->origins, (size_t)n * sizeof(int));
  new_matrix(result, 10, d, n, state->cloud.x);
  if (state->cloud.grad_p)
    new_matrix(result, 11, d, n, state->cloud.grad_p);
  UNPROTECT(1);
  return result;
}

/* one run ----------------------------------------------------------------- */

static void check_interrupt(void *data) {
  (void)data;
  R_CheckUserInterrupt();
}

/* A reference that R was given as functions, and its draws, if there is one. */
static void begin_reference(r_run *run, SEXP list) {
  smc_path *path = &run->path;
  int n = run->config.n_particles;
  if (list == R_NilValue)
    return;
  r_target_begin(&run->reference, list, n, R_NilValue, &run->trace);
  path->reference = r_target_evaluate;
  path->reference_data = &run->reference;
  double *start = (double *)R_alloc(smc_size(path->d, n), sizeof(double));
  r_transpose(n, path->d, reals_or_null(list, "start"), start);
  if (run->reference.bounds.lower)
    smc_unconstrain(run->reference.bounds, path->d, n, start, start);
  path->start = start;
}

static smc_driven read_driven(SEXP config) {
  SEXP drivers = r_element(config, "reference_drivers");
  if (drivers == R_NilValue)
    return (smc_driven){.n_drivers = 0};
  return (smc_driven){.n_drivers = (int)Rf_xlength(drivers),
                      .drivers = INTEGER(drivers),
                      .shift = REAL(r_element(config, "reference_shift")),
                      .slope = REAL(r_element(config, "reference_slope"))};
}

SEXP r_run_begin(r_run *run, r_target *target, SEXP config, int d) {
  run->config = read_config(config, d, &run->tuner);
  run->trace = (smc_trace){.step = 0, .n_done = 0};
  SEXP trace_list = PROTECT(new_trace(&run->trace, run->config.n_steps));
  run->path = (smc_path){.target = r_target_evaluate,
                         .data = target,
                         .d = d,
                         .pause = check_interrupt};
  run->path.mean = reals_or_null(config, "reference_mean");
  run->path.sd = reals_or_null(config, "reference_sd");
  run->path.chol = reals_or_null(config, "reference_chol");
  run->path.chol_transposed =
      reals_or_null(config, "reference_chol_transposed");
  run->path.driven = read_driven(config);
  begin_reference(run, r_element(config, "reference"));

  smc_arena arena = {NULL, 0};
  smc_layout(&run->state, &run->path, &run->config, &arena);
  arena = (smc_arena){R_alloc(arena.used, sizeof(char)), 0};
  smc_layout(&run->state, &run->path, &run->config, &arena);
  UNPROTECT(1);
  return trace_list;
}

typedef struct run_call {
  SEXP target_list, config_list, on_step;
  r_target target;
} run_call;

static SEXP run_body(void *data) {
  run_call *c = data;
  r_run run;
  int d = int_of(c->target_list, "dim");
  SEXP trace_list = PROTECT(r_run_begin(&run, &c->target, c->config_list, d));
  r_target_begin(&c->target, c->target_list, run.config.n_particles, c->on_step,
                 &run.trace);
  smc_status status = smc_run(&run.state, &run.path, &run.config, &run.trace);
  SEXP result = new_result(status, &run, trace_list, c->target.bounds);
  UNPROTECT(1);
  return result;
}

static void run_cleanup(void *data, Rboolean jumped) {
  (void)jumped;
  r_target_end(&((run_call *)data)->target);
}

SEXP r_smc_run(SEXP target, SEXP config, SEXP on_step) {
  run_call c = {
      .target_list = target, .config_list = config, .on_step = on_step};
  return R_UnwindProtect(run_body, &c, run_cleanup, &c, NULL);
}

/* one evaluation ---------------------------------------------------------- */

typedef struct evaluation {
  SEXP target_list, x;
  int gradient;
  r_target target;
} evaluation;

static SEXP evaluation_body(void *data) {
  static const char *const names[] = {"log_density", "gradient"};
  evaluation *e = data;
  int n = Rf_nrows(e->x), d = Rf_ncols(e->x), failure;
  size_t dn = (size_t)d * (size_t)n;
  SEXP result = PROTECT(r_new_list(names, 2));
  double *logp = new_reals(result, 0, n);
  double *points = (double *)R_alloc(2 * dn, sizeof(double));
  double *grad = e->gradient ? points + dn : NULL;
  smc_trace trace = {.step = 0, .n_done = 0};
  r_transpose(n, d, REAL(e->x), points);
  r_target_begin(&e->target, e->target_list, n, R_NilValue, &trace);
  failure = r_target_evaluate(&e->target, d, n, points, logp, grad);
  if (failure)
    Rf_error("the target returned the code %d", failure);
  if (grad)
    new_matrix(result, 1, d, n, grad);
  UNPROTECT(1);
  return result;
}

static void evaluation_cleanup(void *data, Rboolean jumped) {
  (void)jumped;
  r_target_end(&((evaluation *)data)->target);
}

SEXP r_evaluate(SEXP target, SEXP x, SEXP gradient) {
  evaluation e = {
      .target_list = target, .x = x, .gradient = Rf_asLogical(gradient)};
  return R_UnwindProtect(evaluation_body, &e, evaluation_cleanup, &e, NULL);
}
