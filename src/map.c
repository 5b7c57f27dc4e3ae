#include "map.h"

#include "vecmath.h"

#include <string.h>

static const smc_map_kind *const kinds[] = {
    &smc_map_tails,    &smc_map_conditional, &smc_map_neck,
    &smc_map_rotation, &smc_map_affine,      &smc_map_bounds};

const smc_map_kind *smc_find_map(const char *name) {
  size_t count = sizeof kinds / sizeof kinds[0];
  for (size_t i = 0; i < count; i++)
    if (strcmp(kinds[i]->name, name) == 0)
      return kinds[i];
  return NULL;
}

/* chains ------------------------------------------------------------------ */

void smc_chain_layout(smc_chain *chain, smc_arena *arena, int n) {
  chain->images =
      smc_take(arena, (size_t)chain->n_maps, 1, sizeof *chain->images);
  for (int i = 0; i < chain->n_maps; i++) {
    smc_map *map = &chain->maps[i];
    double *image = smc_take_doubles(arena, chain->d, n);
    if (arena->base)
      chain->images[i] = image;
    if (map->kind->layout)
      map->kind->layout(map, arena);
  }
}

const double *smc_chain_points(const smc_chain *chain, int n_maps,
                               const double *z) {
  return n_maps == 0 ? z : chain->images[n_maps - 1];
}

const double *smc_chain_forward(const smc_chain *chain, int n,
                                const double *z) {
  for (int i = 0; i < chain->n_maps; i++) {
    const smc_map *map = &chain->maps[i];
    map->kind->forward(map, n, smc_chain_points(chain, i, z), chain->images[i]);
  }
  return smc_chain_points(chain, chain->n_maps, z);
}

void smc_chain_forward_one(const smc_chain *chain, int k, const double *z) {
  size_t first = smc_size(chain->d, k);
  for (int i = 0; i < chain->n_maps; i++) {
    const smc_map *map = &chain->maps[i];
    map->kind->forward(map, 1, smc_chain_points(chain, i, z) + first,
                       chain->images[i] + first);
  }
}

bool smc_chain_is_finite(const smc_chain *chain, int k) {
  for (int i = 0; i < chain->n_maps; i++)
    if (!smc_all_finite(chain->d, chain->images[i] + smc_size(chain->d, k)))
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
    map->kind->pull_back(map, n, smc_chain_points(chain, i, z), logp, grad);
  }
}
