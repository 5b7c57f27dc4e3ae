/* test_map_polynomial.c: coordinates that are nearly normal given others. */
#include "toy.h"

#include <stdlib.h>
#include <string.h>

enum { D = TOY_D, N = TOY_N, P = 2, K = 2, TERMS = 4, ENTRIES = 3 };
enum { ORDER_AT, ENTRIES_AT, CENTRE_AT, WIDTH_AT, DEGREES_AT, FACTOR_AT };

/* Coordinates 1 and 3 are given, the others in this order. */
static const double order[P] = {4, 2};
static const double entries[P * P] = {1, 2, 0, 3};
static const double centre[K] = {0.3, -0.5}, width[K] = {2.0, 0.7};
static const double degrees[K * TERMS] = {0, 0, 1, 0, 0, 3, 2, 1};
static const double factor[ENTRIES * TERMS] = {
    0.4, 0.8, -0.3, -0.9, 0.3, 0.2, 0.5, -0.2, 0.1, 0.3, 0.6, -1.0};
static const double mean[P * TERMS] = {0.5, -0.2, 0.3,  0.1,
                                       0.7, 0.2,  -0.5, 0.1};

static smc_map the_map(void) {
  return (smc_map){.kind = &smc_map_polynomial,
                   .d = D,
                   .parameters = {{order, P},
                                  {entries, P * P},
                                  {centre, K},
                                  {width, K},
                                  {degrees, K * TERMS},
                                  {factor, ENTRIES * TERMS},
                                  {mean, P * TERMS}}};
}

/* The polynomial that row e of `size` is. */
static double polynomial(const double *coefficients, int size, int e,
                         const double *t) {
  double sum = 0.0;
  for (int i = 0; i < TERMS; i++) {
    double term = coefficients[e + size * i];
    for (int k = 0; k < K; k++)
      term *= pow(tanh((t[k] - centre[k]) / width[k]), degrees[k + K * i]);
    sum += term;
  }
  return sum;
}

/* With u = m + off, D^(1/2) L' off is z. */
static void test_standardisation(void) {
  smc_map map = the_map();
  char *block = toy_lay_out(&map);
  double *scratch = take_doubles(map.kind->scratch(&map));
  double off = 0.0;
  for (double at = -2.0; at <= 2.0; at += 0.5) {
    double z[D] = {at, 0.7, 1.0 - at, -1.2}, u[D], t[K] = {at, 1.0 - at};
    map.kind->forward(&map, 1, z, u, scratch);
    double first = u[3] - polynomial(mean, P, 0, t);
    double second = u[1] - polynomial(mean, P, 1, t);
    double below = polynomial(factor, ENTRIES, 1, t);
    double root_first = exp(polynomial(factor, ENTRIES, 0, t) / 2.0);
    double root_second = exp(polynomial(factor, ENTRIES, 2, t) / 2.0);
    off = fmax(off, fabs(root_first * (first + below * second) - z[3]));
    off = fmax(off, fabs(root_second * second - z[1]));
    off = fmax(off, fabs(u[0] - z[0]) + fabs(u[2] - z[2]));
  }
  CHECK_NEAR(off, 0.0, 1e-12);
  free(scratch);
  free(block);
}

static void test_derivatives(void) {
  smc_map map = the_map();
  CHECK(map.kind->is_valid(&map));
  char *block = toy_lay_out(&map);
  toy_check_gradient(&map, 907);
  toy_check_jacobian(&map, 908);
  toy_check_inverse(&map, 909);
  free(block);
}

static smc_map map_but(int parameter, smc_values value) {
  return toy_map_but(the_map(), parameter, value);
}

static void test_validity(void) {
  static const double twice[P] = {4, 4}, beyond[P] = {4, 5};
  static const double no_diagonal[P * P] = {1, 2, 0, 0};
  static const double no_entry[P * P] = {1, 2, 0, 4};
  static const double zero[K] = {2.0, 0.0};
  static const double half[K * TERMS] = {0, 0, 1, 0, 0, 0.5, 2, 1};
  smc_map bad[] = {map_but(ORDER_AT, (smc_values){twice, P}),
                   map_but(ORDER_AT, (smc_values){beyond, P}),
                   map_but(ORDER_AT, (smc_values){order, P - 1}),
                   map_but(ENTRIES_AT, (smc_values){no_diagonal, P * P}),
                   map_but(ENTRIES_AT, (smc_values){no_entry, P * P}),
                   map_but(CENTRE_AT, (smc_values){NULL, 0}),
                   map_but(WIDTH_AT, (smc_values){zero, K}),
                   map_but(DEGREES_AT, (smc_values){half, K * TERMS}),
                   map_but(DEGREES_AT, (smc_values){degrees, K * TERMS - 1}),
                   map_but(FACTOR_AT, (smc_values){factor, ENTRIES}),
                   map_but(FACTOR_AT + 1, (smc_values){mean, P})};
  toy_check_invalid(11, bad, "a polynomial map is checked");
}

void test_map_polynomial(void) {
  test_standardisation();
  test_derivatives();
  test_validity();
}
