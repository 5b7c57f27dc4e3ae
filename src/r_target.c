/* r_target.c: targets as R functions and as compiled routines. */
#define _GNU_SOURCE /* for dladdr() */
#include "r_interface.h"
#include "vecmath.h"

#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#ifndef _WIN32
#include <dlfcn.h>
#endif

/* beginning and end ------------------------------------------------------- */

static DL_FUNC routine(SEXP list, const char *name) {
  SEXP symbol = r_element(list, name);
  return symbol == R_NilValue ? NULL : R_ExternalPtrAddrFn(symbol);
}

/* The path of the library that a routine is in; NA where it is not known. */
SEXP r_file_of_routine(SEXP address) {
#ifndef _WIN32
  Dl_info info;
  DL_FUNC f = R_ExternalPtrAddrFn(address);
  void *at;
  memcpy(&at, &f, sizeof at);
  if (dladdr(at, &info) && info.dli_fname)
    return Rf_mkString(info.dli_fname);
#endif
  return Rf_ScalarString(NA_STRING);
}

void r_target_begin(r_target *target, SEXP list, smc_team *team) {
  memset(target, 0, sizeof *target);
  target->evaluate = r_element(list, "evaluate");
  if (target->evaluate != R_NilValue)
    return;
  target->native =
      (autosmc_target_fn)(void (*)(void))routine(list, "log_density");
  target->release =
      (autosmc_release_fn)(void (*)(void))routine(list, "release");
  target->settle = (void (*)(void *))(void (*)(void))routine(list, "settle");
  autosmc_init_fn init = (autosmc_init_fn)(void (*)(void))routine(list, "init");
  target->team =
      Rf_asLogical(r_element(list, "thread_safe")) == TRUE ? team : NULL;
  int n = target->settle ? 1 : smc_team_size(target->team);
  target->contexts = (void **)R_alloc((size_t)n, sizeof *target->contexts);
  memset(target->contexts, 0, (size_t)n * sizeof *target->contexts);
  for (; init && target->n_contexts < n; target->n_contexts++)
    target->contexts[target->n_contexts] = init(r_element(list, "data"));
}

void r_target_end(r_target *target) {
  for (; target->n_contexts > 0; target->n_contexts--)
    if (target->release)
      target->release(target->contexts[target->n_contexts - 1]);
}

/* R functions ------------------------------------------------------------- */

/* Copy an n x d (or n) result of the R function, whose shape R has checked. */
static void take_result(SEXP result, const char *name, int d, int n,
                        double *out) {
  SEXP value = r_element(result, name);
  if (!Rf_isReal(value) || XLENGTH(value) != (R_xlen_t)d * n)
    Rf_error("internal error: `%s` of the target has a wrong shape", name);
  r_transpose(n, d, REAL(value), out);
}

/* Returns how many calls of the user's function that took. */
static double evaluate_function(SEXP evaluate, int d, int n, const double *x,
                                double *logp, double *grad) {
  SEXP points = PROTECT(Rf_allocMatrix(REALSXP, n, d));
  r_transpose(d, n, x, REAL(points));
  SEXP gradient = PROTECT(Rf_ScalarLogical(grad != NULL));
  SEXP call = PROTECT(Rf_lang3(evaluate, points, gradient));
  SEXP result = PROTECT(Rf_eval(call, R_GlobalEnv));
  take_result(result, "log_density", 1, n, logp);
  if (grad)
    take_result(result, "gradient", d, n, grad);
  SEXP n_calls = r_element(result, "n_calls");
  double calls = n_calls == R_NilValue ? n : Rf_asReal(n_calls);
  UNPROTECT(4);
  return calls;
}

/* Row k of an n x d matrix, as a new vector with these names. Not protected. */
static SEXP point_at(SEXP x, int k, SEXP names) {
  int n = Rf_nrows(x), d = Rf_ncols(x);
  SEXP point = PROTECT(Rf_allocVector(REALSXP, d));
  for (int i = 0; i < d; i++)
    REAL(point)[i] = REAL(x)[k + (R_xlen_t)n * i];
  Rf_setAttrib(point, R_NamesSymbol, names);
  UNPROTECT(1);
  return point;
}

/* A list of the values of the call `f(at)` in an environment that has f, where
 * `at` is one row of x after another. May leave by a long jump. */
SEXP r_at_each_point(SEXP call, SEXP env, SEXP x, SEXP names) {
  int n = Rf_nrows(x);
  SEXP values = PROTECT(Rf_allocVector(VECSXP, n));
  for (int k = 0; k < n; k++) {
    SEXP point = PROTECT(point_at(x, k, names));
    Rf_defineVar(CADR(call), point, env);
    SET_VECTOR_ELT(values, k, Rf_eval(call, env));
    UNPROTECT(1);
  }
  UNPROTECT(1);
  return values;
}

/* A number, or a vector of them, without a class of its own. */
static int is_plain(SEXP value, int length) {
  return (TYPEOF(value) == REALSXP || TYPEOF(value) == INTSXP) &&
         !Rf_isObject(value) && XLENGTH(value) == length;
}

static double number_at(SEXP value, int i) {
  if (TYPEOF(value) == REALSXP)
    return REAL(value)[i];
  return INTEGER(value)[i] == NA_INTEGER ? NA_REAL : INTEGER(value)[i];
}

/* What a function of one point has returned at each, a list, as the rows of a
 * matrix of doubles; NULL where one of the values is not plain. */
SEXP r_bind_points(SEXP values, SEXP n_columns) {
  int n = Rf_length(values), d = Rf_asInteger(n_columns);
  for (int k = 0; k < n; k++)
    if (!is_plain(VECTOR_ELT(values, k), d))
      return R_NilValue;
  SEXP matrix = PROTECT(Rf_allocMatrix(REALSXP, n, d));
  for (int k = 0; k < n; k++)
    for (int i = 0; i < d; i++)
      REAL(matrix)[k + (R_xlen_t)n * i] = number_at(VECTOR_ELT(values, k), i);
  UNPROTECT(1);
  return matrix;
}

/* Whether one of the values, a list, has an attribute "gradient". */
SEXP r_carries_gradient(SEXP values) {
  SEXP name = Rf_install("gradient");
  for (R_xlen_t k = 0; k < XLENGTH(values); k++)
    if (Rf_getAttrib(VECTOR_ELT(values, k), name) != R_NilValue)
      return Rf_ScalarLogical(1);
  return Rf_ScalarLogical(0);
}

/* evaluation -------------------------------------------------------------- */

/* Points for the threads of a team. */
typedef struct points {
  const r_target *target;
  int d;
  const double *x;
  double *logp, *grad;
  atomic_llong failure; /* of the first block that failed, with its code      */
} points;

/* No block that failed has a larger number. */
static const long long no_failure = LLONG_MAX;

/* Which block comes first does not depend on which was first in time. */
static void note_failure(points *p, int index, int code) {
  long long mine = ((long long)index << 32) | (unsigned)code;
  long long first = atomic_load(&p->failure);
  while (mine < first &&
         !atomic_compare_exchange_weak(&p->failure, &first, mine))
    continue;
}

static void evaluate_block(void *context, const smc_work *work) {
  points *p = context;
  const r_target *target = p->target;
  size_t at = smc_size(p->d, work->first);
  int code = target->native(target->contexts[target->settle ? 0 : work->thread],
                            p->d, work->n, p->x + at, p->logp + work->first,
                            p->grad ? p->grad + at : NULL);
  if (code)
    note_failure(p, work->index, code);
}

/* Seconds between two looks for an interrupt, and the points before the first,
 * a thread. */
static const double patience = 0.1;
enum { FIRST_POINTS = 8 };

static int points_until_look(const r_target *target, int left) {
  double n_threads = smc_team_size(target->team);
  double n = target->pace > 0.0 ? patience / target->pace : 0.0;
  return (int)fmin(left, n_threads * fmax(FIRST_POINTS, n));
}

/* May leave by a long jump, where no thread is at work. */
static int evaluate_native(r_target *target, int d, int n, const double *x,
                           double *logp, double *grad) {
  for (int first = 0, now; first < n; first += now) {
    size_t at = smc_size(d, first);
    points p = {.target = target,
                .d = d,
                .x = x + at,
                .logp = logp + first,
                .grad = grad ? grad + at : NULL};
    atomic_init(&p.failure, no_failure);
    now = points_until_look(target, n - first);
    R_CheckUserInterrupt();
    smc_for_blocks(target->team, now, &target->pace, evaluate_block, &p);
    long long failure = atomic_load(&p.failure);
    if (failure != no_failure)
      return (int)(unsigned)(failure & 0xffffffffLL);
  }
  return 0;
}

int r_target_evaluate(void *data, int d, int n, const double *x, double *logp,
                      double *grad) {
  r_target *target = data;
  if (!target->native) {
    target->n_calls += evaluate_function(target->evaluate, d, n, x, logp, grad);
    return 0;
  }
  int failure = target->team || target->settle
                    ? evaluate_native(target, d, n, x, logp, grad)
                    : target->native(target->contexts[0], d, n, x, logp, grad);
  if (target->settle)
    target->settle(target->contexts[0]);
  return failure;
}
