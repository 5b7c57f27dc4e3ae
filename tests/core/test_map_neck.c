/* test_map_neck.c: scales that fall on one side of a variable. */
#include "toy.h"

enum { D = TOY_D, N = TOY_N };

static const double variable[1] = {2}, rate[1] = {0.7};
static const double centre[D] = {-0.5, 0.0, 1.0, 0.3};
static const double bend[D] = {1.0, 0.0, 1.8, -0.4};
static const double pull[D] = {0.6, 0.0, -1.2, 0.0};

static smc_map good_map(void) {
  return toy_neck(D, variable, rate, centre, bend, pull);
}

/* Effects theta ~ N(0, tau^2) with a measurement y ~ N(theta, s^2), given log
 * tau: location and variance are those of Bayes' theorem. */
static void test_hierarchy(void) {
  static const double one[1] = {1}, y = 1.3, s = 0.4;
  double off = 0.0, z[2], u[2];
  for (double log_tau = -6.0; log_tau < 6.0; log_tau += 0.5) {
    const double centres[2] = {0.0, log(s)}, bends[2] = {0.0, 1.0};
    const double pulls[2] = {0.0, y / s};
    smc_map map = toy_neck(2, one, one, centres, bends, pulls);
    double tau2 = exp(2.0 * log_tau), share = tau2 / (tau2 + s * s);
    z[0] = log_tau;
    z[1] = 0.8;
    map.kind->forward(&map, 1, z, u, NULL);
    off = fmax(off, fabs(s * u[1] - (share * y + 0.8 * s * sqrt(share))));
  }
  CHECK_NEAR(off, 0.0, 1e-13);
}

/* Far on either side it is what it tends to, and a number. */
static void test_limits(void) {
  smc_map map = good_map();
  double z[D] = {0.2, 900.0, -0.4, 1.0}, u[D];
  map.kind->forward(&map, 1, z, u, NULL);
  CHECK_NEAR(u[0], 0.2 + 0.6, 1e-14);
  CHECK_NEAR(u[2], -0.4 - 1.2, 1e-14);
  z[1] = -900.0;
  map.kind->forward(&map, 1, z, u, NULL);
  CHECK_NEAR(u[0], 0.0, 1e-100);
  CHECK_NEAR(u[2], 0.0, 1e-100);
  CHECK(u[1] == -900.0 && isfinite(u[3]));
}

static void test_validity(void) {
  static const double beyond[1] = {D + 1}, half[1] = {1.5}, none[1] = {0.0};
  static const double on_itself[D] = {1.0, 0.1, 1.8, -0.4};
  smc_map good = good_map();
  CHECK(good.kind->is_valid(&good));
  smc_map bad[] = {toy_neck(D, beyond, rate, centre, bend, pull),
                   toy_neck(D, half, rate, centre, bend, pull),
                   toy_neck(D, NULL, rate, centre, bend, pull),
                   toy_neck(D, variable, none, centre, bend, pull),
                   toy_neck(D, variable, NULL, centre, bend, pull),
                   toy_neck(D, variable, rate, NULL, bend, pull),
                   toy_neck(D, variable, rate, centre, NULL, pull),
                   toy_neck(D, variable, rate, centre, bend, NULL),
                   toy_neck(D, variable, rate, centre, on_itself, pull),
                   toy_neck(D, variable, rate, centre, bend, on_itself),
                   good_map()};
  const int n_bad = (int)(sizeof bad / sizeof bad[0]);
  bad[n_bad - 1].parameters[2].size = D - 1;
  toy_check_invalid(n_bad, bad, "a map of a neck is checked");
}

void test_map_neck(void) {
  smc_map map = good_map();
  test_hierarchy();
  test_limits();
  toy_check_gradient(&map, 901);
  toy_check_jacobian(&map, 902);
  toy_check_inverse(&map, 903);
  test_validity();
}
