/* check.h: how the tests of the C core say what they found.
 *
 * A check is one law, however many cases it was tried on; what fails is
 * printed as file:line: what failed. Statistical checks have fixed seeds and
 * state their Monte Carlo error.
 */
#ifndef CHECK_H
#define CHECK_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Count a check, and print it when it failed. Returns ok. */
bool check_that(bool ok, const char *file, int line, const char *format, ...);

/* |value - expected| <= tolerance. */
bool check_near(double value, double expected, double tolerance,
                const char *file, int line, const char *what);

/* No case violated the law. */
bool check_none(long n_violations, long n_cases, const char *file, int line,
                const char *law);

#define CHECK(condition)                                                       \
  check_that((condition), __FILE__, __LINE__, "%s", #condition)
#define CHECK_NEAR(value, expected, tolerance)                                 \
  check_near((value), (expected), (tolerance), __FILE__, __LINE__, #value)
#define CHECK_NONE(violations, cases, law)                                     \
  check_none((violations), (cases), __FILE__, __LINE__, (law))

/* Random test cases, by a generator that is not the one under test. */
typedef struct dice {
  uint64_t state;
} dice;

double dice_unit(dice *r); /* in (0, 1) */
double dice_between(dice *r, double low, double high);
int dice_int(dice *r, int low, int high); /* both ends included */
double dice_normal(dice *r);

/* Mean and standard error of what was added. */
typedef struct sample {
  double n, sum, sum2;
} sample;

void sample_add(sample *s, double x);
double sample_mean(const sample *s);
double sample_error(const sample *s);

/* Memory that ends the test run when there is none; aligned to 16 bytes. */
void *take_memory(size_t bytes);
double *take_doubles(size_t count);

/* The tests, one a file. */
void test_rng(void);
void test_vecmath(void);
void test_product(void);
void test_resample(void);
void test_minimize(void);
void test_state(void);
void test_map_bounds(void);
void test_map_tails(void);
void test_map_rotation(void);
void test_map_moments(void);
void test_map_precision(void);
void test_map(void);
void test_reference(void);
void test_path(void);
void test_kernels(void);
void test_tuner(void);
void test_smc(void);
void test_parallel(void);
void test_scout(void);
void test_match(void);
void test_estimates(void);

#endif
