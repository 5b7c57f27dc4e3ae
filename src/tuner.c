#include "tuner.h"

#include "vecmath.h"

void smc_tuner_layout(smc_tuner *tuner, smc_arena *arena, int d, int n,
                      bool velocities) {
  int b = tuner->options->n_subsample;
  tuner->from = smc_cloud_layout(arena, d, b, velocities);
  tuner->to = smc_cloud_layout(arena, d, b, velocities);
  tuner->noise = smc_take_doubles(arena, smc_size(d, b));
  tuner->log_g = smc_take_doubles(arena, (size_t)b);
  tuner->ancestors = smc_take_ints(arena, (size_t)b);
  tuner->scratch = smc_take_doubles(arena, smc_resample_scratch(n, b));
}

/* the objective ----------------------------------------------------------- */

typedef struct objective {
  const smc_kernel *kernel;
  smc_move move; /* of the sub-sample */
  double regularization;
  double anchor; /* of log h */
} objective;

static double mean_or_infinite(int n, const double *x) {
  double sum = 0.0;
  for (int i = 0; i < n; i++)
    sum += x[i];
  return isfinite(sum) ? sum / n : INFINITY;
}

/* The incremental divergence at h = exp(log_h), with the penalty. */
static int divergence(void *context, double log_h, double *value) {
  objective *o = context;
  o->move.current.step_size = exp(log_h);
  if (o->kernel->move(&o->move))
    return 1;
  int n = o->move.from->n;
  for (int i = 0; i < n; i++)
    o->move.log_g[i] = -o->move.log_g[i];
  double away = log_h - o->anchor;
  *value = mean_or_infinite(n, o->move.log_g) + o->regularization * away * away;
  return 0;
}

/* the sub-sample ---------------------------------------------------------- */

static void draw_particles(smc_tuner *tuner, const uint32_t key[2], int step,
                           const smc_cloud *cloud, const double *w) {
  smc_stream stream =
      smc_substream(key, SMC_STAGE_TUNE_RESAMPLE, (uint32_t)step);
  smc_resample(tuner->resampling, cloud->n, w, tuner->from.n, &stream,
               tuner->ancestors, tuner->scratch);
  smc_cloud_gather(cloud, tuner->ancestors, &tuner->from);
}

static void draw_noise(smc_tuner *tuner, const uint32_t key[2], int step) {
  smc_stream stream = smc_substream(key, SMC_STAGE_TUNE_MOVE, (uint32_t)step);
  int d = tuner->from.d;
  for (int k = 0; k < tuner->from.n; k++)
    smc_normals(&stream, (uint32_t)k, d, tuner->noise + smc_size(d, k));
}

/* the search -------------------------------------------------------------- */

smc_tuning smc_tune(smc_tuner *tuner, const smc_kernel *kernel, smc_move m,
                    const uint32_t key[2], const smc_cloud *cloud,
                    const double *w) {
  const smc_tuner_options *options = tuner->options;
  bool first = m.step == 1;
  draw_particles(tuner, key, m.step, cloud, w);
  draw_noise(tuner, key, m.step);
  m.from = &tuner->from;
  m.to = &tuner->to;
  m.noise = tuner->noise;
  m.log_g = tuner->log_g;
  m.weights_only = true;

  double guess = first ? options->step_size_guess : m.previous.step_size;
  double anchor = first ? options->step_size_anchor : m.previous.step_size;
  objective o = {kernel, m, options->regularization, log(anchor)};
  smc_search search = smc_search_begin(divergence, &o, &options->search);

  double log_h = log(guess);
  if (first)
    log_h = smc_find_feasible(&search, log_h);
  log_h = smc_minimize(&search, log_h);
  return (smc_tuning){exp(log_h), search.n_evals, search.status};
}
