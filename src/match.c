#include "match.h"

#include "product.h"
#include "vecmath.h"

/* Sweeps of rotations. When the cosines of all columns were so small, one sweep
 * has made them the squares of that, and those below the second number are
 * rounding. */
enum { MOST_SWEEPS = 40 };
static const double small_cosine = 1e-6, least_cosine = 1e-14;

static void scale(int n, double by, double *x) {
  for (int i = 0; i < n; i++)
    x[i] *= by;
}

smc_match smc_match_layout(smc_arena *arena, int d, int most,
                           bool is_diagonal) {
  smc_match match = {.d = d, .most = most, .is_diagonal = is_diagonal};
  int wide = d > most ? d : most, square = is_diagonal ? 1 : d;
  smc_matrix widest = {.columns = wide};
  size_t scratch = smc_product_scratch(&widest, wide);
  match.slopes = smc_take_doubles(arena, is_diagonal ? 1 : d + most, d);
  match.squares = smc_take_doubles(arena, square, d);
  for (int i = 0; i < 2; i++) {
    match.work[i] = smc_take_doubles(arena, d, is_diagonal ? most : wide);
    match.points[i] = smc_take_doubles(arena, most, d);
    match.means[i] = smc_take_doubles(arena, d, 1);
  }
  match.inner = (smc_gaussian){.d = d, .is_diagonal = is_diagonal};
  match.inner.mean = smc_take_doubles(arena, d, 1);
  match.inner.L = smc_take_doubles(arena, square, d);
  match.scratch = smc_take(arena, scratch, 1, sizeof(double));
  return match;
}

/* normals ------------------------------------------------------------------ */

double smc_log_det(const smc_gaussian *normal) {
  double sum = 0.0;
  size_t by = normal->is_diagonal ? 1 : (size_t)normal->d + 1;
  for (int i = 0; i < normal->d; i++)
    sum += log(normal->L[by * (size_t)i]);
  return sum;
}

/* out: the transpose (columns x rows) of a rows x columns matrix whose columns
 * are `apart`. */
static void transpose(int rows, int columns, int apart, const double *x,
                      double *out) {
  for (int j = 0; j < columns; j++)
    for (int i = 0; i < rows; i++)
      out[smc_size(columns, i) + (size_t)j] = x[smc_size(apart, j) + (size_t)i];
}

void smc_draw(const smc_match *match, const smc_gaussian *normal, int n,
              const double *z, double *x) {
  int d = normal->d;
  if (normal->is_diagonal) {
    memcpy(x, z, smc_size(n, d) * sizeof(double));
    for (int j = 0; j < d; j++)
      scale(n, normal->L[j], x + smc_size(n, j));
  } else {
    double *columns = match->work[0];
    smc_matrix L = smc_triangle(normal->L, d, false);
    transpose(n, d, n, z, columns);
    smc_multiply(&L, n, columns, match->scratch, columns);
    transpose(d, n, d, columns, x);
  }
  for (int j = 0; j < d; j++, x += n)
    for (int k = 0; k < n; k++)
      x[k] += normal->mean[j];
}

void smc_pull_back(const smc_match *match, const smc_gaussian *normal, int n,
                   double *g) {
  int d = normal->d;
  if (normal->is_diagonal) {
    for (int j = 0; j < d; j++)
      scale(n, normal->L[j], g + smc_size(n, j));
    return;
  }
  double *from = match->points[0];
  memcpy(from, g, smc_size(n, d) * sizeof(double));
  smc_matrix points = {.x = from, .rows = n, .columns = d};
  smc_multiply(&points, d, normal->L, match->scratch, g);
}

/* ELBOs -------------------------------------------------------------------- */

void smc_squares(int n, int d, const double *z, double *squares) {
  memset(squares, 0, (size_t)n * sizeof(double));
  for (int j = 0; j < d; j++, z += n)
    for (int k = 0; k < n; k++)
      squares[k] += z[k] * z[k];
}

smc_elbo smc_elbo_of(int n, int d, const double *squares,
                     const double *log_density, double log_det) {
  double constant = log_det + d / 2.0 * log(SMC_TWO_PI);
  double mean = 0.0, square = 0.0;
  int possible = 0;
  for (int k = 0; k < n; k++) {
    if (!(log_density[k] > -INFINITY))
      continue;
    double off = log_density[k] + squares[k] / 2.0 + constant - mean;
    mean += off / ++possible;
    square += off * off * (possible - 1) / possible;
  }
  if (possible < 2)
    return (smc_elbo){-INFINITY, NAN};
  double share = (double)possible / n;
  double variance = square / (possible - 1);
  return (smc_elbo){mean + log(share),
                    sqrt((variance + 1.0 - share) / possible)};
}

bool smc_elbo_is_better(smc_elbo one, smc_elbo other) {
  return one.value > -INFINITY &&
         (!(other.value > -INFINITY) ||
          one.value - one.error > other.value - other.error);
}

/* triangles and rotations ---------------------------------------------------
 */

/* The lower triangle of x, of a symmetric d x d matrix, becomes its Cholesky
 * factor, and what is above it 0. Returns false where there is none. */
static bool factorise(int d, double *x) {
  for (int j = 0; j < d; j++) {
    double *column = x + smc_size(d, j);
    if (!(column[j] > 0.0) || !isfinite(column[j]))
      return false;
    memset(column, 0, (size_t)j * sizeof(double));
    scale(d - j, 1.0 / sqrt(column[j]), column + j);
    for (int k = j + 1; k < d; k++)
      smc_add(d - k, -column[k], column + k, x + smc_size(d, k) + k);
  }
  return true;
}

/* The first `rows` rows of x, whose d columns are `apart`, become an upper
 * triangle with the same products, by the reflections of Householder. */
static void make_triangle(int rows, int d, int apart, double *x) {
  for (int j = 0; j < d && j < rows - 1; j++) {
    double *column = x + smc_size(apart, j) + j;
    int n = rows - j;
    double size = sqrt(smc_dot(n, column, column));
    if (size == 0.0)
      continue;
    double end = column[0] > 0.0 ? -size : size;
    column[0] -= end;
    double square = -end * column[0]; /* half of the squared length */
    for (int k = j + 1; k < d; k++) {
      double *other = x + smc_size(apart, k) + j;
      smc_add(n, -smc_dot(n, column, other) / square, column, other);
    }
    column[0] = end;
    memset(column + 1, 0, (size_t)(n - 1) * sizeof(double));
  }
}

/* Rotate two columns so that they are orthogonal: from the squares of their
 * lengths. Returns the square of the cosine between them before that, but 0 for
 * what is rounding. */
static double rotate(int d, double *a, double *b, double *of_a, double *of_b) {
  double product = smc_dot(d, a, b);
  double square = product * product, whole = *of_a * *of_b;
  if (!(square > least_cosine * least_cosine * whole))
    return 0.0;
  double ratio = (*of_b - *of_a) / (2.0 * product);
  double t = copysign(1.0, ratio) / (fabs(ratio) + hypot(1.0, ratio));
  double c = 1.0 / sqrt(1.0 + t * t), s = c * t;
  SMC_SIMD
  for (int i = 0; i < d; i++) {
    double own = a[i], other = b[i];
    a[i] = c * own - s * other;
    b[i] = s * own + c * other;
  }
  *of_a -= t * product;
  *of_b += t * product;
  return square / whole;
}

/* The n columns of x (d x n) become orthogonal, with the same products of rows:
 * the left singular vectors, times the singular values, by the one-sided method
 * of Jacobi, which tells small ones beside large ones. square: out, the
 * squares of the singular values. */
static void make_orthogonal(int d, int n, double *x, double *square) {
  double largest = 1.0; /* square of a cosine */
  for (int sweep = 0;
       sweep < MOST_SWEEPS && largest > small_cosine * small_cosine; sweep++) {
    largest = 0.0;
    for (int j = 0; j < n; j++)
      square[j] = smc_dot(d, x + smc_size(d, j), x + smc_size(d, j));
    for (int a = 0; a < n - 1; a++)
      for (int b = a + 1; b < n; b++)
        largest =
            fmax(largest, rotate(d, x + smc_size(d, a), x + smc_size(d, b),
                                 &square[a], &square[b]));
  }
}

/* matches -------------------------------------------------------------------
 */

/* Add rows to the sums: of z, and of g, which are there by columns. */
static void add_rows(smc_match *match, int n, const double *z,
                     const double *g) {
  int d = match->d, apart = d + match->most;
  if (match->is_diagonal) {
    for (int j = 0; j < d; j++, z += n, g += n) {
      match->squares[j] += smc_dot(n, z, z);
      match->slopes[j] += smc_dot(n, g, g);
    }
    return;
  }
  smc_matrix points = {
      .x = z, .rows = d, .columns = n, .transposed = true, .of_points = true};
  memset(match->work[0], 0, smc_size(d, d) * sizeof(double));
  smc_multiply(&points, d, z, match->scratch, match->work[0]);
  for (size_t i = 0; i < smc_size(d, d); i++)
    match->squares[i] += match->work[0][i];
  if (match->rows + n > apart) {
    make_triangle(match->rows, d, apart, match->slopes);
    match->rows = d;
  }
  for (int j = 0; j < d; j++)
    memcpy(match->slopes + smc_size(apart, j) + match->rows, g + smc_size(n, j),
           (size_t)n * sizeof(double));
  match->rows += n;
}

/* L: out, with L L' = S, the solution of S U S + S = V, where U = G'G are the
 * products of the gradients and V those of the points. With V = C C' and the
 * singular vectors v of C'G', and the squares a of its singular values,
 *   S = V - sum of 4 / (1 + sqrt(1 + 4 a))^2 (C v)(C v)'. */
static bool solve(smc_match *match, double *L) {
  int d = match->d, apart = d + match->most;
  double *m = match->work[1], *b = match->work[0];
  if (match->rows > d) {
    make_triangle(match->rows, d, apart, match->slopes);
    match->rows = d;
  }
  int n = match->rows;
  transpose(d, d, d, match->squares,
            L); /* what is above the diagonal is known */
  memcpy(match->squares, L, smc_size(d, d) * sizeof(double));
  if (!factorise(d, L))
    return false;
  smc_matrix c = smc_triangle(L, d, false),
             c_transposed = smc_triangle(L, d, true);
  transpose(n, d, apart, match->slopes, m);
  smc_multiply(&c_transposed, n, m, match->scratch, m);
  double *square = match->slopes; /* which are not needed any more */
  make_orthogonal(d, n, m, square);
  smc_multiply(&c, n, m, match->scratch, m);
  for (int j = 0; j < n; j++)
    scale(d, 2.0 / (1.0 + sqrt(1.0 + 4.0 * square[j])), m + smc_size(d, j));
  smc_matrix off = {.x = m, .rows = d, .columns = n, .of_points = true};
  transpose(d, n, d, m, b);
  smc_multiply(&off, d, b, match->scratch, L);
  for (int j = 0; j < d; j++) {
    for (int i = 0; i < j; i++)
      L[smc_size(d, i) + (size_t)j] = L[smc_size(d, j) + (size_t)i];
  }
  for (size_t i = 0; i < smc_size(d, d); i++)
    L[i] = match->squares[i] - L[i];
  return factorise(d, L);
}

/* The same of the diagonals alone. */
static bool solve_diagonal(const smc_match *match, double *L) {
  for (int j = 0; j < match->d; j++) {
    double v = match->squares[j], u = match->slopes[j];
    L[j] = sqrt(2.0 * v / (1.0 + sqrt(1.0 + 4.0 * u * v)));
  }
  return true;
}

static double weight(const smc_points *points, int k) {
  return points->w ? points->w[k] : 1.0 / points->n;
}

static size_t row(const smc_points *points, int k) {
  return points->row ? (size_t)points->row[k] - 1 : (size_t)k;
}

static void weighted_means(const smc_points *points, int d, const double *x,
                           double *mean) {
  for (int j = 0; j < d; j++, x += points->n_rows) {
    mean[j] = 0.0;
    for (int k = 0; k < points->n; k++)
      mean[j] += weight(points, k) * x[row(points, k)];
  }
}

/* out: n rows of x, from number `first` on, less their mean, times the roots of
 * their weights and of lambda. */
static void take_rows(const smc_points *points, int first, int n, int d,
                      const double *x, const double *mean, double lambda,
                      double *out) {
  for (int j = 0; j < d; j++, x += points->n_rows)
    for (int k = first; k < first + n; k++)
      *out++ = sqrt(lambda * weight(points, k)) * (x[row(points, k)] - mean[j]);
}

static void begin(smc_match *match) {
  int d = match->d;
  match->rows = 0;
  memset(match->squares, 0,
         smc_factor_size(d, match->is_diagonal) * sizeof(double));
  for (int j = 0; j < d; j++) {
    match->squares[match->is_diagonal ? (size_t)j : smc_size(d + 1, j)] = 1.0;
    if (match->is_diagonal)
      match->slopes[j] = 0.0;
  }
}

/* mean: out, that of the match, from its factor. */
static void match_mean(smc_match *match, double share) {
  const double *z = match->means[0], *g = match->means[1], *L = match->inner.L;
  double *mean = match->inner.mean;
  int d = match->d;
  if (match->is_diagonal) {
    for (int j = 0; j < d; j++)
      mean[j] = share * (L[j] * L[j] * g[j] + z[j]);
    return;
  }
  memcpy(mean, z, (size_t)d * sizeof(double));
  for (int j = 0; j < d; j++)
    smc_add(d - j, smc_dot(d - j, L + smc_size(d + 1, j), g + j),
            L + smc_size(d + 1, j), mean + j);
  scale(d, share, mean);
}

bool smc_match_points(smc_match *match, const smc_points *points,
                      double lambda) {
  int d = match->d;
  double share = lambda / (1.0 + lambda), *z = match->points[0],
         *g = match->points[1], *L = match->inner.L;
  begin(match);
  weighted_means(points, d, points->z, match->means[0]);
  weighted_means(points, d, points->g, match->means[1]);
  for (int first = 0, n; first < points->n; first += n) {
    n = points->n - first < match->most ? points->n - first : match->most;
    take_rows(points, first, n, d, points->z, match->means[0], lambda, z);
    take_rows(points, first, n, d, points->g, match->means[1], lambda, g);
    add_rows(match, n, z, g);
  }
  for (int j = 0; j < d; j++) { /* and of the means */
    z[j] = sqrt(share) * match->means[0][j];
    g[j] = sqrt(share) * match->means[1][j];
  }
  add_rows(match, 1, z, g);
  bool is_solved =
      match->is_diagonal ? solve_diagonal(match, L) : solve(match, L);
  if (!is_solved)
    return false;
  match_mean(match, share);
  int size = (int)smc_factor_size(d, match->is_diagonal);
  return smc_all_finite(size, L) && smc_all_finite(d, match->inner.mean);
}

void smc_compose(const smc_match *match, smc_gaussian *normal) {
  int d = match->d;
  const smc_gaussian *inner = &match->inner;
  double *mean = match->means[0]; /* which is not needed any more */
  smc_draw(match, normal, 1, inner->mean, mean);
  memcpy(normal->mean, mean, (size_t)d * sizeof(double));
  if (inner->is_diagonal) {
    int n = normal->is_diagonal ? 1 : d;
    for (int j = 0; j < d; j++)
      scale(n, inner->L[j], normal->L + smc_size(n, j));
    return;
  }
  memcpy(match->work[0], normal->L, smc_size(d, d) * sizeof(double));
  smc_matrix L = smc_triangle(match->work[0], d, false);
  smc_multiply(&L, d, inner->L, match->scratch, normal->L);
}
