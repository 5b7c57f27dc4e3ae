/* r_scout.c: the scout's paths and normal distributions, whose points are
 * evaluated by a function of R. */
#include "match.h"
#include "r_interface.h"
#include "scout.h"

#include <R_ext/Random.h>
#include <string.h>

/* Rows of matrices that a match is made of at a time. */
enum { MOST_ROWS = 512 };

/* Memory of R's for what has been measured; not protected. */
static SEXP memory_for(const smc_arena *arena) {
  SEXP memory = r_try_allocate(RAWSXP, arena->needed);
  if (memory == R_NilValue)
    r_lack_memory(arena->needed);
  return memory;
}

/* list(log_density, gradient) of R's function at the rows of x, the gradient
 * where it is asked for; not protected. */
static SEXP ask(SEXP evaluate, SEXP x, bool with_gradient) {
  SEXP wanted = PROTECT(Rf_ScalarLogical(with_gradient));
  SEXP call = PROTECT(Rf_lang3(evaluate, x, wanted));
  SEXP value = PROTECT(Rf_eval(call, R_GlobalEnv));
  SEXP log_density = r_element(value, "log_density");
  if (!Rf_isReal(log_density) || XLENGTH(log_density) != Rf_nrows(x))
    Rf_error("internal error: values of another shape");
  if (with_gradient) {
    SEXP gradient = r_element(value, "gradient");
    if (!Rf_isReal(gradient) || XLENGTH(gradient) != XLENGTH(x))
      Rf_error("internal error: gradients of another shape");
  }
  UNPROTECT(3);
  return value;
}

/* paths -------------------------------------------------------------------- */

static SEXP new_matrix(SEXP list, int i, int rows, int columns,
                       const double *x) {
  SET_VECTOR_ELT(list, i, Rf_allocMatrix(REALSXP, rows, columns));
  SEXP matrix = VECTOR_ELT(list, i);
  if (x)
    memcpy(REAL(matrix), x, (size_t)XLENGTH(matrix) * sizeof(double));
  return matrix;
}

static const char *const parts_of_path[] = {"x", "f", "points", "is_done"};
static const char *const parts_of_points[] = {"x", "gradient", "log_density",
                                              "alpha", "is_pair"};

/* list(x, f, points, is_done): where a path ends, all of its points, and
 * whether it has ended by itself. */
static SEXP path_of(const smc_climb *climb) {
  int d = climb->d, n = climb->n;
  SEXP path = PROTECT(r_new_list(parts_of_path, 4));
  SEXP points = r_new_list(parts_of_points, 5);
  SET_VECTOR_ELT(path, 2, points);
  SET_VECTOR_ELT(path, 0, Rf_allocVector(REALSXP, d));
  memcpy(REAL(VECTOR_ELT(path, 0)), climb->x + (size_t)d * (size_t)(n - 1),
         (size_t)d * sizeof(double));
  SET_VECTOR_ELT(path, 1, Rf_ScalarReal(climb->f[n - 1]));
  SET_VECTOR_ELT(path, 3, Rf_ScalarLogical(climb->is_done));
  new_matrix(points, 0, d, n, climb->x);
  new_matrix(points, 1, d, n, climb->g);
  new_matrix(points, 2, n, 1, climb->f);
  new_matrix(points, 3, d, n, climb->alpha);
  SET_VECTOR_ELT(points, 4, Rf_allocVector(INTSXP, n));
  memcpy(INTEGER(VECTOR_ELT(points, 4)), climb->is_pair,
         (size_t)n * sizeof(int));
  UNPROTECT(1);
  return path;
}

/* A path that has ended, for smc_climb_normal_at(). The memory is R's. */
static smc_climb climb_of(SEXP path, double *scratch) {
  SEXP points = r_element(path, "points");
  SEXP x = r_element(points, "x");
  return (smc_climb){.d = Rf_nrows(x),
                     .n = Rf_ncols(x),
                     .x = REAL(x),
                     .g = REAL(r_element(points, "gradient")),
                     .f = REAL(r_element(points, "log_density")),
                     .alpha = REAL(r_element(points, "alpha")),
                     .is_pair = INTEGER(r_element(points, "is_pair")),
                     .s = scratch,
                     .y = scratch + Rf_nrows(x)};
}

static void lay_out_paths(smc_arena *arena, int n, int d, int most_points,
                          smc_climb *climbs) {
  for (int k = 0; k < n; k++)
    climbs[k] = smc_climb_layout(arena, d, most_points);
}

static void begin_paths(int n, SEXP at, double tolerance, smc_climb *climbs) {
  int d = climbs[0].d;
  double *first = (double *)R_alloc(2 * (size_t)d, sizeof(double));
  for (int k = 0; k < n; k++) {
    r_transpose_part(1, d, REAL(r_element(at, "x")) + k, n, first, d);
    r_transpose_part(1, d, REAL(r_element(at, "gradient")) + k, n, first + d,
                     d);
    climbs[k].tolerance = tolerance;
    smc_climb_begin(&climbs[k], first, REAL(r_element(at, "log_density"))[k],
                    first + d);
  }
}

/* The next points of the paths under way, a row each, which they go on with.
 * Returns how many there were. */
static int go_on(SEXP evaluate, int n, smc_climb *climbs) {
  int d = climbs[0].d, n_active = 0, row = 0;
  for (int k = 0; k < n; k++)
    n_active += !climbs[k].is_done;
  if (n_active == 0)
    return 0;
  SEXP x = PROTECT(Rf_allocMatrix(REALSXP, n_active, d));
  for (int k = 0; k < n; k++) {
    if (climbs[k].is_done)
      continue;
    for (int i = 0; i < d; i++)
      REAL(x)[row + (R_xlen_t)n_active * i] = smc_climb_trial(&climbs[k], i);
    row++;
  }
  SEXP value = PROTECT(ask(evaluate, x, true));
  double *g = (double *)R_alloc((size_t)d, sizeof(double));
  row = 0;
  for (int k = 0; k < n; k++) {
    if (climbs[k].is_done)
      continue;
    r_transpose_part(1, d, REAL(r_element(value, "gradient")) + row, n_active,
                     g, d);
    smc_climb_advance(&climbs[k], REAL(r_element(value, "log_density"))[row],
                      g);
    row++;
  }
  UNPROTECT(2);
  return n_active;
}

/* Paths from the points `at`, list(x, log_density, gradient), all of them side
 * by side, so that their points share calls of `evaluate`, a function of points
 * that returns list(log_density, gradient): see path_of(). */
SEXP r_climb(SEXP evaluate, SEXP at, SEXP most_evals, SEXP tolerance) {
  SEXP x = r_element(at, "x");
  int n = Rf_nrows(x), d = Rf_ncols(x), most = Rf_asInteger(most_evals);
  SEXP paths = PROTECT(Rf_allocVector(VECSXP, n));
  smc_climb *climbs = (smc_climb *)R_alloc((size_t)n, sizeof(smc_climb));
  smc_arena arena = {0};
  lay_out_paths(&arena, n, d, most + 1, climbs);
  SEXP memory = PROTECT(memory_for(&arena));
  arena = (smc_arena){.base = (char *)RAW(memory)};
  lay_out_paths(&arena, n, d, most + 1, climbs);
  if (n > 0)
    begin_paths(n, at, Rf_asReal(tolerance), climbs);
  const void *top = vmaxget();
  for (int tick = 0; tick < most && n > 0; tick++) {
    if (go_on(evaluate, n, climbs) == 0)
      break;
    vmaxset(top);
  }
  for (int k = 0; k < n; k++)
    SET_VECTOR_ELT(paths, k, path_of(&climbs[k]));
  UNPROTECT(2);
  return paths;
}

/* normals along paths ------------------------------------------------------ */

static void draw_standard(size_t n, double *z) {
  GetRNGstate();
  for (size_t i = 0; i < n; i++)
    z[i] = norm_rand();
  PutRNGstate();
}

static smc_climb_normal new_climb_normal(int d) {
  smc_arena arena = {0};
  smc_climb_normal_layout(&arena, d);
  if (!smc_arena_fits(&arena))
    r_lack_memory(arena.needed);
  arena = (smc_arena){.base = R_alloc(arena.used, 1)};
  return smc_climb_normal_layout(&arena, d);
}

/* Point j of at most `most` that are spread evenly along a path of n points,
 * from the last on. */
static int point_along(int n, int most, int j) {
  if (n <= most)
    return n - 1 - j;
  return (int)nearbyint((n - 1.0) * (most - 1 - j) / (most - 1.0));
}

/* Normals on trial: of which path and point each is, with its draws. */
typedef struct trials {
  int d, n_draws, n; /* normals so far */
  int *path, *point;
  double *mean, *x;          /* d x n, d x n_draws x n */
  double *squares, *log_det; /* n_draws x n, n */
  double *laplace;           /* n, of smc_climb_laplace()  */
} trials;

static trials new_trials(int d, int n_draws, int most) {
  size_t n = (size_t)most, draws = n * (size_t)n_draws;
  double *memory =
      (double *)R_alloc((n + draws) * ((size_t)d + 1) + n, sizeof(double));
  trials t = {.d = d, .n_draws = n_draws};
  t.path = (int *)R_alloc(2 * n, sizeof(int));
  t.point = t.path + n;
  t.mean = memory;
  t.x = t.mean + n * (size_t)d;
  t.squares = t.x + draws * (size_t)d;
  t.log_det = t.squares + draws;
  t.laplace = t.log_det + n;
  return t;
}

static void add_trial(trials *t, int path, int point, double laplace,
                      const smc_climb_normal *normal) {
  int d = t->d;
  size_t n = (size_t)t->n, draws = n * (size_t)t->n_draws;
  double *x = t->x + draws * (size_t)d, *mean = t->mean + n * (size_t)d;
  memcpy(mean, normal->mean, (size_t)d * sizeof(double));
  draw_standard((size_t)t->n_draws * (size_t)d, x);
  for (int k = 0; k < t->n_draws; k++, x += d) {
    smc_squares(1, d, x, t->squares + draws + k);
    smc_climb_normal_scale(normal, x);
    for (int i = 0; i < d; i++)
      x[i] += mean[i];
  }
  t->log_det[n] = normal->log_det;
  t->laplace[n] = laplace;
  t->path[n] = path;
  t->point[n] = point;
  t->n++;
}

static const char *const parts_of_candidate[] = {
    "mean", "elbo", "elbo_error", "n_paths", "path", "point"};

static SEXP candidate_of(const trials *t, int k, smc_elbo elbo, SEXP path) {
  SEXP candidate = PROTECT(r_new_list(parts_of_candidate, 6));
  SET_VECTOR_ELT(candidate, 0, Rf_allocVector(REALSXP, t->d));
  memcpy(REAL(VECTOR_ELT(candidate, 0)), t->mean + (size_t)t->d * (size_t)k,
         (size_t)t->d * sizeof(double));
  SET_VECTOR_ELT(candidate, 1, Rf_ScalarReal(elbo.value));
  SET_VECTOR_ELT(candidate, 2, Rf_ScalarReal(elbo.error));
  SET_VECTOR_ELT(candidate, 3, Rf_ScalarReal(1.0));
  SET_VECTOR_ELT(candidate, 4, path);
  SET_VECTOR_ELT(candidate, 5, Rf_ScalarInteger(t->point[k]));
  UNPROTECT(1);
  return candidate;
}

/* Without draws, Laplace's approximation of the evidence. */
static smc_elbo elbo_of(const trials *t, int k, const double *log_density) {
  int n = t->n_draws;
  if (n == 0)
    return (smc_elbo){t->laplace[k], NA_REAL};
  return smc_elbo_of(n, t->d, t->squares + n * k, log_density + n * k,
                     t->log_det[k]);
}

/* For each path a list of those normals along it whose ELBOs are finite, as of
 * candidate_of(): of at most so many points, by so many draws each, 0 to ask
 * for nothing. diagonal: whether they have standard deviations alone. */
SEXP r_normals_along(SEXP evaluate, SEXP paths, SEXP most, SEXP draws,
                     SEXP diagonal) {
  int n_paths = Rf_length(paths), n_points = Rf_asInteger(most);
  int n_draws = Rf_asInteger(draws);
  SEXP found = PROTECT(Rf_allocVector(VECSXP, n_paths));
  if (n_paths == 0) {
    UNPROTECT(1);
    return found;
  }
  int d = Rf_length(r_element(VECTOR_ELT(paths, 0), "x"));
  smc_climb_normal normal = new_climb_normal(d);
  double *scratch = (double *)R_alloc(2 * (size_t)d, sizeof(double));
  trials t = new_trials(d, n_draws, n_paths * n_points);
  for (int p = 0; p < n_paths; p++) {
    smc_climb climb = climb_of(VECTOR_ELT(paths, p), scratch);
    for (int j = 0; j < n_points && j < climb.n; j++) {
      int k = point_along(climb.n, n_points, j);
      if (smc_climb_normal_at(&climb, k, Rf_asLogical(diagonal), &normal))
        add_trial(&t, p, k, smc_climb_laplace(&climb, k, &normal), &normal);
    }
  }
  int rows = t.n * n_draws;
  SEXP x = PROTECT(Rf_allocMatrix(REALSXP, rows, d));
  r_transpose(d, rows, t.x, REAL(x));
  SEXP value = PROTECT(ask(evaluate, x, false));
  const double *log_density = REAL(r_element(value, "log_density"));
  smc_elbo *elbos = (smc_elbo *)R_alloc((size_t)t.n + 1, sizeof(smc_elbo));
  for (int k = 0; k < t.n; k++)
    elbos[k] = elbo_of(&t, k, log_density);
  for (int p = 0, first = 0, end; p < n_paths; p++, first = end) {
    int n = 0;
    for (end = first; end < t.n && t.path[end] == p; end++)
      n += R_FINITE(elbos[end].value);
    SET_VECTOR_ELT(found, p, Rf_allocVector(VECSXP, n));
    for (int k = first, i = 0; k < end; k++)
      if (R_FINITE(elbos[k].value))
        SET_VECTOR_ELT(VECTOR_ELT(found, p), i++,
                       candidate_of(&t, k, elbos[k], VECTOR_ELT(paths, p)));
  }
  UNPROTECT(3);
  return found;
}

/* A factor S of the covariance of the normal at a point of a path, such that it
 * is S S'; where it is diagonal, the standard deviations. */
SEXP r_normal_factor(SEXP path, SEXP point, SEXP diagonal) {
  int is_diagonal = Rf_asLogical(diagonal);
  int d = Rf_length(r_element(path, "x"));
  smc_climb_normal normal = new_climb_normal(d);
  double *scratch = (double *)R_alloc(2 * (size_t)d, sizeof(double));
  smc_climb climb = climb_of(path, scratch);
  smc_climb_normal_at(&climb, Rf_asInteger(point), is_diagonal, &normal);
  SEXP factor = PROTECT(is_diagonal ? Rf_allocVector(REALSXP, d)
                                    : Rf_allocMatrix(REALSXP, d, d));
  if (is_diagonal) {
    memcpy(REAL(factor), normal.root, (size_t)d * sizeof(double));
  } else {
    memset(REAL(factor), 0, (size_t)XLENGTH(factor) * sizeof(double));
    for (int i = 0; i < d; i++) {
      double *column = REAL(factor) + (R_xlen_t)d * i;
      column[i] = 1.0;
      smc_climb_normal_scale(&normal, column);
    }
  }
  UNPROTECT(1);
  return factor;
}

/* batch and match ---------------------------------------------------------- */

static smc_match new_match(int d, int most, int is_diagonal, SEXP *memory) {
  smc_arena arena = {0};
  smc_match_layout(&arena, d, most, is_diagonal);
  *memory = memory_for(&arena);
  arena = (smc_arena){.base = (char *)RAW(*memory)};
  return smc_match_layout(&arena, d, most, is_diagonal);
}

/* list(mean, L) of smc_match_points() for some rows of z and g, with weights;
 * NULL where there is none. rows: NULL for all. */
SEXP r_match_normal(SEXP z, SEXP g, SEXP w, SEXP lambda, SEXP rows,
                    SEXP diagonal) {
  static const char *const names[] = {"mean", "L"};
  int d = Rf_ncols(z), n = Rf_length(w), is_diagonal = Rf_asLogical(diagonal);
  SEXP memory, result = R_NilValue;
  smc_match match =
      new_match(d, n < MOST_ROWS ? n + 1 : MOST_ROWS, is_diagonal, &memory);
  PROTECT(memory);
  smc_points points = {.n = n,
                       .n_rows = (size_t)Rf_nrows(z),
                       .z = REAL(z),
                       .g = REAL(g),
                       .row = rows == R_NilValue ? NULL : INTEGER(rows),
                       .w = REAL(w)};
  if (smc_match_points(&match, &points, Rf_asReal(lambda))) {
    result = PROTECT(r_new_list(names, 2));
    new_matrix(result, 1, d, is_diagonal ? 1 : d, match.inner.L);
    SET_VECTOR_ELT(result, 0, Rf_allocVector(REALSXP, d));
    memcpy(REAL(VECTOR_ELT(result, 0)), match.inner.mean,
           (size_t)d * sizeof(double));
    if (is_diagonal)
      Rf_setAttrib(VECTOR_ELT(result, 1), R_DimSymbol, R_NilValue);
    UNPROTECT(1);
  }
  UNPROTECT(1);
  return result;
}

/* A normal under way: as it is now, and the best that it has been, in R's
 * memory. */
typedef struct refined {
  smc_gaussian now, best;
  smc_elbo elbo; /* of the best */
} refined;

static void copy_normal(const smc_gaussian *from, smc_gaussian *to) {
  size_t d = (size_t)from->d;
  memcpy(to->mean, from->mean, d * sizeof(double));
  memcpy(to->L, from->L,
         smc_factor_size(from->d, from->is_diagonal) * sizeof(double));
}

static double number_of(SEXP list, const char *name, double otherwise) {
  SEXP x = r_element(list, name);
  return x == R_NilValue ? otherwise : Rf_asReal(x);
}

/* normal: list(mean, L), of which `kept` has copies. */
static refined begin_refining(SEXP normal, SEXP kept) {
  SEXP mean = r_element(normal, "mean"), L = r_element(normal, "L");
  refined own = {
      .best = {.d = Rf_length(mean), .is_diagonal = !Rf_isMatrix(L)}};
  SET_VECTOR_ELT(kept, 0, Rf_duplicate(mean));
  SET_VECTOR_ELT(kept, 1, Rf_duplicate(L));
  own.best.mean = REAL(VECTOR_ELT(kept, 0));
  own.best.L = REAL(VECTOR_ELT(kept, 1));
  own.now = own.best;
  own.now.mean = (double *)R_alloc((size_t)own.now.d, sizeof(double));
  own.now.L = (double *)R_alloc(smc_factor_size(own.now.d, own.now.is_diagonal),
                                sizeof(double));
  copy_normal(&own.best, &own.now);
  own.elbo = (smc_elbo){number_of(normal, "elbo", R_NegInf),
                        number_of(normal, "elbo_error", R_NaN)};
  return own;
}

/* Some rows of a matrix of R's, from `first` on, as a matrix, or the way back.
 */
static void take_rows(SEXP x, int first, int n, double *rows) {
  for (int j = 0; j < Rf_ncols(x); j++)
    memcpy(rows + (R_xlen_t)n * j, REAL(x) + first + (R_xlen_t)Rf_nrows(x) * j,
           (size_t)n * sizeof(double));
}

static void put_rows(const double *rows, int first, int n, SEXP x) {
  for (int j = 0; j < Rf_ncols(x); j++)
    memcpy(REAL(x) + first + (R_xlen_t)Rf_nrows(x) * j, rows + (R_xlen_t)n * j,
           (size_t)n * sizeof(double));
}

/* Bring the normal closer to the target by the gradients at n of its draws z.
 * Where too few are possible it is narrowed. */
static void step(smc_match *match, smc_gaussian *normal, int n, const double *z,
                 double *g, const double *log_density, int *rows,
                 double lambda) {
  const int least_possible = 4;
  smc_points points = {.n_rows = (size_t)n, .z = z, .g = g, .row = rows};
  for (int k = 0; k < n; k++)
    if (log_density[k] > R_NegInf)
      rows[points.n++] = k + 1;
  smc_pull_back(match, normal, n, g);
  if (points.n >= least_possible && smc_match_points(match, &points, lambda)) {
    smc_compose(match, normal);
    return;
  }
  size_t size = smc_factor_size(normal->d, normal->is_diagonal);
  for (size_t i = 0; i < size; i++)
    normal->L[i] /= 2.0;
}

/* One batch of n draws of each normal. lambda: of the matches; 0 for none. */
static void refine_by_batch(SEXP evaluate, int n_normals, refined *normals,
                            int n, bool is_first, double lambda,
                            smc_match *match) {
  int d = normals[0].now.d;
  size_t size = (size_t)n * (size_t)d;
  double *z = (double *)R_alloc(size * (size_t)n_normals, sizeof(double));
  double *g = (double *)R_alloc(size, sizeof(double));
  double *squares = (double *)R_alloc((size_t)n, sizeof(double));
  int *rows = (int *)R_alloc((size_t)n, sizeof(int));
  SEXP x = PROTECT(Rf_allocMatrix(REALSXP, n * n_normals, d));
  draw_standard(size * (size_t)n_normals, z);
  for (int i = 0; i < n_normals; i++) {
    smc_draw(match, &normals[i].now, n, z + size * (size_t)i, g);
    put_rows(g, n * i, n, x);
  }
  SEXP value = PROTECT(ask(evaluate, x, lambda > 0.0));
  for (int i = 0; i < n_normals; i++, z += size) {
    const double *log_density = REAL(r_element(value, "log_density")) + n * i;
    refined *own = &normals[i];
    smc_squares(n, d, z, squares);
    smc_elbo elbo =
        smc_elbo_of(n, d, squares, log_density, smc_log_det(&own->now));
    /* at first it is the same one, and its new ELBO is not what it was chosen
       by */
    if (smc_elbo_is_better(elbo, own->elbo) ||
        (is_first && elbo.value > R_NegInf)) {
      copy_normal(&own->now, &own->best);
      own->elbo = elbo;
    }
    if (lambda > 0.0) {
      take_rows(r_element(value, "gradient"), n * i, n, g);
      step(match, &own->now, n, z, g, log_density, rows, lambda);
    }
  }
  UNPROTECT(2);
}

/* For each normal, list(mean, L, elbo, elbo_error): of all that it has been
 * over some batches of n draws, each but the last of which brings it closer to
 * the target, that with the highest ELBO but for its error. */
SEXP r_refine(SEXP evaluate, SEXP normals, SEXP draws, SEXP batches,
              SEXP diagonal) {
  static const char *const names[] = {"mean", "L", "elbo", "elbo_error"};
  int m = Rf_length(normals), n = Rf_asInteger(draws);
  int n_batches = Rf_asInteger(batches);
  SEXP result = PROTECT(Rf_allocVector(VECSXP, m)), memory = R_NilValue;
  if (m == 0) {
    UNPROTECT(1);
    return result;
  }
  refined *own = (refined *)R_alloc((size_t)m, sizeof(refined));
  for (int i = 0; i < m; i++) {
    SET_VECTOR_ELT(result, i, r_new_list(names, 4));
    own[i] = begin_refining(VECTOR_ELT(normals, i), VECTOR_ELT(result, i));
  }
  int d = own[0].now.d;
  smc_match match = new_match(d, n, Rf_asLogical(diagonal), &memory);
  PROTECT(memory);
  const void *top = vmaxget();
  for (int t = 1; t <= n_batches; t++) {
    double lambda = t < n_batches ? (double)n * d / (t + 1.0) : 0.0;
    refine_by_batch(evaluate, m, own, n, t == 1, lambda, &match);
    vmaxset(top);
  }
  for (int i = 0; i < m; i++) {
    SET_VECTOR_ELT(VECTOR_ELT(result, i), 2, Rf_ScalarReal(own[i].elbo.value));
    SET_VECTOR_ELT(VECTOR_ELT(result, i), 3, Rf_ScalarReal(own[i].elbo.error));
  }
  UNPROTECT(2);
  return result;
}
