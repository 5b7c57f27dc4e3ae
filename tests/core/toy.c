#include "toy.h"

#include <stdlib.h>
#include <string.h>

#define LOG_TWO_PI 1.8378770664093454835606594728112

double log_normal(double x, double mean, double variance) {
  double u = x - mean;
  return -0.5 * LOG_TWO_PI - 0.5 * log(variance) - 0.5 * u * u / variance;
}

/* 3 N(x; mean, sd^2 I) */
static double gaussian(int d, const double *x, double mean, double sd,
                       double *grad) {
  double sum = log(3.0);
  for (int i = 0; i < d; i++) {
    sum += log_normal(x[i], mean, sd * sd);
    if (grad)
      grad[i] = -(x[i] - mean) / (sd * sd);
  }
  return sum;
}

static double skewed(int d, const double *x, double *grad) {
  double sum = 0.7;
  for (int i = 0; i < d; i++) {
    double next = x[(i + 1) % d], last = x[(i + d - 1) % d];
    sum += -0.1 * x[i] * x[i] * x[i] * x[i] + 0.3 * x[i] * sin(next) - x[i];
    if (grad)
      grad[i] = -0.4 * x[i] * x[i] * x[i] + 0.3 * sin(next) +
                0.3 * last * cos(x[i]) - 1.0;
  }
  return sum;
}

double toy_log_density(toy_shape shape, int d, const double *x, double *grad) {
  switch (shape) {
  case TOY_SKEWED:
    return skewed(d, x, grad);
  case TOY_GAUSSIAN:
    return gaussian(d, x, 1.0, 0.7, grad);
  case TOY_HALF:
  case TOY_HALF_NAN: {
    double inside = gaussian(d, x, 0.5, 0.8, grad);
    if (x[0] > 0.0)
      return inside;
    if (grad && shape == TOY_HALF_NAN)
      grad[0] = NAN;
    return -INFINITY;
  }
  case TOY_IMPOSSIBLE:
    break;
  }
  if (grad)
    memset(grad, 0, (size_t)d * sizeof(double));
  return -INFINITY;
}

int toy_target(void *data, int d, int n, const double *x, double *logp,
               double *grad) {
  toy *t = data;
  t->calls++;
  t->points += n;
  t->gradient_calls += grad != NULL;
  if (t->last_x)
    memcpy(t->last_x, x, (size_t)d * (size_t)n * sizeof(double));
  if (t->calls == t->fail_at)
    return t->code;
  for (int k = 0; k < n; k++) {
    size_t first = (size_t)d * (size_t)k;
    logp[k] =
        toy_log_density(t->shape, d, x + first, grad ? grad + first : NULL);
  }
  return 0;
}

void toy_look(void *data) { ((toy *)data)->looks++; }

smc_cloud toy_cloud(int d, int n, bool velocities, bool gradients,
                    char **block) {
  smc_arena arena = {.base = NULL};
  smc_cloud_parts parts = {velocities, gradients, gradients};
  smc_cloud_layout(&arena, d, n, parts, NULL);
  *block = take_memory(arena.used);
  arena = (smc_arena){.base = *block};
  return smc_cloud_layout(&arena, d, n, parts, NULL);
}

/* maps -------------------------------------------------------------------- */

static smc_values values(const double *x, int rows, int columns) {
  return (smc_values){x, x ? (size_t)rows * (size_t)columns : 0};
}

smc_map toy_affine(int d, const double *mean, const double *sd,
                   const double *chol) {
  return (smc_map){
      .kind = &smc_map_affine,
      .d = d,
      .parameters = {values(mean, d, 1), values(sd, d, 1), values(chol, d, d)}};
}

smc_map toy_bounds(int d, const double *lower, const double *upper) {
  return (smc_map){.kind = &smc_map_bounds,
                   .d = d,
                   .parameters = {values(lower, d, 1), values(upper, d, 1)}};
}

smc_map toy_tails(int d, const double *location, const double *scale,
                  const double *skew, const double *tail) {
  return (smc_map){.kind = &smc_map_tails,
                   .d = d,
                   .parameters = {values(location, d, 1), values(scale, d, 1),
                                  values(skew, d, 1), values(tail, d, 1)}};
}

smc_map toy_moments(int d, int n_children, const double *order, int n_features,
                    const double *features, const double *location,
                    const double *log_scale) {
  return (smc_map){.kind = &smc_map_moments,
                   .d = d,
                   .parameters = {values(order, n_children, 1),
                                  values(features, 8, n_features),
                                  values(location, n_children, n_features),
                                  values(log_scale, n_children, n_features)}};
}

smc_map toy_rotation(int d, const double *axes) {
  return (smc_map){
      .kind = &smc_map_rotation, .d = d, .parameters = {values(axes, d, d)}};
}

enum { D = TOY_D, N = TOY_N };

void toy_fill(double *z, uint64_t seed) {
  dice r = {seed};
  for (int j = 0; j < D * N; j++)
    z[j] = dice_normal(&r);
}

/* What a map needs: free it. */
static double *scratch_of(const smc_map *map) {
  return take_doubles(map->kind->scratch ? map->kind->scratch(map) : 1);
}

/* log density at u(z), without and with what the map adds. */
static void evaluate(const smc_map *map, const double *z, double *plain,
                     double *log_p, double *grad) {
  double u[D * N], *scratch = scratch_of(map);
  map->kind->forward(map, N, z, u, scratch);
  for (int k = 0; k < N; k++)
    plain[k] = log_p[k] =
        toy_log_density(TOY_SKEWED, D, u + D * k, grad ? grad + D * k : NULL);
  map->kind->pull_back(map, N, z, log_p, grad, scratch);
  free(scratch);
}

/* out: the points z with coordinate i moved. */
static void move_one(const double *z, int i, double by, double *out) {
  for (int j = 0; j < D * N; j++)
    out[j] = z[j] + (j % D == i ? by : 0.0);
}

void toy_check_gradient(const smc_map *map, uint64_t seed) {
  const double step = 1e-5;
  double z[D * N], plain[N], log_p[N], grad[D * N], off = 0.0;
  double moved[D * N], plus[N], minus[N];
  toy_fill(z, seed);
  evaluate(map, z, plain, log_p, grad);
  for (int i = 0; i < D; i++) {
    for (int sign = -1; sign <= 1; sign += 2) {
      move_one(z, i, sign * step, moved);
      evaluate(map, moved, plain, sign > 0 ? plus : minus, NULL);
    }
    for (int k = 0; k < N; k++) {
      double difference = (plus[k] - minus[k]) / (2.0 * step);
      off = fmax(off,
                 fabs(grad[D * k + i] - difference) / (1.0 + fabs(difference)));
    }
  }
  CHECK_NEAR(off, 0.0, 1e-6);
}

void toy_check_jacobian(const smc_map *map, uint64_t seed) {
  const double step = 1e-6;
  double z[D * N], plain[N], log_p[N], up[D * N], down[D * N], moved[D * N];
  double log_jacobian[N] = {0.0}, off = 0.0, *scratch = scratch_of(map);
  toy_fill(z, seed);
  evaluate(map, z, plain, log_p, NULL);
  for (int i = 0; i < D; i++) {
    for (int sign = -1; sign <= 1; sign += 2) {
      move_one(z, i, sign * step, moved);
      map->kind->forward(map, N, moved, sign > 0 ? up : down, scratch);
    }
    for (int k = 0; k < N; k++)
      log_jacobian[k] += log((up[D * k + i] - down[D * k + i]) / (2.0 * step));
  }
  for (int k = 0; k < N; k++)
    off = fmax(off, fabs(log_p[k] - plain[k] - log_jacobian[k]));
  CHECK_NEAR(off, 0.0, 1e-7);
  free(scratch);
}

/* The log density at points u of which z has one. */
static void evaluate_images(const smc_map *map, const double *u, double *log_p,
                            double *grad) {
  double z[D * N], *scratch = scratch_of(map);
  map->kind->inverse(map, N, u, z, scratch);
  for (int k = 0; k < N; k++)
    log_p[k] =
        toy_log_density(TOY_SKEWED, D, z + D * k, grad ? grad + D * k : NULL);
  map->kind->push_forward(map, N, z, log_p, grad, scratch);
  free(scratch);
}

void toy_check_inverse(const smc_map *map, uint64_t seed) {
  const double step = 1e-5;
  double z[D * N], u[D * N], back[D * N], *scratch = scratch_of(map);
  double plain[N], log_p[N], of_image[N], grad[D * N], moved[D * N];
  double plus[N], minus[N], off = 0.0, off_density = 0.0, off_gradient = 0.0;
  toy_fill(z, seed);
  map->kind->forward(map, N, z, u, scratch);
  map->kind->inverse(map, N, u, back, scratch);
  for (int i = 0; i < D * N; i++)
    off = fmax(off, fabs(back[i] - z[i]));
  CHECK_NEAR(off, 0.0, 1e-10);
  evaluate_images(map, u, of_image, grad);
  evaluate(map, z, plain, log_p, NULL);
  for (int k = 0; k < N; k++) {
    double of_z = toy_log_density(TOY_SKEWED, D, z + D * k, NULL);
    off_density =
        fmax(off_density, fabs(of_image[k] + log_p[k] - plain[k] - of_z));
  }
  CHECK_NEAR(off_density, 0.0, 1e-8);
  for (int i = 0; i < D; i++) {
    for (int sign = -1; sign <= 1; sign += 2) {
      for (int j = 0; j < D * N; j++)
        moved[j] = u[j] + (j % D == i ? sign * step * (1.0 + fabs(u[j])) : 0.0);
      evaluate_images(map, moved, sign > 0 ? plus : minus, NULL);
    }
    for (int k = 0; k < N; k++) {
      double difference =
          (plus[k] - minus[k]) / (2.0 * step * (1.0 + fabs(u[D * k + i])));
      off_gradient = fmax(off_gradient, fabs(grad[D * k + i] - difference) /
                                            (1.0 + fabs(difference)));
    }
  }
  CHECK_NEAR(off_gradient, 0.0, 1e-5);
  free(scratch);
}

char *toy_lay_out(smc_map *map) {
  smc_arena arena = {.base = NULL};
  if (!map->kind->layout)
    return NULL;
  map->kind->layout(map, &arena);
  char *block = take_memory(arena.used);
  arena = (smc_arena){.base = block};
  map->kind->layout(map, &arena);
  return block;
}

smc_map toy_map_but(smc_map map, int parameter, smc_values value) {
  map.parameters[parameter] = value;
  return map;
}

void toy_check_invalid(int n, const smc_map *maps, const char *what) {
  long accepted = 0;
  for (int i = 0; i < n; i++)
    accepted += maps[i].kind->is_valid(&maps[i]);
  CHECK_NONE(accepted, n, what);
}

smc_chain toy_chain(int n_maps, smc_map *maps) {
  return (smc_chain){.d = maps[0].d, .n_maps = n_maps, .maps = maps};
}

smc_tuner_options toy_tuner(const smc_kernel *kernel, int n_subsample,
                            double tolerance) {
  static const double rates[2] = {0.1, 0.9}, no_rate[1] = {NAN};
  return (smc_tuner_options){.n_subsample = n_subsample,
                             .regularization = 0.1,
                             .step_size_guess = exp(-10.0),
                             .step_size_anchor = 1.0,
                             .n_refresh = kernel->refreshes ? 2 : 1,
                             .refresh_grid =
                                 kernel->refreshes ? rates : no_rate,
                             .search = {.bracket_start = 0.1,
                                        .bracket_growth = 2.0,
                                        .backoff = -1.0,
                                        .tolerance = tolerance,
                                        .lower = -80.0,
                                        .upper = 40.0,
                                        .max_evals = 150}};
}

char *toy_path_layout(smc_path *path, int n) {
  smc_arena arena = {.base = NULL};
  smc_path_layout(path, &arena, n);
  char *scratch = take_memory(arena.used);
  arena = (smc_arena){.base = scratch};
  smc_path_layout(path, &arena, n);
  return scratch;
}
