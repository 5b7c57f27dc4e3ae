#include "kernel.h"

#include "normals.h"
#include "vecmath.h"

#include <math.h>
#include <string.h>

static const smc_kernel *const kernels[] = {&smc_kernel_lmc,  &smc_kernel_klmc,
                                            &smc_kernel_mala, &smc_kernel_rwmh,
                                            &smc_kernel_pcn,  &smc_kernel_hmc};

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

/* The normals of a block, as they were given or new ones. */
static const double *noise_of(const smc_move *m, const smc_work *block) {
  int d = m->from->d;
  if (m->noise)
    return m->noise + smc_size(d, block->first);
  double *drawn =
      m->drawn + smc_size(d, SMC_LARGEST_BLOCK) * (size_t)block->thread;
  smc_normal_matrix(&m->stream, d, block->first, block->n, drawn);
  return drawn;
}

static void propose(const void *context, const smc_work *block) {
  const moving *moving = context;
  const double *noise = noise_of(moving->m, block);
  for (int i = 0; i < block->n; i++, noise += moving->m->from->d)
    moving->kernel->propose(moving->m, block->first + i, noise);
}

static void weigh(const void *context, const smc_work *block) {
  const moving *moving = context;
  for (int i = 0; i < block->n; i++)
    moving->kernel->weigh(moving->m, block->first + i);
}

int smc_kernel_move(const smc_kernel *kernel, const smc_move *m) {
  smc_move move = *m;
  move.previous.log_step_size = log(m->previous.step_size);
  move.current.log_step_size = log(m->current.step_size);
  moving moving = {kernel, &move};
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
