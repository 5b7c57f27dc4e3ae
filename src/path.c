#include "path.h"

#include "vecmath.h"

#include <math.h>
#include <string.h>

void smc_path_layout(smc_path *path, smc_arena *arena, int n) {
  smc_chain_layout(&path->chain, arena, n);
  path->log_q = smc_take_doubles(arena, 1, n);
}

void smc_path_sample(const smc_path *path, const uint32_t key[2],
                     smc_cloud *cloud) {
  smc_stream stream = smc_substream(key, SMC_STAGE_VELOCITY, 0, 0);
  smc_reference_sample(&path->reference, key, cloud->d, cloud->n, cloud->x);
  if (cloud->v)
    smc_normal_matrix(&stream, cloud->d, cloud->n, cloud->v);
}

const double *smc_path_to_user(const smc_path *path, int n, const double *z) {
  return smc_chain_forward(&path->chain, n, z);
}

/* what is not finite ------------------------------------------------------ */

/* Until the reference is evaluated, log_q tells the particles that have been
 * lost from the others. */
enum { IN_PLACE = 0 };

static void lose(smc_cloud *cloud, int k) {
  memset(cloud->x + smc_size(cloud->d, k), 0,
         (size_t)cloud->d * sizeof(double));
  cloud->log_q[k] = -INFINITY;
}

/* A particle that is NaN, or so far out that a normal log density there
 * underflows, is lost. */
static void reset_escaped(smc_cloud *cloud) {
  for (int k = 0; k < cloud->n; k++) {
    const double *x = cloud->x + smc_size(cloud->d, k);
    cloud->log_q[k] = IN_PLACE;
    if (!isfinite(smc_sum_of_squares(cloud->d, x)))
      lose(cloud, k);
  }
}

/* And so is one that a map has thrown beyond all numbers. */
static void reset_overflowed(const smc_path *path, smc_cloud *cloud) {
  for (int k = 0; k < cloud->n; k++)
    if (smc_chain_reset_overflowed(&path->chain, k, cloud->x))
      lose(cloud, k);
}

static void make_gradients_finite(int d, int n, double *grad) {
  for (int k = 0; k < n; k++, grad += d)
    if (!smc_all_finite(d, grad))
      memset(grad, 0, (size_t)d * sizeof(double));
}

/* Beyond the limit a log density has no digits behind the point: sums with it
 * are rounding errors, which may be as large as it is, and would make a weight
 * of what has none. */
static bool is_possible(double log_density) { return fabs(log_density) < 1e15; }

static double count_impossible(const smc_cloud *cloud) {
  int count = 0;
  for (int k = 0; k < cloud->n; k++)
    count += !is_possible(cloud->log_p[k]);
  return count;
}

static void make_finite(smc_cloud *cloud, bool gradients) {
  for (int k = 0; k < cloud->n; k++)
    if (!is_possible(cloud->log_p[k]) || !is_possible(cloud->log_q[k]))
      cloud->log_p[k] = -INFINITY;
  if (gradients)
    make_gradients_finite(cloud->d, cloud->n, cloud->grad_p);
}

/* evaluation -------------------------------------------------------------- */

static int evaluate_target(smc_path *path, smc_cloud *cloud, const double *x,
                           double *grad) {
  path->n_evals += cloud->n;
  int code = path->target(path->data, path->d, cloud->n, x, cloud->log_p, grad);
  if (!code)
    smc_chain_pull_back(&path->chain, cloud->n, cloud->x, cloud->log_p, grad);
  return code;
}

/* Particles that are lost keep their mark. */
static int evaluate_reference(smc_path *path, smc_cloud *cloud, const double *x,
                              double *grad) {
  const smc_reference *reference = &path->reference;
  bool on_user_scale = smc_reference_is_on_user_scale(reference);
  int n = cloud->n;
  int code = smc_reference_evaluate(
      reference, path->d, n, on_user_scale ? x : cloud->x, path->log_q, grad);
  if (code)
    return code;
  if (on_user_scale) {
    smc_chain_pull_back(&path->chain, n, cloud->x, path->log_q, grad);
    if (grad)
      make_gradients_finite(path->d, n, grad);
  }
  for (int k = 0; k < n; k++)
    if (cloud->log_q[k] == IN_PLACE)
      cloud->log_q[k] = isfinite(path->log_q[k]) ? path->log_q[k] : -INFINITY;
  return 0;
}

int smc_path_evaluate(smc_path *path, smc_cloud *cloud, bool gradients) {
  smc_path_call_hook(path);
  reset_escaped(cloud);
  const double *x = smc_chain_forward(&path->chain, cloud->n, cloud->x);
  reset_overflowed(path, cloud);
  path->failure =
      evaluate_target(path, cloud, x, gradients ? cloud->grad_p : NULL);
  if (!path->failure)
    path->failure =
        evaluate_reference(path, cloud, x, gradients ? cloud->grad_q : NULL);
  if (path->failure)
    return 1;
  path->n_impossible += count_impossible(cloud);
  make_finite(cloud, gradients);
  return 0;
}
