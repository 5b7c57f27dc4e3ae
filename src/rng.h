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

#include <math.h>
#include <stdint.h>

#define SMC_TWO_PI 6.283185307179586476925286766559

/* What a variate is used for: streams of different stages never meet. */
typedef enum smc_stage {
  SMC_STAGE_INITIAL = 0,       /* x_0 ~ q                                  */
  SMC_STAGE_MOVE = 1,          /* noise of the move at step t              */
  SMC_STAGE_RESAMPLE = 2,      /* resampling at step t                     */
  SMC_STAGE_TUNE_RESAMPLE = 3, /* the tuner's choice of particles          */
  SMC_STAGE_TUNE_MOVE = 4,     /* the tuner's noise                        */
  SMC_STAGE_VELOCITY = 5,      /* v_0 ~ N(0, I)                            */
  SMC_STAGE_ACCEPT = 6         /* Metropolis acceptance                    */
} smc_stage;

/* A stream: everything but the particle and the coordinate. */
typedef struct smc_stream {
  uint32_t key[2]; /* seed, run */
  uint32_t stage;
  uint32_t step;
} smc_stream;

typedef struct smc_block {
  uint32_t v[4];
} smc_block;

/* One round's multiplication: the high and the low half of a * b. */
static inline void smc_mulhilo(uint32_t a, uint32_t b, uint32_t *high,
                               uint32_t *low) {
  uint64_t product = (uint64_t)a * b;
  *high = (uint32_t)(product >> 32);
  *low = (uint32_t)product;
}

/* Philox4x32-10: 128 random bits for a 128-bit counter and a 64-bit key. */
static inline smc_block smc_philox(smc_block counter, uint32_t key0,
                                   uint32_t key1) {
  for (int round = 0; round < 10; round++) {
    uint32_t high0, low0, high1, low1;
    smc_mulhilo(0xD2511F53u, counter.v[0], &high0, &low0);
    smc_mulhilo(0xCD9E8D57u, counter.v[2], &high1, &low1);
    counter.v[0] = high1 ^ counter.v[1] ^ key0;
    counter.v[1] = low1;
    counter.v[2] = high0 ^ counter.v[3] ^ key1;
    counter.v[3] = low0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

/* 53 random bits in the open interval (0, 1). */
static inline double smc_unit(uint32_t high, uint32_t low) {
  uint64_t bits = ((uint64_t)high << 32) | low;
  return ((double)(bits >> 11) + 0.5) * 0x1p-53;
}

/* The stream of one stage of one step. */
static inline smc_stream smc_substream(const uint32_t key[2], smc_stage stage,
                                       uint32_t step) {
  return (smc_stream){{key[0], key[1]}, (uint32_t)stage, step};
}

/* The block of a stream that belongs to (particle, index). */
static inline smc_block smc_stream_block(const smc_stream *s, uint32_t particle,
                                         uint32_t index) {
  smc_block counter = {{index, particle, s->step, s->stage}};
  return smc_philox(counter, s->key[0], s->key[1]);
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

/* z: out, n standard normals, those of (particle, 0..n-1), by Box-Muller. */
static inline void smc_normals(const smc_stream *s, uint32_t particle, int n,
                               double *z) {
  for (int i = 0; i < n; i += 2) {
    smc_block b = smc_stream_block(s, particle, (uint32_t)i / 2);
    double radius = sqrt(-2.0 * log(smc_unit(b.v[0], b.v[1])));
    double angle = SMC_TWO_PI * smc_unit(b.v[2], b.v[3]);
    z[i] = radius * cos(angle);
    if (i + 1 < n)
      z[i + 1] = radius * sin(angle);
  }
}

#endif
