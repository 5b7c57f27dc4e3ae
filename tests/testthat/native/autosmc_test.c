/* autosmc_test.c: compiled targets for the tests, and what they count. */
#define R_NO_REMAP
#include <R_ext/Rdynload.h>
#include <Rinternals.h>
#include <autosmc.h>

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* the help page's example: independent normals around given means --------- */

void *normal_init(SEXP data) { return REAL(data); }

int normal(void *data, int d, int n, const double *x, double *logp,
           double *grad) {
  const double *mean = data;
  for (int k = 0; k < n; k++) {
    logp[k] = 0.0;
    for (int i = 0; i < d; i++) {
      double r = x[i + d * k] - mean[i];
      logp[k] -= 0.5 * r * r;
      if (grad)
        grad[i + d * k] = -r;
    }
  }
  return 0;
}

/* x^(a - 1) exp(-b x) in every variable; data: c(a, b) --------------------- */

static double least, most; /* of the points that gamma_density has seen */

void *gamma_init(SEXP data) {
  least = INFINITY;
  most = -INFINITY;
  return REAL(data);
}

int gamma_density(void *data, int d, int n, const double *x, double *logp,
                  double *grad) {
  double a = ((double *)data)[0], b = ((double *)data)[1];
  for (int k = 0; k < n; k++) {
    logp[k] = 0.0;
    for (int i = 0; i < d; i++) {
      double at = x[i + d * k];
      logp[k] += (a - 1.0) * log(at) - b * at;
      if (grad)
        grad[i + d * k] = (a - 1.0) / at - b;
      least = fmin(least, at);
      most = fmax(most, at);
    }
  }
  return 0;
}

/* .Call: c(least, most) */
SEXP gamma_range(void) {
  SEXP range = PROTECT(Rf_allocVector(REALSXP, 2));
  REAL(range)[0] = least;
  REAL(range)[1] = most;
  UNPROTECT(1);
  return range;
}

/* standard normals, without a context ------------------------------------- */

int standard(void *data, int d, int n, const double *x, double *logp,
             double *grad) {
  double *mean = calloc((size_t)d, sizeof(double));
  int code = data ? 1 : normal(mean, d, n, x, logp, grad);
  free(mean);
  return code;
}

/* standard normals that watch how many calls there are at once ------------- */

static atomic_int inside, most_inside, elsewhere;
static pthread_t main_thread;

void *watched_init(SEXP data) {
  main_thread = pthread_self();
  most_inside = elsewhere = 0;
  return REAL(data);
}

/* Sleeps, so that another thread has the time to come in. */
int watched(void *data, int d, int n, const double *x, double *logp,
            double *grad) {
  int now = atomic_fetch_add(&inside, 1) + 1, most = most_inside;
  while (now > most && !atomic_compare_exchange_weak(&most_inside, &most, now))
    continue;
  if (!pthread_equal(pthread_self(), main_thread))
    elsewhere++;
  nanosleep(&(struct timespec){0, 200000L}, NULL);
  int code = normal(data, d, n, x, logp, grad);
  inside--;
  return code;
}

/* .Call: c(the most calls at once, calls on other threads than R's) */
SEXP watched_totals(void) {
  SEXP totals = PROTECT(Rf_allocVector(INTSXP, 2));
  INTEGER(totals)[0] = most_inside;
  INTEGER(totals)[1] = elsewhere;
  UNPROTECT(1);
  return totals;
}

/* one that counts, and fails at a chosen call ------------------------------ */

enum mode { NEVER, RETURN_CODE, RAISE_ERROR, SLEEP, KILL_ALL };

typedef struct counter {
  int mode, at; /* what to do, at which call */
  int calls;
  double points;
} counter;

static int live = 0; /* contexts that were made and not yet released */
static int made = 0;
static double points = 0.0; /* of the contexts that were released    */

/* data: c(mode, at) */
void *counted_init(SEXP data) {
  if (Rf_xlength(data) != 2)
    Rf_error("counted_init: data of a wrong length");
  counter *c = calloc(1, sizeof *c);
  c->mode = (int)REAL(data)[0];
  c->at = (int)REAL(data)[1];
  live++;
  made++;
  return c;
}

void counted_release(void *data) {
  counter *c = data;
  points += c->points;
  live--;
  free(c);
}

int counted(void *data, int d, int n, const double *x, double *logp,
            double *grad) {
  counter *c = data;
  c->calls++;
  c->points += n;
  if (c->mode == RETURN_CODE && c->calls == c->at)
    return 42;
  if (c->mode == RAISE_ERROR && c->calls == c->at)
    Rf_error("raised at call %d", c->at);
  if (c->mode == SLEEP)
    nanosleep(&(struct timespec){0, 1000000L * c->at}, NULL);
  int code = standard(NULL, d, n, x, logp, grad);
  if (c->mode == KILL_ALL && c->calls >= c->at)
    for (int k = 0; k < n; k++)
      logp[k] = k % 2 ? -INFINITY : NAN;
  return code;
}

/* .Call: c(live, made, points), and the last two back to zero */
SEXP counted_totals(void) {
  SEXP totals = PROTECT(Rf_allocVector(REALSXP, 3));
  REAL(totals)[0] = live;
  REAL(totals)[1] = made;
  REAL(totals)[2] = points;
  made = 0;
  points = 0.0;
  UNPROTECT(1);
  return totals;
}

/* a routine that is known by registration only ----------------------------- */

static int hidden(void *data, int d, int n, const double *x, double *logp,
                  double *grad) {
  return standard(data, d, n, x, logp, grad);
}

void R_init_autosmc_test(DllInfo *dll) {
  static const R_CMethodDef routines[] = {
      {"registered", (DL_FUNC)(void (*)(void))hidden, -1, NULL},
      {NULL, NULL, 0, NULL}};
  R_registerRoutines(dll, routines, NULL, NULL, NULL);
}
