/* toy.h: small targets, which count what is asked of them, and clouds. */
#ifndef TOY_H
#define TOY_H

#include "check.h"
#include "path.h"
#include "tuner.h"

typedef enum toy_shape {
  TOY_SKEWED,    /* neither Gaussian nor a product                          */
  TOY_GAUSSIAN,  /* 3 N(x; 1, 0.7^2 I): Z = 3                               */
  TOY_HALF,      /* 3 N(x; 0.5, 0.8^2) where x_0 > 0, -Inf elsewhere        */
  TOY_HALF_NAN,  /* the same, with a NaN for a gradient elsewhere           */
  TOY_IMPOSSIBLE /* -Inf everywhere                                         */
} toy_shape;

typedef struct toy {
  toy_shape shape;
  int calls, gradient_calls; /* of the target                       */
  int looks;                 /* counted by toy_look                 */
  double points;             /* evaluated                           */
  int fail_at, code;         /* the call that fails, and how; or 0  */
  double *last_x;            /* where to keep the points of the last call */
} toy;

/* autosmc_target_fn; data is a toy. */
int toy_target(void *data, int d, int n, const double *x, double *logp,
               double *grad);

/* A smc_path's hook; data is a toy. */
void toy_look(void *data);

/* The same for one point, and without counting. grad may be NULL. */
double toy_log_density(toy_shape shape, int d, const double *x, double *grad);

/* log N(x; mean, variance), written out. */
double log_normal(double x, double mean, double variance);

/* A cloud in memory of its own: free *block. */
smc_cloud toy_cloud(int d, int n, bool velocities, bool gradients,
                    char **block);

/* Maps with these parameters, NULL for what is not given. */
smc_map toy_affine(int d, const double *mean, const double *sd,
                   const double *chol);
smc_map toy_bounds(int d, const double *lower, const double *upper);
smc_map toy_tails(int d, const double *location, const double *scale,
                  const double *skew, const double *tail);
smc_map toy_moments(int d, int n_children, const double *order, int n_features,
                    const double *features, const double *location,
                    const double *log_scale);
smc_map toy_rotation(int d, const double *axes);

/* Checks, at TOY_N points of this seed, that a map of TOY_D dimensions, with a
 * triangular Jacobian in some order of the coordinates, takes log densities
 * and gradients back to those of the new density, by central differences. */
enum { TOY_D = 4, TOY_N = 30 };
void toy_fill(double *z, uint64_t seed);
void toy_check_gradient(const smc_map *map, uint64_t seed);
void toy_check_jacobian(const smc_map *map, uint64_t seed);

/* Likewise, that the inverse of the map finds the points, and that log
 * densities and gradients taken to their images are those there. */
void toy_check_inverse(const smc_map *map, uint64_t seed);

/* Takes memory for what the parameters of a map determine: free it. NULL where
 * that is nothing. */
char *toy_lay_out(smc_map *map);

/* The map with another value of one of its parameters. */
smc_map toy_map_but(smc_map map, int parameter, smc_values value);

/* Checks that none of n maps is valid. */
void toy_check_invalid(int n, const smc_map *maps, const char *what);

/* The chain of these maps. */
smc_chain toy_chain(int n_maps, smc_map *maps);

/* Ordinary options of the tuner; with two rates where the kernel refreshes. */
smc_tuner_options toy_tuner(const smc_kernel *kernel, int n_subsample,
                            double tolerance);

/* Scratch for clouds of n particles, in memory that is the caller's to free. */
char *toy_path_layout(smc_path *path, int n);

#endif
