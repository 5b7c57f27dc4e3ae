#include "path.h"

#include "vecmath.h"

#include <math.h>
#include <string.h>

/* coordinates ------------------------------------------------------------- */

void smc_path_layout(smc_path *path, smc_arena *arena, int n) {
  path->mapped =
      path->mean ? smc_take_doubles(arena, smc_size(path->d, n)) : NULL;
}

/* out += L z. */
static void add_scaled(const smc_path *path, const double *z, double *out) {
  int d = path->d;
  for (int i = 0; path->sd && i < d; i++)
    out[i] += path->sd[i] * z[i];
  for (int j = 0; path->chol && j < d; j++) {
    const double *column = path->chol + smc_size(d, j);
    for (int i = j; i < d; i++)
      out[i] += column[i] * z[j];
  }
}

void smc_path_to_user(const smc_path *path, int n, const double *z,
                      double *out) {
  int d = path->d;
  if (!path->mean) {
    memcpy(out, z, smc_size(d, n) * sizeof(double));
    return;
  }
  for (int k = 0; k < n; k++) {
    memcpy(out + smc_size(d, k), path->mean, (size_t)d * sizeof(double));
    add_scaled(path, z + smc_size(d, k), out + smc_size(d, k));
  }
}

static double log_determinant(const smc_path *path) {
  double sum = 0.0;
  for (int i = 0; i < path->d; i++)
    sum += log(path->sd ? path->sd[i] : path->chol[smc_size(path->d + 1, i)]);
  return sum;
}

/* grad <- L' grad; scratch: d. */
static void scale_gradient(const smc_path *path, double *grad,
                           double *scratch) {
  int d = path->d;
  for (int i = 0; path->sd && i < d; i++)
    grad[i] *= path->sd[i];
  if (!path->chol)
    return;
  memcpy(scratch, grad, (size_t)d * sizeof(double));
  memset(grad, 0, (size_t)d * sizeof(double));
  for (int i = 0; i < d; i++) {
    const double *row = path->chol_transposed + smc_size(d, i);
    for (int j = 0; j <= i; j++)
      grad[j] += row[j] * scratch[i];
  }
}

/* The target's density and gradient, taken over to the coordinates z. */
static void pull_back(const smc_path *path, smc_cloud *cloud, bool gradients) {
  if (!path->mean)
    return;
  double log_jacobian = log_determinant(path);
  for (int k = 0; k < cloud->n; k++) {
    size_t column = smc_size(path->d, k);
    cloud->log_p[k] += log_jacobian;
    if (gradients) /* the mapped positions have served */
      scale_gradient(path, cloud->grad_p + column, path->mapped + column);
  }
}

/* what is not finite ------------------------------------------------------ */

static bool all_finite(int n, const double *x) {
  double sum = 0.0; /* stays 0 unless a term is NaN or infinite */
  for (int i = 0; i < n; i++)
    sum += 0.0 * x[i];
  return sum == 0.0;
}

static void make_finite(smc_cloud *cloud, bool gradients) {
  for (int k = 0; k < cloud->n; k++)
    if (!isfinite(cloud->log_p[k]) || !isfinite(cloud->log_q[k]))
      cloud->log_p[k] = -INFINITY;
  for (int k = 0; gradients && k < cloud->n; k++) {
    double *grad = cloud->grad_p + smc_size(cloud->d, k);
    if (!all_finite(cloud->d, grad))
      memset(grad, 0, (size_t)cloud->d * sizeof(double));
  }
}

/* the reference ----------------------------------------------------------- */

void smc_path_sample(const uint32_t key[2], smc_cloud *cloud) {
  smc_stream place = smc_substream(key, SMC_STAGE_INITIAL, 0, 0);
  smc_stream speed = smc_substream(key, SMC_STAGE_VELOCITY, 0, 0);
  smc_normal_matrix(&place, cloud->d, cloud->n, cloud->x);
  if (cloud->v)
    smc_normal_matrix(&speed, cloud->d, cloud->n, cloud->v);
}

/* A particle so far out that its density underflows even on the log scale,
 * or that is NaN, is put to the origin and marked by log q = -Inf. */
static void evaluate_reference(smc_cloud *cloud, bool gradients) {
  int d = cloud->d;
  double log_normaliser = 0.5 * d * log(SMC_TWO_PI);
  for (int k = 0; k < cloud->n; k++) {
    double *x = cloud->x + smc_size(d, k);
    double half_square = 0.5 * smc_sum_of_squares(d, x);
    if (isfinite(half_square)) {
      cloud->log_q[k] = -half_square - log_normaliser;
    } else {
      cloud->log_q[k] = -INFINITY;
      memset(x, 0, (size_t)d * sizeof(double));
    }
    for (int i = 0; gradients && i < d; i++)
      cloud->grad_q[smc_size(d, k) + (size_t)i] = -x[i];
  }
}

/* evaluation -------------------------------------------------------------- */

int smc_path_evaluate(smc_path *path, smc_cloud *cloud, bool gradients) {
  const double *x = cloud->x;
  evaluate_reference(cloud, gradients);
  if (path->mean) {
    smc_path_to_user(path, cloud->n, cloud->x, path->mapped);
    x = path->mapped;
  }
  path->n_evals += cloud->n;
  path->failure = path->target(path->data, path->d, cloud->n, x, cloud->log_p,
                               gradients ? cloud->grad_p : NULL);
  if (path->failure)
    return 1;
  pull_back(path, cloud, gradients);
  make_finite(cloud, gradients);
  return 0;
}
