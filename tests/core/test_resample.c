/* test_resample.c: what every resampling scheme promises, and what each
 * promises beyond that. */
#include "check.h"
#include "resample.h"
#include "vecmath.h"

#include <stdlib.h>
#include <string.h>

enum { N_SCHEMES = 5, N_KINDS = 11 };

static const smc_resampling schemes[N_SCHEMES] = {
    SMC_RESAMPLE_SSP, SMC_RESAMPLE_SYSTEMATIC, SMC_RESAMPLE_STRATIFIED,
    SMC_RESAMPLE_RESIDUAL, SMC_RESAMPLE_MULTINOMIAL};

static const char *const names[N_SCHEMES] = {"ssp", "systematic", "stratified",
                                             "residual", "multinomial"};

/* weights of all kinds ---------------------------------------------------- */

static void divide_by_sum(int n, double *w) {
  double sum = 0.0;
  for (int i = 0; i < n; i++)
    sum += w[i];
  for (int i = 0; i < n; i++)
    w[i] /= sum;
}

/* Multiples k / m of 1 / m that sum to one. */
static void multiples(dice *r, int n, int m, double *w) {
  for (int i = 0; i < n; i++)
    w[i] = 0.0;
  for (int k = 0; k < m; k++)
    w[dice_int(r, 0, n - 1)] += 1.0;
  for (int i = 0; i < n; i++)
    w[i] /= m;
}

static void make_weights(dice *r, int kind, int n, int m, double *w) {
  static const double scales[] = {0.1, 1.0, 5.0, 50.0, 1000.0};
  int one = dice_int(r, 0, n - 1);
  switch (kind) {
  case 0:
  case 1:
  case 2:
  case 3:
  case 4: /* log normal, from nearly equal to extremely skewed */
    for (int i = 0; i < n; i++)
      w[i] = scales[kind] * dice_normal(r);
    smc_normalise(n, w, w);
    return;
  case 5: /* zeros in between, and at both ends */
    for (int i = 0; i < n; i++)
      w[i] = (i == 0 || i == n - 1 || dice_unit(r) < 0.5) ? 0.0 : dice_unit(r);
    w[one] = 1.0;
    break;
  case 6: /* one has it all */
    for (int i = 0; i < n; i++)
      w[i] = i == one ? 1.0 : 0.0;
    return;
  case 7:
    multiples(r, n, m, w);
    return;
  case 8: /* equal */
    for (int i = 0; i < n; i++)
      w[i] = 1.0 / n;
    return;
  case 9: /* many that are next to nothing */
    for (int i = 0; i < n; i++)
      w[i] = dice_unit(r) < 0.5 ? 1e-18 * dice_unit(r) : dice_unit(r);
    w[one] = 1.0;
    break;
  default: /* the sum is off by rounding, either way */
    for (int i = 0; i < n; i++)
      w[i] = dice_unit(r);
    divide_by_sum(n, w);
    for (int i = 0; i < n; i++)
      w[i] *= 1.0 + dice_between(r, -1.0, 1.0) * 0x1p-51;
    return;
  }
  divide_by_sum(n, w);
}

/* one drawing ------------------------------------------------------------- */

/* Memory of the very size that was asked for, so that the sanitizers see one
 * element too many. */
static int *draw(smc_resampling scheme, int n, const double *w, int m,
                 uint32_t seed) {
  const uint32_t key[2] = {seed, 1};
  smc_stream stream = smc_substream(key, SMC_STAGE_RESAMPLE, 1, 0);
  double *scratch = take_doubles(smc_resample_scratch(n, m));
  int *ancestors = take_memory((size_t)m * sizeof(int));
  for (int k = 0; k < m; k++)
    ancestors[k] = -1;
  smc_resample(scheme, n, w, m, &stream, ancestors, scratch);
  free(scratch);
  return ancestors;
}

typedef struct violations {
  long cases, range, order, zero, whole, floors, strata;
} violations;

/* Where m w is a whole number but for rounding, either neighbour will do. */
static bool near_whole(double x) { return fabs(x - nearbyint(x)) < 1e-9; }

static void examine(smc_resampling scheme, int n, const double *w, int m,
                    const int *ancestors, violations *v) {
  double *count = take_doubles((size_t)n);
  for (int i = 0; i < n; i++)
    count[i] = 0.0;
  v->cases++;
  for (int k = 0; k < m; k++) {
    if (ancestors[k] < 0 || ancestors[k] >= n) {
      v->range++;
      continue;
    }
    v->order += k > 0 && ancestors[k] < ancestors[k - 1];
    v->zero += w[ancestors[k]] == 0.0;
    count[ancestors[k]] += 1.0;
  }
  for (int i = 0; i < n; i++) {
    double expected = m * w[i];
    double low = floor(expected), high = ceil(expected);
    if (near_whole(expected)) {
      low = nearbyint(expected) - 1.0;
      high = nearbyint(expected) + 1.0;
    }
    if (scheme == SMC_RESAMPLE_SSP || scheme == SMC_RESAMPLE_SYSTEMATIC)
      v->whole += count[i] < low || count[i] > high;
    if (scheme == SMC_RESAMPLE_RESIDUAL)
      v->floors += count[i] < low;
    if (scheme == SMC_RESAMPLE_STRATIFIED)
      v->strata += !(fabs(count[i] - expected) < 2.0 + 1e-9);
  }
  free(count);
}

static void test_laws(void) {
  static const int sizes[][2] = {
      {1, 1},  {1, 5},   {2, 1},   {2, 2},    {2, 7},   {3, 2},    {7, 7},
      {10, 4}, {49, 49}, {49, 7},  {49, 98},  {98, 49}, {100, 10}, {10, 100},
      {64, 8}, {8, 64},  {128, 1}, {1000, 3}, {3, 999}, {500, 500}};
  for (int s = 0; s < N_SCHEMES; s++) {
    dice r = {100};
    violations v = {0};
    for (size_t z = 0; z < sizeof sizes / sizeof sizes[0]; z++)
      for (int kind = 0; kind < N_KINDS; kind++)
        for (uint32_t seed = 0; seed < 10; seed++) {
          int n = sizes[z][0], m = sizes[z][1];
          double *w = take_doubles((size_t)n);
          make_weights(&r, kind, n, m, w);
          int *ancestors = draw(schemes[s], n, w, m, seed);
          examine(schemes[s], n, w, m, ancestors, &v);
          free(ancestors);
          free(w);
        }
    const char *file = __FILE__;
    check_that(v.range == 0, file, __LINE__,
               "%s: %ld of the m ancestors missing or out of range", names[s],
               v.range);
    check_that(v.order == 0, file, __LINE__, "%s: %ld not ascending", names[s],
               v.order);
    check_that(v.zero == 0, file, __LINE__, "%s: %ld of zero weight", names[s],
               v.zero);
    check_that(v.whole == 0, file, __LINE__,
               "%s: %ld counts neither floor nor ceiling", names[s], v.whole);
    check_that(v.floors == 0, file, __LINE__, "%s: %ld counts below the floor",
               names[s], v.floors);
    check_that(v.strata == 0, file, __LINE__,
               "%s: %ld counts two or more from the mean", names[s], v.strata);
    CHECK(v.cases == 20 * N_KINDS * 10);
  }
}

/* Weights that are whole multiples of 1 / m in binary leave nothing to
 * chance, and nothing may be rounded. */
static void test_nothing_to_chance(void) {
  dice r = {101};
  for (int s = 0; s < 4; s++) { /* all but multinomial */
    if (schemes[s] == SMC_RESAMPLE_STRATIFIED)
      continue;
    long bad = 0;
    for (uint32_t seed = 0; seed < 200; seed++) {
      double w[16];
      int count[16] = {0};
      multiples(&r, 16, 64, w);
      int *ancestors = draw(schemes[s], 16, w, 64, seed);
      for (int k = 0; k < 64; k++)
        count[ancestors[k]]++;
      for (int i = 0; i < 16; i++)
        bad += count[i] != (int)(64 * w[i]);
      free(ancestors);
    }
    CHECK_NONE(bad, 200, names[s]);
  }
}

/* Where rounding leaves the sum short of one, a point may lie beyond it: that
 * must not reach the dead at the end. A sum short by far more than rounding
 * stands in for one short by an unlucky last bit. */
static void test_short_sum(void) {
  const double w[6] = {0.0, 0.4, 0.0, 0.3, 0.29, 0.0};
  for (int s = 0; s < N_SCHEMES; s++) {
    long bad = 0;
    for (uint32_t seed = 0; seed < 2000; seed++)
      for (int m = 1; m <= 9; m += 4) {
        int *ancestors = draw(schemes[s], 6, w, m, seed);
        for (int k = 0; k < m; k++)
          bad += ancestors[k] < 0 || ancestors[k] > 5 || w[ancestors[k]] == 0.0;
        free(ancestors);
      }
    CHECK_NONE(bad, 6000, names[s]);
  }
}

/* unbiased ---------------------------------------------------------------- */

enum { N_SMALL = 7, N_DRAWS = 20000, N_VECTORS = 5 };

static const double small_weights[N_VECTORS][N_SMALL] = {
    {0.05, 0.1, 0.15, 0.4, 0.15, 0.1, 0.05},
    {0.0, 0.3, 0.0, 0.3, 0.25, 0.15, 0.0},
    {0.9, 0.001, 0.019, 0.03, 0.01, 0.01, 0.03},
    {0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.88},
    {1 / 7.0, 1 / 7.0, 1 / 7.0, 1 / 7.0, 1 / 7.0, 1 / 7.0, 1 / 7.0}};

/* Means of all 7 counts: 4 standard errors each, of a count's own variance.
 * Multinomial counts are binomial: their variance too. */
static void check_counts(int s, const double *w, int m) {
  sample counts[N_SMALL] = {{0}}, squares[N_SMALL] = {{0}};
  for (uint32_t seed = 0; seed < N_DRAWS; seed++) {
    int *ancestors = draw(schemes[s], N_SMALL, w, m, 7000 + seed);
    double count[N_SMALL] = {0};
    for (int k = 0; k < m; k++)
      count[ancestors[k]] += 1.0;
    for (int i = 0; i < N_SMALL; i++) {
      double away = count[i] - m * w[i];
      sample_add(&counts[i], away);
      sample_add(&squares[i], away * away);
    }
    free(ancestors);
  }
  long biased = 0, wrong_spread = 0;
  for (int i = 0; i < N_SMALL; i++) {
    biased += !(fabs(sample_mean(&counts[i])) <=
                4.0 * sample_error(&counts[i]) + 1e-12);
    double variance = m * w[i] * (1.0 - w[i]);
    if (schemes[s] == SMC_RESAMPLE_SSP ||
        schemes[s] == SMC_RESAMPLE_SYSTEMATIC) {
      double fraction = m * w[i] - floor(m * w[i] + 1e-12);
      variance = fraction * (1.0 - fraction);
    } else if (schemes[s] != SMC_RESAMPLE_MULTINOMIAL) {
      continue;
    }
    wrong_spread += !(fabs(sample_mean(&squares[i]) - variance) <=
                      4.0 * sample_error(&squares[i]) + 1e-9);
  }
  check_that(biased == 0, __FILE__, __LINE__,
             "%s, m = %d: %ld mean counts are not m w", names[s], m, biased);
  check_that(wrong_spread == 0, __FILE__, __LINE__,
             "%s, m = %d: %ld variances of counts are wrong", names[s], m,
             wrong_spread);
}

/* Of 4 equal weights draw 2: how often are the first of each half drawn? The
 * strata have a uniform each, systematic resampling one for all. */
static void test_strata_are_independent(void) {
  const double w[4] = {0.25, 0.25, 0.25, 0.25};
  for (int s = 1; s <= 2; s++) {
    bool stratified = schemes[s] == SMC_RESAMPLE_STRATIFIED;
    double both = 0.0, expected = stratified ? 0.25 : 0.5;
    for (uint32_t seed = 0; seed < N_DRAWS; seed++) {
      int *a = draw(schemes[s], 4, w, 2, seed);
      both += a[0] == 0 && a[1] == 2;
      free(a);
    }
    CHECK_NEAR(both / N_DRAWS, expected,
               4.0 * sqrt(expected * (1.0 - expected) / N_DRAWS));
  }
}

static void test_pure_function(void) {
  double w[50];
  dice r = {102};
  make_weights(&r, 2, 50, 50, w);
  for (int s = 0; s < N_SCHEMES; s++) {
    int *a = draw(schemes[s], 50, w, 50, 1),
        *b = draw(schemes[s], 50, w, 50, 1);
    int *c = draw(schemes[s], 50, w, 50, 2);
    CHECK(memcmp(a, b, 50 * sizeof(int)) == 0);
    CHECK(memcmp(a, c, 50 * sizeof(int)) != 0);
    free(a);
    free(b);
    free(c);
  }
}

void test_resample(void) {
  static const int draws[] = {1, 4, 7, 20};
  test_laws();
  test_nothing_to_chance();
  test_short_sum();
  for (int s = 0; s < N_SCHEMES; s++)
    for (int v = 0; v < N_VECTORS; v++)
      for (int j = 0; j < 4; j++)
        check_counts(s, small_weights[v], draws[j]);
  test_strata_are_independent();
  test_pure_function();
}
