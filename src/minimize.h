/* minimize.h: the bounded search for a minimum on a line.
 *
 * FindFeasible, BracketMinimum and GoldenSection (the paper's Algorithms 5 to
 * 7), made safe for flat, monotone and partly infinite objectives: a search
 * has a budget of evaluations and limits on its argument, remembers every
 * value it has seen, and always ends with the best of them.
 */
#ifndef SMC_MINIMIZE_H
#define SMC_MINIMIZE_H

#define SMC_SEARCH_MAX_EVALS 200

/* How the bracket of a minimum is narrowed. */
typedef enum smc_search_method {
  SMC_SEARCH_PARABOLIC = 0, /* to the vertex of the parabola through it, where
                               that can be trusted; else as golden section */
  SMC_SEARCH_GOLDEN = 1     /* golden section                               */
} smc_search_method;

/* How a search ended. */
typedef enum smc_search_status {
  SMC_SEARCH_CONVERGED = 0,
  SMC_SEARCH_AT_LIMIT = 1,   /* reached a limit of the argument            */
  SMC_SEARCH_EXHAUSTED = 2,  /* used up its evaluations                    */
  SMC_SEARCH_INFEASIBLE = 3, /* saw no finite value                        */
  SMC_SEARCH_FAILED = 4      /* the objective asked to stop                */
} smc_search_status;

/* The objective: writes *y = f(x), +Inf where it is not finite. A non-zero
 * return ends the search at once. */
typedef int (*smc_objective_fn)(void *context, double x, double *y);

typedef struct smc_search_options {
  smc_search_method method;
  double bracket_start;  /* c > 0: first step of the bracketing            */
  double bracket_growth; /* r > 1: growth of its steps                     */
  double backoff;        /* delta != 0: step of FindFeasible               */
  double tolerance;      /* eps > 0: see smc_narrow; below 1e-9 as that     */
  double lower, upper;   /* limits on the argument                         */
  int max_evals;         /* at most SMC_SEARCH_MAX_EVALS                   */
} smc_search_options;

typedef struct smc_search {
  smc_objective_fn objective;
  void *context;
  const smc_search_options *options;
  smc_search_status status;
  int n_evals;                    /* values asked of the objective          */
  double x[SMC_SEARCH_MAX_EVALS]; /* the points seen, and their values      */
  double y[SMC_SEARCH_MAX_EVALS];
} smc_search;

/* Three points with lower < middle < upper and f(middle) below both ends. */
typedef struct smc_bracket {
  double lower, middle, upper;
} smc_bracket;

/* Begin a search that has seen nothing yet. */
smc_search smc_search_begin(smc_objective_fn objective, void *context,
                            const smc_search_options *options);

/* f(x), from memory where it is known. +Inf once the search is over. */
double smc_search_value(smc_search *s, double x);

/* The best point seen; `otherwise` when no value was finite. */
double smc_search_best(const smc_search *s, double otherwise);

/* Algorithm 5: step from x by `backoff` until f is finite. Returns x itself
 * when the search is over before that. */
double smc_find_feasible(smc_search *s, double x);

/* Algorithm 7: bracket a minimum by growing steps, first right, then left. */
smc_bracket smc_bracket_minimum(smc_search *s, double x);

/* Algorithm 6, or its parabolic variant: narrow the bracket until it is no
 * wider than the tolerance. Returns its middle, the lowest point of it; or the
 * vertex of the last parabola, for which nothing is asked of the objective. */
double smc_narrow(smc_search *s, smc_bracket b);

/* Algorithm 8: bracket, then search the bracket. Returns the minimum found, or
 * when the search was ended before that the best point seen, and leaves in
 * s->status how it ended. */
double smc_minimize(smc_search *s, double x);

#endif
