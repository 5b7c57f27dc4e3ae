/* path.h: the annealing path from the reference to the target, and the only
 * caller of a target.
 *
 * Particles live in coordinates z, from which a chain of maps leads to the x
 * that the target sees (map.h). A normal reference other than N(0, I) is such
 * a map and nothing else: kernels and tuner do not know of it, and it
 * preconditions them for free.
 */
#ifndef SMC_PATH_H
#define SMC_PATH_H

#include "cloud.h"
#include "map.h"
#include "parallel.h"
#include "reference.h"
#include "rng.h"

#include <autosmc.h>

/* The result of the evaluation of one block of particles. */
typedef struct smc_block_result {
  int failure;      /* the return code of the target, when not 0            */
  int n_impossible; /* points that had no finite log density                */
} smc_block_result;

typedef struct smc_path {
  autosmc_target_fn target;
  void *data;      /* context of the target; the caller's               */
  int d;           /* dimension                                         */
  smc_team *team;  /* the caller's; NULL for one thread                 */
  bool in_blocks;  /* whether the target is called from all threads of the
                      team at once, block by block. Else it is called on
                      the main thread, with all points                   */
  void **contexts; /* in blocks, one for each thread, in place of `data` */
  smc_reference reference;
  smc_chain chain; /* of no maps, or of the dimension d             */
  struct {
    double enter, leave, evaluate;
  } pace;                    /* of these: see parallel.h                */
  double *log_q;             /* scratch, (largest cloud)                      */
  smc_block_result *results; /* scratch, of its blocks                  */
  double n_evals;            /* evaluations of the target so far              */
  double n_impossible;       /* how many of them had no finite log density */
  int failure;               /* the return code of a callback, when not 0     */

  /* Called as a step begins, between its parts, and before every evaluation:
   * the interface may check for interrupts there, and leave by a long jump.
   * NULL for none. */
  void (*hook)(void *data);
  void *hook_data;
} smc_path;

static inline void smc_path_call_hook(const smc_path *path) {
  if (path->hook)
    path->hook(path->hook_data);
}

/* Scratch for clouds of at most n particles. */
void smc_path_layout(smc_path *path, smc_arena *arena, int n);

/* The chain for a thread's block of particles from `first` on, with images and
 * scratch that no other block has at the same time. */
smc_chain smc_path_chain(const smc_path *path, int first, int thread);

/* Fill cloud->x with draws from the reference, and velocities, where there are
 * any, from N(0, I). */
void smc_path_sample(const smc_path *path, const uint32_t key[2],
                     const smc_cloud *cloud);

/* z: out, d x n standard normals of a stream. */
void smc_path_normals(const smc_path *path, const smc_stream *stream, int n,
                      double *z);

/* What is done with a block of particles before they are evaluated, where
 * cloud->x is to be filled, and afterwards. On any thread, for several blocks
 * at once. */
typedef struct smc_around {
  void (*before)(const void *context, const smc_work *block);
  void (*after)(const void *context, const smc_work *block);
  const void *context;
} smc_around;

/* Fill the densities, and when asked the gradients, at cloud->x, with
 * cloud->n evaluations of the target. Returns 0, or 1 when the target or the
 * reference failed (path->failure says how). around: NULL for nothing.
 *
 * What is not finite becomes harmless here: such a log density, or one so large
 * or so low that it would drown all others, becomes -Inf (that of the reference
 * takes the target's with it), and a gradient with such an entry becomes zero
 * (the kernel that uses it is then another one at that point, but still a
 * normalised one). A particle whose own position has overflowed, in z or on the
 * way to x, is put to the origin of z with log densities -Inf, so that it
 * counts as an evaluation and the target never sees NaN. */
int smc_path_evaluate(smc_path *path, const smc_cloud *cloud, bool gradients,
                      const smc_around *around);

/* x: out, d x n, the user's, bounds included, of the n points z (d x n). */
void smc_path_to_user(const smc_path *path, int n, const double *z, double *x);

/* log gamma_t of particle i. At the ends of the path one density alone is
 * used, never 0 * (-Inf). */
static inline double smc_annealed(const smc_cloud *c, int i, double lambda) {
  if (lambda == 0.0)
    return c->log_q[i];
  if (lambda == 1.0)
    return c->log_p[i];
  return (1.0 - lambda) * c->log_q[i] + lambda * c->log_p[i];
}

/* The gradients of log gamma_t: multiples of two matrices. */
typedef struct smc_slope {
  double by_q, by_p;
  const double *q, *p; /* d x n */
} smc_slope;

static inline smc_slope smc_annealed_slope(const smc_cloud *c, double lambda) {
  double by_q = 1.0 - lambda;
  if (!c->grad_q)
    return (smc_slope){-by_q, lambda, c->x, c->grad_p};
  return (smc_slope){by_q, lambda, c->grad_q, c->grad_p};
}

/* Coordinate j of them, counted over all particles. */
static inline double smc_slope_at(const smc_slope *slope, size_t j) {
  return slope->by_q * slope->q[j] + slope->by_p * slope->p[j];
}

#endif
