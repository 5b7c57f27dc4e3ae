#include "map.h"

#include "vecmath.h"

#include <string.h>

const smc_map_kind *const smc_map_kinds[] = {&smc_map_tails,
                                             &smc_map_rotation,
                                             &smc_map_affine,
                                             &smc_map_precision,
                                             &smc_map_moments,
                                             &smc_map_bounds,
                                             NULL};

const smc_map_kind *smc_find_map(const char *name) {
  for (int i = 0; smc_map_kinds[i]; i++)
    if (strcmp(smc_map_kinds[i]->name, name) == 0)
      return smc_map_kinds[i];
  return NULL;
}

bool smc_has_value(const smc_values *values, double x) {
  for (size_t i = 0; i < values->size; i++)
    if (values->x[i] == x)
      return true;
  return false;
}

bool smc_is_coordinate(double x, int d) {
  return x >= 1.0 && x <= d && x == floor(x);
}

bool smc_are_coordinates(const smc_values *values, int d) {
  for (size_t i = 0; i < values->size; i++) {
    smc_values before = {.x = values->x, .size = i};
    if (!smc_is_coordinate(values->x[i], d) ||
        smc_has_value(&before, values->x[i]))
      return false;
  }
  return true;
}

/* chains ------------------------------------------------------------------ */

void smc_chain_layout(smc_chain *chain, smc_arena *arena, int n,
                      int n_threads) {
  size_t most = 0;
  for (int i = 0; i < chain->n_maps; i++) {
    smc_map *map = &chain->maps[i];
    size_t size = map->kind->scratch ? map->kind->scratch(map) : 0;
    most = size > most ? size : most;
    if (map->kind->layout)
      map->kind->layout(map, arena);
  }
  chain->images = smc_take(arena, smc_size(chain->d, chain->n_maps), (size_t)n,
                           sizeof(double));
  chain->capacity = n;
  chain->scratch = smc_take(arena, most, (size_t)n_threads, sizeof(double));
  chain->scratch_size = most;
}

smc_chain smc_chain_part(const smc_chain *chain, int first, int thread) {
  smc_chain part = *chain;
  part.images += smc_size(chain->d, first);
  part.scratch += chain->scratch_size * (size_t)thread;
  return part;
}

/* The points after map i. */
static double *image(const smc_chain *chain, int i) {
  return chain->images + smc_size(chain->d, chain->capacity) * (size_t)i;
}

const double *smc_chain_points(const smc_chain *chain, int n_maps,
                               const double *z) {
  return n_maps == 0 ? z : image(chain, n_maps - 1);
}

const double *smc_chain_forward(const smc_chain *chain, int n,
                                const double *z) {
  for (int i = 0; i < chain->n_maps; i++) {
    const smc_map *map = &chain->maps[i];
    map->kind->forward(map, n, smc_chain_points(chain, i, z), image(chain, i),
                       chain->scratch);
  }
  return smc_chain_points(chain, chain->n_maps, z);
}

void smc_chain_inverse(const smc_chain *chain, int n, const double *x,
                       double *z) {
  size_t size = smc_size(chain->d, n) * sizeof(double);
  if (chain->n_maps > 0)
    memmove(image(chain, chain->n_maps - 1), x, size);
  else if (z != x)
    memmove(z, x, size);
  for (int i = chain->n_maps - 1; i >= 0; i--) {
    const smc_map *map = &chain->maps[i];
    map->kind->inverse(map, n, image(chain, i), i > 0 ? image(chain, i - 1) : z,
                       chain->scratch);
  }
}

void smc_chain_forward_one(const smc_chain *chain, int k, const double *z) {
  size_t first = smc_size(chain->d, k);
  for (int i = 0; i < chain->n_maps; i++) {
    const smc_map *map = &chain->maps[i];
    map->kind->forward(map, 1, smc_chain_points(chain, i, z) + first,
                       image(chain, i) + first, chain->scratch);
  }
}

bool smc_chain_is_finite(const smc_chain *chain, int k) {
  for (int i = 0; i < chain->n_maps; i++)
    if (!smc_all_finite(chain->d, image(chain, i) + smc_size(chain->d, k)))
      return false;
  return true;
}

bool smc_chain_reset_overflowed(const smc_chain *chain, int k, double *z) {
  if (smc_chain_is_finite(chain, k))
    return false;
  memset(z + smc_size(chain->d, k), 0, (size_t)chain->d * sizeof(double));
  smc_chain_forward_one(chain, k, z);
  return true;
}

void smc_chain_pull_back(const smc_chain *chain, int n, const double *z,
                         double *logp, double *grad) {
  for (int i = chain->n_maps - 1; i >= 0; i--) {
    const smc_map *map = &chain->maps[i];
    map->kind->pull_back(map, n, smc_chain_points(chain, i, z), logp, grad,
                         chain->scratch);
  }
}

void smc_chain_push_forward(const smc_chain *chain, int n, const double *z,
                            double *logp, double *grad) {
  for (int i = 0; i < chain->n_maps; i++) {
    const smc_map *map = &chain->maps[i];
    map->kind->push_forward(map, n, smc_chain_points(chain, i, z), logp, grad,
                            chain->scratch);
  }
}
