/* resample.h: unbiased resampling of m out of n particles. */
#ifndef SMC_RESAMPLE_H
#define SMC_RESAMPLE_H

#include "rng.h"

#include <stddef.h>

typedef enum smc_resampling {
  SMC_RESAMPLE_SSP = 0,
  SMC_RESAMPLE_SYSTEMATIC = 1,
  SMC_RESAMPLE_STRATIFIED = 2,
  SMC_RESAMPLE_RESIDUAL = 3,
  SMC_RESAMPLE_MULTINOMIAL = 4
} smc_resampling;

/* How many doubles of scratch the drawing of m out of n takes. */
size_t smc_resample_scratch(int n, int m);

/* Draw the ancestors of m particles.
 *
 *   w          in       n normalised weights
 *   stream     in       where the uniforms come from
 *   ancestors  out      m indices in 0..n-1, ascending; index i stands there
 *                       m w[i] times on average; never one of zero weight
 *   scratch    scratch  smc_resample_scratch(n, m) doubles
 */
void smc_resample(smc_resampling scheme, int n, const double *w, int m,
                  const smc_stream *stream, int *ancestors, double *scratch);

#endif
