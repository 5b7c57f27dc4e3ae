/* test_vecmath.c: sums over log weights of any size. */
#include "check.h"
#include "vecmath.h"

#include <float.h>
#include <string.h>

enum { N = 1000 };

static double sum_of(int n, const double *w) {
  double sum = 0.0;
  for (int i = 0; i < n; i++)
    sum += w[i];
  return sum;
}

static void test_log_sum(void) {
  dice r = {1};
  double x[N], shifted[N], w[N];
  double direct = 0.0;
  for (int i = 0; i < N; i++) {
    x[i] = dice_between(&r, -20.0, 20.0);
    direct += exp(x[i]);
  }
  CHECK_NEAR(smc_normalise(N, x, w), log(direct), 1e-13);
  static const double shifts[] = {-1e8, -745.0, 3.0, 800.0, 1e8};
  for (int s = 0; s < 5; s++) {
    for (int i = 0; i < N; i++)
      shifted[i] = x[i] + shifts[s];
    /* each shifted value is off by half a unit in its last place */
    double rounding = DBL_EPSILON * (fabs(shifts[s]) + 100.0);
    CHECK_NEAR(smc_normalise(N, shifted, w) - shifts[s], smc_normalise(N, x, w),
               rounding);
  }

  const double huge[3] = {1e300, -1e300, -INFINITY};
  CHECK(smc_normalise(3, huge, w) == 1e300);
  const double low[3] = {-INFINITY, -1e300, -INFINITY};
  CHECK(smc_normalise(3, low, w) == -1e300);
  const double two[2] = {-1e5, -1e5};
  CHECK_NEAR(smc_normalise(2, two, w), -1e5 + log(2.0), 2e-11);
  const double dead[2] = {-INFINITY, -INFINITY};
  CHECK(smc_normalise(2, dead, w) == -INFINITY);
  CHECK(smc_normalise(1, huge, w) == 1e300);
  CHECK(smc_max(3, huge) == 1e300 && smc_max(2, dead) == -INFINITY);
}

/* Weights sum to one, stand in the right order, and are zero where dead. */
static void test_normalise(void) {
  static const double offsets[] = {0.0,  1e3,    -1e3,  1e16,    -1e16,
                                   3e17, -1e300, 1e300, 1.7e308, -1.7e308};
  static const double scales[] = {0.0, 1e-3, 1.0, 50.0, 1e3, 1e16, 1e307};
  dice r = {2};
  double x[N], w[N];
  long bad_sum = 0, bad_order = 0, bad_dead = 0, bad_ess = 0, cases = 0;
  for (int o = 0; o < 10; o++)
    for (int s = 0; s < 7; s++)
      for (int dead = 0; dead < 2; dead++, cases++) {
        for (int i = 0; i < N; i++) {
          x[i] = offsets[o] * 0.5 + scales[s] * dice_normal(&r);
          if (dead && i % 3 == 0)
            x[i] = -INFINITY;
        }
        bad_sum += !isfinite(smc_normalise(N, x, w));
        bad_sum += !(fabs(sum_of(N, w) - 1.0) <= N * DBL_EPSILON);
        for (int i = 1; i < N; i++) {
          bad_order += (x[i] < x[i - 1] && w[i] > w[i - 1]) ||
                       (x[i] == x[i - 1] && w[i] != w[i - 1]);
          bad_dead += x[i] == -INFINITY && w[i] != 0.0;
        }
        double ess = smc_ess(N, w);
        bad_ess += !(ess >= 1.0 - 1e-12 && ess <= N * (1.0 + 1e-12));
      }
  CHECK_NONE(bad_sum, cases, "normalised weights sum to one");
  CHECK_NONE(bad_order, cases, "weights are ordered as their logarithms");
  CHECK_NONE(bad_dead, cases, "-Inf has weight zero");
  CHECK_NONE(bad_ess, cases, "1 <= ESS <= n");

  const double x3[3] = {log(1.0), log(2.0), log(5.0)};
  smc_normalise(3, x3, w);
  CHECK_NEAR(w[0], 0.125, 1e-15);
  CHECK_NEAR(w[1], 0.25, 1e-15);
  CHECK_NEAR(w[2], 0.625, 1e-15);
}

/* Shifts that are exact in floating point change no bit of the weights. */
static void test_shift_invariance(void) {
  dice r = {3};
  double x[N], shifted[N], w[N], w_shifted[N];
  long bad = 0;
  for (int i = 0; i < N; i++)
    x[i] = floor(dice_between(&r, -40960.0, 40960.0)) / 1024.0;
  smc_normalise(N, x, w);
  for (int power = 0; power <= 42; power++) {
    for (int i = 0; i < N; i++)
      shifted[i] = x[i] + (power % 2 ? -1.0 : 1.0) * ldexp(1.0, power);
    smc_normalise(N, shifted, w_shifted);
    bad += memcmp(w, w_shifted, sizeof w) != 0;
  }
  CHECK_NONE(bad, 43, "an exact shift leaves the weights as they are");
}

static void test_all_dead(void) {
  double x[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
  double w[4] = {0.1, 0.2, 0.3, 0.4};
  CHECK(smc_normalise(4, x, w) == -INFINITY);
  CHECK(w[0] == 0.1 && w[1] == 0.2 && w[2] == 0.3 && w[3] == 0.4);
}

static void test_ess(void) {
  static const double offsets[] = {0.0, -1e17, 1e17, -1e300, 1e300};
  double x[N], w[N];
  for (int o = 0; o < 5; o++) {
    for (int i = 0; i < N; i++)
      x[i] = offsets[o];
    smc_normalise(N, x, w);
    CHECK_NEAR(smc_ess(N, w), N, N * 1e-13);
    for (int i = 0; i < N; i++)
      x[i] = i == 17 ? offsets[o] : -INFINITY;
    smc_normalise(N, x, w);
    CHECK(smc_ess(N, w) == 1.0 && w[17] == 1.0);
  }
  const double three[3] = {0.5, 0.25, 0.25};
  CHECK_NEAR(smc_ess(3, three), 8.0 / 3.0, 1e-15 * 4);
}

void test_vecmath(void) {
  test_log_sum();
  test_normalise();
  test_shift_invariance();
  test_all_dead();
  test_ess();
  const double x[3] = {3.0, -4.0, 12.0};
  CHECK(smc_sum_of_squares(3, x) == 169.0);
  CHECK(smc_size(100000, 100000) == (size_t)100000 * 100000);
}
