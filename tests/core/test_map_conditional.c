/* test_map_conditional.c: coordinates whose location and scale depend on
 * others. */
#include "toy.h"

enum { D = TOY_D, N = TOY_N };

/* The second and the last coordinate drive the others. */
static const double conditioning[2] = {2, 4};
static const double shift[2 * D] = {0.4, 0, -1.5, 0, 0.7, 0, 0.2, 0};
static const double slope[2 * D] = {0.5, 0, -0.3, 0, 0.1, 0, 0.9, 0};
static const double curve[2 * D] = {-0.6, 0, 0.2, 0, 0.1, 0, 0.4, 0};

/* Three bends: one of the first conditioning variable, two of the second. */
enum { N_BENDS = 3 };
static const double bent[N_BENDS] = {1, 2, 2};
static const double width[N_BENDS] = {0.4, 0, 2};
static const double place[N_BENDS] = {0.3, 0, -0.6};
static const double curve_of_bends[N_BENDS * D] = {-0.6, 0, 0.2, 0, 0.1,  0,
                                                   0.4,  0, 0.3, 0, -0.2, 0};

static smc_map map_with(bool curved) {
  return toy_conditional(D, 2, conditioning, shift, slope,
                         curved ? curve : NULL);
}

static smc_map map_with_knees(void) {
  smc_map map = map_with(true);
  map.parameters[3] = (smc_values){curve_of_bends, N_BENDS * D};
  map.parameters[4] = (smc_values){bent, N_BENDS};
  map.parameters[5] = (smc_values){width, N_BENDS};
  map.parameters[6] = (smc_values){place, N_BENDS};
  return map;
}

/* Written out for this one map. */
static void test_forward(bool curved) {
  smc_map map = map_with(curved);
  double z[D * N], u[D * N], scratch[2 * N_BENDS], off = 0.0;
  toy_fill(z, 700);
  map.kind->forward(&map, N, z, u, scratch);
  for (int k = 0; k < N; k++) {
    const double *at = z + D * k, *to = u + D * k;
    double first = at[0] + 0.4 * at[1] + 0.7 * at[3];
    double third = at[2] - 1.5 * at[1] + 0.2 * at[3];
    if (curved) {
      first += -0.6 * (at[1] * at[1] - 1.0) + 0.1 * (at[3] * at[3] - 1.0);
      third += 0.2 * (at[1] * at[1] - 1.0) + 0.4 * (at[3] * at[3] - 1.0);
    }
    first *= exp(0.5 * at[1] + 0.1 * at[3]);
    third *= exp(-0.3 * at[1] + 0.9 * at[3]);
    off = fmax(off, fabs(to[0] - first) + fabs(to[2] - third));
    off = fmax(off, fabs(to[1] - at[1]) + fabs(to[3] - at[3]));
  }
  CHECK_NEAR(off, 0.0, 1e-12);
}

static double log_cosh_bend(double z, double k, double c) {
  return 8.0 * k * k * log(cosh((z - c) / (2.0 * k)));
}

/* The same with knees, for the first coordinate. */
static void test_knees(void) {
  smc_map map = map_with_knees();
  double z[D * N], u[D * N], scratch[2 * N_BENDS], off = 0.0;
  CHECK(map.kind->scratch(&map) == 2 * N_BENDS);
  toy_fill(z, 703);
  map.kind->forward(&map, N, z, u, scratch);
  for (int k = 0; k < N; k++) {
    const double *at = z + D * k;
    double first = at[0] + 0.4 * at[1] + 0.7 * at[3] -
                   0.6 * (log_cosh_bend(at[1], 0.4, 0.3) - 1.0) +
                   0.1 * (at[3] * at[3] - 1.0) +
                   0.3 * (log_cosh_bend(at[3], 2.0, -0.6) - 1.0);
    off = fmax(off, fabs(u[D * k] - first * exp(0.5 * at[1] + 0.1 * at[3])));
  }
  CHECK_NEAR(off, 0.0, 1e-12);
  toy_check_gradient(&map, 704);
  toy_check_jacobian(&map, 705);
  toy_check_inverse(&map, 706);
}

/* Knees of no variable, of no width, or not all there. */
static void test_knees_validity(void) {
  static const double beyond[N_BENDS] = {1, 2, 3}, half[N_BENDS] = {1, 1.5, 2};
  static const double negative[N_BENDS] = {0.4, -1, 2};
  smc_map good = map_with_knees();
  CHECK(good.kind->is_valid(&good));
  smc_map bad[5] = {good, good, good, good, good};
  bad[0].parameters[4].x = beyond;
  bad[1].parameters[4].x = half;
  bad[2].parameters[5].x = negative;
  bad[3].parameters[6] = (smc_values){NULL, 0};
  bad[4].parameters[3].size = 2 * D;
  toy_check_invalid(5, bad, "knees are checked");
}

/* What makes no map, or not an invertible one, is rejected. */
static void test_validity(void) {
  static const double twice[2] = {2, 2}, beyond[2] = {2, 5}, half[2] = {2, 3.5};
  double acted_on[2 * D] = {0};
  acted_on[3] = 0.1;
  smc_map good[2] = {map_with(false), map_with(true)};
  CHECK(good[0].kind->is_valid(&good[0]) && good[1].kind->is_valid(&good[1]));
  smc_map bad[] = {toy_conditional(D, 2, twice, shift, slope, NULL),
                   toy_conditional(D, 2, beyond, shift, slope, NULL),
                   toy_conditional(D, 2, half, shift, slope, NULL),
                   toy_conditional(D, 2, conditioning, NULL, slope, NULL),
                   toy_conditional(D, 2, conditioning, shift, acted_on, NULL),
                   toy_conditional(D, 2, conditioning, shift, slope, acted_on),
                   map_with(true)};
  bad[6].parameters[3].size = D;
  toy_check_invalid(7, bad, "a conditional map is checked");
}

void test_map_conditional(void) {
  for (int curved = 0; curved < 2; curved++) {
    smc_map map = map_with(curved);
    test_forward(curved);
    toy_check_gradient(&map, 701);
    toy_check_jacobian(&map, 702);
    toy_check_inverse(&map, 707);
  }
  test_knees();
  test_validity();
  test_knees_validity();
}
