/* test_scout.c: paths on normal and on other densities, and the normal
 * distributions along them against the formula of BFGS written out. */
#include "check.h"
#include "scout.h"

#include <stdlib.h>
#include <string.h>

enum { D = 7, MOST = 200 };

/* densities --------------------------------------------------------------- */

/* A normal density with precisions from 1 to 100 and correlations, or a banana
 * of it; the gradient in g. */
static double density(bool is_bent, const double *x, double *g) {
  double f = 0.0, last = 0.0;
  memset(g, 0, D * sizeof(double));
  for (int i = 0; i < D; i++) {
    double centre =
        i > 0 ? (is_bent ? x[i - 1] * x[i - 1] : x[i - 1]) / 2 : 3.0;
    double slope = i > 0 ? (is_bent ? x[i - 1] : 0.5) : 0.0;
    double precision = pow(100.0, i / (D - 1.0));
    last = precision * (x[i] - centre);
    f -= last * (x[i] - centre) / 2.0;
    g[i] -= last;
    if (i > 0)
      g[i - 1] += slope * last;
  }
  return f;
}

static smc_climb new_climb(void **memory) {
  smc_arena arena = {0};
  smc_climb_layout(&arena, D, MOST + 1);
  *memory = take_memory(arena.used);
  arena = (smc_arena){.base = *memory};
  smc_climb climb = smc_climb_layout(&arena, D, MOST + 1);
  climb.tolerance = 1e-10;
  return climb;
}

/* A path from x; `hidden`: the density is 0 at so many of the first trials. */
static void climb_from(bool is_bent, int hidden, const double *x,
                       smc_climb *climb) {
  double at[D], g[D], f = density(is_bent, x, g);
  smc_climb_begin(climb, x, f, g);
  for (int tick = 0; tick < MOST && !climb->is_done; tick++) {
    for (int i = 0; i < D; i++)
      at[i] = smc_climb_trial(climb, i);
    f = density(is_bent, at, g);
    smc_climb_advance(climb, tick < hidden ? -INFINITY : f, g);
  }
}

/* paths -------------------------------------------------------------------- */

static void test_paths(void) {
  dice r = {51};
  long falls = 0, astray = 0, wrong = 0, points = 0, paths = 0;
  for (int k = 0; k < 60; k++, paths++) {
    void *memory;
    smc_climb climb = new_climb(&memory);
    double x[D], g[D];
    for (int i = 0; i < D; i++)
      x[i] = (k % 3 == 2 ? 1.0 : 10.0) * dice_normal(&r);
    climb_from(k % 3 == 2, k % 5, x, &climb);
    for (int n = 0; n < climb.n; n++, points++) {
      double f = density(k % 3 == 2, climb.x + n * D, g);
      wrong += f != climb.f[n] || memcmp(g, climb.g + n * D, sizeof g) != 0;
      falls += n > 0 && climb.f[n] < climb.f[n - 1];
      for (int i = 0; i < D; i++)
        wrong += !(climb.alpha[n * D + i] > 0.0);
    }
    if (k % 3 < 2)
      astray += !climb.is_done || climb.f[climb.n - 1] < -1e-6;
    free(memory);
  }
  CHECK_NONE(wrong, points, "points are as they were evaluated");
  CHECK_NONE(falls, points, "a path rises");
  CHECK_NONE(astray, paths, "a path ends at the mode of a normal density");
}

/* A density that falls to no side: the path ends at once, and one that rises
 * without end goes on by longer steps. */
static void test_slopes(void) {
  void *memory;
  smc_climb climb = new_climb(&memory);
  double x[D] = {0.0}, g[D] = {0.0};
  smc_climb_begin(&climb, x, 1.0, g);
  CHECK(climb.is_done);
  g[0] = 1.0;
  smc_climb_begin(&climb, x, 0.0, g);
  for (int k = 0; k < 20; k++)
    smc_climb_advance(&climb, smc_climb_trial(&climb, 0), g);
  CHECK(!climb.is_done);
  CHECK_NEAR(climb.f[climb.n - 1], pow(2.0, 20.0) - 1.0, 1e-6);
  free(memory);
}

/* normals -------------------------------------------------------------------
 */

/* H (D x D) after a pair of differences, by the formula of BFGS. */
static void update(double *H, const double *s, const double *y) {
  double Hy[D], product = 0.0, square = 0.0;
  for (int i = 0; i < D; i++) {
    Hy[i] = 0.0;
    for (int j = 0; j < D; j++)
      Hy[i] += H[i + D * j] * y[j];
    product += s[i] * y[i];
  }
  for (int i = 0; i < D; i++)
    square += y[i] * Hy[i];
  for (int i = 0; i < D; i++)
    for (int j = 0; j < D; j++)
      H[i + D * j] += (1.0 + square / product) * s[i] * s[j] / product -
                      (Hy[i] * s[j] + s[i] * Hy[j]) / product;
}

/* The inverse Hessian at point k of a path, from its last 20 pairs. */
static int written_out(const smc_climb *climb, int k, double *H) {
  int first = k, n = 0;
  for (; first > 0 && n < 20; first--)
    n += climb->is_pair[first];
  for (int i = 0; i < D * D; i++)
    H[i] = i % (D + 1) == 0 ? climb->alpha[k * D + i / D] : 0.0;
  for (int j = first + 1; j <= k; j++) {
    double s[D], y[D];
    for (int i = 0; i < D; i++) {
      s[i] = climb->x[j * D + i] - climb->x[(j - 1) * D + i];
      y[i] = climb->g[(j - 1) * D + i] - climb->g[j * D + i];
    }
    if (climb->is_pair[j])
      update(H, s, y);
  }
  return n;
}

/* The log of the determinant of a lower triangle's product, by elimination. */
static double log_det_of(double *H) {
  double sum = 0.0;
  for (int j = 0; j < D; j++) {
    sum += log(H[j * (D + 1)]);
    for (int i = j + 1; i < D; i++)
      for (int k = D - 1; k >= j; k--)
        H[i + D * k] -= H[i + D * j] / H[j * (D + 1)] * H[j + D * k];
  }
  return sum;
}

static void test_normals(void) {
  dice r = {52};
  void *memory, *more;
  smc_climb climb = new_climb(&memory);
  smc_arena arena = {0};
  smc_climb_normal_layout(&arena, D);
  more = take_memory(arena.used);
  arena = (smc_arena){.base = more};
  smc_climb_normal normal = smc_climb_normal_layout(&arena, D);
  double x[D], H[D * D], S[D * D], off = 0.0, off_mean = 0.0, off_det = 0.0;
  long wrong = 0, tried = 0;
  for (int i = 0; i < D; i++)
    x[i] = dice_normal(&r);
  climb_from(true, 0, x, &climb);
  for (int k = 0; k < climb.n && climb.f[k] < -1e-3; k++, tried++) {
    int n = written_out(&climb, k, H);
    wrong += smc_climb_normal_at(&climb, k, false, &normal) != (n > 0);
    memset(S, 0, sizeof S);
    for (int j = 0; j < D; j++) {
      S[j * (D + 1)] = 1.0;
      smc_climb_normal_scale(&normal, S + D * j);
    }
    for (int i = 0; i < D; i++) {
      double mean = climb.x[k * D + i];
      for (int j = 0; j < D; j++) {
        double sum = -H[i + D * j];
        for (int l = 0; l < D; l++)
          sum += S[i + D * l] * S[j + D * l];
        off = fmax(off, fabs(sum) / sqrt(H[i * (D + 1)] * H[j * (D + 1)]));
        mean += H[i + D * j] * climb.g[k * D + j];
      }
      off_mean = fmax(off_mean, fabs(mean - normal.mean[i]) / (1 + fabs(mean)));
    }
    off_det = fmax(off_det, fabs(2.0 * normal.log_det - log_det_of(H)));
  }
  CHECK(tried > 25); /* so that the first pairs are forgotten */
  CHECK_NONE(wrong, tried, "a normal is known with the first pair");
  CHECK_NEAR(off, 0.0, 1e-6);
  CHECK_NEAR(off_mean, 0.0, 1e-6);
  CHECK_NEAR(off_det, 0.0, 1e-6);
  /* its diagonal */
  CHECK(smc_climb_normal_at(&climb, 9, true, &normal));
  double z[D], log_det = 0.0;
  for (int i = 0; i < D; i++) {
    z[i] = 1.0;
    log_det += log(climb.alpha[9 * D + i]) / 2.0;
  }
  smc_climb_normal_scale(&normal, z);
  CHECK_NEAR(z[D - 1], sqrt(climb.alpha[10 * D - 1]), 1e-12);
  CHECK_NEAR(normal.log_det, log_det, 1e-12);
  free(more);
  free(memory);
}

void test_scout(void) {
  test_paths();
  test_slopes();
  test_normals();
}
