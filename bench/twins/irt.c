/* irt.c: the log densities of posteriordb's grsm_latent_reg_irt and
 * gpcm_latent_reg_irt and their gradients.
 *
 * A response is one of the steps of its item. What is left of a step is what
 * the person's ability, times the item's discrimination, is above the step's
 * difficulty: the item's and the step's in the graded model, one of its own
 * in the other. Difficulties sum to zero: the last of them is no coordinate. */
#include <Rinternals.h>
#include <autosmc.h>
#include <math.h>
#include <string.h>

enum { MOST_STEPS = 15 };

typedef struct {
  int n_items, n_persons, n_covariates, n_responses;
  int n_first,
      n_second;       /* difficulties: of items and of steps, or n_second 0 */
  const int *n_steps; /* n_items */
  const int *first;   /* n_items: the first difficulty of an item */
  const int *item, *person, *response; /* n_responses, all from 0 */
  const double *w; /* n_persons x n_covariates, column-major */
  double *work;    /* 2 n_items + 2 n_first + 2 n_second */
} irt;

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
  const size_t n =
      (size_t)m->n_items + (size_t)m->n_first + (size_t)m->n_second;
  m->work = (double *)R_alloc(2 * n, sizeof(double));
  return m;
}

/* n difficulties that sum to zero, of n - 1 coordinates: normal with scale 3.
 */
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

int irt_density(void *data, int d, int n, const double *x, double *logp,
                double *grad) {
  const irt *m = data;
  const int I = m->n_items, first = I, second = first + m->n_first - 1;
  const int abilities = second + (m->n_second ? m->n_second - 1 : 0);
  const int slopes = abilities + m->n_persons;
  double *discrimination = m->work, *g_discrimination = discrimination + I;
  double *of_item = g_discrimination + I, *g_of_item = of_item + m->n_first;
  double *of_step = g_of_item + m->n_first, *g_of_step = of_step + m->n_second;
  const int own = m->n_second == 0; /* whether each item has steps of its own */
  double no_gradient[1024];         /* d is at most 530 */
  for (int k = 0; k < n; k++, x += d) {
    double *g = grad ? grad + (size_t)d * k : no_gradient;
    logp[k] = difficulties(m->n_first, x + first, of_item, g_of_item) +
              difficulties(m->n_second, x + second, of_step, g_of_step) +
              persons(m, x + abilities, x + slopes, g + abilities, g + slopes);
    for (int i = 0; i < I; i++) { /* log-normal */
      discrimination[i] = exp(x[i]);
      g_discrimination[i] = 0;
      logp[k] -= (x[i] - 1) * (x[i] - 1) / 2;
    }
    for (int r = 0; r < m->n_responses; r++) {
      const int i = m->item[r], at = m->first[i], n_steps = m->n_steps[i];
      const double ability = x[abilities + m->person[r]];
      double increment[MOST_STEPS], g_increment[MOST_STEPS], sum = 0;
      for (int s = 0; s < n_steps; s++)
        increment[s] = ability * discrimination[i] - of_item[at + own * s] -
                       (own ? 0 : of_step[s]);
      logp[k] += response(n_steps, m->response[r], increment, g_increment);
      for (int s = 0; s < n_steps; s++) {
        sum += g_increment[s];
        g_of_item[at + own * s] -= g_increment[s];
        if (!own)
          g_of_step[s] -= g_increment[s];
      }
      g[abilities + m->person[r]] += sum * discrimination[i];
      g_discrimination[i] += sum * ability;
    }
    for (int i = 0; i < I; i++)
      g[i] = 1 - x[i] + g_discrimination[i] * discrimination[i];
    difficulties_back(m->n_first, g_of_item, g + first);
    difficulties_back(m->n_second, g_of_step, g + second);
  }
  return 0;
}
