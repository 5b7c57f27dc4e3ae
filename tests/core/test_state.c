/* test_state.c: the arena, and the clouds laid out in it. */
#include "arena.h"
#include "check.h"
#include "cloud.h"
#include "smc.h"

#include <stdlib.h>
#include <string.h>

/* the arena --------------------------------------------------------------- */

/* Pieces of a layout, in the order in which they were taken. */
typedef struct piece {
  const char *start;
  size_t bytes;
} piece;

static long overlaps(const piece *pieces, int n, const char *block,
                     size_t size) {
  long bad = 0;
  for (int i = 0; i < n; i++) {
    bad += (uintptr_t)pieces[i].start % 16 != 0;
    bad += pieces[i].start < block ||
           pieces[i].start + pieces[i].bytes > block + size;
    for (int j = 0; j < i; j++)
      bad += pieces[i].start < pieces[j].start + pieces[j].bytes &&
             pieces[j].start < pieces[i].start + pieces[i].bytes;
  }
  return bad;
}

static int take_pieces(smc_arena *arena, uint64_t seed, piece *pieces) {
  dice r = {seed};
  for (int i = 0; i < 20; i++) {
    size_t count = (size_t)dice_int(&r, 0, 9);
    bool ints = dice_unit(&r) < 0.5;
    pieces[i].bytes = count * (ints ? sizeof(int) : sizeof(double));
    pieces[i].start = ints ? (char *)smc_take_ints(arena, count)
                           : (char *)smc_take_doubles(arena, count);
  }
  return 20;
}

static void test_arena(void) {
  long bad = 0, null = 0;
  for (uint64_t seed = 0; seed < 200; seed++) {
    piece pieces[20];
    smc_arena measure = {NULL, 0};
    int n = take_pieces(&measure, seed, pieces);
    for (int i = 0; i < n; i++)
      null += pieces[i].start != NULL;
    char *block = take_memory(measure.used);
    smc_arena arena = {block, 0};
    take_pieces(&arena, seed, pieces);
    bad += arena.used != measure.used;
    bad += overlaps(pieces, n, block, measure.used);
    free(block);
  }
  CHECK_NONE(null, 200, "measuring hands out no memory");
  CHECK_NONE(bad, 200, "pieces are aligned, within the block, and apart");
}

/* The pieces of a whole run: as many as its header promises, and apart. */
static int pieces_of_cloud(const smc_cloud *c, piece *p) {
  size_t n = (size_t)c->n * sizeof(double), dn = n * (size_t)c->d;
  int count = 0;
  p[count++] = (piece){(char *)c->x, dn};
  if (c->v)
    p[count++] = (piece){(char *)c->v, dn};
  p[count++] = (piece){(char *)c->grad_p, dn};
  p[count++] = (piece){(char *)c->grad_q, dn};
  p[count++] = (piece){(char *)c->log_p, n};
  p[count++] = (piece){(char *)c->log_q, n};
  return count;
}

static void test_run_layout(void) {
  static const int shapes[][3] = {/* d, N, B */
                                  {1, 1, 1}, {3, 7, 2}, {2, 5, 9}, {10, 64, 64}};
  static const double mean[10] = {0}, sd[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  static const double sizes[1] = {0.1};
  long bad = 0, cases = 0;
  for (int i = 0; i < 4; i++)
    for (int variant = 0; variant < 8; variant++, cases++) {
      int d = shapes[i][0], n = shapes[i][1], b = shapes[i][2];
      bool velocities = variant & 1, tuned = variant & 2, mapped = variant & 4;
      smc_kernel kernel = smc_kernel_lmc;
      kernel.velocities = velocities;
      smc_tuner_options tuner = {.n_subsample = b};
      smc_config config = {.kernel = &kernel,
                           .d = d,
                           .n_particles = n,
                           .n_steps = 1,
                           .step_size = tuned ? NULL : sizes,
                           .tuner = &tuner};
      smc_path path = {.d = d,
                       .mean = mapped ? mean : NULL,
                       .sd = mapped ? sd : NULL};
      smc_state s;
      smc_arena measure = {NULL, 0};
      smc_layout(&s, &path, &config, &measure);
      char *block = take_memory(measure.used);
      smc_arena arena = {block, 0};
      smc_layout(&s, &path, &config, &arena);

      piece p[40];
      size_t dn = (size_t)d * (size_t)n, N = (size_t)n, B = (size_t)b;
      const size_t real = sizeof(double);
      int count = pieces_of_cloud(&s.cloud, p);
      count += pieces_of_cloud(&s.next, p + count);
      p[count++] = (piece){(char *)s.log_weights, N * real};
      p[count++] = (piece){(char *)s.weights, N * real};
      p[count++] = (piece){(char *)s.log_g, N * real};
      p[count++] = (piece){(char *)s.noise, dn * real};
      p[count++] = (piece){(char *)s.ancestors, N * sizeof(int)};
      p[count++] = (piece){(char *)s.scratch, smc_resample_scratch(n, n) * real};
      if (mapped)
        p[count++] = (piece){(char *)path.mapped, dn * real};
      if (tuned) {
        count += pieces_of_cloud(&s.tuner.from, p + count);
        count += pieces_of_cloud(&s.tuner.to, p + count);
        p[count++] = (piece){(char *)s.tuner.noise, (size_t)d * B * real};
        p[count++] = (piece){(char *)s.tuner.log_g, B * real};
        p[count++] = (piece){(char *)s.tuner.ancestors, B * sizeof(int)};
        p[count++] = (piece){(char *)s.tuner.scratch,
                             smc_resample_scratch(n, b) * real};
        bad += s.tuner.from.n != b || s.tuner.to.n != b;
      }
      bad += arena.used != measure.used;
      bad += overlaps(p, count, block, measure.used);
      bad += (s.cloud.v != NULL) != velocities;
      bad += (path.mapped != NULL) != mapped;
      free(block);
    }
  CHECK_NONE(bad, cases, "the arrays of a run are within the block and apart");
}

/* clouds ------------------------------------------------------------------ */

static smc_cloud new_cloud(int d, int n, bool velocities, char **block) {
  smc_arena arena = {NULL, 0};
  smc_cloud_layout(&arena, d, n, velocities);
  *block = take_memory(arena.used);
  arena = (smc_arena){*block, 0};
  return smc_cloud_layout(&arena, d, n, velocities);
}

/* Every number tells where it stands. */
static void number_cloud(smc_cloud *c) {
  for (int k = 0; k < c->n; k++) {
    for (int i = 0; i < c->d; i++) {
      int j = c->d * k + i;
      c->x[j] = 1000.0 + j;
      if (c->v)
        c->v[j] = 2000.0 + j;
      c->grad_p[j] = 3000.0 + j;
      c->grad_q[j] = 4000.0 + j;
    }
    c->log_p[k] = 5000.0 + k;
    c->log_q[k] = 6000.0 + k;
  }
}

static void test_gather(void) {
  static const int index[] = {0, 2, 2, 2, 4, 1, 0};
  const int d = 3, n = 5;
  for (int velocities = 0; velocities < 2; velocities++)
    for (int m = 1; m <= 7; m += 3) {
      char *block_from, *block_to;
      smc_cloud from = new_cloud(d, n, velocities != 0, &block_from);
      smc_cloud to = new_cloud(d, m, velocities != 0, &block_to);
      number_cloud(&from);
      smc_cloud_gather(&from, index, &to);
      long bad = 0;
      for (int k = 0; k < m; k++) {
        for (int i = 0; i < d; i++) {
          int j = d * k + i;
          double there = d * index[k] + i;
          bad += to.x[j] != 1000.0 + there || to.grad_p[j] != 3000.0 + there ||
                 to.grad_q[j] != 4000.0 + there;
          bad += velocities && to.v[j] != 2000.0 + there;
        }
        bad += to.log_p[k] != 5000.0 + index[k];
        bad += to.log_q[k] != 6000.0 + index[k];
      }
      CHECK_NONE(bad, m, "a particle is gathered with all that belongs to it");
      free(block_from);
      free(block_to);
    }
}

static void test_swap(void) {
  char *block_a, *block_b;
  smc_cloud a = new_cloud(2, 3, true, &block_a);
  smc_cloud b = new_cloud(2, 3, true, &block_b);
  smc_cloud old_a = a, old_b = b;
  smc_cloud_swap(&a, &b);
  CHECK(a.x == old_b.x && a.v == old_b.v && a.grad_p == old_b.grad_p &&
        a.grad_q == old_b.grad_q && a.log_p == old_b.log_p &&
        a.log_q == old_b.log_q);
  CHECK(b.x == old_a.x && b.v == old_a.v && b.grad_p == old_a.grad_p &&
        b.grad_q == old_a.grad_q && b.log_p == old_a.log_p &&
        b.log_q == old_a.log_q);
  free(block_a);
  free(block_b);
}

void test_state(void) {
  test_arena();
  test_run_layout();
  test_gather();
  test_swap();
}
