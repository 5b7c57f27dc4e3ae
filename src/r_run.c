/* r_run.c: one run, and one evaluation, of a target, as R asks for them. */
#include "r_interface.h"
#include "vecmath.h"

#include <string.h>

/* reading the arguments, which R has checked ------------------------------ */

static double real_of(SEXP list, const char *name) {
  return Rf_asReal(r_element(list, name));
}

static int int_of(SEXP list, const char *name) {
  return Rf_asInteger(r_element(list, name));
}

/* An array of n numbers; NULL when it is not there. */
static const double *reals_or_null(SEXP list, const char *name, R_xlen_t n) {
  SEXP value = r_element(list, name);
  if (value == R_NilValue)
    return NULL;
  if (!Rf_isReal(value) || XLENGTH(value) != n)
    Rf_error("internal error: `%s` has a wrong type or length", name);
  return REAL(value);
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
  if (!Rf_isReal(grid) || XLENGTH(grid) > SMC_MAX_REFRESH_GRID)
    Rf_error("internal error: `refresh_grid` has a wrong type or length");
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
  int n_steps = int_of(list, "n_steps");
  smc_config config = {
      .kernel = smc_find_kernel(name),
      .kernel_options = read_kernel_options(kernel),
      .d = d,
      .n_particles = int_of(list, "n_particles"),
      .n_steps = n_steps,
      .adaptive_ess = real_of(list, "adaptive_ess"),
      .lambda = reals_or_null(list, "lambda", n_steps),
      .step_size = reals_or_null(list, "step_size", n_steps),
      .refresh_rate = reals_or_null(list, "refresh_rate", n_steps),
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

/* maps -------------------------------------------------------------------- */

/* The map into the bounds; NULL when there are none. */
static const smc_map *bounds_of(const smc_chain *chain) {
  const smc_map *last = chain->maps + chain->n_maps - 1;
  return chain->n_maps > 0 && last->kind == &smc_map_bounds ? last : NULL;
}

/* the trace and the result, in R's memory --------------------------------- */

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
                                      "length",
                                      "log_z",
                                      "n_target_evals",
                                      "n_objective_evals",
                                      "tuner_status",
                                      "resampled"};
  double **const reals[] = {
      &trace->lambda,     &trace->step_size, &trace->refresh_rate,
      &trace->acceptance, &trace->ess,       &trace->lcb,
      &trace->length,     &trace->log_z,     &trace->n_target_evals};
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

/* Element i of the list: one of the vectors that the clouds are made of, which
 * nothing needs any more. Returns 0 where there is none. */
static int take_spare(SEXP list, int i, const r_run *run) {
  const smc_cloud *cloud = &run->state.cloud;
  for (int k = 0; k < Rf_length(run->matrix_list); k++) {
    SEXP spare = VECTOR_ELT(run->matrix_list, k);
    if (spare == R_NilValue || REAL(spare) == cloud->x ||
        REAL(spare) == cloud->grad_p)
      continue;
    SET_VECTOR_ELT(list, i, spare);
    SET_VECTOR_ELT(run->matrix_list, k, R_NilValue);
    return 1;
  }
  return 0;
}

/* Element i of the list: an n x d matrix, a spare vector if there is one. Its
 * numbers are the caller's to write. */
static double *put_matrix(SEXP list, int i, const r_run *run) {
  int d = run->state.cloud.d, n = run->state.cloud.n;
  if (!take_spare(list, i, run))
    SET_VECTOR_ELT(list, i, Rf_allocVector(REALSXP, (R_xlen_t)d * n));
  SEXP out = VECTOR_ELT(list, i), size = PROTECT(Rf_allocVector(INTSXP, 2));
  INTEGER(size)[0] = n;
  INTEGER(size)[1] = d;
  Rf_setAttrib(out, R_DimSymbol, size);
  UNPROTECT(1);
  return REAL(out);
}

/* The places of the matrices of the particles in the list of new_result(). */
enum { PARTICLES = 6, UNCONSTRAINED = 9, COORDINATES = 10, GRADIENTS = 11 };

/* Rows from `first` on of n x d matrices: the images of some points z, d x now,
 * on the user's scale, and where there are bounds also before these. */
static void write_images(const smc_chain *chain, int now, const double *z,
                         int first, int n, double *user, double *unbounded) {
  int d = chain->d;
  r_transpose_part(d, now, smc_chain_forward(chain, now, z), d, user + first,
                   n);
  if (unbounded)
    r_transpose_part(d, now, smc_chain_points(chain, chain->n_maps - 1, z), d,
                     unbounded + first, n);
}

/* What is written, n x d each: the transpose of `from`, and where these are
 * points z, also their images; NULL for what is not. */
typedef struct writing {
  const smc_path *path;
  int n;
  const double *from; /* d x n */
  double *transposed, *user, *unbounded;
} writing;

static void write_block(void *context, const smc_work *work) {
  const writing *all = context;
  int d = all->path->d, n = all->n, first = work->first;
  const double *from = all->from + smc_size(d, first);
  r_transpose_part(d, work->n, from, d, all->transposed + first, n);
  if (!all->user)
    return;
  smc_chain chain = smc_path_chain(all->path, first, work->thread);
  write_images(&chain, work->n, from, first, n, all->user, all->unbounded);
}

static void write_all(writing all) {
  double pace = 0.0;
  smc_for_blocks(all.path->team, all.n, &pace, write_block, &all);
}

/* The matrices of a result. Each of the particles' own can be written over when
 * all that is made from it is there. */
static void put_matrices(SEXP result, r_run *run) {
  smc_cloud *cloud = &run->state.cloud;
  const smc_path *path = &run->path;
  writing points = {.path = path, .n = cloud->n, .from = cloud->x};
  points.user = put_matrix(result, PARTICLES, run);
  if (bounds_of(&path->chain))
    points.unbounded = put_matrix(result, UNCONSTRAINED, run);
  points.transposed = put_matrix(result, COORDINATES, run);
  write_all(points);
  cloud->x = NULL;
  if (!cloud->grad_p)
    return;
  writing gradients = {.path = path, .n = cloud->n, .from = cloud->grad_p};
  gradients.transposed = put_matrix(result, GRADIENTS, run);
  write_all(gradients);
}

/* What so many evaluations took. */
static double calls_of(const r_target *target, double n_evals) {
  return target->native ? n_evals : target->n_calls;
}

/* `unconstrained` are the particles before they are put within their bounds;
 * NULL where there are none. `coordinates` are the z of path.h, `gradients`
 * those of the log target there; NULL for kernels without; `log_target` is that
 * log target. `log_weights` are normalised. */
static SEXP new_result(smc_status status, r_run *run, SEXP names_of_columns) {
  static const char *const names[] = {
      "status",      "failure",   "step",         "n_done",     "trace",
      "n_evals",     "particles", "log_weights",  "origins",    "unconstrained",
      "coordinates", "gradients", "n_impossible", "log_target", "n_calls"};
  const smc_state *state = &run->state;
  int n = state->cloud.n;
  SEXP result = PROTECT(r_new_list(names, 15));
  SET_VECTOR_ELT(result, 0, Rf_ScalarInteger((int)status));
  SET_VECTOR_ELT(result, 1, Rf_ScalarInteger(run->path.failure));
  SET_VECTOR_ELT(result, 2, Rf_ScalarInteger(run->trace.step));
  SET_VECTOR_ELT(result, 3, Rf_ScalarInteger(run->trace.n_done));
  SET_VECTOR_ELT(result, 4, run->trace_list);
  SET_VECTOR_ELT(result, 5, Rf_ScalarReal(run->path.n_evals));
  smc_normalise_log(n, state->log_weights, new_reals(result, 7, n));
  int *origins = new_ints(result, 8, INTSXP, n);
  memcpy(origins, state->origins, (size_t)n * sizeof(int));
  SET_VECTOR_ELT(result, 12, Rf_ScalarReal(run->path.n_impossible));
  double *log_target = new_reals(result, 13, n);
  memcpy(log_target, state->cloud.log_p, (size_t)n * sizeof(double));
  SET_VECTOR_ELT(result, 14,
                 Rf_ScalarReal(calls_of(&run->target, run->path.n_evals)));
  put_matrices(result, run);
  if (status == SMC_OK)
    r_name_columns(VECTOR_ELT(result, PARTICLES), names_of_columns);
  UNPROTECT(1);
  return result;
}

/* the hook ---------------------------------------------------------------- */

/* Tell R which step is under way, with what is known of the one before. */
static void tell_step(r_run *run) {
  const smc_trace *trace = &run->trace;
  if (run->on_step == R_NilValue || trace->step == run->last_step)
    return;
  run->last_step = trace->step;
  int done = trace->n_done;
  int now = trace->step;
  SEXP step = PROTECT(Rf_ScalarInteger(now));
  SEXP lambda = PROTECT(Rf_ScalarReal(now ? trace->lambda[now - 1] : 0.0));
  SEXP ess = PROTECT(Rf_ScalarReal(done ? trace->ess[done - 1] : NA_REAL));
  SEXP log_z = PROTECT(Rf_ScalarReal(done ? trace->log_z[done - 1] : 0.0));
  SEXP call = PROTECT(Rf_lang5(run->on_step, step, lambda, ess, log_z));
  Rf_eval(call, R_GlobalEnv);
  UNPROTECT(5);
}

static void look_around(void *data) {
  R_CheckUserInterrupt();
  tell_step(data);
}

/* one run ----------------------------------------------------------------- */

/* A callback's draws are on the user's scale, and no maps but bounds are
 * between that and z. */
static void read_draws(r_run *run, SEXP list) {
  smc_path *path = &run->path;
  const smc_map *bounds = bounds_of(&path->chain);
  int n = run->config.n_particles, d = path->d;
  const double *given = reals_or_null(list, "start", (R_xlen_t)d * n);
  double *draws = (double *)R_alloc(smc_size(d, n), sizeof(double));
  if (path->chain.n_maps > (bounds ? 1 : 0))
    Rf_error("internal error: a reference of R functions has maps");
  r_transpose(n, d, given, draws);
  path->reference.draws = draws;
  if (bounds) {
    double *inside = (double *)R_alloc(smc_size(d, n), sizeof(double));
    bounds->kind->inverse(bounds, n, draws, inside, /* scratch = */ NULL);
    path->reference.draws = inside;
  }
}

static smc_mixture read_mixture(SEXP list, int d) {
  int n = (int)Rf_xlength(r_element(list, "weights"));
  return (smc_mixture){.n = n,
                       .weights = reals_or_null(list, "weights", n),
                       .means = reals_or_null(list, "means", (R_xlen_t)d * n),
                       .factors =
                           reals_or_null(list, "factors", (R_xlen_t)d * d * n)};
}

/* Functions and their draws, or else a mixture, or the degrees of freedom, if
 * any. */
static void read_reference(r_run *run, SEXP config) {
  SEXP functions = r_element(config, "reference");
  SEXP mixture = r_element(config, "mixture");
  SEXP df = r_element(config, "df");
  smc_reference *reference = &run->path.reference;
  if (functions != R_NilValue) {
    r_target_begin(&run->reference, functions, NULL);
    *reference = (smc_reference){.type = SMC_REFERENCE_CALLBACK,
                                 .density = r_target_evaluate,
                                 .data = &run->reference};
    read_draws(run, functions);
  } else if (mixture != R_NilValue) {
    *reference = (smc_reference){.type = SMC_REFERENCE_MIXTURE,
                                 .mixture = read_mixture(mixture, run->path.d)};
  } else if (df != R_NilValue) {
    *reference =
        (smc_reference){.type = SMC_REFERENCE_STUDENT, .df = Rf_asReal(df)};
  }
}

/* Fills run->matrix_list. Returns 0, or 1 when R has no memory for it. */
static int take_matrices(r_run *run, double length) {
  for (int i = 0; i < Rf_length(run->matrix_list); i++) {
    SEXP matrix = r_try_allocate(REALSXP, length);
    if (matrix == R_NilValue)
      return 1;
    SET_VECTOR_ELT(run->matrix_list, i, matrix);
    run->matrices[i] = REAL(matrix);
  }
  return 0;
}

/* held: out, at 1 and 2, what holds the memory. The particles' matrices are
 * vectors of R, which become those of the result: see put_matrices(). Returns
 * 0, or 1 when R has not as much. */
static int lay_out(r_run *run, SEXP held) {
  smc_arena arena = {.base = NULL};
  const smc_config *config = &run->config;
  double length = (double)config->d * config->n_particles;
  int n = 2 * smc_cloud_matrices(
                  smc_kernel_parts(config->kernel, &run->path.reference));
  run->config.matrices = run->matrices;
  smc_layout(&run->state, &run->path, config, &arena);
  run->needed = arena.needed + n * length * sizeof(double);
  if (!smc_arena_fits(&arena))
    return 1;
  run->matrix_list = Rf_allocVector(VECSXP, n);
  SET_VECTOR_ELT(held, 1, run->matrix_list);
  SEXP block = r_try_allocate(RAWSXP, (double)arena.used);
  SET_VECTOR_ELT(held, 2, block);
  if (block == R_NilValue || take_matrices(run, length))
    return 1;
  arena = (smc_arena){.base = (char *)RAW(block)};
  smc_layout(&run->state, &run->path, config, &arena);
  return 0;
}

/* Whether a target is a routine that may be called from several threads,
 * without a word to R between two evaluations, and is not to be weighed against
 * a reference of R functions. */
static bool works_in_blocks(SEXP target_list, SEXP config) {
  return r_element(target_list, "evaluate") == R_NilValue &&
         r_element(target_list, "settle") == R_NilValue &&
         Rf_asLogical(r_element(target_list, "thread_safe")) == TRUE &&
         r_element(config, "reference") == R_NilValue;
}

SEXP r_run_begin(r_run *run, SEXP target_list, SEXP config, SEXP on_step,
                 int d) {
  static const char *const names[] = {"trace", "matrices", "memory"};
  memset(run, 0, sizeof *run);
  SEXP held = PROTECT(r_new_list(names, 3));
  run->config = read_config(config, d, &run->tuner);
  run->trace_list = new_trace(&run->trace, run->config.n_steps);
  SET_VECTOR_ELT(held, 0, run->trace_list);
  run->on_step = on_step;
  run->last_step = -1;
  smc_team_begin(&run->team, int_of(config, "threads"));
  run->path = (smc_path){.target = r_target_evaluate,
                         .data = &run->target,
                         .d = d,
                         .team = &run->team,
                         .in_blocks = works_in_blocks(target_list, config),
                         .hook = look_around,
                         .hook_data = run};
  run->path.chain = r_read_chain(r_element(config, "maps"), target_list, d);
  read_reference(run, config);
  if (lay_out(run, held))
    held = R_NilValue;
  UNPROTECT(1);
  return held;
}

/* A target in blocks is called past R. */
static void begin_target(r_run *run, SEXP target_list) {
  smc_path *path = &run->path;
  r_target_begin(&run->target, target_list, path->team);
  if (path->in_blocks) {
    path->target = run->target.native;
    path->contexts = run->target.contexts;
  }
}

typedef struct run_call {
  SEXP target_list, config_list, on_step;
  r_run run;
} run_call;

/* Bytes that R functions take besides: the points, the gradient, and a matrix
   of the same size that each of two functions makes on its way. */
static double memory_of_functions(const r_run *run, SEXP target_list) {
  double n = run->config.n_particles, d = run->config.d;
  bool are_used = r_element(target_list, "evaluate") != R_NilValue;
  return are_used ? n * (4.0 * d + 1.0) * sizeof(double) : 0.0;
}

static SEXP run_body(void *data) {
  run_call *c = data;
  r_run *run = &c->run;
  int d = int_of(c->target_list, "dim");
  SEXP held =
      PROTECT(r_run_begin(run, c->target_list, c->config_list, c->on_step, d));
  if (held == R_NilValue)
    r_lack_memory(run->needed + memory_of_functions(run, c->target_list));
  look_around(run); /* from here on, errors are the target's */
  begin_target(run, c->target_list);
  smc_status status =
      smc_run(&run->state, &run->path, &run->config, &run->trace);
  SEXP result = new_result(status, run, r_element(c->config_list, "names"));
  UNPROTECT(1);
  return result;
}

static void run_cleanup(void *data, Rboolean jumped) {
  run_call *c = data;
  (void)jumped;
  smc_team_end(&c->run.team);
  r_target_end(&c->run.target);
}

SEXP r_smc_run(SEXP target, SEXP config, SEXP on_step) {
  run_call c = {
      .target_list = target, .config_list = config, .on_step = on_step};
  return R_UnwindProtect(run_body, &c, run_cleanup, &c, NULL);
}

/* one evaluation ---------------------------------------------------------- */

typedef struct evaluation {
  SEXP target_list, x;
  int gradient, n_threads;
  r_target target;
  smc_team team; /* target points here */
} evaluation;

/* The images of n points, d x n. The target never sees one that is not finite:
 * the origin stands in for it, and is_lost tells so. */
static const double *images_of(const smc_chain *chain, int n, double *z,
                               int *is_lost) {
  const double *x = smc_chain_forward(chain, n, z);
  for (int k = 0; k < n; k++)
    is_lost[k] = smc_chain_reset_overflowed(chain, k, z);
  return x;
}

/* Where the list has maps or bounds, x and the results are in the coordinates
 * before them. */
static SEXP evaluation_body(void *data) {
  static const char *const names[] = {"log_density", "gradient", "n_calls"};
  evaluation *e = data;
  int n = Rf_nrows(e->x), d = Rf_ncols(e->x), failure;
  smc_chain chain =
      r_read_chain(r_element(e->target_list, "maps"), e->target_list, d);
  SEXP result = PROTECT(r_new_list(names, 3));
  double *logp = new_reals(result, 0, n);
  double *z = (double *)R_alloc(smc_size(d, n), sizeof(double));
  double *grad =
      e->gradient ? (double *)R_alloc(smc_size(d, n), sizeof(double)) : NULL;
  int *is_lost = (int *)R_alloc((size_t)n, sizeof(int));
  r_lay_out_chain(&chain, n, 1);
  r_transpose(n, d, REAL(e->x), z);
  const double *x = images_of(&chain, n, z, is_lost);
  smc_team_begin(&e->team, smc_most_threads_for(e->n_threads, n));
  r_target_begin(&e->target, e->target_list, &e->team);
  failure = r_target_evaluate(&e->target, d, n, x, logp, grad);
  if (failure)
    Rf_errorcall(R_NilValue, "the target returned the code %d", failure);
  smc_chain_pull_back(&chain, n, z, logp, grad);
  for (int k = 0; k < n; k++)
    if (is_lost[k])
      logp[k] = R_NegInf;
  if (grad)
    new_matrix(result, 1, d, n, grad);
  SET_VECTOR_ELT(result, 2, Rf_ScalarReal(calls_of(&e->target, n)));
  UNPROTECT(1);
  return result;
}

static void evaluation_cleanup(void *data, Rboolean jumped) {
  evaluation *e = data;
  (void)jumped;
  smc_team_end(&e->team);
  r_target_end(&e->target);
}

SEXP r_evaluate(SEXP target, SEXP x, SEXP gradient, SEXP threads) {
  evaluation e = {.target_list = target,
                  .x = x,
                  .gradient = Rf_asLogical(gradient),
                  .n_threads = Rf_asInteger(threads)};
  return R_UnwindProtect(evaluation_body, &e, evaluation_cleanup, &e, NULL);
}
