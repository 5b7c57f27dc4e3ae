/* triangle.h: a sparse lower triangular matrix L with ones on its diagonal,
 * whose rows and columns are some coordinates of a map, in an order of their
 * own. The rest of the coordinates are given.
 */
#ifndef SMC_TRIANGLE_H
#define SMC_TRIANGLE_H

#include "map.h"
#include "vecmath.h"

/* The p rows; the given coordinates; the numbers of the entries on the
 * diagonal; and the entries below it column by column. Those of column v are
 * start[v] ... start[v + 1] - 1: each has its row, and its number. */
typedef struct smc_triangle {
  int p, n_given;
  int *coordinate, *given, *diagonal, *start, *row, *number;
} smc_triangle;

/* Whether `order` has some coordinates of d, but not all, each once; and
 * `entries`, p x p, the numbers of at most n_entries entries in the
 * lower triangle, counted from 1, 0 for none, all of the diagonal among them.
 */
bool smc_triangle_is_valid(int d, const smc_values *order,
                           const smc_values *entries, size_t n_entries);

/* Take memory for it, and where there is any fill it (see arena.h). */
smc_triangle smc_triangle_layout(smc_arena *arena, int d,
                                 const smc_values *order,
                                 const smc_values *entries);

/* The number of the entry in row a and column b <= a, from 0; -1 for none. */
static inline int smc_triangle_entry(const smc_values *entries, int p, int a,
                                     int b) {
  return (int)entries->x[smc_size(p, b) + (size_t)a] - 1;
}

/* x <- L^-1 x, and x <- L^-T x. L: the entries by their numbers; x: p. */
void smc_triangle_solve(const smc_triangle *triangle, const double *L,
                        double *x);
void smc_triangle_solve_transposed(const smc_triangle *triangle,
                                   const double *L, double *x);

/* x <- L x, and x <- L^T x. */
void smc_triangle_multiply(const smc_triangle *triangle, const double *L,
                           double *x);
void smc_triangle_multiply_transposed(const smc_triangle *triangle,
                                      const double *L, double *x);

/* out (size) <- coefficients (size x n_terms) times the terms: entries that are
 * sums of terms. */
void smc_sums_of_terms(int size, int n_terms, const double *coefficients,
                       const double *terms, double *out);

/* The way back: the sum, and what the derivatives (`bar`) by such entries give
 * to that by a term with these coefficients. */
double smc_add_products(int size, const double *coefficients, const double *bar,
                        double sum);

#endif
