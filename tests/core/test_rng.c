/* test_rng.c: the generator against its known answers, its variates against
 * their distribution, and streams against each other. */
#include "check.h"
#include "normals.h"
#include "vecmath.h"

#include <stdlib.h>
#include <string.h>

/* known answers ----------------------------------------------------------- */

/* Of the Random123 library, tests/kat_vectors: philox4x32 10. */
static void test_known_answers(void) {
  static const uint32_t vectors[3][10] = {
      {0, 0, 0, 0, 0, 0, 0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u},
      {0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu,
       0xffffffffu, 0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu},
      {0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u, 0xa4093822u,
       0x299f31d0u, 0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}};
  for (int i = 0; i < 3; i++) {
    const uint32_t *v = vectors[i];
    smc_block counter = {{v[0], v[1], v[2], v[3]}};
    smc_block out = smc_philox(counter, v + 4);
    CHECK(memcmp(out.v, v + 6, sizeof out.v) == 0);
  }
}

/* Where a variate stands in the counter is part of what is promised: results
 * of one version can be had again with the next. */
static void test_place_in_counter(void) {
  const uint32_t key[2] = {0xa4093822u, 0x299f31d0u};
  smc_stream s = {{key[0], key[1]}, 0x03707344u, 0x13198a2eu};
  smc_block out = smc_stream_block(&s, 0x85a308d3u, 0x243f6a88u);
  CHECK(out.v[0] == 0xd16cfe09u && out.v[3] == 0x24126ea1u);
  smc_stream sub = smc_substream(key, SMC_STAGE_RESAMPLE, 7, 0);
  CHECK(sub.key[0] == key[0] && sub.key[1] == key[1] &&
        sub.stage == SMC_STAGE_RESAMPLE && sub.step == 7);
}

/* uniforms ---------------------------------------------------------------- */

static void test_unit_at_the_ends(void) {
  const uint32_t ones = 0xffffffffu;
  CHECK(smc_unit(0, 0) > 0.0);
  CHECK(smc_unit(ones, ones) < 1.0);
  long bad = 0, cases = 0;
  for (uint32_t bit = 0; bit < 32; bit++) {
    double low = smc_unit(0, (uint32_t)1 << bit);
    double high = smc_unit(ones, ones ^ ((uint32_t)1 << bit));
    bad += !(low > 0.0 && low < 0x1p-31);
    bad += !(high < 1.0 && high > 1.0 - 0x1p-31);
    cases += 2;
  }
  CHECK_NONE(bad, cases, "one bit away from the ends stays inside (0, 1)");
  CHECK_NEAR(smc_unit(0x80000000u, 0), 0.5, 0x1p-52);
  CHECK_NEAR(smc_unit(0x40000000u, 0), 0.25, 0x1p-52);
  CHECK_NEAR(smc_unit(0, 0x80000000u), 0x1p-33, 0x1p-52);
}

static void test_uniforms(int n, double *u) {
  const uint32_t key[2] = {2024, 1};
  smc_stream s = smc_substream(key, SMC_STAGE_RESAMPLE, 3, 0);
  smc_uniforms(&s, 0, n, u);
  double sum = 0.0, sum2 = 0.0, product = 0.0;
  long outside = 0;
  for (int i = 0; i < n; i++) {
    double c = u[i] - 0.5;
    outside += !(u[i] > 0.0 && u[i] < 1.0);
    sum += c;
    sum2 += c * c;
    if (i > 0)
      product += c * (u[i - 1] - 0.5);
  }
  CHECK_NONE(outside, n, "uniforms lie in (0, 1)");
  CHECK_NEAR(sum / n, 0.0, 4.0 * sqrt(1.0 / 12.0 / n));
  CHECK_NEAR(sum2 / n, 1.0 / 12.0, 4.0 * sqrt(1.0 / 180.0 / n));
  CHECK_NEAR(product / n, 0.0, 4.0 / 12.0 / sqrt(n));
}

/* normals ----------------------------------------------------------------- */

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Every bound is four standard errors; that of the Kolmogorov distance is
 * its 0.9999 quantile, 2.23 / sqrt(n). z is sorted on the way. */
static void check_standard_normal(int n, double *z) {
  double sum = 0.0, sum2 = 0.0, sum3 = 0.0, sum4 = 0.0;
  double beyond2 = 0.0, beyond4 = 0.0, distance = 0.0;
  for (int i = 0; i < n; i++) {
    double square = z[i] * z[i];
    sum += z[i];
    sum2 += square;
    sum3 += square * z[i];
    sum4 += square * square;
    beyond2 += fabs(z[i]) > 1.96;
    beyond4 += fabs(z[i]) > 4.0;
  }
  CHECK_NEAR(sum / n, 0.0, 4.0 * sqrt(1.0 / n));
  CHECK_NEAR(sum2 / n, 1.0, 4.0 * sqrt(2.0 / n));
  CHECK_NEAR(sum3 / n, 0.0, 4.0 * sqrt(15.0 / n));
  CHECK_NEAR(sum4 / n, 3.0, 4.0 * sqrt(96.0 / n));
  double p2 = erfc(1.96 / sqrt(2.0)), p4 = erfc(4.0 / sqrt(2.0));
  CHECK_NEAR(beyond2 / n, p2, 4.0 * sqrt(p2 * (1.0 - p2) / n));
  CHECK_NEAR(beyond4 / n, p4, 4.0 * sqrt(p4 * (1.0 - p4) / n));

  qsort(z, (size_t)n, sizeof(double), compare_doubles);
  for (int i = 0; i < n; i++) {
    double p = 0.5 * erfc(-z[i] / sqrt(2.0));
    distance = fmax(distance, fmax((i + 1.0) / n - p, p - (double)i / n));
  }
  CHECK_NEAR(distance, 0.0, 2.23 / sqrt(n));
}

/* d x n, as the sampler draws them: column k belongs to particle k. */
static void draw(smc_stream s, int d, int n, double *z) {
  smc_normal_matrix(&s, d, 0, n, z);
}

static double mean_product(int n, const double *a, const double *b, int stride,
                           double shift, int power) {
  double sum = 0.0;
  for (int i = 0; i < n; i++) {
    double x = a[(size_t)i * (size_t)stride], y = b[(size_t)i * (size_t)stride];
    sum += (pow(x, power) - shift) * (pow(y, power) - shift);
  }
  return sum / n;
}

static void test_normals(int n, double *z, double *other) {
  const uint32_t key[2] = {20240607, 1}, next_run[2] = {20240607, 2},
                 next_seed[2] = {20240608, 1};
  const int d = 10;
  int columns = n / d;
  smc_stream s = smc_substream(key, SMC_STAGE_MOVE, 5, 0);
  draw(s, d, columns, z);

  /* The two of a pair share a block: neither they nor their squares may be
   * correlated. So with neighbours of two pairs, and of two particles. */
  double error = 1.0 / sqrt(n / 2 - d);
  CHECK_NEAR(mean_product(n / 2, z, z + 1, 2, 0.0, 1), 0.0, 4.0 * error);
  CHECK_NEAR(mean_product(n / 2, z, z + 1, 2, 1.0, 2), 0.0, 8.0 * error);
  CHECK_NEAR(mean_product(n / 2 - 1, z + 1, z + 2, 2, 0.0, 1), 0.0,
             4.0 * error);
  error = 1.0 / sqrt(n - d);
  CHECK_NEAR(mean_product(n - d, z, z + d, 1, 0.0, 1), 0.0, 4.0 * error);
  CHECK_NEAR(mean_product(n - d, z, z + d, 1, 1.0, 2), 0.0, 8.0 * error);

  /* Streams that differ in one thing. */
  smc_stream others[5] = {smc_substream(key, SMC_STAGE_MOVE, 6, 0),
                          smc_substream(key, SMC_STAGE_TUNE_MOVE, 5, 0),
                          smc_substream(key, SMC_STAGE_MOVE, 5, 1),
                          smc_substream(next_run, SMC_STAGE_MOVE, 5, 0),
                          smc_substream(next_seed, SMC_STAGE_MOVE, 5, 0)};
  for (int i = 0; i < 5; i++) {
    draw(others[i], d, n / 4 / d, other);
    CHECK_NEAR(mean_product(n / 4, z, other, 1, 0.0, 1), 0.0, 8.0 / sqrt(n));
  }
  check_standard_normal(n, z);

  /* One coordinate of many particles, where every first block is used. */
  draw(s, 1, n / 4, z);
  check_standard_normal(n / 4, z);
}

/* Every layer of the ziggurat has the same area, and its edges lie on the
 * density. */
static void test_ziggurat(void) {
  const double *edge = smc_ziggurat_edge, *height = smc_ziggurat_height;
  double r = edge[1];
  double tail = sqrt(SMC_TWO_PI) * 0.5 * erfc(r / sqrt(2.0));
  double area = r * exp(-0.5 * r * r) + tail;
  long off = 0;
  CHECK_NEAR(edge[0] * exp(-0.5 * r * r), area, 1e-15);
  for (int i = 1; i <= 256; i++) {
    off += !(edge[i] < edge[i - 1]);
    off += !(fabs(height[i] - exp(-0.5 * edge[i] * edge[i])) < 1e-15);
  }
  for (int i = 1; i < 256; i++)
    off += !(fabs(edge[i] * (height[i + 1] - height[i]) - area) < 1e-13);
  CHECK_NONE(off, 767, "the layers of the ziggurat have the same area");
  CHECK(edge[256] == 0.0 && height[256] == 1.0);

  /* The quick way and the slow way join without a seam: how many lie beyond
   * the edge where the tail begins, and on which side. */
  const uint32_t key[2] = {77, 7};
  smc_stream s = smc_substream(key, SMC_STAGE_MOVE, 1, 0);
  double z[64], beyond = 0.0, positive = 0.0, n = 0.0;
  double p = erfc(r / sqrt(2.0));
  for (uint32_t k = 0; k < 60000; k++) {
    smc_normals(&s, k, 64, z);
    for (int i = 0; i < 64; i++) {
      n += 1.0;
      beyond += fabs(z[i]) > r;
      positive += z[i] > r;
    }
  }
  CHECK_NEAR(beyond / n, p, 4.0 * sqrt(p * (1.0 - p) / n));
  CHECK_NEAR(positive / beyond, 0.5, 2.0 / sqrt(beyond));

  /* The tail itself: its mean is the hazard at r, and the probability that it
   * goes beyond 4.5 is known. */
  double hazard = exp(-0.5 * r * r) / tail, sum = 0.0, far = 0.0;
  double variance = 1.0 + r * hazard - hazard * hazard;
  n = 200000.0;
  for (uint32_t k = 0; k < 200000; k++) {
    double x = smc_normal_tail(&s, k, 3, 1);
    sum += x;
    far += x > 4.5;
  }
  CHECK_NEAR(sum / n, hazard, 4.0 * sqrt(variance / n));
  p = erfc(4.5 / sqrt(2.0)) / erfc(r / sqrt(2.0));
  CHECK_NEAR(far / n, p, 4.0 * sqrt(p * (1.0 - p) / n));
}

/* a function, not a state ------------------------------------------------- */

static void test_length_does_not_matter(void) {
  const uint32_t key[2] = {3, 4};
  smc_stream s = smc_substream(key, SMC_STAGE_MOVE, 2, 0);
  double all[33], some[33];
  long bad = 0, cases = 0;
  for (int kind = 0; kind < 2; kind++) {
    void (*fill)(const smc_stream *, uint32_t, int, double *) =
        kind ? smc_normals : smc_uniforms;
    fill(&s, 11, 33, all);
    for (int n = 0; n <= 32; n++) {
      for (int i = 0; i < 33; i++)
        some[i] = -99.0;
      fill(&s, 11, n, some);
      bad += memcmp(some, all, (size_t)n * sizeof(double)) != 0;
      bad += some[n] != -99.0; /* not one more than was asked for */
      cases += 2;
    }
  }
  CHECK_NONE(bad, cases, "values do not depend on how many are asked for");
}

/* However many are made at a time. Some in a hundred go the long way, and one
 * in four thousand comes from the tail. */
static void test_matrices_have_the_same_normals(void) {
  enum { MOST_ROWS = 70, COLUMNS = 41, FIRST = 5 };
  const uint32_t key[2] = {31, 4};
  smc_stream s = smc_substream(key, SMC_STAGE_MOVE, 1, 2);
  static double all[MOST_ROWS * COLUMNS + 1];
  double one[MOST_ROWS];
  long bad = 0, cases = 0;
  for (int rows = 1; rows <= MOST_ROWS; rows++)
    for (int n = 0; n <= COLUMNS; n += rows % 3 + 1) {
      double *end = all + smc_size(rows, n);
      *end = -99.0;
      smc_normal_matrix(&s, rows, FIRST, n, all);
      bad += *end != -99.0; /* not one more than was asked for */
      cases++;
      for (int k = 0; k < n; k++) {
        smc_normals(&s, (uint32_t)(FIRST + k), rows, one);
        bad += memcmp(one, all + smc_size(rows, k),
                      (size_t)rows * sizeof(double)) != 0;
        cases++;
      }
    }
  CHECK_NONE(bad, cases, "a matrix has the normals of its particles");
}

static int compare_blocks(const void *a, const void *b) {
  return memcmp(a, b, sizeof(smc_block));
}

/* Number i of a few neighbours, or of the ends of a range. */
static int one_of(uint32_t *i, int n, int last) {
  int k = (int)(*i % (uint32_t)n);
  *i /= (uint32_t)n;
  return k == n - 1 ? last : k;
}

/* All neighbours in (seed, run, stage, step, repeat, particle, index) differ,
 * and so do the ends of what step and repeat may be. */
static void test_streams_are_different(void) {
  enum { n = 3 * 3 * 7 * 3 * 3 * 3 * 3 };
  static smc_block blocks[n];
  for (uint32_t j = 0; j < n; j++) {
    uint32_t i = j;
    uint32_t key[2];
    key[0] = (uint32_t)one_of(&i, 3, -1);
    key[1] = (uint32_t)one_of(&i, 3, -1);
    smc_stage stage = (smc_stage)one_of(&i, 7, 6);
    int step = one_of(&i, 3, (1 << 20) - 1);
    int repeat = one_of(&i, 3, (1 << 12) - 1);
    smc_stream s = smc_substream(key, stage, step, repeat);
    uint32_t particle = (uint32_t)one_of(&i, 3, -1);
    blocks[j] = smc_stream_block(&s, particle, (uint32_t)one_of(&i, 3, -1));
  }
  qsort(blocks, n, sizeof blocks[0], compare_blocks);
  long same = 0;
  for (int i = 1; i < n; i++)
    same += memcmp(&blocks[i], &blocks[i - 1], sizeof blocks[0]) == 0;
  CHECK_NONE(same, n - 1, "blocks of different places differ");
}

void test_rng(void) {
  enum { n = 1000000 };
  double *z = take_doubles(n), *other = take_doubles(n);
  test_known_answers();
  test_place_in_counter();
  test_unit_at_the_ends();
  test_uniforms(n, z);
  test_normals(n, z, other);
  test_ziggurat();
  test_length_does_not_matter();
  test_matrices_have_the_same_normals();
  test_streams_are_different();
  free(z);
  free(other);
}
