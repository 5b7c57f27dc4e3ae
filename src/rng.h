/* rng.h: random numbers as a function, not a state.
 *
 * Every variate is a pure function of (seed, run, stage, step, particle,
 * coordinate), by the counter-based generator Philox4x32-10 of Salmon,
 * Moraes, Dror and Shaw (2011), "Parallel random numbers: as easy as 1, 2, 3".
 * Nothing is stored between calls, so results do not depend on the order or
 * the number of threads in which particles are handled.
 */
#ifndef SMC_RNG_H
#define SMC_RNG_H

#include "ziggurat.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* What a variate is used for: streams of different stages never meet. */
typedef enum smc_stage {
  SMC_STAGE_INITIAL = 0,       /* x_0 ~ q                                  */
  SMC_STAGE_MOVE = 1,          /* noise of the move at step t              */
  SMC_STAGE_RESAMPLE = 2,      /* resampling at step t                     */
  SMC_STAGE_TUNE_RESAMPLE = 3, /* the tuner's choice of particles          */
  SMC_STAGE_TUNE_MOVE = 4,     /* the tuner's noise                        */
  SMC_STAGE_VELOCITY = 5,      /* v_0 ~ N(0, I)                            */
  SMC_STAGE_ACCEPT = 6,        /* Metropolis acceptance                    */
  SMC_STAGE_SCALE = 7 /* scales of draws from a Student t, and components of
                         those from a mixture                     */
} smc_stage;

/* A stream: everything but the particle and the coordinate. */
typedef struct smc_stream {
  uint32_t key[2]; /* seed, run */
  uint32_t stage;
  uint32_t step; /* and repeat */
} smc_stream;

typedef struct smc_block {
  uint32_t v[4];
} smc_block;

/* What Philox multiplies by, and what it adds to the key from round to round.
 */
#define SMC_PHILOX_BY0 0xD2511F53u
#define SMC_PHILOX_BY1 0xCD9E8D57u
#define SMC_PHILOX_KEY0 0x9E3779B9u
#define SMC_PHILOX_KEY1 0xBB67AE85u

/* Round i of ten: each half of the block is mixed by a multiplication with that
 * of the other, of which the high and the low word are used. */
static inline void smc_philox_round(smc_block *b, const uint32_t key[2],
                                    uint32_t i) {
  uint64_t product0 = (uint64_t)SMC_PHILOX_BY0 * b->v[0];
  uint64_t product1 = (uint64_t)SMC_PHILOX_BY1 * b->v[2];
  uint32_t key0 = key[0] + i * SMC_PHILOX_KEY0;
  uint32_t key1 = key[1] + i * SMC_PHILOX_KEY1;
  *b = (smc_block){
      {(uint32_t)(product1 >> 32) ^ b->v[1] ^ key0, (uint32_t)product1,
       (uint32_t)(product0 >> 32) ^ b->v[3] ^ key1, (uint32_t)product0}};
}

/* Philox4x32-10: 128 random bits for a 128-bit counter and a 64-bit key. The
 * rounds are written out, which saves a third of the time. */
static inline smc_block smc_philox(smc_block b, const uint32_t key[2]) {
  smc_philox_round(&b, key, 0);
  smc_philox_round(&b, key, 1);
  smc_philox_round(&b, key, 2);
  smc_philox_round(&b, key, 3);
  smc_philox_round(&b, key, 4);
  smc_philox_round(&b, key, 5);
  smc_philox_round(&b, key, 6);
  smc_philox_round(&b, key, 7);
  smc_philox_round(&b, key, 8);
  smc_philox_round(&b, key, 9);
  return b;
}

/* 52 random bits in the open interval (0, 1): with one bit more, the half that
 * keeps it off 0 would round the largest value to 1. */
static inline double smc_unit(uint32_t high, uint32_t low) {
  uint64_t bits = ((uint64_t)high << 32) | low;
  return ((double)(bits >> 12) + 0.5) * 0x1p-52;
}

/* The stream of one stage of one step (below 2^20), and where a step moves
 * more than once, of one of these moves (repeat below 2^12). */
static inline smc_stream smc_substream(const uint32_t key[2], smc_stage stage,
                                       int step, int repeat) {
  uint32_t place = (uint32_t)step | (uint32_t)repeat << 20;
  return (smc_stream){{key[0], key[1]}, (uint32_t)stage, place};
}

/* The block of a stream that belongs to (particle, index). */
static inline smc_block smc_stream_block(const smc_stream *s, uint32_t particle,
                                         uint32_t index) {
  smc_block counter = {{index, particle, s->step, s->stage}};
  return smc_philox(counter, s->key);
}

/* u: out, n uniforms in (0, 1), those of (particle, 0..n-1). */
static inline void smc_uniforms(const smc_stream *s, uint32_t particle, int n,
                                double *u) {
  for (int i = 0; i < n; i += 2) {
    smc_block b = smc_stream_block(s, particle, (uint32_t)i / 2);
    u[i] = smc_unit(b.v[0], b.v[1]);
    if (i + 1 < n)
      u[i + 1] = smc_unit(b.v[2], b.v[3]);
  }
}

/* normals ----------------------------------------------------------------- */

/* Fresh bits for normal i of a particle whose first ones, in attempt 0, have
 * not led to a value. Attempts have streams of their own. */
static inline smc_block smc_more_bits(smc_stream s, uint32_t particle,
                                      uint32_t i, uint32_t attempt) {
  s.stage |= attempt << 8;
  return smc_stream_block(&s, particle, i);
}

/* |z| beyond the right edge of the bottom layer, by Marsaglia's method. */
static inline double smc_normal_tail(const smc_stream *s, uint32_t particle,
                                     uint32_t i, uint32_t attempt) {
  const double r = smc_ziggurat_edge[1];
  for (;; attempt++) {
    smc_block b = smc_more_bits(*s, particle, i, attempt);
    double away = -log(smc_unit(b.v[0], b.v[1])) / r;
    double y = -log(smc_unit(b.v[2], b.v[3]));
    if (2.0 * y > away * away)
      return r + away;
  }
}

/* The layer, and the place in it, that 64 bits choose: 8 bits the one, 52
 * others the other. Returns 1 where that place is below the layer above, and
 * so surely below the density: all but 1.2 % of the time. */
static inline int smc_ziggurat_place(uint32_t high, uint32_t low,
                                     uint32_t *layer, double *z) {
  *layer = low & 255u;
  *z = (2.0 * smc_unit(high, low) - 1.0) * smc_ziggurat_edge[*layer];
  return fabs(*z) < smc_ziggurat_edge[*layer + 1];
}

/* Normal i, where the quick way has failed at (layer, z). */
static inline double smc_normal_slow(const smc_stream *s, uint32_t particle,
                                     uint32_t i, uint32_t layer, double z) {
  for (uint32_t attempt = 1;; attempt++) {
    if (layer == 0)
      return copysign(smc_normal_tail(s, particle, i, attempt), z);
    smc_block b = smc_more_bits(*s, particle, i, attempt);
    double bottom = smc_ziggurat_height[layer];
    double top = smc_ziggurat_height[layer + 1];
    double y = bottom + (top - bottom) * smc_unit(b.v[0], b.v[1]);
    if (y < exp(-0.5 * z * z) || smc_ziggurat_place(b.v[2], b.v[3], &layer, &z))
      return z;
  }
}

/* Normal i, for the 64 bits that are its own. */
static inline double smc_normal(const smc_stream *s, uint32_t particle,
                                uint32_t i, uint32_t high, uint32_t low) {
  uint32_t layer;
  double z;
  if (smc_ziggurat_place(high, low, &layer, &z))
    return z;
  return smc_normal_slow(s, particle, i, layer, z);
}

/* z: out, n standard normals, those of (particle, 0..n-1). A block has the bits
 * of two. */
static inline void smc_normals(const smc_stream *s, uint32_t particle, int n,
                               double *z) {
  for (int i = 0; i < n; i += 2) {
    smc_block b = smc_stream_block(s, particle, (uint32_t)i / 2);
    z[i] = smc_normal(s, particle, (uint32_t)i, b.v[0], b.v[1]);
    if (i + 1 < n)
      z[i + 1] = smc_normal(s, particle, (uint32_t)i + 1, b.v[2], b.v[3]);
  }
}

/* gammas ------------------------------------------------------------------- */

/* A gamma variate of unit scale and any positive shape, that of (particle), by
 * the rejection of Marsaglia and Tsang (2000). Each attempt has a stream of its
 * own; one in twenty fails at most. Below a shape of 1 it is one of shape + 1
 * times the power 1 / shape of a uniform, and may underflow to 0. */
static inline double smc_gamma(const uint32_t key[2], smc_stage stage,
                               uint32_t particle, double shape) {
  double raised = shape < 1.0 ? shape + 1.0 : shape;
  double d = raised - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d);
  for (int attempt = 0;; attempt++) {
    smc_stream s = smc_substream(key, stage, 0, attempt);
    double normal;
    smc_normals(&s, particle, 1,
                &normal); /* from block 0, and attempts of it */
    smc_block b = smc_stream_block(&s, particle, 1);
    double root = 1.0 + c * normal, v = root * root * root;
    if (root <= 0.0 || log(smc_unit(b.v[0], b.v[1])) >=
                           0.5 * normal * normal + d * (1.0 - v + log(v)))
      continue;
    return shape < 1.0 ? d * v * pow(smc_unit(b.v[2], b.v[3]), 1.0 / shape)
                       : d * v;
  }
}

#endif
