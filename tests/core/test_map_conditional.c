/* test_map_conditional.c: coordinates whose location and scale depend on
 * others. */
#include "toy.h"

enum { D = 4, N = 30 };

/* The second and the last coordinate drive the others. */
static const double conditioning[2] = {1, 3};
static const double shift[2 * D] = {0.4, 0, -1.5, 0, 0.7, 0, 0.2, 0};
static const double slope[2 * D] = {0.5, 0, -0.3, 0, 0.1, 0, 0.9, 0};
static const double curve[2 * D] = {-0.6, 0, 0.2, 0, 0.1, 0, 0.4, 0};

static smc_map map_with(bool curved) {
  return toy_conditional(D, 2, conditioning, shift, slope,
                         curved ? curve : NULL);
}

static void fill(double *z, uint64_t seed) {
  dice r = {seed};
  for (int j = 0; j < D * N; j++)
    z[j] = dice_normal(&r);
}

/* Written out for this one map. */
static void test_forward(bool curved) {
  smc_map map = map_with(curved);
  double z[D * N], u[D * N], off = 0.0;
  fill(z, 700);
  map.kind->forward(&map, N, z, u);
  for (int k = 0; k < N; k++) {
    const double *at = z + D * k, *to = u + D * k;
    double first = at[0] + 0.4 * at[1] + 0.7 * at[3];
    double third = at[2] - 1.5 * at[1] + 0.2 * at[3];
    if (curved) {
      first += -0.6 * (at[1] * at[1] - 1.0) + 0.1 * (at[3] * at[3] - 1.0);
      third += 0.2 * (at[1] * at[1] - 1.0) + 0.4 * (at[3] * at[3] - 1.0);
    }
    first *= exp(0.5 * at[1] + 0.1 * at[3]);
    third *= exp(-0.3 * at[1] + 0.9 * at[3]);
    off = fmax(off, fabs(to[0] - first) + fabs(to[2] - third));
    off = fmax(off, fabs(to[1] - at[1]) + fabs(to[3] - at[3]));
  }
  CHECK_NEAR(off, 0.0, 1e-12);
}

/* log density at u(z), without and with what the map adds. */
static void evaluate(const smc_map *map, const double *z, double *plain,
                     double *log_p, double *grad) {
  double u[D * N];
  map->kind->forward(map, N, z, u);
  for (int k = 0; k < N; k++)
    plain[k] = log_p[k] =
        toy_log_density(TOY_SKEWED, D, u + D * k, grad ? grad + D * k : NULL);
  map->kind->pull_back(map, N, z, log_p, grad);
}

/* The gradient is that of the new density, by central differences. */
static void test_gradient(bool curved) {
  smc_map map = map_with(curved);
  const double step = 1e-5;
  double z[D * N], plain[N], log_p[N], grad[D * N], off = 0.0;
  double moved[D * N], plus[N], minus[N];
  fill(z, 701);
  evaluate(&map, z, plain, log_p, grad);
  for (int i = 0; i < D; i++) {
    for (int sign = -1; sign <= 1; sign += 2) {
      for (int j = 0; j < D * N; j++)
        moved[j] = z[j] + (j % D == i ? sign * step : 0.0);
      evaluate(&map, moved, plain, sign > 0 ? plus : minus, NULL);
    }
    for (int k = 0; k < N; k++) {
      double difference = (plus[k] - minus[k]) / (2.0 * step);
      off = fmax(off,
                 fabs(grad[D * k + i] - difference) / (1.0 + fabs(difference)));
    }
  }
  CHECK_NEAR(off, 0.0, 1e-6);
}

/* The Jacobian is triangular, conditioning first: the product of its diagonal.
 */
static void test_jacobian(bool curved) {
  smc_map map = map_with(curved);
  const double step = 1e-6;
  double z[D * N], plain[N], log_p[N], up[D * N], down[D * N], moved[D * N];
  double log_jacobian[N] = {0.0}, off = 0.0;
  fill(z, 702);
  evaluate(&map, z, plain, log_p, NULL);
  for (int i = 0; i < D; i++) {
    for (int sign = -1; sign <= 1; sign += 2) {
      for (int j = 0; j < D * N; j++)
        moved[j] = z[j] + (j % D == i ? sign * step : 0.0);
      map.kind->forward(&map, N, moved, sign > 0 ? up : down);
    }
    for (int k = 0; k < N; k++)
      log_jacobian[k] += log((up[D * k + i] - down[D * k + i]) / (2.0 * step));
  }
  for (int k = 0; k < N; k++)
    off = fmax(off, fabs(log_p[k] - plain[k] - log_jacobian[k]));
  CHECK_NEAR(off, 0.0, 1e-7);
}

/* What makes no map, or not an invertible one, is rejected. */
static void test_validity(void) {
  static const double twice[2] = {1, 1}, beyond[2] = {1, 4}, half[2] = {1, 2.5};
  double acted_on[2 * D] = {0};
  acted_on[3] = 0.1;
  smc_map good[2] = {map_with(false), map_with(true)};
  CHECK(good[0].kind->is_valid(&good[0]) && good[1].kind->is_valid(&good[1]));
  smc_map bad[] = {toy_conditional(D, 2, twice, shift, slope, NULL),
                   toy_conditional(D, 2, beyond, shift, slope, NULL),
                   toy_conditional(D, 2, half, shift, slope, NULL),
                   toy_conditional(D, 2, conditioning, NULL, slope, NULL),
                   toy_conditional(D, 2, conditioning, shift, acted_on, NULL),
                   toy_conditional(D, 2, conditioning, shift, slope, acted_on),
                   map_with(true)};
  bad[6].parameters[3].size = D;
  long accepted = 0;
  for (int i = 0; i < 7; i++)
    accepted += bad[i].kind->is_valid(&bad[i]);
  CHECK_NONE(accepted, 7, "a conditional map is checked");
}

void test_map_conditional(void) {
  for (int curved = 0; curved < 2; curved++) {
    test_forward(curved);
    test_gradient(curved);
    test_jacobian(curved);
  }
  test_validity();
}
