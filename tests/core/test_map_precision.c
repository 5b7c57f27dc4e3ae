/* test_map_precision.c: coordinates that are normal given others. */
#include "toy.h"

#include <stdlib.h>
#include <string.h>

enum { D = TOY_D, N = TOY_N, P = 3, TERMS = 4, ENTRIES = 6, FACTOR = 5 };
enum { ORDER_AT, GIVEN_AT, ENTRIES_AT, FACTORS_AT, PRECISION_AT };

/* Coordinate 3 is given, and all others depend on each other, in this order.
 * Each term has a precision of its own, so that their sum is one. */
static const double order[P] = {4, 1, 2}, given[1] = {3};
static const double entries[P * P] = {1, 2, 3, 0, 4, 5, 0, 0, 6};
/* power, degree, fall, rate, root */
static const double factors[FACTOR * TERMS] = {
    0.0, 0.0, 0.0, 0.0, 0.0, -0.6, 0.0, 0.0, 0.0, 0.0,
    0.4, 0.0, 2.0, 0.5, 0.0, 0.0,  2.0, 0.0, 0.0, 1.0};
static const double precision[ENTRIES * TERMS] = {
    2.0, 0.5,  -0.4, 1.5, 0.3, 1.0, 0.8, -0.2, 0.1, 0.9, 0.2,  0.7,
    0.5, 0.25, -0.1, 0.6, 0.1, 0.4, 0.7, 0.1,  0.2, 0.4, -0.3, 0.9};
static const double pull[P * TERMS] = {0.5, -0.2, 0.0, 0.3, 0.1,  -1.0,
                                       0.0, 0.7,  0.2, 0.4, -0.5, 0.1};
static const double no_bound[P] = {1e-3, 1e-3, 1e-3};

static smc_map map_with(const double *least) {
  return (smc_map){.kind = &smc_map_precision,
                   .d = D,
                   .parameters = {{order, P},
                                  {given, 1},
                                  {entries, P * P},
                                  {factors, FACTOR * TERMS},
                                  {precision, ENTRIES * TERMS},
                                  {pull, P * TERMS},
                                  {least, P}}};
}

static double factor_at(const double *of, double t) {
  return exp(of[0] * t) * pow(t, of[1]) / pow(cosh(of[3] * t), of[2]) /
         pow(1.0 + t * t, of[4] / 2.0);
}

/* The sum of terms that entry e of `size` is. */
static double sum_of_terms(const double *coefficients, int size, int e,
                           double t) {
  double sum = 0.0;
  for (int i = 0; i < TERMS; i++)
    sum += coefficients[e + size * i] * factor_at(factors + FACTOR * i, t);
  return sum;
}

/* The mean of u solves Q m = r; and with u = m + B z, Q B B' is the identity.
 */
static void test_moments(void) {
  smc_map map = map_with(no_bound);
  char *block = toy_lay_out(&map);
  double *scratch = take_doubles(map.kind->scratch(&map));
  double off = 0.0;
  for (double t = -2.0; t <= 2.0; t += 0.5) {
    double Q[P][P], z[D * (1 + P)] = {0.0}, u[D * (1 + P)];
    for (int b = 0; b < P; b++)
      for (int a = b; a < P; a++)
        Q[a][b] = Q[b][a] =
            sum_of_terms(precision, ENTRIES, (int)entries[a + P * b] - 1, t);
    for (int k = 0; k <= P; k++)
      z[2 + D * k] = t;
    for (int v = 0; v < P; v++)
      z[(int)order[v] - 1 + D * (1 + v)] = 1.0;
    map.kind->forward(&map, 1 + P, z, u, scratch);
    for (int a = 0; a < P; a++) {
      double pulled = -sum_of_terms(pull, P, a, t);
      for (int b = 0; b < P; b++)
        pulled += Q[a][b] * u[(int)order[b] - 1];
      off = fmax(off, fabs(pulled));
      for (int c = 0; c < P; c++) {
        double identity = -(a == c);
        for (int b = 0; b < P; b++)
          for (int k = 1; k <= P; k++) {
            int row = (int)order[b] - 1, column = (int)order[c] - 1;
            identity += Q[a][b] * (u[row + D * k] - u[row]) *
                        (u[column + D * k] - u[column]);
          }
        off = fmax(off, fabs(identity));
      }
    }
    off = fmax(off, fabs(u[2] - t));
  }
  CHECK_NEAR(off, 0.0, 1e-12);
  free(scratch);
  free(block);
}

static void test_derivatives(void) {
  /* what is left of the second and third diagonal entry is below its bound */
  static const double bounds[P] = {1e-3, 40.0, 40.0};
  for (int is_bounded = 0; is_bounded <= 1; is_bounded++) {
    smc_map map = map_with(is_bounded ? bounds : no_bound);
    CHECK(map.kind->is_valid(&map));
    char *block = toy_lay_out(&map);
    toy_check_gradient(&map, 905);
    toy_check_jacobian(&map, 906);
    toy_check_inverse(&map, 910);
    free(block);
  }
}

static smc_map map_but(int parameter, smc_values value) {
  return toy_map_but(map_with(no_bound), parameter, value);
}

static void test_validity(void) {
  static const double twice[P] = {4, 1, 4}, beyond[P] = {4, 1, 5};
  static const double changed[1] = {2}, nowhere[1] = {0};
  static const double no_diagonal[P * P] = {1, 2, 3, 0, 0, 5, 0, 0, 6};
  static const double no_fill[P * P] = {1, 2, 3, 0, 4, 0, 0, 0, 6};
  static const double no_entry[P * P] = {1, 2, 3, 0, 4, 7, 0, 0, 6};
  static const double zero[P] = {1e-3, 0.0, 1e-3};
  smc_map bad[] = {
      map_but(ORDER_AT, (smc_values){twice, P}),
      map_but(ORDER_AT, (smc_values){beyond, P}),
      map_but(ORDER_AT, (smc_values){order, P - 1}),
      map_but(ORDER_AT, (smc_values){NULL, 0}),
      map_but(GIVEN_AT, (smc_values){changed, 1}),
      map_but(GIVEN_AT, (smc_values){nowhere, 1}),
      map_but(GIVEN_AT, (smc_values){NULL, 0}),
      map_but(ENTRIES_AT, (smc_values){no_diagonal, P * P}),
      map_but(ENTRIES_AT, (smc_values){no_fill, P * P}),
      map_but(ENTRIES_AT, (smc_values){no_entry, P * P}),
      map_but(FACTORS_AT, (smc_values){factors, FACTOR * TERMS - 1}),
      map_but(PRECISION_AT, (smc_values){precision, ENTRIES}),
      map_but(PRECISION_AT + 1, (smc_values){pull, P}),
      map_but(PRECISION_AT + 2, (smc_values){zero, P})};
  toy_check_invalid(14, bad, "a precision map is checked");
}

void test_map_precision(void) {
  test_moments();
  test_derivatives();
  test_validity();
}
