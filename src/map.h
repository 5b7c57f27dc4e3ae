/* map.h: smooth invertible maps from the sampler's coordinates to the user's.
 *
 * The kernels see z, in which the reference is standard; the target sees x. A
 * chain of maps leads from the one to the other,
 *   z -> tails -> affine -> precision or moments -> rotation -> affine
 *     -> bounds -> x,
 * where any of them may be missing, and any may be there several times. Each is
 * smooth, has an inverse in closed form, and takes log densities and gradients
 * both ways with its log Jacobian, so that the evidence is the same in z and in
 * x.
 *
 * A kind of map is one const struct in one file. To add one: write map_NAME.c,
 * declare its struct here, and add it to the table in map.c. Coordinates that
 * are parameters of a map are counted from 1, as R has them.
 */
#ifndef SMC_MAP_H
#define SMC_MAP_H

#include "arena.h"

enum { SMC_MAP_PARAMETERS = 8 };

/* An array of numbers; x = NULL when it is not given. */
typedef struct smc_values {
  const double *x;
  size_t size;
} smc_values;

bool smc_has_value(const smc_values *values, double x);

/* Whether x is one of d coordinates, counted from 1; and whether all values
 * are different coordinates. */
bool smc_is_coordinate(double x, int d);
bool smc_are_coordinates(const smc_values *values, int d);

typedef struct smc_map {
  const struct smc_map_kind *kind;
  int d;                                     /* dimension                   */
  smc_values parameters[SMC_MAP_PARAMETERS]; /* in the order of kind->names;
                                                the caller's               */
  void *work;                                /* what layout() has taken,
                                                constant from then on      */
} smc_map;

typedef struct smc_map_kind {
  const char *name;
  const char *names[SMC_MAP_PARAMETERS]; /* of the parameters; NULL at the end
                                            where there are fewer           */

  /* Whether the parameters are there, of the right sizes, and make a map. */
  bool (*is_valid)(const smc_map *map);

  /* Take memory, and where there is any (see arena.h) fill in it what the
   * parameters alone determine. NULL when there is nothing to take. */
  void (*layout)(smc_map *map, smc_arena *arena);

  /* How many doubles of scratch each of these takes. NULL for none. */
  size_t (*scratch)(const smc_map *map);

  /* to: out, the images of n points, both d x n; not in place. */
  void (*forward)(const smc_map *map, int n, const double *from, double *to,
                  double *scratch);

  /* The way back: to are the points of which n points `from` are the images. */
  void (*inverse)(const smc_map *map, int n, const double *from, double *to,
                  double *scratch);

  /* Take log densities and gradients at the images of n points z back to these:
   * logp gains the log Jacobian at z, grad (d x n, or NULL) becomes the
   * gradient of that. */
  void (*pull_back)(const smc_map *map, int n, const double *z, double *logp,
                    double *grad, double *scratch);

  /* The way back: from n points z to their images. */
  void (*push_forward)(const smc_map *map, int n, const double *z, double *logp,
                       double *grad, double *scratch);
} smc_map_kind;

extern const smc_map_kind smc_map_tails;
extern const smc_map_kind smc_map_rotation;
extern const smc_map_kind smc_map_affine;
extern const smc_map_kind smc_map_precision;
extern const smc_map_kind smc_map_moments;
extern const smc_map_kind smc_map_bounds;

/* All of them; NULL at the end. */
extern const smc_map_kind *const smc_map_kinds[];

/* The kind of that name; NULL when there is none. */
const smc_map_kind *smc_find_map(const char *name);

/* For a map of kind `precision` at n points: the diagonal entries of Q, in the
 * order of its factorisation, and the pivots, which are what is left of them
 * when they are reached (both p x n). */
void smc_precision_pivots(const smc_map *map, int n, const double *z,
                          double *scratch, double *pivots, double *diagonal);

/* chains ------------------------------------------------------------------ */

typedef struct smc_chain {
  int d;
  int n_maps;      /* 0: x = z                                              */
  smc_map *maps;   /* in order from z to x; the caller's                    */
  double *images;  /* d x capacity x n_maps: the points after each map, of
                      the last forward                                      */
  int capacity;    /* points that there is room for                         */
  double *scratch; /* of the maps: scratch_size doubles for each thread     */
  size_t scratch_size;
} smc_chain;

/* Memory for at most n points, of which up to n_threads threads work on parts.
 */
void smc_chain_layout(smc_chain *chain, smc_arena *arena, int n, int n_threads);

/* The same chain for the points from `first` on, with a thread's scratch. */
smc_chain smc_chain_part(const smc_chain *chain, int first, int thread);

/* The images x of n points z, d x n. They are z itself where there is no map,
 * else in scratch that is overwritten by the next call. */
const double *smc_chain_forward(const smc_chain *chain, int n, const double *z);

/* The n points whose images are the points x, both d x n; z may be x. The
 * points after each map are stored as by smc_chain_forward(): this counts as
 * the last call, for z. */
void smc_chain_inverse(const smc_chain *chain, int n, const double *x,
                       double *z);

/* The same as smc_chain_forward() for point k alone, over what the last call
 * has written of it. */
void smc_chain_forward_one(const smc_chain *chain, int k, const double *z);

/* The points after the first n_maps maps, of the last call for z. */
const double *smc_chain_points(const smc_chain *chain, int n_maps,
                               const double *z);

/* Whether all images of point k, of the last call, are numbers. */
bool smc_chain_is_finite(const smc_chain *chain, int k);

/* If they are not, replaces point k of z by the origin, and its images by those
 * of the origin. Returns whether it has. */
bool smc_chain_reset_overflowed(const smc_chain *chain, int k, double *z);

/* Take log densities and gradients (or NULL) at the images of the n points of
 * the last call back to these. */
void smc_chain_pull_back(const smc_chain *chain, int n, const double *z,
                         double *logp, double *grad);

/* And from these points to their images. */
void smc_chain_push_forward(const smc_chain *chain, int n, const double *z,
                            double *logp, double *grad);

#endif
