/* map_affine.c: x = mean + L u, with L diagonal or lower triangular. */
#include "map.h"
#include "vecmath.h"

enum { MEAN, SD, CHOL };

/* Particles are taken LANES at a time, side by side, so that one coefficient
 * serves all of them and the innermost loop has no dependent sums. */
enum { LANES = 4 };

typedef struct affine {
  double log_determinant; /* of L                                          */
  double *transposed;     /* d x d, of L; only where that is triangular    */
  double *packed;         /* d x LANES, scratch; likewise                  */
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

/* What is above the diagonal is not read. */
static void transpose(int d, const double *chol, double *transposed) {
  for (int j = 0; j < d; j++)
    for (int i = j; i < d; i++)
      transposed[smc_size(d, i) + (size_t)j] = chol[smc_size(d, j) + (size_t)i];
}

static void layout(smc_map *map, smc_arena *arena) {
  bool triangular = parameter(map, CHOL) != NULL;
  int d = map->d;
  affine *work = smc_take(arena, 1, 1, sizeof *work);
  double *transposed = triangular ? smc_take_doubles(arena, d, d) : NULL;
  double *packed = triangular ? smc_take_doubles(arena, d, LANES) : NULL;
  if (!arena->base)
    return;
  *work = (affine){0.0, transposed, packed};
  for (int i = 0; i < d; i++)
    work->log_determinant += log(diagonal(map, i));
  if (triangular)
    transpose(d, parameter(map, CHOL), transposed);
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

/* sum[lane] = the sum over j, first <= j < last, of row[j] packed[j][lane].
 * Sums of their own name stay in registers. */
static void dot_lanes(const double *row, int first, int last,
                      const double *packed, double *sum) {
  double sum0 = 0.0, sum1 = 0.0, sum2 = 0.0, sum3 = 0.0;
  for (int j = first; j < last; j++) {
    const double *x = packed + LANES * j;
    sum0 += row[j] * x[0];
    sum1 += row[j] * x[1];
    sum2 += row[j] * x[2];
    sum3 += row[j] * x[3];
  }
  sum[0] = sum0;
  sum[1] = sum1;
  sum[2] = sum2;
  sum[3] = sum3;
}

/* out = shift + L x (transposed: shift + L' x), for n columns; out may be x.
 * shift: d, or NULL for none. */
static void multiply(const smc_map *map, bool transposed, int n,
                     const double *shift, const double *x, double *out) {
  const affine *work = map->work;
  int d = map->d;
  const double *rows = transposed ? parameter(map, CHOL) : work->transposed;
  double sum[LANES];
  for (int k = 0; k < n; k += LANES) {
    pack(d, n, k, x, work->packed);
    for (int i = 0; i < d; i++) {
      int first = transposed ? i : 0, last = transposed ? d : i + 1;
      dot_lanes(rows + smc_size(d, i), first, last, work->packed, sum);
      for (int lane = 0; lane < LANES && k + lane < n; lane++)
        out[smc_size(d, k + lane) + (size_t)i] =
            (shift ? shift[i] : 0.0) + sum[lane];
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
