#include "cloud.h"

#include "vecmath.h"

#include <string.h>

int smc_cloud_matrices(smc_cloud_parts parts) {
  return 1 + parts.velocities + parts.grad_p + parts.grad_q;
}

smc_cloud smc_cloud_layout(smc_arena *arena, int d, int n,
                           smc_cloud_parts parts, double *const *matrices) {
  const bool has[] = {true, parts.velocities, parts.grad_p, parts.grad_q};
  double *own[] = {NULL, NULL, NULL, NULL};
  for (int i = 0; i < 4; i++)
    if (has[i])
      own[i] = matrices ? *matrices++ : smc_take_doubles(arena, d, n);
  smc_cloud cloud = {.d = d,
                     .n = n,
                     .x = own[0],
                     .v = own[1],
                     .grad_p = own[2],
                     .grad_q = own[3]};
  cloud.log_p = smc_take_doubles(arena, 1, n);
  cloud.log_q = smc_take_doubles(arena, 1, n);
  return cloud;
}

static double *column(double *matrix, int rows, int k) {
  return matrix ? matrix + smc_size(rows, k) : NULL;
}

smc_cloud smc_cloud_part(const smc_cloud *cloud, int first, int n) {
  return (smc_cloud){.d = cloud->d,
                     .n = n,
                     .x = column(cloud->x, cloud->d, first),
                     .v = column(cloud->v, cloud->d, first),
                     .grad_p = column(cloud->grad_p, cloud->d, first),
                     .grad_q = column(cloud->grad_q, cloud->d, first),
                     .log_p = cloud->log_p + first,
                     .log_q = cloud->log_q + first};
}

/* Column index[k] of `from` becomes column k of `to`; nothing where a kernel
 * has no such matrix. */
static void gather_columns(int rows, int n, const double *from,
                           const int *index, double *to) {
  if (!from)
    return;
  for (int k = 0; k < n; k++)
    memcpy(to + smc_size(rows, k), from + smc_size(rows, index[k]),
           (size_t)rows * sizeof(double));
}

void smc_cloud_gather(const smc_cloud *from, const int *index, smc_cloud *to) {
  gather_columns(from->d, to->n, from->x, index, to->x);
  gather_columns(from->d, to->n, from->v, index, to->v);
  gather_columns(from->d, to->n, from->grad_p, index, to->grad_p);
  gather_columns(from->d, to->n, from->grad_q, index, to->grad_q);
  gather_columns(1, to->n, from->log_p, index, to->log_p);
  gather_columns(1, to->n, from->log_q, index, to->log_q);
}

static void copy_column(int rows, int k, const double *from, double *to) {
  if (from)
    memcpy(to + smc_size(rows, k), from + smc_size(rows, k),
           (size_t)rows * sizeof(double));
}

void smc_cloud_copy(const smc_cloud *from, int k, smc_cloud *to) {
  copy_column(from->d, k, from->x, to->x);
  copy_column(from->d, k, from->grad_p, to->grad_p);
  copy_column(from->d, k, from->grad_q, to->grad_q);
  copy_column(1, k, from->log_p, to->log_p);
  copy_column(1, k, from->log_q, to->log_q);
}

void smc_cloud_swap(smc_cloud *a, smc_cloud *b) {
  smc_cloud kept = *a;
  *a = *b;
  *b = kept;
}
