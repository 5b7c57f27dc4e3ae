/* map_affine.c: x = mean + L u, with L diagonal or lower triangular. */
#include "map.h"
#include "vecmath.h"

#include <string.h>

enum { MEAN, SD, CHOL };

/* Products with L are made in blocks of ROWS rows and LANES particles: each
 * coefficient serves all particles of a block, each coordinate all rows, and
 * the sums stay in registers. */
enum { ROWS = 4, LANES = 4 };

typedef struct affine {
  double log_determinant; /* of L                                          */
  double *lower;  /* the rows of L, in panels; only where it is triangular */
  double *upper;  /* the rows of L'; likewise                              */
  double *packed; /* d x LANES, scratch; likewise                          */
} affine;

static const double *parameter(const smc_map *map, int i) {
  return map->parameters[i].x;
}

static bool is_valid(const smc_map *map) {
  const smc_values *p = map->parameters;
  size_t d = (size_t)map->d;
  if (!p[MEAN].x || p[MEAN].size != d || !p[SD].x == !p[CHOL].x)
    return false;
  return p[SD].x ? p[SD].size == d : p[CHOL].size == d * d;
}

/* Entry i of the diagonal of L. */
static double diagonal(const smc_map *map, int i) {
  return parameter(map, SD) ? parameter(map, SD)[i]
                            : parameter(map, CHOL)[smc_size(map->d + 1, i)];
}

/* Whole panels, with room for zeros after the last row. */
static int padded(int d) { return (d + ROWS - 1) / ROWS * ROWS; }

/* Where a panel has its coefficients of column j, for the ROWS rows from i on.
 */
static size_t panel_at(int d, int i, int j) {
  return smc_size(d, i) + smc_size(ROWS, j);
}

/* Panels of the lower triangle, and of its transpose, zero elsewhere: these
 * zeros meet coordinates that count for another row of the panel only. (One
 * that is not finite loses its particle, or that one's gradient, as it is.)
 * What is above the diagonal of chol is not read. */
static void fill_panels(int d, const double *chol, double *lower,
                        double *upper) {
  size_t size = smc_size(d, padded(d)) * sizeof(double);
  memset(lower, 0, size);
  memset(upper, 0, size);
  for (int j = 0; j < d; j++)
    for (int i = j; i < d; i++) {
      double value = chol[smc_size(d, j) + (size_t)i];
      lower[panel_at(d, i - i % ROWS, j) + (size_t)(i % ROWS)] = value;
      upper[panel_at(d, j - j % ROWS, i) + (size_t)(j % ROWS)] = value;
    }
}

static void layout(smc_map *map, smc_arena *arena) {
  bool triangular = parameter(map, CHOL) != NULL;
  int d = map->d;
  affine *work = smc_take(arena, 1, 1, sizeof *work);
  affine full = {.log_determinant = 0.0};
  if (triangular) {
    full.lower = smc_take_doubles(arena, d, padded(d));
    full.upper = smc_take_doubles(arena, d, padded(d));
    full.packed = smc_take_doubles(arena, d, LANES);
  }
  if (!arena->base)
    return;
  for (int i = 0; i < d; i++)
    full.log_determinant += log(diagonal(map, i));
  if (triangular)
    fill_panels(d, parameter(map, CHOL), full.lower, full.upper);
  *work = full;
  map->work = work;
}

/* products with a triangular matrix ---------------------------------------- */

/* packed: d x LANES, the coordinates of particles k.. of the d x n matrix x,
 * those beyond n zero. */
static void pack(int d, int n, int k, const double *x, double *packed) {
  for (int lane = 0; lane < LANES; lane++)
    for (int j = 0; j < d; j++)
      packed[lane + LANES * j] =
          k + lane < n ? x[smc_size(d, k + lane) + (size_t)j] : 0.0;
}

/* sum += a x, over the lanes. */
static inline void add_multiple(double a, const double *x, double *sum) {
  sum[0] += a * x[0];
  sum[1] += a * x[1];
  sum[2] += a * x[2];
  sum[3] += a * x[3];
}

/* sum: out, for each row of a panel and each lane the sum over n columns. */
static void multiply_panel(int n, const double *panel, const double *packed,
                           double sum[ROWS][LANES]) {
  double s[ROWS][LANES] = {{0.0}};
  for (int j = 0; j < n; j++, panel += ROWS, packed += LANES) {
    add_multiple(panel[0], packed, s[0]);
    add_multiple(panel[1], packed, s[1]);
    add_multiple(panel[2], packed, s[2]);
    add_multiple(panel[3], packed, s[3]);
  }
  memcpy(sum, s, sizeof s);
}

/* out = shift + L x (transposed: shift + L' x), for n columns; out may be x.
 * shift: d, or NULL for none. */
static void multiply(const smc_map *map, bool transposed, int n,
                     const double *shift, const double *x, double *out) {
  const affine *work = map->work;
  const double *panels = transposed ? work->upper : work->lower;
  int d = map->d;
  double sum[ROWS][LANES];
  for (int k = 0; k < n; k += LANES) {
    pack(d, n, k, x, work->packed);
    for (int i = 0; i < d; i += ROWS) {
      int rows = i + ROWS < d ? ROWS : d - i; /* but for the zeros */
      int first = transposed ? i : 0, last = transposed ? d : i + rows;
      multiply_panel(last - first, panels + panel_at(d, i, first),
                     work->packed + LANES * first, sum);
      for (int lane = 0; lane < LANES && k + lane < n; lane++)
        for (int row = 0; row < rows; row++)
          out[smc_size(d, k + lane) + (size_t)(i + row)] =
              (shift ? shift[i + row] : 0.0) + sum[row][lane];
    }
  }
}

/* the map ----------------------------------------------------------------- */

static void forward(const smc_map *map, int n, const double *from, double *to) {
  const double *mean = parameter(map, MEAN), *sd = parameter(map, SD);
  if (!sd) {
    multiply(map, false, n, mean, from, to);
    return;
  }
  for (int k = 0; k < n; k++, from += map->d, to += map->d)
    for (int i = 0; i < map->d; i++)
      to[i] = mean[i] + sd[i] * from[i];
}

/* grad <- L' grad, for n columns. */
static void scale_gradients(const smc_map *map, int n, double *grad) {
  const double *sd = parameter(map, SD);
  if (!sd) {
    multiply(map, true, n, NULL, grad, grad);
    return;
  }
  for (int k = 0; k < n; k++, grad += map->d)
    for (int i = 0; i < map->d; i++)
      grad[i] *= sd[i];
}

static void pull_back(const smc_map *map, int n, const double *from,
                      double *logp, double *grad) {
  const affine *work = map->work;
  (void)from;
  for (int k = 0; k < n; k++)
    logp[k] += work->log_determinant;
  if (grad)
    scale_gradients(map, n, grad);
}

const smc_map_kind smc_map_affine = {
    .name = "affine",
    .names = {"mean", "sd", "chol"},
    .is_valid = is_valid,
    .layout = layout,
    .forward = forward,
    .pull_back = pull_back,
};
