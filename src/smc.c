#include "smc.h"

#include "vecmath.h"

/* memory ------------------------------------------------------------------ */

void smc_layout(smc_state *state, smc_path *path, const smc_config *config,
                smc_arena *arena) {
  int d = config->d, n = config->n_particles;
  bool velocities = config->kernel->velocities;
  state->cloud = smc_cloud_layout(arena, d, n, velocities);
  state->next = smc_cloud_layout(arena, d, n, velocities);
  state->log_weights = smc_take_doubles(arena, (size_t)n);
  state->weights = smc_take_doubles(arena, (size_t)n);
  state->log_g = smc_take_doubles(arena, (size_t)n);
  state->noise = smc_take_doubles(arena, smc_size(d, n));
  state->ancestors = smc_take_ints(arena, (size_t)n);
  state->scratch = smc_take_doubles(arena, smc_resample_scratch(n, n));
  smc_path_layout(path, arena, n);
  if (!config->step_size) {
    state->tuner.options = config->tuner;
    state->tuner.resampling = config->resampling;
    smc_tuner_layout(&state->tuner, arena, d, n, velocities);
  }
}

/* the steps of the algorithm ---------------------------------------------- */

static void reset_weights(smc_state *s) {
  for (int i = 0; i < s->cloud.n; i++)
    s->log_weights[i] = 0.0;
}

/* x_0 ~ q, with equal weights. Returns 0, or 1 when the target failed. */
static int start(smc_state *s, smc_path *path, const smc_config *config) {
  s->log_z = 0.0;
  reset_weights(s);
  smc_normalise(s->cloud.n, s->log_weights, s->weights);
  smc_path_sample(config->key, &s->cloud);
  return smc_path_evaluate(path, &s->cloud, true);
}

/* Fill in the parameters of level t, given or tuned. Returns 0, or 1 when the
 * target failed. */
static int set_parameters(smc_state *s, const smc_config *config, smc_move *m,
                          smc_trace *trace) {
  int row = m->step - 1;
  if (config->step_size) {
    m->current.step_size = config->step_size[row];
    trace->n_objective_evals[row] = 0;
    trace->tuner_status[row] = -1;
  } else {
    smc_tuning tuning = smc_tune(&s->tuner, config->kernel, *m, config->key,
                                 &s->cloud, s->weights);
    m->current.step_size = tuning.step_size;
    trace->n_objective_evals[row] = tuning.n_evals;
    trace->tuner_status[row] = (int)tuning.status;
    if (tuning.status == SMC_SEARCH_FAILED)
      return 1;
  }
  trace->step_size[row] = m->current.step_size;
  return 0;
}

/* x_t ~ K_t(x_{t-1}, .). Returns 0, or 1 when the target failed. */
static int move(smc_state *s, const smc_config *config, smc_move *m) {
  int d = s->cloud.d;
  smc_stream stream =
      smc_substream(config->key, SMC_STAGE_MOVE, (uint32_t)m->step);
  for (int k = 0; k < s->cloud.n; k++)
    smc_normals(&stream, (uint32_t)k, d, s->noise + smc_size(d, k));
  m->from = &s->cloud;
  m->to = &s->next;
  m->noise = s->noise;
  m->log_g = s->log_g;
  if (config->kernel->move(m))
    return 1;
  smc_cloud_swap(&s->cloud, &s->next);
  return 0;
}

/* w_t = w_{t-1} G_t, where what is not a number is zero: a dead particle
 * stays dead. Returns 0, or 1 when no weight is left. */
static int reweigh(smc_state *s) {
  for (int i = 0; i < s->cloud.n; i++) {
    double log_weight = s->log_weights[i] + s->log_g[i];
    s->log_weights[i] = isfinite(log_weight) ? log_weight : -INFINITY;
  }
  return smc_normalise(s->cloud.n, s->log_weights, s->weights);
}

/* log of the mean weight since the last resampling. */
static double log_mean_weight(const smc_state *s) {
  return smc_log_sum_exp(s->cloud.n, s->log_weights) - log(s->cloud.n);
}

static void resample(smc_state *s, const smc_config *config, int step) {
  smc_stream stream =
      smc_substream(config->key, SMC_STAGE_RESAMPLE, (uint32_t)step);
  int n = s->cloud.n;
  s->log_z += log_mean_weight(s);
  smc_resample(config->resampling, n, s->weights, n, &stream, s->ancestors,
               s->scratch);
  smc_cloud_gather(&s->cloud, s->ancestors, &s->next);
  smc_cloud_swap(&s->cloud, &s->next);
  reset_weights(s);
  smc_normalise(n, s->log_weights, s->weights);
}

/* the sampler ------------------------------------------------------------- */

smc_status smc_run(smc_state *s, smc_path *path, const smc_config *config,
                   smc_trace *trace) {
  int n = config->n_particles;
  smc_level level = {.lambda = 0.0, .step_size = NAN};
  double evals_before = path->n_evals;

  trace->step = trace->n_done = 0;
  if (start(s, path, config))
    return SMC_TARGET_FAILED;

  for (int t = 1; t <= config->n_steps; t++) {
    int row = t - 1;
    trace->step = t;
    smc_move m = {.path = path, .options = &config->kernel_options, .step = t};
    m.previous = level;
    m.current.lambda = config->lambda[row];

    if (set_parameters(s, config, &m, trace) || move(s, config, &m))
      return SMC_TARGET_FAILED;
    if (reweigh(s))
      return SMC_ALL_DEAD;

    trace->ess[row] = smc_ess(n, s->weights);
    trace->log_z[row] = s->log_z + log_mean_weight(s);
    trace->resampled[row] =
        t < config->n_steps && trace->ess[row] < config->ess_threshold * n;
    if (trace->resampled[row])
      resample(s, config, t);

    trace->n_target_evals[row] = path->n_evals - evals_before;
    evals_before = path->n_evals;
    trace->n_done = t;
    level = m.current;
  }
  return SMC_OK;
}
