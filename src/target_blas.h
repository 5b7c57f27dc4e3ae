/* target_blas.h: R's headers, its BLAS among them, for the targets that use it.
 */
#ifndef TARGET_BLAS_H
#define TARGET_BLAS_H

#define R_NO_REMAP
#define STRICT_R_HEADERS
#define USE_FC_LEN_T
#include <R.h>
#include <R_ext/BLAS.h>
#include <Rinternals.h>
#ifndef FCONE
#define FCONE
#endif

#endif
