/* test_state.c: the arena, and the clouds laid out in it. */
#include "arena.h"
#include "check.h"
#include "cloud.h"
#include "smc.h"
#include "toy.h"

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
    int count = dice_int(&r, 0, 9);
    bool ints = dice_unit(&r) < 0.5;
    pieces[i].bytes = (size_t)count * (ints ? sizeof(int) : sizeof(double));
    pieces[i].start = ints ? (char *)smc_take_ints(arena, 1, count)
                           : (char *)smc_take_doubles(arena, count, 1);
  }
  return 20;
}

static void test_arena(void) {
  long bad = 0, null = 0;
  for (uint64_t seed = 0; seed < 200; seed++) {
    piece pieces[20];
    smc_arena measure = {.base = NULL};
    int n = take_pieces(&measure, seed, pieces);
    for (int i = 0; i < n; i++)
      null += pieces[i].start != NULL;
    char *block = take_memory(measure.used);
    smc_arena arena = {.base = block};
    take_pieces(&arena, seed, pieces);
    bad += arena.used != measure.used;
    bad += overlaps(pieces, n, block, measure.used);
    free(block);
  }
  CHECK_NONE(null, 200, "measuring hands out no memory");
  CHECK_NONE(bad, 200, "pieces are aligned, within the block, and apart");
}

/* A size that no memory has is measured, not wrapped. */
static void test_huge(void) {
  smc_arena arena = {.base = NULL};
  smc_take_doubles(&arena, 100, 100);
  CHECK(smc_arena_fits(&arena) && arena.needed >= (double)arena.used);
  smc_take_doubles(&arena, 1677628839, 152718392); /* 2^61 / 9 doubles */
  smc_take_doubles(&arena, 2147483647, 2147483647);
  CHECK(!smc_arena_fits(&arena));
  CHECK_NEAR(arena.needed / (8.0 * 2147483647.0 * 2147483647.0), 1.0, 0.1);
}

/* The pieces of a whole run: as many as its header promises, and apart. */
static int pieces_of_cloud(const smc_cloud *c, piece *p) {
  size_t n = (size_t)c->n * sizeof(double), dn = n * (size_t)c->d;
  int count = 0;
  p[count++] = (piece){(char *)c->x, dn};
  if (c->v)
    p[count++] = (piece){(char *)c->v, dn};
  if (c->grad_p)
    p[count++] = (piece){(char *)c->grad_p, dn};
  if (c->grad_q)
    p[count++] = (piece){(char *)c->grad_q, dn};
  p[count++] = (piece){(char *)c->log_p, n};
  p[count++] = (piece){(char *)c->log_q, n};
  return count;
}

static void test_run_layout(void) {
  static const int shapes[][3] = {/* d, N, B */
                                  {1, 1, 1},
                                  {3, 7, 2},
                                  {2, 5, 9},
                                  {10, 64, 64}};
  static const double mean[10] = {0}, sd[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  static const double sizes[1] = {0.1}, grid[1] = {0.5};
  long bad = 0, cases = 0;
  for (int i = 0; i < 4; i++)
    for (int variant = 0; variant < 32; variant++, cases++) {
      int d = shapes[i][0], n = shapes[i][1], b = shapes[i][2];
      bool velocities = variant & 1, tuned = variant & 2, mapped = variant & 4;
      bool gradients = variant & 8, normal = variant & 16;
      smc_kernel kernel = smc_kernel_lmc;
      kernel.refreshes = velocities;
      kernel.gradients = gradients;
      smc_tuner_options tuner = {
          .n_subsample = b, .n_refresh = 1, .refresh_grid = grid};
      smc_config config = {.kernel = &kernel,
                           .d = d,
                           .n_particles = n,
                           .n_steps = 1,
                           .step_size = tuned ? NULL : sizes,
                           .tuner = &tuner};
      smc_map map = toy_affine(d, mean, sd, NULL);
      smc_path path = {.d = d};
      path.reference.type =
          normal ? SMC_REFERENCE_NORMAL : SMC_REFERENCE_STUDENT;
      if (mapped)
        path.chain = toy_chain(1, &map);
      smc_state s;
      smc_arena measure = {.base = NULL};
      smc_layout(&s, &path, &config, &measure);
      char *block = take_memory(measure.used);
      smc_arena arena = {.base = block};
      smc_layout(&s, &path, &config, &arena);

      piece p[40];
      size_t dn = (size_t)d * (size_t)n, N = (size_t)n, B = (size_t)b;
      const size_t real = sizeof(double);
      int count = pieces_of_cloud(&s.cloud, p);
      count += pieces_of_cloud(&s.next, p + count);
      p[count++] = (piece){(char *)s.log_weights, N * real};
      p[count++] = (piece){(char *)s.weights, N * real};
      p[count++] = (piece){(char *)s.log_g, N * real};
      p[count++] = (piece){(char *)s.uniform, N * real};
      p[count++] = (piece){(char *)s.acceptance, N * real};
      p[count++] =
          (piece){(char *)s.drawn, (size_t)(d * SMC_LARGEST_BLOCK) * real};
      p[count++] = (piece){(char *)s.ancestors, N * sizeof(int)};
      p[count++] =
          (piece){(char *)s.scratch, smc_resample_scratch(n, n) * real};
      p[count++] = (piece){(char *)path.log_q, N * real};
      if (mapped)
        p[count++] = (piece){(char *)path.chain.images, dn * real};
      if (tuned) {
        count += pieces_of_cloud(&s.tuner.from, p + count);
        count += pieces_of_cloud(&s.tuner.to, p + count);
        p[count++] = (piece){(char *)s.tuner.noise, (size_t)d * B * real};
        p[count++] = (piece){(char *)s.tuner.log_g, B * real};
        p[count++] = (piece){(char *)s.tuner.acceptance, B * real};
        p[count++] = (piece){(char *)s.tuner.ancestors, B * sizeof(int)};
        p[count++] =
            (piece){(char *)s.tuner.scratch, smc_resample_scratch(n, b) * real};
        bad += s.tuner.from.n != b || s.tuner.to.n != b;
      }
      bad += arena.used != measure.used;
      bad += overlaps(p, count, block, measure.used);
      bad += (s.cloud.v != NULL) != velocities;
      bad += (s.cloud.grad_p != NULL) != gradients;
      bad += (s.cloud.grad_q != NULL) != (gradients && !normal);
      bad += path.chain.n_maps != mapped;
      free(block);
    }
  CHECK_NONE(bad, cases, "the arrays of a run are within the block and apart");
}

/* clouds ------------------------------------------------------------------ */

/* Every number tells where it stands: `from` + 1000 times which array, plus
 * the place. */
static void number_cloud(smc_cloud *c, double from) {
  for (int j = 0; j < c->d * c->n; j++) {
    c->x[j] = from + 1000.0 + j;
    if (c->v)
      c->v[j] = from + 2000.0 + j;
    if (c->grad_p)
      c->grad_p[j] = from + 3000.0 + j;
    if (c->grad_q)
      c->grad_q[j] = from + 4000.0 + j;
  }
  for (int k = 0; k < c->n; k++) {
    c->log_p[k] = from + 5000.0 + k;
    c->log_q[k] = from + 6000.0 + k;
  }
}

/* Is particle k of c the one that stood at `place` of the cloud `from`? */
static bool is_particle(const smc_cloud *c, int k, double from, int place) {
  bool is = c->log_p[k] == from + 5000.0 + place &&
            c->log_q[k] == from + 6000.0 + place;
  for (int i = 0; i < c->d; i++) {
    int j = c->d * k + i;
    double there = from + c->d * place + i;
    is = is && c->x[j] == 1000.0 + there;
    is = is && (!c->v || c->v[j] == 2000.0 + there);
    is = is && (!c->grad_p || c->grad_p[j] == 3000.0 + there);
    is = is && (!c->grad_q || c->grad_q[j] == 4000.0 + there);
  }
  return is;
}

static void test_gather_and_copy(void) {
  static const int index[] = {0, 2, 2, 2, 4, 1, 0};
  for (int variant = 0; variant < 4; variant++)
    for (int m = 1; m <= 7; m += 3) {
      bool velocities = variant & 1, gradients = variant & 2;
      char *block_from, *block_to, *block_copy;
      smc_cloud from = toy_cloud(3, 5, velocities, gradients, &block_from);
      smc_cloud to = toy_cloud(3, m, velocities, gradients, &block_to);
      smc_cloud copy = toy_cloud(3, 5, velocities, gradients, &block_copy);
      number_cloud(&from, 0.0);
      smc_cloud_gather(&from, index, &to);
      long bad = 0;
      for (int k = 0; k < m; k++)
        bad += !is_particle(&to, k, 0.0, index[k]);
      CHECK_NONE(bad, m, "a particle is gathered with all that belongs to it");

      number_cloud(&copy, 1e6);
      smc_cloud_copy(&from, 3, &copy);
      bad = 0;
      for (int j = 0; copy.v && j < 15; j++)
        bad += copy.v[j] != 1e6 + 2000.0 + j;
      copy.v = NULL;
      for (int k = 0; k < 5; k++)
        bad += !is_particle(&copy, k, k == 3 ? 0.0 : 1e6, k);
      CHECK_NONE(bad, 5, "a particle is copied but for its velocity");
      free(block_from);
      free(block_to);
      free(block_copy);
    }
}

static void test_swap(void) {
  char *block_a, *block_b;
  smc_cloud a = toy_cloud(2, 3, true, true, &block_a);
  smc_cloud b = toy_cloud(2, 3, true, true, &block_b);
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
  test_huge();
  test_run_layout();
  test_gather_and_copy();
  test_swap();
}
