/* product.h: products of a matrix with many points, in plain C.
 *
 * R's own BLAS, which most users have, is slow. These products are made in
 * blocks that stay in registers, and are three to eight times as fast. Every
 * sum is taken in the order of the columns, with a rounding after each product
 * and each sum. So the result for a point is the same to the last bit whatever
 * points are beside it, and whatever vectors the processor has.
 */
#ifndef SMC_PRODUCT_H
#define SMC_PRODUCT_H

#include <stdbool.h>
#include <stddef.h>

/* A, stored by columns, or its transpose. */
typedef struct smc_matrix {
  const double *x;
  int rows, columns; /* of A, or where it is transposed, of its transpose   */
  bool transposed;
  bool lower; /* A is square, and zero above the diagonal, whatever is stored
                 there                                                      */
  bool of_points; /* its rows are the points, so that the product is symmetric:
                     some entries below its diagonal are not computed        */
} smc_matrix;

/* A lower triangle of d rows, or its transpose. */
static inline smc_matrix smc_triangle(const double *x, int d, bool transposed) {
  return (smc_matrix){
      .x = x, .rows = d, .columns = d, .transposed = transposed, .lower = true};
}

/* How many doubles of scratch a product with up to n points takes. */
size_t smc_product_scratch(const smc_matrix *a, int n);

/* out (rows x n) <- the product with x (columns x n). Where A is square, out
 * may be x. A coordinate of x that is not finite may make NaN of all those of
 * the same column of out. */
void smc_multiply(const smc_matrix *a, int n, const double *x, double *scratch,
                  double *out);

#endif
