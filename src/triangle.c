#include "triangle.h"

#include <string.h>

bool smc_triangle_is_valid(int d, const smc_values *order,
                           const smc_values *entries, size_t n_entries) {
  size_t p = order->size;
  if (!order->x || !entries->x || p == 0 || p >= (size_t)d ||
      entries->size != p * p || !smc_are_coordinates(order, d))
    return false;
  for (size_t i = 0; i < p * p; i++)
    if (!(entries->x[i] >= 0.0 && entries->x[i] <= (double)n_entries &&
          entries->x[i] == floor(entries->x[i])))
      return false;
  for (size_t v = 0; v < p; v++)
    if (entries->x[v * (p + 1)] == 0.0)
      return false;
  return true;
}

static void fill(const smc_triangle *triangle, int d, const smc_values *order,
                 const smc_values *entries) {
  int p = triangle->p, count = 0;
  for (int k = 0, i = 0; k < d; k++)
    if (!smc_has_value(order, k + 1.0))
      triangle->given[i++] = k;
  for (int v = 0; v < p; v++) {
    triangle->coordinate[v] = (int)order->x[v] - 1;
    triangle->diagonal[v] = smc_triangle_entry(entries, p, v, v);
    triangle->start[v] = count;
    for (int a = v + 1; a < p; a++) {
      int number = smc_triangle_entry(entries, p, a, v);
      if (number >= 0) {
        triangle->row[count] = a;
        triangle->number[count++] = number;
      }
    }
  }
  triangle->start[p] = count;
}

smc_triangle smc_triangle_layout(smc_arena *arena, int d,
                                 const smc_values *order,
                                 const smc_values *entries) {
  int p = (int)order->size, most = p * (p - 1) / 2;
  smc_triangle triangle = {.p = p,
                           .n_given = d - p,
                           .coordinate = smc_take_ints(arena, p, 1),
                           .given = smc_take_ints(arena, d - p, 1),
                           .diagonal = smc_take_ints(arena, p, 1),
                           .start = smc_take_ints(arena, p + 1, 1),
                           .row = smc_take_ints(arena, most, 1),
                           .number = smc_take_ints(arena, most, 1)};
  if (arena->base)
    fill(&triangle, d, order, entries);
  return triangle;
}

void smc_triangle_solve(const smc_triangle *triangle, const double *L,
                        double *x) {
  for (int v = 0; v < triangle->p; v++)
    for (int i = triangle->start[v]; i < triangle->start[v + 1]; i++)
      x[triangle->row[i]] -= L[triangle->number[i]] * x[v];
}

void smc_triangle_solve_transposed(const smc_triangle *triangle,
                                   const double *L, double *x) {
  for (int v = triangle->p - 1; v >= 0; v--)
    for (int i = triangle->start[v]; i < triangle->start[v + 1]; i++)
      x[v] -= L[triangle->number[i]] * x[triangle->row[i]];
}

void smc_triangle_multiply(const smc_triangle *triangle, const double *L,
                           double *x) {
  for (int v = triangle->p - 1; v >= 0; v--)
    for (int i = triangle->start[v]; i < triangle->start[v + 1]; i++)
      x[triangle->row[i]] += L[triangle->number[i]] * x[v];
}

void smc_triangle_multiply_transposed(const smc_triangle *triangle,
                                      const double *L, double *x) {
  for (int v = 0; v < triangle->p; v++)
    for (int i = triangle->start[v]; i < triangle->start[v + 1]; i++)
      x[v] += L[triangle->number[i]] * x[triangle->row[i]];
}

void smc_sums_of_terms(int size, int n_terms, const double *coefficients,
                       const double *terms, double *out) {
  memset(out, 0, (size_t)size * sizeof(double));
  for (int i = 0; i < n_terms; i++) {
    const double *of_term = coefficients + smc_size(size, i);
    SMC_SIMD
    for (int e = 0; e < size; e++)
      out[e] += of_term[e] * terms[i];
  }
}

double smc_add_products(int size, const double *coefficients, const double *bar,
                        double sum) {
  SMC_SIMD_SUM
  for (int e = 0; e < size; e++)
    sum += coefficients[e] * bar[e];
  return sum;
}
