/* metropolis.h: what the Metropolis-adjusted kernels share. */
#ifndef SMC_METROPOLIS_H
#define SMC_METROPOLIS_H

#include "kernel.h"

/* Accept or reject the proposal that particle k of m->to holds, whose log
 * acceptance ratio is given (NaN counts as impossible): writes acceptance[k],
 * and where it is rejected, takes particle k of m->from instead, but for the
 * velocity. In a trial the proposal is left where it is. Returns whether it is
 * accepted, or left. */
bool smc_accept_reject(const smc_move *m, int k, double log_ratio);

/* What the tuner minimises: see smc_adjusted_objective. */
double smc_metropolis_objective(const smc_move *m);

#endif
