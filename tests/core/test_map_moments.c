/* test_map_moments.c: coordinates whose location and scale depend on others. */
#include "toy.h"

#include <stdlib.h>
#include <string.h>

enum { D = TOY_D, N = TOY_N, P = 2, K = 8, SIZE = 8 };
enum { ORDER_AT, FEATURES_AT, LOCATION_AT, LOG_SCALE_AT };
enum { LINEAR = 1, SQUARE, CUBE, EXPONENTIAL, SOFTPLUS };

/* Coordinates 3 and 1 depend on 2 and 4 by all kinds of functions, and by two
 * products of two. */
static const double order[P] = {3, 1};
static const double features[SIZE * K] = {
    0, 0,           0,    0,   0, 0,        0,   0,    /* 1 */
    2, LINEAR,      0.7,  0.2, 0, 0,        0,   0,    /* */
    4, SQUARE,      0.5,  1.0, 0, 0,        0,   0,    /* */
    2, CUBE,        0.4,  0.1, 0, 0,        0,   0,    /* */
    4, EXPONENTIAL, -0.6, 0.3, 0, 0,        0,   0,    /* */
    2, SOFTPLUS,    2.0,  0.5, 0, 0,        0,   0,    /* */
    2, LINEAR,      1.0,  0.4, 4, LINEAR,   0.3, -1.0, /* */
    2, EXPONENTIAL, 0.5,  0.0, 4, SOFTPLUS, -1,  0.2};
static const double location[P * K] = {0.3, -0.2, 0.5, 0.0,  -0.4, 0.7,
                                       0.2, 0.3,  0.1, -0.6, 0.8,  0.0,
                                       0.4, 0.9,  0.0, -0.3};
static const double log_scale[P * K] = {-0.1, 0.2,  0.3, -0.5, 0.1, 0.0,
                                        0.0,  0.05, 0.2, 0.1,  0.4, -0.3,
                                        -0.2, 0.0,  0.1, 0.15};

static smc_map good_map(void) {
  return toy_moments(D, P, order, K, features, location, log_scale);
}

/* u = m + exp(s) z, written out for this one map. */
static void test_forward(void) {
  smc_map map = good_map();
  double z[D * N], u[D * N], *scratch = take_doubles(map.kind->scratch(&map));
  double off = 0.0;
  toy_fill(z, 700);
  map.kind->forward(&map, N, z, u, scratch);
  for (int k = 0; k < N; k++) {
    const double *at = z + D * k;
    double b = at[1], d = at[3], m[P] = {0.0}, s[P] = {0.0};
    const double f[K] = {1.0,
                         0.7 * (b - 0.2),
                         0.25 * (d - 1.0) * (d - 1.0),
                         pow(0.4 * (b - 0.1), 3.0),
                         exp(-0.6 * (d - 0.3)),
                         log(1.0 + exp(2.0 * (b - 0.5))),
                         (b - 0.4) * 0.3 * (d + 1.0),
                         exp(0.5 * b) * log(1.0 + exp(0.2 - d))};
    for (int i = 0; i < P * K; i++) {
      m[i % P] += location[i] * f[i / P];
      s[i % P] += log_scale[i] * f[i / P];
    }
    off = fmax(off, fabs(u[D * k + 2] - m[0] - exp(s[0]) * at[2]));
    off = fmax(off, fabs(u[D * k] - m[1] - exp(s[1]) * at[0]));
    off = fmax(off, fabs(u[D * k + 1] - b) + fabs(u[D * k + 3] - d));
  }
  CHECK_NEAR(off, 0.0, 1e-12);
  free(scratch);
}

/* Image, what the map adds to a log density, and the gradient, at one point. */
static void all_at(const smc_map *map, const double *z, double out[2 * D + 1]) {
  double *scratch = take_doubles(map->kind->scratch(map));
  map->kind->forward(map, 1, z, out, scratch);
  out[D] = 0.0;
  for (int i = 0; i < D; i++)
    out[D + 1 + i] = 0.1;
  map->kind->pull_back(map, 1, z, out + D, out + D + 1, scratch);
  free(scratch);
}

/* Far from the points that they were fitted to features may be infinite, alone
 * or 0 times infinity: one of which no child is made changes nothing, and
 * one of another child not the image of this. */
static void test_infinite(void) {
  static const double far[SIZE * 3] = {
      0, 0,           0, 0, 0, 0,      0, 0, /* 1 */
      2, EXPONENTIAL, 1, 0, 0, 0,      0, 0, /* */
      2, EXPONENTIAL, 1, 0, 4, LINEAR, 1, 0};
  static const double m[P * 3] = {0.3, -0.2}, s[P * 3] = {0.1, 0.4};
  static const double of_first[P * 3] = {0.3, -0.2, 1.0};
  const double z[D] = {0.5, 800.0, -0.3, 0.0};
  double with[2 * D + 1], without[2 * D + 1];
  smc_map map = toy_moments(D, P, order, 3, far, m, s);
  all_at(&map, z, with);
  map = toy_moments(D, P, order, 1, far, m, s);
  all_at(&map, z, without);
  CHECK(memcmp(with, without, sizeof with) == 0 && isfinite(with[2]));
  map = toy_moments(D, P, order, 3, far, of_first, s);
  all_at(&map, z, with);
  CHECK(with[2] == INFINITY && with[0] == without[0]);
}

static smc_map map_but(int parameter, const double *x, size_t size) {
  return toy_map_but(good_map(), parameter, (smc_values){x, size});
}

/* Good features, but for one number of the last. */
static smc_map feature_but(double *space, int at, double value) {
  memcpy(space, features, sizeof features);
  space[SIZE * (K - 1) + at] = value;
  return map_but(FEATURES_AT, space, SIZE * K);
}

static void test_validity(void) {
  static const double twice[P] = {3, 3}, beyond[P] = {3, D + 1};
  static const double half[P] = {3, 1.5}, none[P] = {3, 0}, parent[P] = {3, 2};
  double space[11][SIZE * K];
  smc_map good = good_map();
  CHECK(good.kind->is_valid(&good));
  smc_map bad[] = {map_but(ORDER_AT, twice, P),
                   map_but(ORDER_AT, beyond, P),
                   map_but(ORDER_AT, half, P),
                   map_but(ORDER_AT, none, P),
                   map_but(ORDER_AT, parent, P),
                   map_but(ORDER_AT, order, P - 1),
                   map_but(ORDER_AT, NULL, 0),
                   map_but(FEATURES_AT, NULL, 0),
                   map_but(FEATURES_AT, features, 0),
                   map_but(FEATURES_AT, features, SIZE * K - 1),
                   map_but(FEATURES_AT, features, SIZE * (K - 1)),
                   map_but(LOCATION_AT, NULL, 0),
                   map_but(LOCATION_AT, location, P * K - 1),
                   map_but(LOG_SCALE_AT, NULL, 0),
                   map_but(LOG_SCALE_AT, log_scale, P),
                   feature_but(space[0], 0, D + 1),
                   feature_but(space[1], 0, -1),
                   feature_but(space[2], 0, 1.5),
                   feature_but(space[3], 0, 3), /* a child */
                   feature_but(space[4], 4, NAN),
                   feature_but(space[5], 1, 0),
                   feature_but(space[6], 1, 2.5),
                   feature_but(space[7], 5, SOFTPLUS + 1),
                   feature_but(space[8], 2, INFINITY),
                   feature_but(space[9], 3, NAN),
                   feature_but(space[10], 7, -INFINITY)};
  toy_check_invalid((int)(sizeof bad / sizeof bad[0]), bad,
                    "a map of moments is checked");
}

void test_map_moments(void) {
  smc_map map = good_map();
  test_forward();
  toy_check_gradient(&map, 701);
  toy_check_jacobian(&map, 702);
  toy_check_inverse(&map, 707);
  test_infinite();
  test_validity();
}
