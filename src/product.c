#include "product.h"

#include "vecmath.h"
#include "wide.h"

/* A panel of ROWS rows meets two vectors of points at a time: each coefficient
 * serves all these points, each coordinate all rows, and the sums stay in
 * registers. */
enum { ROWS = 4, MOST_LANES = 8 };

/* Points that are packed at once, so that they stay in the cache. */
enum { PACKED = 64 };

/* vectors ----------------------------------------------------------------- */

/* Vectors of two and of four doubles: extensions of GCC and clang, which all
 * x86-64 and ARM processors have in registers, or make of several. */
#ifdef __GNUC__
typedef double two __attribute__((vector_size(16), aligned(8), may_alias));
typedef double four __attribute__((vector_size(32), aligned(8), may_alias));
#else
typedef double two;
#endif

/* sum: out, ROWS x lanes, the product of a panel (n columns of ROWS) with
 * packed points (n rows of as many lanes as two vectors have). */
typedef void block_fn(int n, const double *panel, const double *packed,
                      double *sum);

#define DEFINE_BLOCK(name, vector, attribute)                                  \
  attribute static void name(int n, const double *panel, const double *packed, \
                             double *sum) {                                    \
    const vector *x = (const vector *)packed;                                  \
    vector *out = (vector *)sum, zero = {0.0};                                 \
    vector s00 = zero, s01 = zero, s10 = zero, s11 = zero;                     \
    vector s20 = zero, s21 = zero, s30 = zero, s31 = zero;                     \
    for (int j = 0; j < n; j++, panel += ROWS, x += 2) {                       \
      s00 += panel[0] * x[0], s01 += panel[0] * x[1];                          \
      s10 += panel[1] * x[0], s11 += panel[1] * x[1];                          \
      s20 += panel[2] * x[0], s21 += panel[2] * x[1];                          \
      s30 += panel[3] * x[0], s31 += panel[3] * x[1];                          \
    }                                                                          \
    out[0] = s00, out[1] = s01, out[2] = s10, out[3] = s11;                    \
    out[4] = s20, out[5] = s21, out[6] = s30, out[7] = s31;                    \
  }

DEFINE_BLOCK(narrow_block, two, )
#ifdef SMC_HAS_WIDE
DEFINE_BLOCK(wide_block, four, SMC_WIDE)
#endif

/* How blocks are made on this processor. */
typedef struct method {
  block_fn *block;
  int lanes;
} method;

static method choose_method(void) {
#ifdef SMC_HAS_WIDE
  if (smc_is_wide())
    return (method){wide_block, 2 * sizeof(four) / sizeof(double)};
#endif
  return (method){narrow_block, 2 * sizeof(two) / sizeof(double)};
}

/* packing ----------------------------------------------------------------- */

/* out, every `stride`: n times the elements side by side of four vectors that
 * begin `apart`, and go on by `step`. */
static void take_four(int n, const double *x, size_t apart, size_t step,
                      int stride, double *out) {
  for (int j = 0; j < n; j++, x += step, out += stride) {
    out[0] = x[0], out[1] = x[apart];
    out[2] = x[2 * apart], out[3] = x[3 * apart];
  }
}

/* packed: out, the columns x lanes coordinates of n points of the matrix x, the
 * lanes beyond these zero. */
static void pack_points(int columns, int n, const double *x, int lanes,
                        double *packed) {
  for (int lane = 0; lane < lanes; lane += 4) {
    const double *from = x + smc_size(columns, lane);
    if (lane + 4 <= n)
      take_four(columns, from, (size_t)columns, 1, lanes, packed + lane);
    else
      for (int k = lane; k < lane + 4; k++, from += columns)
        for (int j = 0; j < columns; j++)
          packed[smc_size(lanes, j) + (size_t)k] = k < n ? from[j] : 0.0;
  }
}

/* The columns in which a panel that begins with row i has its coefficients. */
typedef struct span {
  int first, last;
} span;

static span span_of(const smc_matrix *a, int i) {
  span all = {0, a->columns};
  if (a->lower && a->transposed)
    all.first = i;
  else if (a->lower && i + ROWS < a->columns)
    all.last = i + ROWS;
  return all;
}

static bool is_zero(const smc_matrix *a, int i, int j) {
  return i >= a->rows || (a->lower && (a->transposed ? j < i : j > i));
}

/* Whether rows i.. and columns j.. have something that is not stored as it is,
 * in the ROWS x ROWS block. */
static bool is_cut(const smc_matrix *a, int i, int j) {
  return i + ROWS > a->rows || (a->lower && i < j + ROWS && j < i + ROWS);
}

/* panel: out, ROWS x (columns of the span), the rows from i on. These zeros
 * meet coordinates that count for another row of the panel only. */
static void pack_panel(const smc_matrix *a, int i, span at, double *panel) {
  size_t down = a->transposed ? (size_t)a->columns : 1;
  size_t right = a->transposed ? 1 : (size_t)a->rows;
  const double *x = a->x + down * (size_t)i + right * (size_t)at.first;
  if (!a->lower && i + ROWS <= a->rows) {
    take_four(at.last - at.first, x, down, right, ROWS, panel);
    return;
  }
  for (int j = at.first; j < at.last; j++, panel += ROWS, x += right) {
    bool cut = is_cut(a, i, j);
    for (int row = 0; row < ROWS; row++)
      panel[row] = cut && is_zero(a, i + row, j) ? 0.0 : x[down * (size_t)row];
  }
}

/* products ---------------------------------------------------------------- */

/* out: rows i.. of the panel, for n points. */
static void store(const smc_matrix *a, int i, int n, const double *sum,
                  int lanes, double *out) {
  if (i + ROWS <= a->rows) {
    take_four(n, sum, (size_t)lanes, 1, a->rows, out + i);
    return;
  }
  for (int lane = 0; lane < n; lane++, out += a->rows)
    for (int row = 0; row < a->rows - i; row++)
      out[i + row] = sum[row * lanes + lane];
}

static int least(int a, int b) { return a < b ? a : b; }

size_t smc_product_scratch(const smc_matrix *a, int n) {
  int vectors = (least(n, PACKED) + MOST_LANES - 1) / MOST_LANES;
  return smc_size(a->columns, ROWS + MOST_LANES * vectors);
}

/* The product with n, at most PACKED, of the points, from number `first` on. */
static void multiply_packed(const smc_matrix *a, int first, int n,
                            const double *x, double *scratch, double *out) {
  method by = choose_method();
  double *panel = scratch, *packed = scratch + smc_size(ROWS, a->columns);
  double sum[ROWS * MOST_LANES];
  for (int k = 0; k < n; k += by.lanes)
    pack_points(a->columns, least(n - k, by.lanes), x + smc_size(a->columns, k),
                by.lanes, packed + smc_size(a->columns, k));
  for (int i = 0; i < a->rows; i += ROWS) {
    span at = span_of(a, i);
    pack_panel(a, i, at, panel);
    int skipped = a->of_points && i > first ? (i - first) / by.lanes : 0;
    for (int k = skipped * by.lanes; k < n; k += by.lanes) {
      by.block(at.last - at.first, panel,
               packed + smc_size(a->columns, k) + smc_size(by.lanes, at.first),
               sum);
      store(a, i, least(n - k, by.lanes), sum, by.lanes,
            out + smc_size(a->rows, k));
    }
  }
}

void smc_multiply(const smc_matrix *a, int n, const double *x, double *scratch,
                  double *out) {
  for (int k = 0; k < n; k += PACKED)
    multiply_packed(a, k, least(n - k, PACKED), x + smc_size(a->columns, k),
                    scratch, out + smc_size(a->rows, k));
}
