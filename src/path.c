#include "path.h"

#include "vecmath.h"

#include <math.h>
#include <string.h>

/* products with a triangular matrix ---------------------------------------- */

/* Particles are taken LANES at a time, side by side, so that one coefficient
 * serves all of them and the innermost loop has no dependent sums. */
enum { LANES = 4 };

/* packed: d x LANES, the coordinates of particles k.. of the d x n matrix x,
 * those beyond n zero. */
static void pack(int d, int n, int k, const double *x, double *packed) {
  for (int lane = 0; lane < LANES; lane++)
    for (int j = 0; j < d; j++)
      packed[lane + LANES * j] =
          k + lane < n ? x[smc_size(d, k + lane) + (size_t)j] : 0.0;
}

/* sum[lane] = the sum over j, first <= j < last, of row[j] packed[j][lane].
 * Sums of their own name stay in registers. */
static void dot_lanes(const double *row, int first, int last,
                      const double *packed, double *sum) {
  double sum0 = 0.0, sum1 = 0.0, sum2 = 0.0, sum3 = 0.0;
  for (int j = first; j < last; j++) {
    const double *x = packed + LANES * j;
    sum0 += row[j] * x[0];
    sum1 += row[j] * x[1];
    sum2 += row[j] * x[2];
    sum3 += row[j] * x[3];
  }
  sum[0] = sum0;
  sum[1] = sum1;
  sum[2] = sum2;
  sum[3] = sum3;
}

/* out = shift + L x (transposed: shift + L' x), for n columns; out may be x.
 * shift: d, or NULL for none. */
static void multiply(const smc_path *path, bool transposed, int n,
                     const double *shift, const double *x, double *out) {
  int d = path->d;
  const double *rows = transposed ? path->chol : path->chol_transposed;
  double sum[LANES];
  for (int k = 0; k < n; k += LANES) {
    pack(d, n, k, x, path->packed);
    for (int i = 0; i < d; i++) {
      int first = transposed ? i : 0, last = transposed ? d : i + 1;
      dot_lanes(rows + smc_size(d, i), first, last, path->packed, sum);
      for (int lane = 0; lane < LANES && k + lane < n; lane++)
        out[smc_size(d, k + lane) + (size_t)i] =
            (shift ? shift[i] : 0.0) + sum[lane];
    }
  }
}

/* coordinates ------------------------------------------------------------- */

void smc_path_layout(smc_path *path, smc_arena *arena, int n) {
  path->mapped =
      path->mean ? smc_take_doubles(arena, smc_size(path->d, n)) : NULL;
  path->packed =
      path->chol ? smc_take_doubles(arena, smc_size(path->d, LANES)) : NULL;
  path->log_q = path->reference ? smc_take_doubles(arena, (size_t)n) : NULL;
}

void smc_path_to_user(const smc_path *path, int n, const double *z,
                      double *out) {
  int d = path->d;
  if (path->driven.n_drivers > 0) {
    smc_drive(&path->driven, d, n, z, out);
    z = out;
  }
  if (!path->mean)
    memcpy(out, z, smc_size(d, n) * sizeof(double));
  else if (path->chol)
    multiply(path, false, n, path->mean, z, out);
  else
    for (size_t j = 0; j < smc_size(d, n); j++) {
      size_t i = j % (size_t)d;
      out[j] = path->mean[i] + path->sd[i] * z[j];
    }
}

static double log_determinant(const smc_path *path) {
  double sum = 0.0;
  for (int i = 0; i < path->d; i++)
    sum += log(path->sd ? path->sd[i] : path->chol[smc_size(path->d + 1, i)]);
  return sum;
}

/* grad <- L' grad, for n columns. */
static void scale_gradients(const smc_path *path, int n, double *grad) {
  size_t d = (size_t)path->d;
  if (path->chol)
    multiply(path, true, n, NULL, grad, grad);
  else
    for (size_t j = 0; j < d * (size_t)n; j++)
      grad[j] *= path->sd[j % d];
}

/* The target's density and gradient, taken over to the coordinates z. */
static void pull_back(const smc_path *path, smc_cloud *cloud, bool gradients) {
  if (!path->mean)
    return;
  double log_jacobian = log_determinant(path);
  for (int k = 0; k < cloud->n; k++)
    cloud->log_p[k] += log_jacobian;
  if (gradients)
    scale_gradients(path, cloud->n, cloud->grad_p);
  if (path->driven.n_drivers > 0)
    smc_drive_back(&path->driven, path->d, cloud->n, cloud->x, cloud->log_p,
                   gradients ? cloud->grad_p : NULL);
}

/* what is not finite ------------------------------------------------------ */

static bool all_finite(int n, const double *x) {
  double sum = 0.0; /* stays 0 unless a term is NaN or infinite */
  for (int i = 0; i < n; i++)
    sum += 0.0 * x[i];
  return sum == 0.0;
}

static void make_gradients_finite(int d, int n, double *grad) {
  for (int k = 0; k < n; k++, grad += d)
    if (!all_finite(d, grad))
      memset(grad, 0, (size_t)d * sizeof(double));
}

/* Below the limit a log density has no digits behind the point: sums with it
 * are rounding errors, which may be as large as it is, and would make a weight
 * of what has none. */
static bool is_possible(double log_density) {
  return log_density > -1e15 && log_density < INFINITY;
}

static void make_finite(smc_cloud *cloud, bool gradients) {
  for (int k = 0; k < cloud->n; k++)
    if (!is_possible(cloud->log_p[k]) || !is_possible(cloud->log_q[k]))
      cloud->log_p[k] = -INFINITY;
  if (gradients)
    make_gradients_finite(cloud->d, cloud->n, cloud->grad_p);
}

/* the reference ----------------------------------------------------------- */

void smc_path_sample(const smc_path *path, const uint32_t key[2],
                     smc_cloud *cloud) {
  smc_stream place = smc_substream(key, SMC_STAGE_INITIAL, 0, 0);
  smc_stream speed = smc_substream(key, SMC_STAGE_VELOCITY, 0, 0);
  if (path->reference)
    memcpy(cloud->x, path->start,
           smc_size(cloud->d, cloud->n) * sizeof(double));
  else
    smc_normal_matrix(&place, cloud->d, cloud->n, cloud->x);
  if (cloud->v)
    smc_normal_matrix(&speed, cloud->d, cloud->n, cloud->v);
}

/* A particle so far out that its density underflows even on the log scale,
 * or that is NaN, is put to the origin and marked by log q = -Inf. */
static void evaluate_normal(smc_cloud *cloud, bool gradients) {
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

/* A reference of its own, after N(0, I) has been put in its place: particles
 * that have run away keep their mark. Returns 0, or the callback's code. */
static int evaluate_callback(const smc_path *path, smc_cloud *cloud,
                             bool gradients) {
  int n = cloud->n;
  int code = path->reference(path->reference_data, path->d, n, cloud->x,
                             path->log_q, gradients ? cloud->grad_q : NULL);
  if (code)
    return code;
  for (int k = 0; k < n; k++)
    if (isfinite(cloud->log_q[k]))
      cloud->log_q[k] = isfinite(path->log_q[k]) ? path->log_q[k] : -INFINITY;
  if (gradients)
    make_gradients_finite(cloud->d, n, cloud->grad_q);
  return 0;
}

/* evaluation -------------------------------------------------------------- */

/* A particle that the scales of driven coordinates have thrown beyond all
 * numbers is put to the origin, and marked as one that got there by itself. */
static void fetch_back(const smc_path *path, smc_cloud *cloud, bool gradients) {
  int d = path->d;
  size_t size = (size_t)d * sizeof(double);
  for (int k = 0; k < cloud->n; k++) {
    double *x = path->mapped + smc_size(d, k);
    if (all_finite(d, x))
      continue;
    memcpy(x, path->mean, size);
    memset(cloud->x + smc_size(d, k), 0, size);
    if (gradients)
      memset(cloud->grad_q + smc_size(d, k), 0, size);
    cloud->log_q[k] = -INFINITY;
  }
}

int smc_path_evaluate(smc_path *path, smc_cloud *cloud, bool gradients) {
  const double *x = cloud->x;
  evaluate_normal(cloud, gradients);
  if (path->mean) {
    smc_path_to_user(path, cloud->n, cloud->x, path->mapped);
    if (path->driven.n_drivers > 0)
      fetch_back(path, cloud, gradients);
    x = path->mapped;
  }
  path->n_evals += cloud->n;
  path->failure = path->target(path->data, path->d, cloud->n, x, cloud->log_p,
                               gradients ? cloud->grad_p : NULL);
  if (!path->failure && path->reference)
    path->failure = evaluate_callback(path, cloud, gradients);
  if (path->failure)
    return 1;
  pull_back(path, cloud, gradients);
  make_finite(cloud, gradients);
  return 0;
}
