/* scout.h: quasi-Newton paths to the modes of a density, and the normal
 * distributions along them.
 *
 * A path climbs by limited-memory BFGS. All that is known of it are its points,
 * with log densities and gradients: a pair of differences is that of two points
 * that follow each other. So the inverse Hessian of -log density, as it was
 * known at a point, can be had when the path has ended.
 */
#ifndef SMC_SCOUT_H
#define SMC_SCOUT_H

#include "arena.h"

/* paths -------------------------------------------------------------------- */

/* A path. The arrays belong to the arena they were laid out in, or to the
 * caller where a path that has ended is looked at. */
typedef struct smc_climb {
  int d, n;      /* coordinates, and points so far                           */
  double *x, *g; /* d x n  the points, and the gradients there               */
  double *f;     /* n      the log densities                                 */
  double *alpha; /* d x n  the diagonal of the inverse Hessian, before any
                           pairs                                             */
  int *is_pair;  /* n      whether the differences from the point before tell
                           the curvature; not for the first                  */
  double *direction; /* d  of the step under way                             */
  double *s, *y;     /* d  scratch, for a pair                                */
  double gain;       /* twice the increase that this step predicts           */
  double t;          /* part of the step that is tried                       */
  double length; /* of a step, as long as nothing is known of the curvature  */
  double tolerance; /* of its gain: a step that promises less is not made     */
  bool is_done;
} smc_climb;

/* Lay out a path with room for so many points. */
smc_climb smc_climb_layout(smc_arena *arena, int d, int most_points);

/* Begin at x (d), with log density f and gradient g (d). */
void smc_climb_begin(smc_climb *climb, const double *x, double f,
                     const double *g);

/* The point that is to be evaluated next; i: a coordinate. */
static inline double smc_climb_trial(const smc_climb *climb, int i) {
  size_t last = (size_t)climb->d * (size_t)(climb->n - 1);
  return climb->x[last + (size_t)i] + climb->t * climb->direction[i];
}

/* Go on after it was evaluated: there, or with a shorter step. */
void smc_climb_advance(smc_climb *climb, double f, const double *g);

/* normals along a path ------------------------------------------------------
 */

/* The normal distribution N(x + H g, H) at a point of a path, where H is the
 * inverse Hessian as it was known there. H = S S', and S is a product
 * (I + s_m q_m') ... (I + s_1 q_1') diag(root), by which draws cost as much as
 * a step of the path; see Brodlie, Gourlay and Greenstadt (1973). */
typedef struct smc_climb_normal {
  int d, n_pairs;
  double log_det;  /* of S                                                 */
  double *mean;    /* d                                                    */
  double *root;    /* d                                                    */
  double *s, *q;   /* d x n_pairs                                          */
  double *scratch; /* d                                                    */
} smc_climb_normal;

smc_climb_normal smc_climb_normal_layout(smc_arena *arena, int d);

/* The normal at point k, from 0; with `diagonal` its mean, and of H before any
 * pairs. Returns whether it is known. */
bool smc_climb_normal_at(const smc_climb *climb, int k, bool diagonal,
                         smc_climb_normal *normal);

/* Laplace's approximation of the log evidence by this normal, of point k: the
 * log density at its mean, extrapolated by the curvature, less the log density
 * of the normal there. */
double smc_climb_laplace(const smc_climb *climb, int k,
                         const smc_climb_normal *normal);

/* z <- S z, of d coordinates. */
void smc_climb_normal_scale(const smc_climb_normal *normal, double *z);

#endif
