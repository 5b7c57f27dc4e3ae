#include "kernel.h"

#include <string.h>

static const smc_kernel *const kernels[] = {&smc_kernel_lmc};

const smc_kernel *smc_find_kernel(const char *name) {
  size_t count = sizeof kernels / sizeof kernels[0];
  for (size_t i = 0; i < count; i++)
    if (strcmp(kernels[i]->name, name) == 0)
      return kernels[i];
  return NULL;
}
