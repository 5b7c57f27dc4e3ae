/* bridge.h: the ratio of two normalising constants from draws of both
 * distributions (Meng and Wong, 1996), with its error.
 */
#ifndef SMC_BRIDGE_H
#define SMC_BRIDGE_H

/* Groups of dependent particles: the group of each, from `first` to
 * first + n - 1. */
typedef struct smc_groups {
  const int *group;
  int first, n;
} smc_groups;

/* Log ratios of the densities of target and distribution: at draws y of the
 * distribution, and at weighted draws x of the target, which are grouped by
 * the initial particle that they descend from, and by island. */
typedef struct smc_bridge_draws {
  int n_y, n_x;
  const double *log_y; /* n_y                                                */
  const double *log_x; /* n_x                                                */
  const double *w;     /* n_x, of sum 1                                      */
  smc_groups origins, islands; /* of the n_x                                 */
} smc_bridge_draws;

/* The log of the estimate, and its variance; NaN where there is none. */
typedef struct smc_bridge_estimate {
  double log_z, variance;
} smc_bridge_estimate;

/* scratch: n_y + n_x doubles, and as many as there are groups of either kind.
 */
smc_bridge_estimate smc_bridge(const smc_bridge_draws *draws, double *scratch);

#endif
