#include "kernel.h"

#include <math.h>
#include <string.h>

static const smc_kernel *const kernels[] = {&smc_kernel_lmc, &smc_kernel_klmc,
                                            &smc_kernel_mala, &smc_kernel_rwmh};

const smc_kernel *smc_find_kernel(const char *name) {
  size_t count = sizeof kernels / sizeof kernels[0];
  for (size_t i = 0; i < count; i++)
    if (strcmp(kernels[i]->name, name) == 0)
      return kernels[i];
  return NULL;
}

double smc_divergence(const smc_move *m) {
  double sum = 0.0;
  int n = 0;
  for (int k = 0; k < m->from->n; k++)
    if (m->from->log_p[k] > -INFINITY) {
      sum -= m->log_g[k];
      n++;
    }
  return sum / n;
}
