/* lda.c: the log density of posteriordb's ldaK2 and its gradient.
 *
 * Two topics. A simplex has the coordinates that Stan gives it, an isometric
 * log ratio: one for the topics of each document, then those of the words of
 * either topic. */
#include <Rinternals.h>
#include <autosmc.h>
#include <math.h>
#include <string.h>

typedef struct {
  int n_words, n_documents, n_cells;
  const int *cell; /* 3 x n_cells: document, word (from 0), occurrences */
  double *work;    /* 4 n_documents + 4 n_words */
} lda;

void *lda_init(SEXP data) {
  lda *m = (lda *)R_alloc(1, sizeof *m);
  m->n_words = Rf_asInteger(VECTOR_ELT(data, 0));
  m->n_documents = Rf_asInteger(VECTOR_ELT(data, 1));
  m->n_cells = Rf_length(VECTOR_ELT(data, 2)) / 3;
  m->cell = INTEGER(VECTOR_ELT(data, 2));
  m->work = (double *)R_alloc(4 * (size_t)(m->n_words + m->n_documents),
                              sizeof(double));
  return m;
}

/* The k probabilities of y[k - 1]; returns the log determinant. */
static double simplex(int k, const double *y, double *p) {
  double sum = 0, largest = -INFINITY, total = 0, log_det = log(k) / 2;
  p[k - 1] = 0;
  for (int i = k - 1; i >= 1; i--) {
    const double w = y[i - 1] / sqrt((double)i * (i + 1));
    sum += w;
    p[i - 1] = sum;
    p[i] -= w * i;
  }
  for (int i = 0; i < k; i++)
    largest = fmax(largest, p[i]);
  for (int i = 0; i < k; i++) {
    log_det += p[i] - largest;
    p[i] = exp(p[i] - largest);
    total += p[i];
  }
  for (int i = 0; i < k; i++)
    p[i] /= total;
  return log_det - k * log(total);
}

/* The gradient by y of a function whose gradient by log p is g. */
static void simplex_back(int k, const double *g, const double *p, double *gy) {
  double total = 0, before = 0;
  for (int i = 0; i < k; i++)
    total += g[i];
  for (int i = 1; i < k; i++) {
    before += g[i - 1] - p[i - 1] * total;
    gy[i - 1] =
        (before - i * (g[i] - p[i] * total)) / sqrt((double)i * (i + 1));
  }
}

int lda_density(void *data, int d, int n, const double *x, double *logp,
                double *grad) {
  const lda *m = data;
  const int V = m->n_words, M = m->n_documents;
  double *share = m->work, *g_share = share + 2 * M;
  double *word = g_share + 2 * M, *g_word = word + 2 * V;
  for (int k = 0; k < n; k++, x += d) {
    logp[k] = 0;
    for (int i = 0; i < M; i++)
      logp[k] += simplex(2, x + i, share + 2 * i);
    for (int topic = 0; topic < 2; topic++)
      logp[k] += simplex(V, x + M + topic * (V - 1), word + topic * V);
    for (int i = 0; i < 2 * M; i++)
      g_share[i] = 1;
    for (int i = 0; i < 2 * V; i++)
      g_word[i] = 1;
    for (int c = 0; c < m->n_cells; c++) {
      const int *cell = m->cell + 3 * c;
      double *g_of = g_share + 2 * cell[0];
      const double first = share[2 * cell[0]] * word[cell[1]];
      const double second = share[2 * cell[0] + 1] * word[V + cell[1]];
      const double each = cell[2] / (first + second);
      logp[k] += cell[2] * log(first + second);
      g_of[0] += first * each;
      g_of[1] += second * each;
      g_word[cell[1]] += first * each;
      g_word[V + cell[1]] += second * each;
    }
    if (!grad)
      continue;
    double *g = grad + (size_t)d * k;
    for (int i = 0; i < M; i++)
      simplex_back(2, g_share + 2 * i, share + 2 * i, g + i);
    for (int topic = 0; topic < 2; topic++)
      simplex_back(V, g_word + topic * V, word + topic * V,
                   g + M + topic * (V - 1));
  }
  return 0;
}
