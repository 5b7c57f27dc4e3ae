/* kernel_hmc.c: Hamiltonian Monte Carlo, a leapfrog step at a time
 * (generalised, Horowitz 1991), by the splitting that solves N(0, I) exactly
 * (Beskos et al. 2011): in the coordinates in which the reference is simple the
 * position and the velocity turn into each other, and what the annealed density
 * has beyond N(0, I), of log density phi, kicks the velocity before and after.
 * So a target that the reference fits well lets long steps be accepted, in any
 * number of variables.
 *
 * The velocity is refreshed in part, and turned round by a rejection.
 */
#include "metropolis.h"
#include "velocity.h"

/* A step of size h turns by the angle whose tangent is h, less than a right
 * angle, at which the position would be the old velocity. A kick by the tangent
 * of half the angle makes the mean exact where phi is linear. */
typedef struct turn {
  double cos, sin, kick;
} turn;

static turn turn_of(const smc_move *m) {
  double h = m->current.step_size, length = hypot(1.0, h);
  return (turn){1.0 / length, h / length, h / (1.0 + length)};
}

/* Coordinate j of the gradient of phi, counted over all particles. */
static double excess_slope(const smc_slope *slope, const smc_cloud *at,
                           size_t j) {
  return smc_slope_at(slope, j) + at->x[j];
}

/* Coordinate j of the refreshed velocity after the first kick. */
static double kicked_velocity(const smc_move *m, turn by,
                              const smc_slope *before, size_t j) {
  return m->to->v[j] + by.kick * excess_slope(before, m->from, j);
}

/* `to` gets the refreshed velocity, and the position after the turn. */
static void propose(const smc_move *m, int k, const double *noise) {
  size_t d = (size_t)m->from->d, first = smc_size(m->from->d, k);
  smc_slope slope = smc_annealed_slope(m->from, m->current.lambda);
  turn by = turn_of(m);
  smc_refresh_velocity(m, k, noise);
  SMC_SIMD
  for (size_t j = first; j < first + d; j++) {
    double kicked = kicked_velocity(m, by, &slope, j);
    m->to->x[j] = by.cos * m->from->x[j] + by.sin * kicked;
  }
}

/* Coordinate j of the velocity after the turn and both kicks. */
static double last_velocity(const smc_move *m, turn by, const smc_slope *before,
                            const smc_slope *after, size_t j) {
  double kicked = kicked_velocity(m, by, before, j);
  return by.cos * kicked - by.sin * m->from->x[j] +
         by.kick * excess_slope(after, m->to, j);
}

static void weigh(const smc_move *m, int k) {
  int d = m->from->d;
  size_t first = smc_size(d, k), end = first + (size_t)d;
  smc_slope before = smc_annealed_slope(m->from, m->current.lambda);
  smc_slope after = smc_annealed_slope(m->to, m->current.lambda);
  turn by = turn_of(m);
  double *v = m->to->v;
  double square = smc_sum_of_squares(d, v + first), last_square = 0.0;
  for (size_t j = first; j < end; j++) {
    double last = last_velocity(m, by, &before, &after, j);
    last_square += last * last;
  }
  double log_ratio = smc_annealed(m->to, k, m->current.lambda) -
                     smc_annealed(m->from, k, m->current.lambda) +
                     0.5 * (square - last_square);
  bool moves = smc_accept_reject(m, k, log_ratio);
  for (size_t j = first; j < end; j++)
    v[j] = moves ? last_velocity(m, by, &before, &after, j) : -v[j];
}

const smc_kernel smc_kernel_hmc = {
    .name = "hmc",
    .gradients = true,
    .refreshes = true,
    .adjusted = true,
    .propose = propose,
    .weigh = weigh,
    .objective = smc_metropolis_objective,
};
