/* arena.h: one block of the caller's memory, handed out piece by piece.
 *
 * The core allocates nothing. It lays out its arrays in an arena twice: once
 * over no memory (base = NULL), which only measures, and once over a block of
 * the size measured. One function does both, so that the two cannot disagree.
 */
#ifndef SMC_ARENA_H
#define SMC_ARENA_H

#include <stddef.h>

typedef struct smc_arena {
  char *base; /* caller's; aligned for double; NULL while measuring */
  size_t used;
} smc_arena;

static inline void *smc_take(smc_arena *arena, size_t bytes) {
  const size_t alignment = 16;
  void *piece = arena->base ? arena->base + arena->used : NULL;
  arena->used += (bytes + alignment - 1) / alignment * alignment;
  return piece;
}

static inline double *smc_take_doubles(smc_arena *arena, size_t count) {
  return smc_take(arena, count * sizeof(double));
}

static inline int *smc_take_ints(smc_arena *arena, size_t count) {
  return smc_take(arena, count * sizeof(int));
}

#endif
