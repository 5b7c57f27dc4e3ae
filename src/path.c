#include "path.h"

#include "normals.h"
#include "vecmath.h"

#include <math.h>
#include <string.h>

void smc_path_layout(smc_path *path, smc_arena *arena, int n) {
  int n_threads = smc_team_size(path->team);
  int n_images = path->in_blocks ? SMC_LARGEST_BLOCK * n_threads : n;
  smc_chain_layout(&path->chain, arena, n_images, n_threads);
  path->log_q = smc_take_doubles(arena, 1, n);
  path->results = smc_take(arena, (size_t)smc_most_blocks(n_threads, n), 1,
                           sizeof *path->results);
}

smc_chain smc_path_chain(const smc_path *path, int first, int thread) {
  /* images that are not needed after the block stay in the cache */
  int at = path->in_blocks ? SMC_LARGEST_BLOCK * thread : first;
  return smc_chain_part(&path->chain, at, thread);
}

/* draws ------------------------------------------------------------------- */

typedef struct drawing {
  const smc_stream *stream;
  int d;
  double *z;
} drawing;

static void draw_block(void *context, const smc_work *work) {
  const drawing *drawing = context;
  smc_normal_matrix(drawing->stream, drawing->d, work->first, work->n,
                    drawing->z + smc_size(drawing->d, work->first));
}

void smc_path_normals(const smc_path *path, const smc_stream *stream, int n,
                      double *z) {
  drawing all = {stream, path->d, z};
  double pace = 0.0;
  smc_for_blocks(path->team, n, &pace, draw_block, &all);
}

typedef struct sampling {
  const smc_path *path;
  const uint32_t *key;
  const smc_cloud *cloud;
} sampling;

static void sample_block(void *context, const smc_work *work) {
  const sampling *all = context;
  smc_cloud part = smc_cloud_part(all->cloud, work->first, work->n);
  smc_stream stream = smc_substream(all->key, SMC_STAGE_VELOCITY, 0, 0);
  smc_reference_sample(&all->path->reference, all->key, part.d, work->first,
                       part.n, part.x);
  if (part.v)
    smc_normal_matrix(&stream, part.d, work->first, part.n, part.v);
}

void smc_path_sample(const smc_path *path, const uint32_t key[2],
                     const smc_cloud *cloud) {
  sampling all = {path, key, cloud};
  double pace = 0.0;
  smc_for_blocks(path->team, cloud->n, &pace, sample_block, &all);
}

void smc_path_to_user(const smc_path *path, int n, const double *z, double *x) {
  for (int first = 0; first < n; first += SMC_LARGEST_BLOCK) {
    int now = n - first < SMC_LARGEST_BLOCK ? n - first : SMC_LARGEST_BLOCK;
    size_t from = smc_size(path->d, first);
    memcpy(x + from, smc_chain_forward(&path->chain, now, z + from),
           smc_size(path->d, now) * sizeof(double));
  }
}

/* what is not finite ------------------------------------------------------ */

/* Until the reference is evaluated, log_q tells the particles that have been
 * lost from the others. */
enum { IN_PLACE = 0 };

static void lose(const smc_cloud *cloud, int k) {
  memset(cloud->x + smc_size(cloud->d, k), 0,
         (size_t)cloud->d * sizeof(double));
  cloud->log_q[k] = -INFINITY;
}

/* A particle that is NaN, or so far out that a normal log density there
 * underflows, is lost. */
static void reset_escaped(const smc_cloud *cloud) {
  for (int k = 0; k < cloud->n; k++) {
    const double *x = cloud->x + smc_size(cloud->d, k);
    cloud->log_q[k] = IN_PLACE;
    if (!isfinite(smc_sum_of_squares(cloud->d, x)))
      lose(cloud, k);
  }
}

/* And so is one that a map has thrown beyond all numbers. */
static void reset_overflowed(const smc_chain *chain, const smc_cloud *cloud) {
  for (int k = 0; k < cloud->n; k++)
    if (smc_chain_reset_overflowed(chain, k, cloud->x))
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

static int count_impossible(const smc_cloud *cloud) {
  int count = 0;
  for (int k = 0; k < cloud->n; k++)
    count += !is_possible(cloud->log_p[k]);
  return count;
}

static void make_finite(const smc_cloud *cloud, bool gradients) {
  for (int k = 0; k < cloud->n; k++)
    if (!is_possible(cloud->log_p[k]) || !is_possible(cloud->log_q[k]))
      cloud->log_p[k] = -INFINITY;
  if (gradients)
    make_gradients_finite(cloud->d, cloud->n, cloud->grad_p);
}

/* evaluation -------------------------------------------------------------- */

typedef struct evaluation {
  smc_path *path;
  const smc_cloud *cloud;
  bool gradients;
  const smc_around *around;
} evaluation;

/* Some of the particles, all or a block of them, with the chain and the scratch
 * that are theirs. */
typedef struct part {
  smc_cloud cloud;
  smc_chain chain;
  double *log_q;
  double *grad_p, *grad_q; /* NULL where gradients are not asked for */
} part;

static part part_of(const evaluation *e, int thread, int first, int n) {
  smc_cloud cloud = smc_cloud_part(e->cloud, first, n);
  return (part){.cloud = cloud,
                .chain = smc_path_chain(e->path, first, thread),
                .log_q = e->path->log_q + first,
                .grad_p = e->gradients ? cloud.grad_p : NULL,
                .grad_q = e->gradients ? cloud.grad_q : NULL};
}

/* From z to x. */
static void enter(const evaluation *e, const part *p, const smc_work *block) {
  if (e->around)
    e->around->before(e->around->context, block);
  reset_escaped(&p->cloud);
  smc_chain_forward(&p->chain, p->cloud.n, p->cloud.x);
  reset_overflowed(&p->chain, &p->cloud);
}

/* The densities at x, by the target and by a reference that is a callback too.
 * Returns the code of the one that failed, or 0. */
static int call(const evaluation *e, const part *p, void *data) {
  const smc_path *path = e->path;
  int n = p->cloud.n;
  const double *x = smc_chain_points(&p->chain, p->chain.n_maps, p->cloud.x);
  int code = path->target(data, path->d, n, x, p->cloud.log_p, p->grad_p);
  if (!code && smc_reference_is_on_user_scale(&path->reference))
    code = smc_reference_evaluate(&path->reference, path->d, n, x, p->log_q,
                                  p->grad_q);
  return code;
}

/* The reference's density in the coordinates z. Particles that are lost keep
 * their mark. */
static void finish_reference(const evaluation *e, const part *p) {
  const smc_reference *reference = &e->path->reference;
  const smc_cloud *cloud = &p->cloud;
  int d = cloud->d, n = cloud->n;
  if (smc_reference_is_on_user_scale(reference)) {
    smc_chain_pull_back(&p->chain, n, cloud->x, p->log_q, p->grad_q);
    if (p->grad_q)
      make_gradients_finite(d, n, p->grad_q);
  } else {
    smc_reference_evaluate(reference, d, n, cloud->x, p->log_q, p->grad_q);
  }
  for (int k = 0; k < n; k++)
    if (cloud->log_q[k] == IN_PLACE)
      cloud->log_q[k] = isfinite(p->log_q[k]) ? p->log_q[k] : -INFINITY;
}

/* Back to z. Returns how many points had no finite log density. */
static int leave(const evaluation *e, const part *p, const smc_work *block) {
  smc_chain_pull_back(&p->chain, p->cloud.n, p->cloud.x, p->cloud.log_p,
                      p->grad_p);
  finish_reference(e, p);
  int n_impossible = count_impossible(&p->cloud);
  make_finite(&p->cloud, e->gradients);
  if (e->around)
    e->around->after(e->around->context, block);
  return n_impossible;
}

static void enter_block(void *context, const smc_work *work) {
  const evaluation *e = context;
  part p = part_of(e, work->thread, work->first, work->n);
  enter(e, &p, work);
}

static void leave_block(void *context, const smc_work *work) {
  const evaluation *e = context;
  part p = part_of(e, work->thread, work->first, work->n);
  e->path->results[work->index].n_impossible = leave(e, &p, work);
}

/* All of it, on the block's thread. */
static void evaluate_block(void *context, const smc_work *work) {
  const evaluation *e = context;
  smc_block_result *result = &e->path->results[work->index];
  part p = part_of(e, work->thread, work->first, work->n);
  enter(e, &p, work);
  result->failure = call(e, &p, e->path->contexts[work->thread]);
  if (!result->failure)
    result->n_impossible = leave(e, &p, work);
}

/* The code of the first block that failed, which does not depend on which came
 * first in time; or 0. */
static int first_failure(const smc_path *path, int n) {
  int n_blocks = smc_n_blocks(smc_team_size(path->team), n);
  for (int b = 0; b < n_blocks; b++)
    if (path->results[b].failure)
      return path->results[b].failure;
  return 0;
}

/* With the target called on the main thread, for all points. */
static int evaluate_together(evaluation *e) {
  smc_path *path = e->path;
  int n = e->cloud->n;
  part all = part_of(e, 0, 0, n);
  smc_for_blocks(path->team, n, &path->pace.enter, enter_block, e);
  int failure = call(e, &all, path->data);
  if (!failure)
    smc_for_blocks(path->team, n, &path->pace.leave, leave_block, e);
  return failure;
}

static int evaluate_blocks(evaluation *e) {
  smc_path *path = e->path;
  smc_for_blocks(path->team, e->cloud->n, &path->pace.evaluate, evaluate_block,
                 e);
  return first_failure(e->path, e->cloud->n);
}

int smc_path_evaluate(smc_path *path, const smc_cloud *cloud, bool gradients,
                      const smc_around *around) {
  evaluation e = {path, cloud, gradients, around};
  smc_path_call_hook(path);
  path->n_evals += cloud->n;
  path->failure = path->in_blocks ? evaluate_blocks(&e) : evaluate_together(&e);
  if (path->failure)
    return 1;
  int n_blocks = smc_n_blocks(smc_team_size(path->team), cloud->n);
  for (int b = 0; b < n_blocks; b++)
    path->n_impossible += path->results[b].n_impossible;
  return 0;
}
