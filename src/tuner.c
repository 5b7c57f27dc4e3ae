#include "tuner.h"

#include "vecmath.h"

void smc_tuner_layout(smc_tuner *tuner, smc_arena *arena, smc_cloud_parts parts,
                      int d, int n) {
  int b = tuner->options->n_subsample;
  tuner->from = smc_cloud_layout(arena, d, b, parts, NULL);
  tuner->to = smc_cloud_layout(arena, d, b, parts, NULL);
  tuner->noise = smc_take_doubles(arena, d, b);
  tuner->log_g = smc_take_doubles(arena, 1, b);
  tuner->acceptance = smc_take_doubles(arena, 1, b);
  tuner->ancestors = smc_take_ints(arena, 1, b);
  tuner->scratch =
      smc_take(arena, smc_resample_scratch(n, b), 1, sizeof(double));
}

/* the objective ----------------------------------------------------------- */

/* Of log h, at one refreshment rate. */
typedef struct objective {
  const smc_kernel *kernel;
  smc_move trial;
  double regularization;
  double anchor; /* of log h */
} objective;

static int penalised_objective(void *context, double log_h, double *value) {
  objective *o = context;
  o->trial.current.step_size = exp(log_h);
  if (smc_kernel_move(o->kernel, &o->trial))
    return 1;
  double away = log_h - o->anchor;
  double y = o->kernel->objective(&o->trial) + o->regularization * away * away;
  *value = isfinite(y) ? y : INFINITY;
  return 0;
}

/* the sub-sample ---------------------------------------------------------- */

static void draw_particles(smc_tuner *tuner, const uint32_t key[2], int step,
                           const smc_cloud *cloud, const double *w) {
  smc_stream stream = smc_substream(key, SMC_STAGE_TUNE_RESAMPLE, step, 0);
  smc_resample(tuner->resampling, cloud->n, w, tuner->from.n, &stream,
               tuner->ancestors, tuner->scratch);
  smc_cloud_gather(cloud, tuner->ancestors, &tuner->from);
}

/* What a trial of the sub-sample is given, but for the kernel's parameters. */
static smc_move new_trial(smc_tuner *tuner, smc_move m, const uint32_t key[2]) {
  smc_stream stream = smc_substream(key, SMC_STAGE_TUNE_MOVE, m.step, 0);
  smc_path_normals(m.path, &stream, tuner->from.n, tuner->noise);
  m.from = &tuner->from;
  m.to = &tuner->to;
  m.noise = tuner->noise;
  m.log_g = tuner->log_g;
  m.acceptance = tuner->acceptance;
  m.trial = true;
  return m;
}

/* the search -------------------------------------------------------------- */

/* One search along log h for each refreshment rate of the grid: each remembers
 * what it has seen when coordinate descent comes back to it. */
typedef struct descent {
  int n;
  objective objectives[SMC_MAX_REFRESH_GRID];
  smc_search searches[SMC_MAX_REFRESH_GRID];
} descent;

static void begin_descent(descent *d, const smc_tuner_options *options,
                          objective o) {
  d->n = options->n_refresh;
  for (int r = 0; r < d->n; r++) {
    o.trial.current.refresh_rate = options->refresh_grid[r];
    d->objectives[r] = o;
    d->searches[r] = smc_search_begin(penalised_objective, &d->objectives[r],
                                      &options->search);
  }
}

static bool failed(const descent *d) {
  for (int r = 0; r < d->n; r++)
    if (d->searches[r].status == SMC_SEARCH_FAILED)
      return true;
  return false;
}

/* The rate with the lowest objective at log_h; `now` where none is lower. */
static int best_rate(descent *d, int now, double log_h) {
  int best = now;
  double lowest = smc_search_value(&d->searches[now], log_h);
  for (int r = 0; r < d->n && !failed(d); r++) {
    double y = smc_search_value(&d->searches[r], log_h);
    if (y < lowest) {
      lowest = y;
      best = r;
    }
  }
  return best;
}

/* Minimise over the rates at one log h, then along log h at the best of them,
 * and so on until neither changes the other's choice: the rate is kept, or log
 * h has moved by less than the tolerance since the rate was chosen. */
static smc_tuning descend(descent *d, int rate, double log_h) {
  const int most_sweeps = 10;
  smc_tuning tuning = {.n_evals = 0};
  double tolerance = d->searches[0].options->tolerance;
  for (int sweep = 0; sweep < most_sweeps; sweep++) {
    int best = best_rate(d, rate, log_h);
    if (failed(d) || (sweep > 0 && best == rate))
      break;
    rate = best;
    double before = log_h;
    log_h = smc_minimize(&d->searches[rate], log_h);
    if (failed(d) || fabs(log_h - before) <= tolerance)
      break;
  }
  tuning.step_size = exp(log_h);
  tuning.refresh_rate = d->objectives[rate].trial.current.refresh_rate;
  tuning.status = failed(d) ? SMC_SEARCH_FAILED : d->searches[rate].status;
  for (int r = 0; r < d->n; r++)
    tuning.n_evals += d->searches[r].n_evals;
  return tuning;
}

/* The rate of the step before; the first of the grid at the first step. */
static int starting_rate(const smc_tuner_options *options, double previous) {
  for (int r = 0; r < options->n_refresh; r++)
    if (options->refresh_grid[r] == previous)
      return r;
  return 0;
}

smc_tuning smc_tune(smc_tuner *tuner, const smc_kernel *kernel, smc_move m,
                    const uint32_t key[2], const smc_cloud *cloud,
                    const double *w) {
  const smc_tuner_options *options = tuner->options;
  bool first = m.step == 1;
  draw_particles(tuner, key, m.step, cloud, w);

  double log_h = log(first ? options->step_size_guess : m.previous.step_size);
  double anchor = first ? log(options->step_size_anchor) : log_h;
  objective o = {kernel, new_trial(tuner, m, key), options->regularization,
                 anchor};
  descent d;
  begin_descent(&d, options, o);
  int rate = starting_rate(options, m.previous.refresh_rate);
  if (first)
    log_h = smc_find_feasible(&d.searches[rate], log_h);
  return descend(&d, rate, log_h);
}
