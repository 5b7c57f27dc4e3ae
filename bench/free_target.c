/* free_target.c: a target that costs next to nothing, so that a run on it shows
 * what the sampler itself costs. The reference is already the answer. */
#include <autosmc.h>
#include <string.h>

int free_target(void *data, int d, int n, const double *x, double *logp,
                double *grad) {
  (void)data;
  (void)x;
  memset(logp, 0, (size_t)n * sizeof *logp);
  if (grad)
    memset(grad, 0, (size_t)d * (size_t)n * sizeof *grad);
  return 0;
}
