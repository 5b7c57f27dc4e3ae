/* driven.h: coordinates whose place and scale hang on others, as those of a
 * funnel hang on its neck.
 *
 * Some coordinates of z drive the rest,
 *   u_j = z_j exp(slope_j . z_drivers) + shift_j . z_drivers,
 * and are themselves left as they are, u_k = z_k. Where the spread of u depends
 * on a driver in this way, that of z does not, and one step size suits it all.
 */
#ifndef SMC_DRIVEN_H
#define SMC_DRIVEN_H

typedef struct smc_driven {
  int n_drivers;       /* 0: u = z                                       */
  const int *drivers;  /* n_drivers coordinates, counted from 0          */
  const double *shift; /* d x n_drivers, column-major, 0 for the drivers */
  const double *slope; /* likewise                                       */
} smc_driven;

/* u(z), both d x n; not in place. */
void smc_drive(const smc_driven *driven, int d, int n, const double *z,
               double *u);

/* Take log densities and gradients (or NULL) at u(z) over to z: logp gains the
 * log Jacobian, grad (d x n) becomes that in z. */
void smc_drive_back(const smc_driven *driven, int d, int n, const double *z,
                    double *logp, double *grad);

#endif
