/* normals.h: standard normals of many particles, most of the randomness of a
 * run. Each is the one that smc_normals() of rng.h gives, to the last bit;
 * where the processor has vectors of four, sixteen are made at a time, in half
 * the time. */
#ifndef SMC_NORMALS_H
#define SMC_NORMALS_H

#include "rng.h"

/* z: out, rows x n standard normals (rows >= 1), those of the particles from
 * `first` on. */
void smc_normal_matrix(const smc_stream *s, int rows, int first, int n,
                       double *z);

#endif
