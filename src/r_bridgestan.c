/* r_bridgestan.c: a library of BridgeStan as a target, by its C interface
 * (bridgestan.h, versions 2). `data` is always the list
 *
 *   find    an R function without arguments: the addresses of the library's
 *           routines, a list with the names below
 *   values  a string, the data as JSON
 *   seed    a number from 0 to 2^32 - 1, for the program's random numbers
 */
#include "r_interface.h"
#include "targets.h"
#include "vecmath.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* bridgestan.h ------------------------------------------------------------ */

typedef struct bs_model bs_model;
typedef struct bs_rng bs_rng;

/* Routines that return int return 0, or else have allocated a message. */
typedef bs_model *construct_fn(const char *data, unsigned int seed,
                               char **message);
typedef void destruct_fn(bs_model *model);
typedef void free_message_fn(char *message);
typedef const char *names_fn(const bs_model *model, bool transformed,
                             bool generated);
typedef const char *unconstrained_names_fn(const bs_model *model);
typedef int number_fn(const bs_model *model, bool transformed, bool generated);
typedef int constrain_fn(const bs_model *model, bool transformed,
                         bool generated, const double *unconstrained,
                         double *out, bs_rng *rng, char **message);
typedef int density_fn(const bs_model *model, bool propto, bool jacobian,
                       const double *x, double *value, char **message);
typedef int gradient_fn(const bs_model *model, bool propto, bool jacobian,
                        const double *x, double *value, double *gradient,
                        char **message);
typedef bs_rng *rng_construct_fn(unsigned int seed, char **message);
typedef void rng_destruct_fn(bs_rng *rng);

typedef struct {
  construct_fn *construct;
  destruct_fn *destruct;
  free_message_fn *free_message;
  names_fn *names;
  unconstrained_names_fn *unconstrained_names;
  number_fn *number;
  constrain_fn *constrain;
  density_fn *density;
  gradient_fn *gradient;
  rng_construct_fn *rng_construct;
  rng_destruct_fn *rng_destruct;
  bs_model *model;
  bs_rng *rng; /* NULL but where there are generated quantities */
} bridgestan;

/* the library ------------------------------------------------------------- */

#define FIND(type, name)                                                       \
  ((type *)(void (*)(void))R_ExternalPtrAddrFn(r_element(found, name)))

static void find_routines(bridgestan *b, SEXP find) {
  SEXP call = PROTECT(Rf_lang1(find));
  SEXP found = PROTECT(Rf_eval(call, R_GlobalEnv));
  *b = (bridgestan){.construct = FIND(construct_fn, "bs_model_construct"),
                    .destruct = FIND(destruct_fn, "bs_model_destruct"),
                    .free_message = FIND(free_message_fn, "bs_free_error_msg"),
                    .names = FIND(names_fn, "bs_param_names"),
                    .unconstrained_names =
                        FIND(unconstrained_names_fn, "bs_param_unc_names"),
                    .number = FIND(number_fn, "bs_param_num"),
                    .constrain = FIND(constrain_fn, "bs_param_constrain"),
                    .density = FIND(density_fn, "bs_log_density"),
                    .gradient = FIND(gradient_fn, "bs_log_density_gradient"),
                    .rng_construct = FIND(rng_construct_fn, "bs_rng_construct"),
                    .rng_destruct = FIND(rng_destruct_fn, "bs_rng_destruct")};
  UNPROTECT(2);
}

/* Copies a message into R's memory, and frees it. */
static const char *take_message(const bridgestan *b, char *message) {
  if (!message)
    return "BridgeStan gives no reason";
  char *copy = R_alloc(strlen(message) + 1, 1);
  strcpy(copy, message);
  b->free_message(message);
  return copy;
}

static void begin(bridgestan *b, SEXP data) {
  char *message = NULL;
  find_routines(b, r_element(data, "find"));
  const char *values = CHAR(Rf_asChar(r_element(data, "values")));
  unsigned int seed = (unsigned int)Rf_asReal(r_element(data, "seed"));
  b->model = b->construct(values, seed, &message);
  if (!b->model)
    Rf_error("%s", take_message(b, message));
}

static void end(void *data) {
  bridgestan *b = data;
  if (b->rng)
    b->rng_destruct(b->rng);
  if (b->model)
    b->destruct(b->model);
  b->rng = NULL;
  b->model = NULL;
}

/* the target -------------------------------------------------------------- */

void *target_bridgestan_init(SEXP data) {
  bridgestan *b = (bridgestan *)R_alloc(1, sizeof *b);
  begin(b, data);
  return b;
}

void target_bridgestan_release(void *context) { end(context); }

/* With all constants and the Jacobian. BridgeStan does not tell a rejected
 * point from a mistake in the program: both are impossible points. */
int target_bridgestan(void *context, int d, int n, const double *x,
                      double *logp, double *grad) {
  const bridgestan *b = context;
  if (!b)
    return TARGET_NO_CONTEXT;
  for (int k = 0; k < n; k++) {
    const double *u = x + smc_size(d, k);
    double *g = grad ? grad + smc_size(d, k) : NULL;
    char *message = NULL;
    R_CheckUserInterrupt();
    int code = g ? b->gradient(b->model, false, true, u, &logp[k], g, &message)
                 : b->density(b->model, false, true, u, &logp[k], &message);
    if (message)
      b->free_message(message);
    if (!code)
      continue;
    logp[k] = -INFINITY;
    if (g)
      memset(g, 0, (size_t)d * sizeof(double));
  }
  return 0;
}

/* what R asks ------------------------------------------------------------- */

typedef struct {
  bridgestan library;
  SEXP data, x, blocks;
} task;

static void end_task(void *data) { end(&((task *)data)->library); }

static SEXP describe(void *data) {
  static const char *const fields[] = {"unconstrained", "outputs",
                                       "n_parameters", "n_transformed"};
  task *t = data;
  bridgestan *b = &t->library;
  begin(b, t->data);
  int n_parameters = b->number(b->model, false, false);
  int n_transformed = b->number(b->model, true, false) - n_parameters;
  SEXP out = PROTECT(r_new_list(fields, 4));
  SET_VECTOR_ELT(out, 0, Rf_mkString(b->unconstrained_names(b->model)));
  SET_VECTOR_ELT(out, 1, Rf_mkString(b->names(b->model, true, true)));
  SET_VECTOR_ELT(out, 2, Rf_ScalarInteger(n_parameters));
  SET_VECTOR_ELT(out, 3, Rf_ScalarInteger(n_transformed));
  UNPROTECT(1);
  return out;
}

static SEXP outputs(void *data) {
  static const char *const fields[] = {"values", "failed", "message"};
  task *t = data;
  bridgestan *b = &t->library;
  char *message = NULL;
  begin(b, t->data);
  bool transformed = LOGICAL(t->blocks)[0], generated = LOGICAL(t->blocks)[1];
  unsigned int seed = (unsigned int)Rf_asReal(r_element(t->data, "seed"));
  b->rng = b->rng_construct(seed, &message);
  if (!b->rng)
    Rf_error("%s", take_message(b, message));
  int n = Rf_nrows(t->x), d = Rf_ncols(t->x), failed = 0;
  int width = b->number(b->model, transformed, generated);
  SEXP out = PROTECT(r_new_list(fields, 3));
  SEXP values = Rf_allocMatrix(REALSXP, n, width);
  SET_VECTOR_ELT(out, 0, values);
  double *u = (double *)R_alloc((size_t)d, sizeof *u);
  double *row = (double *)R_alloc((size_t)width, sizeof *row);
  const char *first = "";
  for (int k = 0; k < n; k++) {
    for (int i = 0; i < d; i++)
      u[i] = REAL(t->x)[smc_size(n, i) + (size_t)k];
    message = NULL;
    R_CheckUserInterrupt();
    bool bad = b->constrain(b->model, transformed, generated, u, row, b->rng,
                            &message);
    if (bad && !failed++)
      first = take_message(b, message);
    else if (message)
      b->free_message(message);
    for (int j = 0; j < width; j++)
      REAL(values)[smc_size(n, j) + (size_t)k] = bad ? NAN : row[j];
  }
  SET_VECTOR_ELT(out, 1, Rf_ScalarInteger(failed));
  SET_VECTOR_ELT(out, 2, Rf_mkString(first));
  UNPROTECT(1);
  return out;
}

static SEXP why(void *data) {
  task *t = data;
  const bridgestan *b = &t->library;
  begin(&t->library, t->data);
  int n = Rf_nrows(t->x), d = Rf_ncols(t->x);
  double *u = (double *)R_alloc((size_t)d, sizeof *u);
  for (int k = 0; k < n; k++) {
    for (int i = 0; i < d; i++)
      u[i] = REAL(t->x)[smc_size(n, i) + (size_t)k];
    char *message = NULL;
    double value;
    if (b->density(b->model, false, true, u, &value, &message))
      return Rf_mkString(take_message(b, message));
    if (message)
      b->free_message(message);
  }
  return R_NilValue;
}

/* list(unconstrained, outputs: names, with commas between; n_parameters,
 * n_transformed: how many of the outputs, in this order) */
SEXP r_bridgestan_describe(SEXP data) {
  task t = {.data = data};
  return R_ExecWithCleanup(describe, &t, end_task, &t);
}

/* x: an n x d matrix on the unconstrained scale; blocks: whether transformed
 * parameters and generated quantities are wanted. list(values: a matrix with n
 * rows; failed: how many of them are NaN; message: of the first of these) */
SEXP r_bridgestan_outputs(SEXP data, SEXP x, SEXP blocks) {
  task t = {.data = data, .x = x, .blocks = blocks};
  return R_ExecWithCleanup(outputs, &t, end_task, &t);
}

/* x: a matrix with a row a point on the unconstrained scale; the message of the
 * first of those at which there is no log density, or NULL. */
SEXP r_bridgestan_why(SEXP data, SEXP x) {
  task t = {.data = data, .x = x};
  return R_ExecWithCleanup(why, &t, end_task, &t);
}
