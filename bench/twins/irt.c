/* irt.c: the log densities of posteriordb's grsm_latent_reg_irt and
 * gpcm_latent_reg_irt and their gradients.
 *
 * A response counts the steps that a person has taken on an item. The log
 * odds of one step more are the person's ability times the item's
 * discrimination, less a difficulty: the item's plus the step's in the first
 * model, one of each item's own steps in the second. Difficulties sum to zero:
 * the last of them is no coordinate. */
#include <Rinternals.h>
#include <autosmc.h>
#include <math.h>
#include <string.h>

enum { MOST_STEPS = 15 };

typedef struct {
  int n_items, n_persons, n_covariates, n_responses;
  int n_first;  /* difficulties: of items; in the second model of all steps */
  int n_second; /* of steps; 0 in the second model */
  const int *n_steps; /* n_items */
  const int *first;   /* n_items: the first difficulty of an item */
  const int *item, *person, *response; /* n_responses, all from 0 */
  const double *w; /* n_persons x n_covariates, column-major */
  /* of the present point, and gradients by these */
  double *discrimination, *g_discrimination; /* n_items */
  double *of_item, *g_of_item;               /* n_first */
  double *of_step, *g_of_step;               /* n_second */
  double *no_gradient; /* where a gradient goes that is not wanted */
} irt;

static double *doubles(int n) {
  return (double *)R_alloc((size_t)n, sizeof(double));
}

void *irt_init(SEXP data) {
  irt *m = (irt *)R_alloc(1, sizeof *m);
  const int *size = INTEGER(VECTOR_ELT(data, 0));
  m->n_items = size[0];
  m->n_persons = size[1];
  m->n_covariates = size[2];
  m->n_first = size[3];
  m->n_second = size[4];
  m->n_responses = Rf_length(VECTOR_ELT(data, 3));
  m->n_steps = INTEGER(VECTOR_ELT(data, 1));
  m->first = INTEGER(VECTOR_ELT(data, 2));
  m->item = INTEGER(VECTOR_ELT(data, 3));
  m->person = INTEGER(VECTOR_ELT(data, 4));
  m->response = INTEGER(VECTOR_ELT(data, 5));
  m->w = REAL(VECTOR_ELT(data, 6));
  for (int i = 0; i < m->n_items; i++)
    if (m->n_steps[i] > MOST_STEPS)
      Rf_error("an item has more than %d steps", MOST_STEPS);
  m->discrimination = doubles(m->n_items);
  m->g_discrimination = doubles(m->n_items);
  m->of_item = doubles(m->n_first);
  m->g_of_item = doubles(m->n_first);
  m->of_step = doubles(m->n_second);
  m->g_of_step = doubles(m->n_second);
  m->no_gradient = doubles(m->n_items + m->n_first + m->n_second +
                           m->n_persons + m->n_covariates);
  return m;
}

/* n difficulties of n - 1 coordinates; normal with scale 3. */
static double difficulties(int n, const double *x, double *all, double *g) {
  double log_density = 0, sum = 0;
  for (int i = 0; i < n - 1; i++) {
    all[i] = x[i];
    sum += x[i];
  }
  if (n > 0)
    all[n - 1] = -sum;
  for (int i = 0; i < n; i++) {
    log_density -= all[i] * all[i] / 18;
    g[i] = -all[i] / 9;
  }
  return log_density;
}

static void difficulties_back(int n, const double *g, double *gx) {
  for (int i = 0; i < n - 1; i++)
    gx[i] = g[i] - g[n - 1];
}

/* Abilities, normal about what the covariates predict, and their coefficients,
 * Student's t with three degrees of freedom. */
static double persons(const irt *m, const double *ability, const double *slope,
                      double *g_ability, double *g_slope) {
  double log_density = 0;
  for (int c = 0; c < m->n_covariates; c++) {
    log_density -= 2 * log1p(slope[c] * slope[c] / 3);
    g_slope[c] = -4 * slope[c] / (3 + slope[c] * slope[c]);
  }
  for (int j = 0; j < m->n_persons; j++) {
    double left = ability[j];
    for (int c = 0; c < m->n_covariates; c++)
      left -= m->w[j + m->n_persons * c] * slope[c];
    log_density -= left * left / 2;
    g_ability[j] = -left;
    for (int c = 0; c < m->n_covariates; c++)
      g_slope[c] += left * m->w[j + m->n_persons * c];
  }
  return log_density;
}

/* The log probability of a response of n steps, given the increments of the
 * log odds; sets its gradient by these. */
static double response(int n, int observed, const double *increment,
                       double *g) {
  double log_odds[MOST_STEPS + 1], largest = 0, total = 0, beyond = 0;
  log_odds[0] = 0;
  for (int s = 0; s < n; s++) {
    log_odds[s + 1] = log_odds[s] + increment[s];
    largest = fmax(largest, log_odds[s + 1]);
  }
  const double log_numerator = log_odds[observed] - largest;
  for (int s = 0; s <= n; s++) {
    log_odds[s] = exp(log_odds[s] - largest);
    total += log_odds[s];
  }
  for (int s = n - 1; s >= 0; s--) {
    beyond += log_odds[s + 1] / total;
    g[s] = (observed > s) - beyond;
  }
  return log_numerator - log(total);
}

/* The log likelihood; sets the gradient by the discriminations, and adds to
 * those by the difficulties and the abilities. */
static double responses(irt *m, const double *ability, double *g_ability) {
  const int own = m->n_second == 0; /* whether each item has steps of its own */
  double log_likelihood = 0;
  memset(m->g_discrimination, 0, (size_t)m->n_items * sizeof(double));
  for (int r = 0; r < m->n_responses; r++) {
    const int i = m->item[r], j = m->person[r], n = m->n_steps[i];
    const double *of_item = m->of_item + m->first[i];
    double *g_of_item = m->g_of_item + m->first[i];
    double increment[MOST_STEPS], g[MOST_STEPS], sum = 0;
    for (int s = 0; s < n; s++)
      increment[s] = ability[j] * m->discrimination[i] - of_item[own * s] -
                     (own ? 0 : m->of_step[s]);
    log_likelihood += response(n, m->response[r], increment, g);
    for (int s = 0; s < n; s++) {
      sum += g[s];
      g_of_item[own * s] -= g[s];
      if (!own)
        m->g_of_step[s] -= g[s];
    }
    g_ability[j] += sum * m->discrimination[i];
    m->g_discrimination[i] += sum * ability[j];
  }
  return log_likelihood;
}

int irt_density(void *data, int d, int n, const double *x, double *logp,
                double *grad) {
  irt *m = data;
  const int first = m->n_items, second = first + m->n_first - 1;
  const int abilities = second + (m->n_second ? m->n_second - 1 : 0);
  const int slopes = abilities + m->n_persons;
  for (int k = 0; k < n; k++, x += d) {
    double *g = grad ? grad + (size_t)d * k : m->no_gradient;
    for (int i = 0; i < m->n_items; i++)
      m->discrimination[i] = exp(x[i]);
    logp[k] = difficulties(m->n_first, x + first, m->of_item, m->g_of_item);
    logp[k] += difficulties(m->n_second, x + second, m->of_step, m->g_of_step);
    logp[k] += persons(m, x + abilities, x + slopes, g + abilities, g + slopes);
    logp[k] += responses(m, x + abilities, g + abilities);
    for (int i = 0; i < m->n_items; i++) { /* log-normal */
      logp[k] -= (x[i] - 1) * (x[i] - 1) / 2;
      g[i] = 1 - x[i] + m->g_discrimination[i] * m->discrimination[i];
    }
    difficulties_back(m->n_first, m->g_of_item, g + first);
    difficulties_back(m->n_second, m->g_of_step, g + second);
  }
  return 0;
}
