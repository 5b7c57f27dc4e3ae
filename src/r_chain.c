/* r_chain.c: chains of maps as R has them, lists of the name of each and its
 * parameters; and R's points taken through them. */
#include "parallel.h"
#include "r_interface.h"
#include "vecmath.h"

/* reading ----------------------------------------------------------------- */

/* A vector of R's: its own numbers, or where they are whole a copy of them. */
static smc_values numbers(SEXP value) {
  size_t size = (size_t)XLENGTH(value);
  if (Rf_isReal(value))
    return (smc_values){REAL(value), size};
  double *copy = (double *)R_alloc(size, sizeof *copy);
  for (size_t i = 0; i < size; i++)
    copy[i] = INTEGER(value)[i];
  return (smc_values){copy, size};
}

static void read_parameters(smc_map *map, SEXP list) {
  for (int i = 0; i < SMC_MAP_PARAMETERS && map->kind->names[i]; i++) {
    SEXP value = r_element(list, map->kind->names[i]);
    if (value == R_NilValue)
      continue;
    if (!Rf_isNumeric(value))
      Rf_error("internal error: `%s` of a map is not numeric",
               map->kind->names[i]);
    map->parameters[i] = numbers(value);
  }
  if (!map->kind->is_valid(map))
    Rf_error("internal error: wrong parameters of a map \"%s\"",
             map->kind->name);
}

static void read_map(smc_map *map, SEXP list, int d) {
  const char *name = CHAR(Rf_asChar(r_element(list, "name")));
  *map = (smc_map){.kind = smc_find_map(name), .d = d};
  if (!map->kind)
    Rf_error("internal error: no map called \"%s\"", name);
  read_parameters(map, list);
}

smc_chain r_read_chain(SEXP maps, SEXP target_list, int d) {
  int n = (int)Rf_xlength(maps);
  smc_map *all = (smc_map *)R_alloc((size_t)n + 1, sizeof *all);
  for (int i = 0; i < n; i++)
    read_map(&all[i], VECTOR_ELT(maps, i), d);
  if (r_element(target_list, "lower") != R_NilValue) {
    all[n] = (smc_map){.kind = &smc_map_bounds, .d = d};
    read_parameters(&all[n++], target_list);
  }
  return (smc_chain){.d = d, .n_maps = n, .maps = all};
}

void r_lay_out_chain(smc_chain *chain, int n, int n_threads) {
  smc_arena arena = {.base = NULL};
  smc_chain_layout(chain, &arena, n, n_threads);
  arena = (smc_arena){.base = R_alloc(arena.used, 1)};
  smc_chain_layout(chain, &arena, n, n_threads);
}

/* points ------------------------------------------------------------------ */

/* All n x d, as R has them; gradients NULL where there are none. */
typedef struct passage {
  smc_chain chain;
  int n, back, done; /* points that have been taken through                  */
  const double *from, *grad_from;
  double *to, *grad_to, *log_jacobian;
  double *points; /* d x SMC_LARGEST_BLOCK for each thread; its scratch, three
                     times */
} passage;

static void pass_block(void *context, const smc_work *work) {
  const passage *all = context;
  int d = all->chain.d, n = work->n;
  smc_chain chain = smc_chain_part(
      &all->chain, SMC_LARGEST_BLOCK * work->thread, work->thread);
  size_t size = smc_size(d, SMC_LARGEST_BLOCK);
  double *z = all->points + 3 * size * (size_t)work->thread;
  double *x = z + size, *grad = all->grad_from ? x + size : NULL;
  size_t first = (size_t)all->done + (size_t)work->first;
  double *log_jacobian = all->log_jacobian + first;
  const double *to = z;
  memset(log_jacobian, 0, (size_t)n * sizeof *log_jacobian);
  r_transpose_part(n, d, all->from + first, all->n, all->back ? x : z, d);
  if (grad)
    r_transpose_part(n, d, all->grad_from + first, all->n, grad, d);
  if (all->back) {
    smc_chain_inverse(&chain, n, x, z);
    smc_chain_pull_back(&chain, n, z, log_jacobian, grad);
  } else {
    to = smc_chain_forward(&chain, n, z);
    smc_chain_push_forward(&chain, n, z, log_jacobian, grad);
  }
  for (int k = 0; k < n; k++) /* which log densities have lost */
    log_jacobian[k] = -log_jacobian[k];
  r_transpose_part(d, n, to, d, all->to + first, all->n);
  if (grad)
    r_transpose_part(d, n, grad, d, all->grad_to + first, all->n);
}

/* Numbers of points that are taken through between looks for an interrupt. */
enum { MOST_NUMBERS = 1 << 20 };

/* The team holds threads that an error, or an interrupt, must not leave behind:
 * there is none while it works. */
static void pass_all(passage *all, int n_threads) {
  int least = SMC_LARGEST_BLOCK * n_threads, most = MOST_NUMBERS / all->chain.d;
  most = most < least ? least : most;
  for (; all->done < all->n; all->done += most) {
    double pace = 0.0;
    smc_team team = {0};
    R_CheckUserInterrupt();
    smc_team_begin(&team, n_threads);
    smc_for_blocks(&team, all->n - all->done < most ? all->n - all->done : most,
                   &pace, pass_block, all);
    smc_team_end(&team);
  }
}

static SEXP new_points(SEXP list, int i, int n, int d) {
  SET_VECTOR_ELT(list, i, Rf_allocMatrix(REALSXP, n, d));
  return VECTOR_ELT(list, i);
}

/* list(x, g, log_jacobian): points x, a row a point, through a list of maps, or
 * where `back` is TRUE the other way; with the gradients of a log density g
 * there (or NULL) as those of the density that the images have; and the log
 * determinant of the derivative of the images at each point. */
SEXP r_chain(SEXP maps, SEXP x, SEXP g, SEXP back, SEXP threads) {
  static const char *const names[] = {"x", "g", "log_jacobian"};
  int n = Rf_nrows(x), d = Rf_ncols(x), n_threads = Rf_asInteger(threads);
  bool has_g = g != R_NilValue;
  passage all = {.chain = r_read_chain(maps, R_NilValue, d),
                 .n = n,
                 .back = Rf_asLogical(back),
                 .from = REAL(x),
                 .grad_from = has_g ? REAL(g) : NULL};
  size_t room = (size_t)SMC_LARGEST_BLOCK * (size_t)n_threads;
  r_lay_out_chain(&all.chain, (int)room, n_threads);
  all.points = (double *)R_alloc(3 * (size_t)d * room, sizeof(double));
  SEXP result = PROTECT(r_new_list(names, 3));
  all.to = REAL(new_points(result, 0, n, d));
  all.grad_to = has_g ? REAL(new_points(result, 1, n, d)) : NULL;
  SET_VECTOR_ELT(result, 2, Rf_allocVector(REALSXP, n));
  all.log_jacobian = REAL(VECTOR_ELT(result, 2));
  pass_all(&all, n_threads);
  UNPROTECT(1);
  return result;
}

/* list(pivots, diagonal) of smc_precision_pivots(), a row a point. */
SEXP r_precision_pivots(SEXP map, SEXP x) {
  static const char *const names[] = {"pivots", "diagonal"};
  int n = Rf_nrows(x), d = Rf_ncols(x), p = Rf_length(r_element(map, "order"));
  SEXP maps = PROTECT(Rf_allocVector(VECSXP, 1));
  SET_VECTOR_ELT(maps, 0, map);
  smc_chain chain = r_read_chain(maps, R_NilValue, d);
  r_lay_out_chain(&chain, 0, 1);
  double *z = (double *)R_alloc(smc_size(d + 2 * p, n), sizeof(double));
  double *found[2] = {z + smc_size(d, n), z + smc_size(d + p, n)};
  r_transpose(n, d, REAL(x), z);
  smc_precision_pivots(chain.maps, n, z, chain.scratch, found[0], found[1]);
  SEXP result = PROTECT(r_new_list(names, 2));
  for (int i = 0; i < 2; i++)
    r_transpose(p, n, found[i], REAL(new_points(result, i, n, p)));
  UNPROTECT(2);
  return result;
}
