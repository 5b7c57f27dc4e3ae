/* test_core.c: runs the tests of the C core and counts them. */
#include "check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long n_passed = 0, n_failed = 0;

/* checks ------------------------------------------------------------------ */

bool check_that(bool ok, const char *file, int line, const char *format, ...) {
  if (ok) {
    n_passed++;
    return true;
  }
  n_failed++;
  printf("%s:%d: ", file, line);
  va_list arguments;
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  printf("\n");
  return false;
}

bool check_near(double value, double expected, double tolerance,
                const char *file, int line, const char *what) {
  return check_that(fabs(value - expected) <= tolerance, file, line,
                    "%s is %.17g, not %.17g within %.3g", what, value, expected,
                    tolerance);
}

bool check_none(long n_violations, long n_cases, const char *file, int line,
                const char *law) {
  return check_that(n_violations == 0 && n_cases > 0, file, line,
                    "%s: %ld of %ld cases violate it", law, n_violations,
                    n_cases);
}

/* random cases: splitmix64 ------------------------------------------------ */

double dice_unit(dice *r) {
  uint64_t z = (r->state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  return ((double)(z >> 12) + 0.5) * 0x1p-52;
}

double dice_between(dice *r, double low, double high) {
  return low + (high - low) * dice_unit(r);
}

int dice_int(dice *r, int low, int high) {
  return low + (int)(dice_unit(r) * (high - low + 1));
}

double dice_normal(dice *r) {
  double radius = sqrt(-2.0 * log(dice_unit(r)));
  return radius * cos(6.283185307179586 * dice_unit(r));
}

/* samples ----------------------------------------------------------------- */

void sample_add(sample *s, double x) {
  s->n += 1.0;
  s->sum += x;
  s->sum2 += x * x;
}

double sample_mean(const sample *s) { return s->sum / s->n; }

double sample_error(const sample *s) {
  double mean = sample_mean(s);
  double variance = (s->sum2 / s->n - mean * mean) * s->n / (s->n - 1.0);
  return sqrt(fmax(variance, 0.0) / s->n);
}

/* memory ------------------------------------------------------------------ */

void *take_memory(size_t bytes) {
  void *memory = malloc(bytes ? bytes : 1);
  if (!memory || (uintptr_t)memory % 16 != 0) {
    printf("no memory, or not aligned\n");
    exit(2);
  }
  return memory;
}

double *take_doubles(size_t count) {
  return take_memory(count * sizeof(double));
}

/* ------------------------------------------------------------------------- */

/* All tests; or, with the argument "threads", those that start any: to other
 * tests the sanitizer of threads has nothing to say. */
int main(int n_arguments, char **arguments) {
  setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
  if (n_arguments < 2 || strcmp(arguments[1], "threads") != 0) {
    test_rng();
    test_vecmath();
    test_product();
    test_resample();
    test_minimize();
    test_state();
    test_map_bounds();
    test_map_tails();
    test_map_rotation();
    test_map_moments();
    test_map_precision();
    test_map();
    test_reference();
    test_path();
    test_kernels();
    test_tuner();
    test_smc();
    test_scout();
    test_match();
    test_estimates();
  }
  test_parallel();
  printf("%ld passed, %ld failed\n", n_passed, n_failed);
  return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
