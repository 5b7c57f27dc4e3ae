/* normals_alone.c: the normals of a run and nothing else, which is the least that a sampler must do
 * beside evaluating the target. They are made block by block, as a run makes them. */
#include "normals.h"

#include <R.h>
#include <Rinternals.h>

enum { BLOCK = 64 };

/* d x n_particles normals for each of n_steps. Returns the last, so that none is left out. */
SEXP normals_alone(SEXP d, SEXP n_particles, SEXP n_steps) {
  int rows = Rf_asInteger(d), n = Rf_asInteger(n_particles);
  double *z = (double *)R_alloc((size_t)rows * BLOCK, sizeof *z);
  for (int step = 0; step < Rf_asInteger(n_steps); step++) {
    smc_stream stream = {{1, 0}, SMC_STAGE_MOVE, (uint32_t)step};
    for (int first = 0; first < n; first += BLOCK)
      smc_normal_matrix(&stream, rows, first, n - first < BLOCK ? n - first : BLOCK, z);
  }
  return Rf_ScalarReal(z[0]);
}
