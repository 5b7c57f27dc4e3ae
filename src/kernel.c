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

smc_cloud_parts smc_kernel_parts(const smc_kernel *kernel,
                                 const smc_reference *reference) {
  bool is_normal = reference->type == SMC_REFERENCE_NORMAL;
  return (smc_cloud_parts){.velocities = kernel->refreshes,
                           .grad_p = kernel->gradients,
                           .grad_q = kernel->gradients && !is_normal};
}

/* a move ------------------------------------------------------------------ */

typedef struct moving {
  const smc_kernel *kernel;
  const smc_move *m;
} moving;

static void propose(const void *context, int first, int n) {
  const moving *moving = context;
  for (int k = first; k < first + n; k++)
    moving->kernel->propose(moving->m, k);
}

static void weigh(const void *context, int first, int n) {
  const moving *moving = context;
  for (int k = first; k < first + n; k++)
    moving->kernel->weigh(moving->m, k);
}

int smc_kernel_move(const smc_kernel *kernel, const smc_move *m) {
  moving moving = {kernel, m};
  smc_around around = {propose, weigh, &moving};
  bool gradients = kernel->gradients;
  if (kernel->needs_gradients)
    gradients = kernel->needs_gradients(m);
  return smc_path_evaluate(m->path, m->to, gradients, &around);
}

/* ------------------------------------------------------------------------- */

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
