/* test_map_tails.c: coordinates that are skew or have other tails. */
#include "toy.h"

enum { D = TOY_D, N = TOY_N };

/* The first coordinate is a plain one, the third is skew with light tails. */
static const double location[D] = {0.3, -1.2, 0.0, 2.0};
static const double scale[D] = {1.5, 0.4, 1.0, 0.5};
static const double skew[D] = {0.0, 0.7, -0.5, 0.2};
static const double tail[D] = {1.0, 0.7, 1.6, 0.5};

static smc_map good_map(void) {
  return toy_tails(D, location, scale, skew, tail);
}

/* By the inverse, which is what makes the density explicit. */
static void test_inverse(void) {
  smc_map map = good_map();
  double z[D * N], u[D * N], off = 0.0;
  toy_fill(z, 800);
  map.kind->forward(&map, N, z, u, NULL);
  for (int i = 0; i < D * N; i++) {
    int j = i % D;
    double angle = asinh((u[i] - location[j]) / scale[j]);
    off = fmax(off, fabs(sinh(tail[j] * angle - skew[j]) - z[i]));
  }
  CHECK_NEAR(off, 0.0, 1e-11);
}

/* Without skew and with normal tails it is affine; skew stretches what is above
 * the centre, and heavy tails what is far from it. */
static void test_shape(void) {
  static const double one[1] = {1.0}, none[1] = {0.0}, half[1] = {0.5};
  static const double ends[2] = {-2.0, 2.0};
  double u[2];
  smc_map affine = toy_tails(1, half, half, none, one);
  affine.kind->forward(&affine, 2, ends, u, NULL);
  CHECK_NEAR(u[0], 0.5 - 1.0, 1e-14);
  CHECK_NEAR(u[1], 0.5 + 1.0, 1e-14);
  smc_map skewed = toy_tails(1, none, one, half, one);
  skewed.kind->forward(&skewed, 2, ends, u, NULL);
  CHECK(u[1] > 2.0 && u[0] > -2.0);
  smc_map heavy = toy_tails(1, none, one, none, half);
  heavy.kind->forward(&heavy, 2, ends, u, NULL);
  CHECK(u[1] > 8.0); /* sinh(2 asinh(2)) = 4 sqrt(5) */
  CHECK_NEAR(u[1], 4.0 * sqrt(5.0), 1e-12);
  CHECK_NEAR(u[0], -u[1], 1e-12);
}

/* What makes no map, or not an increasing one, is rejected. */
static void test_validity(void) {
  static const double flat[D] = {1.0, 0.0, 1.0, 1.0};
  static const double negative[D] = {1.0, 1.0, 1.0, -0.5};
  double unknown[D] = {1.0, 1.0, 1.0, 1.0};
  unknown[2] = NAN;
  smc_map good = good_map();
  CHECK(good.kind->is_valid(&good));
  smc_map bad[] = {toy_tails(D, NULL, scale, skew, tail),
                   toy_tails(D, location, NULL, skew, tail),
                   toy_tails(D, location, scale, NULL, tail),
                   toy_tails(D, location, scale, skew, NULL),
                   toy_tails(D, location, flat, skew, tail),
                   toy_tails(D, location, negative, skew, tail),
                   toy_tails(D, location, unknown, skew, tail),
                   toy_tails(D, location, scale, skew, flat),
                   toy_tails(D, location, scale, skew, negative),
                   toy_tails(D, location, scale, skew, unknown),
                   good_map()};
  const int n_bad = (int)(sizeof bad / sizeof bad[0]);
  bad[n_bad - 1].parameters[2].size = D - 1;
  toy_check_invalid(n_bad, bad, "a map of tails is checked");
}

void test_map_tails(void) {
  smc_map map = good_map();
  test_inverse();
  test_shape();
  toy_check_gradient(&map, 801);
  toy_check_jacobian(&map, 802);
  toy_check_inverse(&map, 803);
  test_validity();
}
