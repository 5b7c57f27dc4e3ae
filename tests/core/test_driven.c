/* test_driven.c: coordinates whose place and scale hang on others. */
#include "driven.h"
#include "toy.h"

enum { D = 4, N = 30 };

/* The second and the last coordinate drive the others. */
static const int drivers[2] = {1, 3};
static const double shift[2 * D] = {0.4, 0, -1.5, 0, 0.7, 0, 0.2, 0};
static const double slope[2 * D] = {0.5, 0, -0.3, 0, 0.1, 0, 0.9, 0};
static const smc_driven driven = {2, drivers, shift, slope};

static void fill(double *z, uint64_t seed) {
  dice r = {seed};
  for (int j = 0; j < D * N; j++)
    z[j] = dice_normal(&r);
}

/* Written out for this one map. */
static void test_map(void) {
  double z[D * N], u[D * N], off = 0.0;
  fill(z, 700);
  smc_drive(&driven, D, N, z, u);
  for (int k = 0; k < N; k++) {
    const double *at = z + D * k, *to = u + D * k;
    double first = at[0] * exp(0.5 * at[1] + 0.1 * at[3]);
    double third = at[2] * exp(-0.3 * at[1] + 0.9 * at[3]);
    off = fmax(off, fabs(to[0] - first - 0.4 * at[1] - 0.7 * at[3]));
    off = fmax(off, fabs(to[2] - third + 1.5 * at[1] - 0.2 * at[3]));
    off = fmax(off, fabs(to[1] - at[1]) + fabs(to[3] - at[3]));
  }
  CHECK_NEAR(off, 0.0, 1e-12);
}

/* log density at u(z), without and with what smc_drive_back() adds. */
static void evaluate(const double *z, double *plain, double *log_p,
                     double *grad) {
  double u[D * N];
  smc_drive(&driven, D, N, z, u);
  for (int k = 0; k < N; k++)
    plain[k] = log_p[k] =
        toy_log_density(TOY_SKEWED, D, u + D * k, grad ? grad + D * k : NULL);
  smc_drive_back(&driven, D, N, z, log_p, grad);
}

/* The gradient is that of the new density, by central differences. */
static void test_gradient(void) {
  const double step = 1e-5;
  double z[D * N], plain[N], log_p[N], grad[D * N], off = 0.0;
  double moved[D * N], plus[N], minus[N];
  fill(z, 701);
  evaluate(z, plain, log_p, grad);
  for (int i = 0; i < D; i++) {
    for (int sign = -1; sign <= 1; sign += 2) {
      for (int j = 0; j < D * N; j++)
        moved[j] = z[j] + (j % D == i ? sign * step : 0.0);
      evaluate(moved, plain, sign > 0 ? plus : minus, NULL);
    }
    for (int k = 0; k < N; k++) {
      double difference = (plus[k] - minus[k]) / (2.0 * step);
      off = fmax(off,
                 fabs(grad[D * k + i] - difference) / (1.0 + fabs(difference)));
    }
  }
  CHECK_NEAR(off, 0.0, 1e-6);
}

/* The Jacobian is triangular, drivers first: the product of its diagonal. */
static void test_jacobian(void) {
  const double step = 1e-6;
  double z[D * N], plain[N], log_p[N], up[D * N], down[D * N], moved[D * N];
  double log_jacobian[N] = {0.0}, off = 0.0;
  fill(z, 702);
  evaluate(z, plain, log_p, NULL);
  for (int i = 0; i < D; i++) {
    for (int sign = -1; sign <= 1; sign += 2) {
      for (int j = 0; j < D * N; j++)
        moved[j] = z[j] + (j % D == i ? sign * step : 0.0);
      smc_drive(&driven, D, N, moved, sign > 0 ? up : down);
    }
    for (int k = 0; k < N; k++)
      log_jacobian[k] += log((up[D * k + i] - down[D * k + i]) / (2.0 * step));
  }
  for (int k = 0; k < N; k++)
    off = fmax(off, fabs(log_p[k] - plain[k] - log_jacobian[k]));
  CHECK_NEAR(off, 0.0, 1e-7);
}

void test_driven(void) {
  test_map();
  test_gradient();
  test_jacobian();
}
