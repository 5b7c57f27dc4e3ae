#include "cloud.h"

#include "vecmath.h"

#include <string.h>

smc_cloud smc_cloud_layout(smc_arena *arena, int d, int n, bool velocities) {
  size_t dn = smc_size(d, n);
  smc_cloud cloud = {.d = d, .n = n};
  cloud.x = smc_take_doubles(arena, dn);
  cloud.v = velocities ? smc_take_doubles(arena, dn) : NULL;
  cloud.grad_p = smc_take_doubles(arena, dn);
  cloud.grad_q = smc_take_doubles(arena, dn);
  cloud.log_p = smc_take_doubles(arena, (size_t)n);
  cloud.log_q = smc_take_doubles(arena, (size_t)n);
  return cloud;
}

static void gather_columns(int rows, int n, const double *from,
                           const int *index, double *to) {
  for (int k = 0; k < n; k++)
    memcpy(to + smc_size(rows, k), from + smc_size(rows, index[k]),
           (size_t)rows * sizeof(double));
}

void smc_cloud_gather(const smc_cloud *from, const int *index, smc_cloud *to) {
  gather_columns(from->d, to->n, from->x, index, to->x);
  if (from->v)
    gather_columns(from->d, to->n, from->v, index, to->v);
  gather_columns(from->d, to->n, from->grad_p, index, to->grad_p);
  gather_columns(from->d, to->n, from->grad_q, index, to->grad_q);
  gather_columns(1, to->n, from->log_p, index, to->log_p);
  gather_columns(1, to->n, from->log_q, index, to->log_q);
}

void smc_cloud_swap(smc_cloud *a, smc_cloud *b) {
  smc_cloud kept = *a;
  *a = *b;
  *b = kept;
}
