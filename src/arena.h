/* arena.h: one block of the caller's memory, handed out piece by piece.
 *
 * The core allocates nothing. It lays out its arrays in an arena twice: once
 * over no memory (base = NULL), which only measures, and once over a block of
 * the size measured. One function does both, so that the two cannot disagree.
 *
 * Sizes are products of the user's numbers and may be larger than any memory.
 * So the measure is taken in floating point, where it cannot wrap, and the
 * caller looks at smc_arena_fits() before it asks for the block.
 */
#ifndef SMC_ARENA_H
#define SMC_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct smc_arena {
  char *base;    /* caller's; aligned for double; NULL while measuring */
  size_t used;   /* bytes; as it should be only if smc_arena_fits()    */
  double needed; /* bytes, of any number                               */
} smc_arena;

/* Whether a block of the size measured can be addressed at all. */
static inline bool smc_arena_fits(const smc_arena *arena) {
  return arena->needed < (double)(PTRDIFF_MAX / 2);
}

/* Room for a rows x columns matrix with elements of `size` bytes. */
static inline void *smc_take(smc_arena *arena, size_t rows, size_t columns,
                             size_t size) {
  const size_t alignment = 16;
  void *piece = arena->base ? arena->base + arena->used : NULL;
  size_t bytes = rows * columns * size;
  arena->used += (bytes + alignment - 1) / alignment * alignment;
  arena->needed +=
      (double)rows * (double)columns * (double)size + (double)alignment;
  return piece;
}

static inline double *smc_take_doubles(smc_arena *arena, int rows,
                                       int columns) {
  return smc_take(arena, (size_t)rows, (size_t)columns, sizeof(double));
}

static inline int *smc_take_ints(smc_arena *arena, int rows, int columns) {
  return smc_take(arena, (size_t)rows, (size_t)columns, sizeof(int));
}

#endif
