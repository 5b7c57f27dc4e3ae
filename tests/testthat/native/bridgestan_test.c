/* A library with the C interface of BridgeStan, for the program
 *
 *   data { real y; }
 *   parameters { real mu; real<lower=0> sigma; }
 *   transformed parameters { vector[2] twice; }
 *   model { mu ~ normal(y, 1); sigma ~ exponential(1); }
 *   generated quantities { real z; }
 *
 * that rejects mu > 100 + y, has no z for a negative mu, and is slow where mu
 * is -50. Without constants or the Jacobian the evidence would not be 1.
 */
#include <Rinternals.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  double y;
} bs_model;

typedef struct {
  unsigned int state;
} bs_rng;

static int n_alive; /* models, generators and messages that were not freed */

SEXP bs_test_alive(void) { return Rf_ScalarInteger(n_alive); }

static double n_calls; /* of the log density with its gradient */

SEXP bs_test_calls(void) { return Rf_ScalarReal(n_calls); }

static int fail(const char *text, char **message) {
  *message = malloc(strlen(text) + 1);
  strcpy(*message, text);
  n_alive++;
  return -1;
}

void bs_free_error_msg(char *message) {
  n_alive--;
  free(message);
}

bs_model *bs_model_construct(const char *data, unsigned int seed,
                             char **message) {
  const char *y = strstr(data, "\"y\":");
  (void)seed;
  if (!y) {
    fail("variable y not found", message);
    return NULL;
  }
  bs_model *model = malloc(sizeof *model);
  model->y = atof(y + 4);
  n_alive++;
  return model;
}

void bs_model_destruct(bs_model *model) {
  n_alive--;
  free(model);
}

const char *bs_param_unc_names(const bs_model *model) {
  (void)model;
  return "mu,sigma";
}

const char *bs_param_names(const bs_model *model, bool transformed,
                           bool generated) {
  (void)model;
  if (transformed)
    return generated ? "mu,sigma,twice.1,twice.2,z" : "mu,sigma,twice.1,twice.2";
  return generated ? "mu,sigma,z" : "mu,sigma";
}

int bs_param_num(const bs_model *model, bool transformed, bool generated) {
  (void)model;
  return 2 + 2 * transformed + generated;
}

int bs_param_constrain(const bs_model *model, bool transformed, bool generated,
                       const double *u, double *out, bs_rng *rng,
                       char **message) {
  (void)model;
  *out++ = u[0];
  *out++ = exp(u[1]);
  if (transformed) {
    *out++ = 2 * u[0];
    *out++ = 2 * exp(u[1]);
  }
  if (generated && u[0] < 0)
    return fail("no z for a negative mu", message);
  if (generated)
    *out = rng->state++;
  return 0;
}

int bs_log_density_gradient(const bs_model *model, bool propto, bool jacobian,
                            const double *u, double *value, double *gradient,
                            char **message) {
  double residual = u[0] - model->y;
  n_calls++;
  for (volatile int i = 0; i < (u[0] == -50 ? 100000 : 0); i++)
    ; /* there it takes its time */
  if (residual > 100)
    return fail("mu is too large", message);
  *value = -residual * residual / 2 - exp(u[1]);
  *value -= propto ? 0 : 0.918938533204672741780;
  *value += jacobian ? u[1] : 0;
  gradient[0] = -residual;
  gradient[1] = (jacobian ? 1 : 0) - exp(u[1]);
  return 0;
}

int bs_log_density(const bs_model *model, bool propto, bool jacobian,
                   const double *u, double *value, char **message) {
  double gradient[2];
  return bs_log_density_gradient(model, propto, jacobian, u, value, gradient,
                                 message);
}

bs_rng *bs_rng_construct(unsigned int seed, char **message) {
  (void)message;
  bs_rng *rng = malloc(sizeof *rng);
  rng->state = seed;
  n_alive++;
  return rng;
}

void bs_rng_destruct(bs_rng *rng) {
  n_alive--;
  free(rng);
}
