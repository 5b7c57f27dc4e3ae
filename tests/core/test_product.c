/* test_product.c: products with matrices, of all shapes. */
#include "check.h"
#include "product.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 13, POINTS = 300 };

/* Row i of A times a point, term by term in the order of the columns. */
static double row_times(const smc_matrix *a, int i, const double *x) {
  double sum = 0.0;
  for (int j = 0; j < a->columns; j++) {
    bool above = a->transposed ? j < i : j > i;
    if (!(a->lower && above))
      sum += a->x[a->transposed ? j + a->columns * i : i + a->rows * j] * x[j];
  }
  return sum;
}

/* Whether the product with n points is the same, and touches no more. */
static bool is_right(const smc_matrix *a, int n, const double *x) {
  double out[MOST * (POINTS + 1)];
  double *scratch = take_doubles(smc_product_scratch(a, n));
  bool right = true;
  for (int j = 0; j < MOST * (POINTS + 1); j++)
    out[j] = -7.0;
  smc_multiply(a, n, x, scratch, out);
  for (int k = 0; k < n; k++)
    for (int i = 0; i < a->rows; i++)
      right &= out[i + a->rows * k] == row_times(a, i, x + a->columns * k);
  for (int j = a->rows * n; j < MOST * (POINTS + 1); j++)
    right &= out[j] == -7.0;
  free(scratch);
  return right;
}

static void fill(double *x, int n, dice *r) {
  for (int j = 0; j < n; j++)
    x[j] = dice_normal(r);
}

/* To the last bit, with the compiler's leave: it may join a product and a sum
 * into one rounding on processors other than x86. So the numbers are small
 * integers, of which all sums are exact. */
static void round_to_integers(double *x, int n) {
  for (int j = 0; j < n; j++)
    x[j] = round(4.0 * x[j]);
}

static void test_shapes(void) {
  static const int numbers[] = {1, 3, 4, 7, 8, 9, 127, 128, 129, POINTS};
  const int n_numbers = sizeof numbers / sizeof numbers[0];
  double a[MOST * MOST], x[MOST * POINTS];
  dice r = {31};
  long wrong = 0, tried = 0;
  fill(a, MOST * MOST, &r);
  fill(x, MOST * POINTS, &r);
  round_to_integers(a, MOST * MOST);
  round_to_integers(x, MOST * POINTS);
  for (int rows = 1; rows <= MOST; rows++)
    for (int columns = 1; columns <= MOST; columns++)
      for (int kind = 0; kind < (rows == columns ? 4 : 2); kind++) {
        smc_matrix m = {.x = a,
                        .rows = rows,
                        .columns = columns,
                        .transposed = kind % 2,
                        .lower = kind >= 2};
        for (int i = 0; i < n_numbers; i++, tried++)
          wrong += !is_right(&m, numbers[i], x);
      }
  CHECK_NONE(wrong, tried, "a product is its sums");
}

/* What is above the diagonal is not looked at, and out may be x. */
static void test_triangle(void) {
  double a[MOST * MOST], x[MOST * POINTS], in_place[MOST * POINTS];
  double out[MOST * POINTS];
  dice r = {32};
  fill(a, MOST * MOST, &r);
  fill(x, MOST * POINTS, &r);
  for (int j = 0; j < MOST; j++)
    for (int i = 0; i < j; i++)
      a[i + MOST * j] = NAN;
  for (int transposed = 0; transposed < 2; transposed++) {
    smc_matrix m = {.x = a,
                    .rows = MOST,
                    .columns = MOST,
                    .transposed = transposed,
                    .lower = true};
    double *scratch = take_doubles(smc_product_scratch(&m, POINTS));
    double error = 0.0;
    memcpy(in_place, x, sizeof x);
    smc_multiply(&m, POINTS, x, scratch, out);
    smc_multiply(&m, POINTS, in_place, scratch, in_place);
    CHECK(memcmp(in_place, out, sizeof out) == 0);
    for (int k = 0; k < POINTS; k++)
      for (int i = 0; i < MOST; i++) {
        double sum = row_times(&m, i, x + MOST * k);
        error = fmax(error, fabs(out[i + MOST * k] - sum));
      }
    CHECK_NEAR(error, 0.0, 1e-13);
    free(scratch);
  }
}

/* The product with a point does not depend on those beside it. */
static void test_company(void) {
  double a[MOST * MOST], x[MOST * POINTS], together[MOST * POINTS], alone[MOST];
  dice r = {33};
  long differ = 0;
  fill(a, MOST * MOST, &r);
  fill(x, MOST * POINTS, &r);
  smc_matrix m = {.x = a, .rows = MOST, .columns = MOST};
  double *scratch = take_doubles(smc_product_scratch(&m, POINTS));
  smc_multiply(&m, POINTS, x, scratch, together);
  for (int k = 0; k < POINTS; k++) {
    smc_multiply(&m, 1, x + MOST * k, scratch, alone);
    differ += memcmp(alone, together + MOST * k, sizeof alone) != 0;
  }
  CHECK_NONE(differ, POINTS, "a point's product is its own");
  free(scratch);
}

/* Of a product of points with themselves what is on and above the diagonal. */
static void test_symmetric(void) {
  double x[MOST * POINTS];
  dice r = {34};
  long wrong = 0;
  fill(x, MOST * POINTS, &r);
  round_to_integers(x, MOST * POINTS);
  smc_matrix m = {.x = x,
                  .rows = POINTS,
                  .columns = MOST,
                  .transposed = true,
                  .of_points = true};
  double *scratch = take_doubles(smc_product_scratch(&m, POINTS));
  double *out = take_doubles(POINTS * POINTS);
  smc_multiply(&m, POINTS, x, scratch, out);
  for (int k = 0; k < POINTS; k++)
    for (int i = 0; i <= k; i++)
      wrong += out[i + POINTS * k] != row_times(&m, i, x + MOST * k);
  CHECK_NONE(wrong, POINTS * (POINTS + 1) / 2, "half of it is made");
  free(out);
  free(scratch);
}

void test_product(void) {
  test_shapes();
  test_triangle();
  test_company();
  test_symmetric();
}
