#include "smc.h"

#include "vecmath.h"

#include <float.h>

/* memory ------------------------------------------------------------------ */

void smc_layout(smc_state *state, smc_path *path, const smc_config *config,
                smc_arena *arena) {
  int d = config->d, n = config->n_particles;
  smc_cloud_parts parts = smc_kernel_parts(config->kernel, &path->reference);
  double *const *own = config->matrices;
  state->cloud = smc_cloud_layout(arena, d, n, parts, own);
  own = own ? own + smc_cloud_matrices(parts) : NULL;
  state->next = smc_cloud_layout(arena, d, n, parts, own);
  state->log_weights = smc_take_doubles(arena, 1, n);
  state->weights = smc_take_doubles(arena, 1, n);
  state->log_g = smc_take_doubles(arena, 1, n);
  state->uniform = smc_take_doubles(arena, 1, n);
  state->acceptance = smc_take_doubles(arena, 1, n);
  state->ancestors = smc_take_ints(arena, 1, n);
  state->origins = smc_take_ints(arena, 1, n);
  state->scratch =
      smc_take(arena, smc_resample_scratch(n, n), 1, sizeof(double));
  smc_path_layout(path, arena, n);
  state->drawn = smc_take(arena, smc_size(d, SMC_LARGEST_BLOCK),
                          (size_t)smc_team_size(path->team), sizeof(double));
  if (!config->step_size) {
    state->tuner.options = config->tuner;
    state->tuner.resampling = config->resampling;
    smc_tuner_layout(&state->tuner, arena, parts, d, n);
  }
}

/* weights ----------------------------------------------------------------- */

static void reset_weights(smc_state *s) {
  for (int i = 0; i < s->cloud.n; i++) {
    s->log_weights[i] = 0.0;
    s->weights[i] = 1.0 / s->cloud.n;
  }
  s->log_sum = log(s->cloud.n);
}

/* w_t = w_{t-1} G_t, where what is not a number is zero: a dead particle
 * stays dead. Returns 0, or 1 when no weight is left. */
static int reweigh(smc_state *s) {
  for (int i = 0; i < s->cloud.n; i++) {
    double log_weight = s->log_weights[i] + s->log_g[i];
    s->log_weights[i] = isfinite(log_weight) ? log_weight : -INFINITY;
  }
  s->log_sum = smc_normalise(s->cloud.n, s->log_weights, s->weights);
  return s->log_sum == -INFINITY;
}

/* Local communication barrier of the step between these weights, normalised:
 * sqrt(log E G^2 - 2 log E G) (Syed et al. 2024), where G / E G is after over
 * before. */
static double local_barrier(int n, const double *before, const double *after) {
  double square = 0.0;
  for (int i = 0; i < n; i++)
    if (before[i] > 0.0)
      square += after[i] * (after[i] / before[i]);
  return sqrt(fmax(log(fmin(square, DBL_MAX)), 0.0));
}

/* Length of the step in the Fisher metric of the annealed distributions: the
 * change of temperature times the standard deviation of log p - log q. A short
 * step of a kernel that keeps each distribution exactly meets such a barrier.
 */
static double length_of_step(const smc_state *s, const smc_move *m) {
  const double *log_p = s->cloud.log_p, *log_q = s->cloud.log_q;
  double mean = 0.0, square = 0.0;
  for (int i = 0; i < s->cloud.n; i++)
    if (s->weights[i] > 0.0)
      mean += s->weights[i] * (log_p[i] - log_q[i]);
  for (int i = 0; i < s->cloud.n; i++)
    if (s->weights[i] > 0.0) {
      double off = log_p[i] - log_q[i] - mean;
      square += s->weights[i] * off * off;
    }
  return (m->current.lambda - m->previous.lambda) * sqrt(square);
}

/* log of the mean weight since the last resampling. */
static double log_mean_weight(const smc_state *s) {
  return s->log_sum - log(s->cloud.n);
}

/* The particles after a resampling come from where their ancestors came from.
 */
static void follow_ancestors(smc_state *s) {
  int *ancestors = s->ancestors;
  for (int k = 0; k < s->cloud.n; k++)
    ancestors[k] = s->origins[ancestors[k]];
  s->ancestors = s->origins;
  s->origins = ancestors;
}

static void gather_block(void *context, const smc_work *work) {
  const smc_state *s = context;
  smc_cloud part = smc_cloud_part(&s->next, work->first, work->n);
  smc_cloud_gather(&s->cloud, s->ancestors + work->first, &part);
}

static void resample(smc_state *s, const smc_config *config,
                     const smc_move *m) {
  smc_stream stream =
      smc_substream(config->key, SMC_STAGE_RESAMPLE, m->step, 0);
  int n = s->cloud.n;
  s->log_z += log_mean_weight(s);
  smc_resample(config->resampling, n, s->weights, n, &stream, s->ancestors,
               s->scratch);
  smc_for_blocks(m->path->team, n, &s->pace, gather_block, s);
  smc_cloud_swap(&s->cloud, &s->next);
  follow_ancestors(s);
  reset_weights(s);
}

/* Weigh with log_g, and resample where the weights have become too uneven;
 * but not at the last step, where it would only add noise. Returns 0, or 1
 * when no weight is left. */
static int weigh(smc_state *s, const smc_config *config, const smc_move *m,
                 smc_trace *trace) {
  int row = m->step - 1, n = s->cloud.n;
  double *before = s->scratch;
  memcpy(before, s->weights, (size_t)n * sizeof *before);
  if (reweigh(s))
    return 1;
  trace->lcb[row] = local_barrier(n, before, s->weights);
  trace->length[row] = length_of_step(s, m);
  trace->ess[row] = smc_ess(n, s->weights);
  trace->log_z[row] = s->log_z + log_mean_weight(s);
  /* a temperature that was sought has used up the effective sample size */
  trace->resampled[row] =
      m->current.lambda < 1.0 &&
      (!config->lambda || trace->ess[row] < config->ess_threshold * n);
  if (trace->resampled[row])
    resample(s, config, m);
  return 0;
}

/* temperatures ------------------------------------------------------------ */

/* Effective sample size were the particles, as they stand, weighed for the
 * temperature lambda; 0 when none would be left. */
static double ess_at(smc_state *s, double previous, double lambda) {
  int n = s->cloud.n;
  double *log_weights = s->log_g, *weights = s->scratch;
  for (int k = 0; k < n; k++) {
    double log_weight = s->log_weights[k] +
                        smc_detailed_balance(&s->cloud, k, previous, lambda);
    log_weights[k] = isfinite(log_weight) ? log_weight : -INFINITY;
  }
  double log_sum = smc_normalise(n, log_weights, weights);
  return log_sum > -INFINITY ? smc_ess(n, weights) : 0.0;
}

/* The next temperature: given; or by bisection the highest that keeps the
 * effective sample size, and 1 at the last step that there is room for. */
static double next_lambda(smc_state *s, const smc_config *config, int step,
                          double previous) {
  const int most_halvings = 60;
  const double least_step = 1e-10; /* rather a poor step than none */
  if (config->lambda)
    return config->lambda[step - 1];
  double wanted = config->adaptive_ess * s->cloud.n;
  if (step == config->n_steps || ess_at(s, previous, 1.0) >= wanted)
    return 1.0;
  double low = previous, high = 1.0;
  for (int i = 0; i < most_halvings && high - low > 1e-6 * high; i++) {
    double middle = 0.5 * (low + high);
    if (ess_at(s, previous, middle) >= wanted)
      low = middle;
    else
      high = middle;
  }
  return fmax(low, fmin(previous + least_step, 1.0));
}

/* the steps of the algorithm ---------------------------------------------- */

/* x_0 ~ q, with equal weights. Returns 0, or 1 when the target failed. */
static int start(smc_state *s, smc_path *path, const smc_config *config) {
  s->log_z = 0.0;
  s->pace = 0.0;
  reset_weights(s);
  for (int i = 0; i < s->cloud.n; i++)
    s->origins[i] = i;
  smc_path_sample(path, config->key, &s->cloud);
  return smc_path_evaluate(path, &s->cloud, config->kernel->gradients, NULL);
}

/* log G_t of an adjusted kernel. */
static void weigh_in_place(smc_state *s, const smc_move *m) {
  for (int k = 0; k < s->cloud.n; k++)
    s->log_g[k] = smc_detailed_balance(&s->cloud, k, m->previous.lambda,
                                       m->current.lambda);
}

/* Fill in the parameters of level t, given or tuned. Returns 0, or 1 when the
 * target failed. */
static int set_parameters(smc_state *s, const smc_config *config, smc_move *m,
                          smc_trace *trace) {
  int row = m->step - 1;
  smc_tuning tuning = {.step_size = NAN, .refresh_rate = NAN};
  if (!config->step_size) {
    tuning = smc_tune(&s->tuner, config->kernel, *m, config->key, &s->cloud,
                      s->weights);
  } else {
    tuning.step_size = config->step_size[row];
    if (config->kernel->refreshes)
      tuning.refresh_rate = config->refresh_rate[row];
  }
  m->current.step_size = trace->step_size[row] = tuning.step_size;
  m->current.refresh_rate = trace->refresh_rate[row] = tuning.refresh_rate;
  trace->n_objective_evals[row] = tuning.n_evals;
  trace->tuner_status[row] = config->step_size ? -1 : (int)tuning.status;
  return tuning.status == SMC_SEARCH_FAILED;
}

static double mean(int n, const double *x) {
  double sum = 0.0;
  for (int i = 0; i < n; i++)
    sum += x[i];
  return sum / n;
}

/* x_t ~ K_t(x_{t-1}, .), more than once if the kernel is to be repeated.
 * Returns 0, or 1 when the target failed. */
static int move(smc_state *s, const smc_config *config, smc_move *m,
                smc_trace *trace) {
  int n = s->cloud.n, row = m->step - 1;
  bool adjusted = config->kernel->adjusted;
  int n_moves = adjusted ? config->kernel_options.n_moves : 1;
  trace->acceptance[row] = adjusted ? 0.0 : NAN;
  for (int repeat = 0; repeat < n_moves; repeat++) {
    m->stream = smc_substream(config->key, SMC_STAGE_MOVE, m->step, repeat);
    smc_stream coins =
        smc_substream(config->key, SMC_STAGE_ACCEPT, m->step, repeat);
    smc_uniforms(&coins, 0, adjusted ? n : 0, s->uniform);
    m->from = &s->cloud;
    m->to = &s->next;
    if (smc_kernel_move(config->kernel, m))
      return 1;
    smc_path_call_hook(m->path);
    smc_cloud_swap(&s->cloud, &s->next);
    if (adjusted)
      trace->acceptance[row] += mean(n, s->acceptance) / n_moves;
  }
  return 0;
}

/* the sampler ------------------------------------------------------------- */

smc_status smc_run(smc_state *s, smc_path *path, const smc_config *config,
                   smc_trace *trace) {
  bool weighs_first = config->kernel->adjusted;
  smc_level level = {.lambda = 0.0, .step_size = NAN, .refresh_rate = NAN};
  double evals_before = path->n_evals;

  trace->step = trace->n_done = 0;
  if (start(s, path, config))
    return SMC_TARGET_FAILED;

  for (int t = 1; level.lambda < 1.0; t++) {
    smc_move m = {
        .path = path,
        .options = &config->kernel_options,
        .step = t,
        .previous = level,
        .current = {.lambda = next_lambda(s, config, t, level.lambda)},
        .drawn = s->drawn,
        .uniform = s->uniform,
        .log_g = s->log_g,
        .acceptance = s->acceptance};
    trace->step = t;
    trace->lambda[t - 1] = m.current.lambda;
    smc_path_call_hook(path);

    if (weighs_first) {
      weigh_in_place(s, &m);
      if (weigh(s, config, &m, trace))
        return SMC_ALL_DEAD;
    }
    if (set_parameters(s, config, &m, trace) || move(s, config, &m, trace))
      return SMC_TARGET_FAILED;
    if (!weighs_first && weigh(s, config, &m, trace))
      return SMC_ALL_DEAD;
    smc_path_call_hook(path);

    trace->n_target_evals[t - 1] = path->n_evals - evals_before;
    evals_before = path->n_evals;
    trace->n_done = t;
    level = m.current;
  }
  return SMC_OK;
}
