/* test_minimize.c: the search on the line, on functions whose minimum is
 * known. Every evaluation is written down by the objective itself. */
#include "check.h"
#include "minimize.h"

enum { N_SEARCHES = 3000, MAX_CALLS = 1000 };

/* objectives -------------------------------------------------------------- */

typedef enum shape {
  QUADRATIC,
  ABSOLUTE,
  ASYMMETRIC, /* exp(u) - u: steep to the right                */
  LOPSIDED,   /* slope 0.01 on the left, 1000 on the right     */
  HIDDEN,     /* quadratic, +Inf on [wall, infinity)           */
  BAND,       /* quadratic, +Inf between wall and wall + width */
  FLAT,
  FALLING,
  RISING,
  NOWHERE /* +Inf */
} shape;

typedef struct problem {
  shape shape;
  double centre, scale, wall, width;
  int fail_at; /* the call that asks to stop; 0 for none */
  int calls;
  double asked[MAX_CALLS];
} problem;

static double value_at(const problem *p, double x) {
  double u = p->scale * (x - p->centre);
  switch (p->shape) {
  case QUADRATIC:
    return u * u + 3.0;
  case ABSOLUTE:
    return fabs(u) - 2.0;
  case ASYMMETRIC:
    return exp(u) - u;
  case LOPSIDED:
    return u < 0.0 ? -0.01 * u : 1000.0 * u;
  case HIDDEN:
    return x < p->wall ? u * u : INFINITY;
  case BAND:
    return x >= p->wall && x <= p->wall + p->width ? INFINITY : u * u;
  case FLAT:
    return 1.0;
  case FALLING:
    return -x;
  case RISING:
    return x;
  case NOWHERE:
    break;
  }
  return INFINITY;
}

static int objective(void *context, double x, double *y) {
  problem *p = context;
  if (p->calls < MAX_CALLS)
    p->asked[p->calls] = x;
  p->calls++;
  if (p->calls == p->fail_at)
    return 1;
  *y = value_at(p, x);
  return 0;
}

/* searches ---------------------------------------------------------------- */

/* The two settings of SPEC, LMC's and KLMC's, each with both methods. */
enum { N_SETTINGS = 4 };

static smc_search_options options_of(int which) {
  return (smc_search_options){.method = which < 2 ? SMC_SEARCH_GOLDEN
                                                  : SMC_SEARCH_PARABOLIC,
                              .bracket_start = which % 2 ? 0.01 : 0.1,
                              .bracket_growth = which % 2 ? 3.0 : 2.0,
                              .backoff = -1.0,
                              .tolerance = 0.01,
                              .lower = -1000.0,
                              .upper = 1000.0,
                              .max_evals = SMC_SEARCH_MAX_EVALS};
}

typedef struct outcome {
  double best;
  smc_search_status status;
  int n_evals;
} outcome;

static outcome run(problem *p, const smc_search_options *options, double start,
                   bool feasible_first) {
  p->calls = 0;
  smc_search s = smc_search_begin(objective, p, options);
  if (feasible_first)
    start = smc_find_feasible(&s, start);
  outcome o;
  o.best = smc_minimize(&s, start);
  o.status = s.status;
  o.n_evals = s.n_evals;
  return o;
}

/* What holds of every search, whatever became of it. */
typedef struct violations {
  long cases, calls, twice, limits, best;
} violations;

static void examine(const problem *p, const smc_search_options *options,
                    outcome o, violations *v) {
  v->cases++;
  v->calls += p->calls != o.n_evals || p->calls > options->max_evals;
  double lowest = INFINITY, near_best = INFINITY;
  for (int i = 0; i < p->calls; i++) {
    v->limits += p->asked[i] < options->lower || p->asked[i] > options->upper;
    for (int j = 0; j < i; j++)
      v->twice += fabs(p->asked[i] - p->asked[j]) < 1e-12;
    lowest = fmin(lowest, value_at(p, p->asked[i]));
  }
  for (int i = 0; i < p->calls; i++)
    if (value_at(p, p->asked[i]) == lowest)
      near_best = fmin(near_best, fabs(o.best - p->asked[i]));
  /* A parabola's vertex is taken on trust, but only within the last bracket. */
  bool on_trust = options->method == SMC_SEARCH_PARABOLIC &&
                  o.status == SMC_SEARCH_CONVERGED;
  v->best +=
      isfinite(lowest) && near_best > (on_trust ? options->tolerance : 0.0);
}

static void check_violations(const violations *v, const char *name) {
  check_that(v->cases > 0 && v->calls == 0, __FILE__, __LINE__,
             "%s: %ld of %ld searches miscount or overspend", name, v->calls,
             v->cases);
  check_that(v->twice == 0, __FILE__, __LINE__, "%s: %ld points asked twice",
             name, v->twice);
  check_that(v->limits == 0, __FILE__, __LINE__,
             "%s: %ld points outside the limits", name, v->limits);
  check_that(v->best == 0, __FILE__, __LINE__,
             "%s: %ld searches end away from the best point seen", name,
             v->best);
}

/* minima that are found --------------------------------------------------- */

/* Not one of many searches may be off by more than the tolerance. */
static void check_found(shape shape, const char *name) {
  for (int which = 0; which < N_SETTINGS; which++) {
    smc_search_options options = options_of(which);
    dice r = {200};
    violations v = {0};
    long off = 0, status = 0;
    double worst = 0.0;
    for (int i = 0; i < N_SEARCHES; i++) {
      problem p = {.shape = shape};
      p.centre = dice_between(&r, -15.0, 15.0);
      p.scale = exp(dice_between(&r, -2.0, 2.0));
      double start = dice_between(&r, -15.0, 15.0);
      if (shape == ASYMMETRIC) { /* else exp() overflows, or is flat */
        p.scale = dice_between(&r, 0.5, 2.0);
        start = p.centre + dice_between(&r, -10.0, 10.0);
      }
      double minimum = p.centre;
      if (shape == HIDDEN) {
        p.wall = p.centre + dice_between(&r, -5.0, 5.0);
        minimum = fmin(p.centre, p.wall);
      }
      options.tolerance = i % 3 ? 0.01 : exp(dice_between(&r, -9.0, -1.0));
      outcome o = run(&p, &options, start, shape == HIDDEN);
      examine(&p, &options, o, &v);
      double error = fabs(o.best - minimum) / options.tolerance;
      worst = fmax(worst, error);
      off += !(error <= 1.0 + 1e-9);
      status += o.status != SMC_SEARCH_CONVERGED;
    }
    check_that(off == 0, __FILE__, __LINE__,
               "%s, setting %d: %ld of %d minima missed, at worst by %.3g "
               "tolerances",
               name, which, off, N_SEARCHES, worst);
    check_that(status == 0, __FILE__, __LINE__,
               "%s, setting %d: %ld searches did not converge", name, which,
               status);
    check_violations(&v, name);
  }
}

/* Golden section from brackets whose middle may stand anywhere. */
static void test_golden_section(void) {
  dice r = {201};
  smc_search_options options = options_of(0);
  long off = 0, wasted = 0;
  for (int i = 0; i < N_SEARCHES; i++) {
    smc_bracket b = {.lower = dice_between(&r, -5.0, 0.0),
                     .upper = dice_between(&r, 1.0, 6.0)};
    double width = b.upper - b.lower;
    double part = exp(dice_between(&r, -8.0, -0.7));
    b.middle = b.lower + width * (i % 2 ? part : 1.0 - part);
    problem p = {.shape = QUADRATIC, .scale = 1.0};
    /* f(middle) < f(end) wants the centre on the middle's side */
    p.centre = b.middle + 0.49 * (dice_unit(&r) < 0.5
                                      ? (b.upper - b.middle) * dice_unit(&r)
                                      : (b.lower - b.middle) * dice_unit(&r));
    smc_search s = smc_search_begin(objective, &p, &options);
    smc_narrow(&s, b);
    off += !(fabs(smc_search_best(&s, INFINITY) - p.centre) <= 0.01 + 1e-9);
    off += s.status != SMC_SEARCH_CONVERGED;
    /* A bracket shrinks to 0.618 of itself in at most two evaluations when
     * its middle is off the golden ratio, in one when it stands there. */
    wasted += s.n_evals > 5 + 2 * (int)(log(width / 0.01) / 0.4812);
  }
  CHECK_NONE(off, N_SEARCHES, "golden section meets its tolerance");
  CHECK_NONE(wasted, N_SEARCHES, "golden section narrows geometrically");

  /* All ties: it moves left. */
  problem flat = {.shape = FLAT};
  smc_search s = smc_search_begin(objective, &flat, &options);
  smc_narrow(&s, (smc_bracket){0.0, 0.6, 1.0});
  double leftmost = 1.0;
  for (int i = 0; i < flat.calls; i++)
    leftmost = fmin(leftmost, flat.asked[i]);
  CHECK(s.status == SMC_SEARCH_CONVERGED && leftmost <= 0.01);
}

static void test_brackets(void) {
  for (int which = 0; which < N_SETTINGS; which++) {
    smc_search_options options = options_of(which);
    dice r = {202};
    long bad = 0;
    for (int i = 0; i < N_SEARCHES; i++) {
      problem p = {.shape = i % 2 ? QUADRATIC : LOPSIDED, .scale = 1.0};
      p.centre = dice_between(&r, -15.0, 15.0);
      smc_search s = smc_search_begin(objective, &p, &options);
      smc_bracket b = smc_bracket_minimum(&s, dice_between(&r, -15.0, 15.0));
      bad += !(s.status == SMC_SEARCH_CONVERGED && b.lower < b.middle &&
               b.middle < b.upper);
      bad += !(value_at(&p, b.middle) <= value_at(&p, b.lower) &&
               value_at(&p, b.middle) <= value_at(&p, b.upper));
      bad += !(b.lower <= p.centre && p.centre <= b.upper);
    }
    CHECK_NONE(bad, N_SEARCHES, "a bracket holds the minimum");
  }
}

/* what is not finite ------------------------------------------------------ */

static void test_find_feasible(void) {
  smc_search_options options = options_of(0);
  problem p = {.shape = HIDDEN, .centre = -5.0, .scale = 1.0, .wall = 0.0};
  smc_search s = smc_search_begin(objective, &p, &options);
  CHECK_NEAR(smc_find_feasible(&s, 6.5), -0.5, 1e-12);
  CHECK(s.n_evals == 8 && s.status == SMC_SEARCH_CONVERGED);

  /* finite from the start: one value, no step */
  p.calls = 0;
  s = smc_search_begin(objective, &p, &options);
  CHECK(smc_find_feasible(&s, -3.25) == -3.25 && p.calls == 1);

  /* to the right, over a band */
  problem band = {.shape = BAND, .scale = 1.0, .wall = -10.0, .width = 7.6};
  options.backoff = 0.5;
  s = smc_search_begin(objective, &band, &options);
  CHECK_NEAR(smc_find_feasible(&s, -4.0), -2.0, 1e-12);

  /* nowhere: ends, at the limit or without budget, with the start */
  problem nowhere = {.shape = NOWHERE};
  options.lower = -20.0;
  options.backoff = -1.0;
  s = smc_search_begin(objective, &nowhere, &options);
  CHECK(smc_find_feasible(&s, 0.5) == 0.5);
  CHECK(s.status == SMC_SEARCH_AT_LIMIT && nowhere.calls <= 22);
  options.lower = -1000.0;
  nowhere.calls = 0;
  s = smc_search_begin(objective, &nowhere, &options);
  CHECK(smc_find_feasible(&s, 0.5) == 0.5);
  CHECK(s.status == SMC_SEARCH_EXHAUSTED &&
        nowhere.calls == SMC_SEARCH_MAX_EVALS);
}

static void test_infinite_neighbours(void) {
  for (int which = 0; which < N_SETTINGS; which++) {
    smc_search_options options = options_of(which);
    /* +Inf from 1 to 2 ends the bracket, though the minimum lies behind. */
    problem right = {.shape = BAND, .centre = 4.0, .scale = 1.0};
    right.wall = 1.0;
    right.width = which % 2 ? 4.0 : 1.0;
    outcome o = run(&right, &options, 0.0, false);
    CHECK(o.status == SMC_SEARCH_CONVERGED && o.best < 1.0);
    CHECK_NEAR(o.best, 1.0, options.tolerance);

    /* On the left it does not: the search goes on behind it. */
    problem left = {.shape = BAND, .centre = -4.0, .scale = 1.0};
    left.wall = -2.0;
    left.width = 1.0;
    o = run(&left, &options, 0.0, false);
    CHECK(o.status == SMC_SEARCH_CONVERGED);
    CHECK_NEAR(o.best, -4.0, options.tolerance);

    /* +Inf at the start and no find_feasible: it moves left. */
    problem hidden = {.shape = HIDDEN, .centre = -8.0, .scale = 1.0};
    o = run(&hidden, &options, 3.0, false);
    CHECK(o.status == SMC_SEARCH_CONVERGED);
    CHECK_NEAR(o.best, -8.0, options.tolerance);
  }
}

/* searches without a minimum ---------------------------------------------- */

static void test_degenerate(void) {
  for (int which = 0; which < N_SETTINGS; which++) {
    smc_search_options options = options_of(which);
    options.lower = -20.0;
    options.upper = 30.0;
    violations v = {0};

    problem p = {.shape = FLAT};
    outcome o = run(&p, &options, 1.5, true);
    examine(&p, &options, o, &v);
    CHECK(o.status == SMC_SEARCH_AT_LIMIT && isfinite(o.best));
    /* a tie leads left, never right */
    long right = 0, far_left = 0;
    for (int i = 0; i < p.calls; i++) {
      right += p.asked[i] > 1.5;
      far_left += p.asked[i] < 0.0;
    }
    CHECK(right == 1 && far_left > 0);

    p.shape = FALLING;
    o = run(&p, &options, 1.5, true);
    examine(&p, &options, o, &v);
    CHECK(o.status == SMC_SEARCH_AT_LIMIT && o.best > 1.5 && o.best <= 30.0);

    p.shape = RISING;
    o = run(&p, &options, 1.5, true);
    examine(&p, &options, o, &v);
    CHECK(o.status == SMC_SEARCH_AT_LIMIT && o.best < 1.5 && o.best >= -20.0);

    p.shape = NOWHERE;
    for (int feasible = 0; feasible < 2; feasible++) {
      o = run(&p, &options, 1.5, feasible != 0);
      examine(&p, &options, o, &v);
      CHECK(o.status == SMC_SEARCH_INFEASIBLE);
      CHECK(o.best >= -20.0 && o.best <= 30.0);
    }
    check_violations(&v, "degenerate");
  }
}

/* An objective whose minimum lies beyond a limit, or close to it: nothing is
 * asked outside, and whatever is called converged is. */
static void test_limits(void) {
  for (int which = 0; which < N_SETTINGS; which++) {
    smc_search_options options = options_of(which);
    options.lower = -3.0;
    options.upper = 3.0;
    dice r = {203};
    violations v = {0};
    long off = 0, silent = 0;
    for (int i = 0; i < N_SEARCHES; i++) {
      problem p = {.shape = i % 2 ? QUADRATIC : ABSOLUTE, .scale = 1.0};
      p.centre = dice_between(&r, -6.0, 6.0);
      outcome o = run(&p, &options, dice_between(&r, -2.9, 2.9), true);
      examine(&p, &options, o, &v);
      if (o.status == SMC_SEARCH_CONVERGED)
        off += !(fabs(o.best - p.centre) <= options.tolerance + 1e-9);
      else
        silent += o.status != SMC_SEARCH_AT_LIMIT;
      silent += fabs(p.centre) > 3.01 && o.status != SMC_SEARCH_AT_LIMIT;
    }
    CHECK_NONE(off, N_SEARCHES, "converged means within the tolerance");
    CHECK_NONE(silent, N_SEARCHES, "a search stopped by a limit says so");
    check_violations(&v, "limits");
  }
}

/* the budget, and the end that is asked for ------------------------------- */

static void test_budget(void) {
  smc_search_options options = options_of(0);
  problem p = {.shape = QUADRATIC, .centre = 6.0, .scale = 1.0};
  int needed = run(&p, &options, -6.0, true).n_evals;
  violations v = {0};
  long bad = 0;
  for (int budget = 1; budget <= needed + 5; budget++) {
    options.max_evals = budget;
    outcome o = run(&p, &options, -6.0, true);
    examine(&p, &options, o, &v);
    if (budget >= needed)
      bad += o.status != SMC_SEARCH_CONVERGED || p.calls != needed;
    else
      bad += o.status != SMC_SEARCH_EXHAUSTED || p.calls != budget;
  }
  CHECK_NONE(bad, needed + 5, "the budget is spent, and never overspent");
  check_violations(&v, "budget");
}

static void test_failure(void) {
  smc_search_options options = options_of(0);
  problem p = {
      .shape = HIDDEN, .centre = -6.0, .scale = 1.0, .wall = 0.0, .fail_at = 0};
  int needed = run(&p, &options, 4.5, true).n_evals;
  CHECK(needed > 15);
  long bad = 0;
  for (int k = 1; k <= needed; k++) {
    p.fail_at = k;
    outcome o = run(&p, &options, 4.5, true);
    bad += o.status != SMC_SEARCH_FAILED || p.calls != k;
  }
  CHECK_NONE(bad, needed, "a failure ends the search at once");
}

/* What the parabola is there for: fewer evaluations where it fits. */
static void test_parabola_saves(void) {
  double asked[N_SETTINGS];
  for (int which = 0; which < N_SETTINGS; which++) {
    smc_search_options options = options_of(which);
    dice r = {204};
    asked[which] = 0.0;
    for (int i = 0; i < 300; i++) {
      problem p = {.shape = ASYMMETRIC, .scale = 1.0};
      p.centre = dice_between(&r, -3.0, 3.0);
      asked[which] +=
          run(&p, &options, dice_between(&r, -3.0, 3.0), true).n_evals;
    }
  }
  CHECK(asked[2] < 0.85 * asked[0] && asked[3] < 0.85 * asked[1]);
}

static void test_memory(void) {
  smc_search_options options = options_of(0);
  problem p = {.shape = QUADRATIC, .centre = 1.0, .scale = 1.0};
  smc_search s = smc_search_begin(objective, &p, &options);
  CHECK(smc_search_best(&s, 42.0) == 42.0);
  double y = smc_search_value(&s, 2.0);
  CHECK(y == 4.0 && smc_search_value(&s, 2.0) == y && p.calls == 1);
  CHECK(smc_search_value(&s, 2.5) == 5.25 && p.calls == 2);
  CHECK(smc_search_best(&s, 42.0) == 2.0);
}

/* A tolerance below what numbers can tell apart ends, near the minimum. */
static void test_finest(void) {
  static const double finest[] = {1e-9, 1e-12, 1e-17, 1e-300};
  static const shape shapes[] = {QUADRATIC, ABSOLUTE, ASYMMETRIC, LOPSIDED};
  long bad = 0, cases = 0;
  dice r = {205};
  for (int which = 0; which < N_SETTINGS; which++)
    for (int i = 0; i < 400; i++, cases++) {
      smc_search_options options = options_of(which);
      problem p = {.shape = shapes[i % 4], .scale = 1.0};
      p.centre = dice_between(&r, -30.0, 30.0);
      options.tolerance = finest[i / 100];
      outcome o = run(&p, &options, p.centre + 3.0 * dice_normal(&r), true);
      bad += o.status != SMC_SEARCH_CONVERGED;
      bad += !(fabs(o.best - p.centre) < 1e-6);
    }
  CHECK_NONE(bad, cases, "a search of any tolerance ends");
}

void test_minimize(void) {
  check_found(QUADRATIC, "quadratic");
  check_found(ABSOLUTE, "absolute");
  check_found(ASYMMETRIC, "asymmetric");
  check_found(LOPSIDED, "lopsided");
  check_found(HIDDEN, "hidden");
  test_golden_section();
  test_brackets();
  test_find_feasible();
  test_infinite_neighbours();
  test_degenerate();
  test_limits();
  test_budget();
  test_failure();
  test_parabola_saves();
  test_memory();
  test_finest();
}
