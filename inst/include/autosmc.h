/* autosmc.h: what a compiled target looks like to autosmc.
 *
 * A target is a C routine that evaluates an unnormalised log density, and
 * its gradient, at many points in one call. It is handed to R by name with
 * target_native(), or used by another package through `LinkingTo: autosmc`.
 * This header needs nothing but C; a file that also wants R's API includes
 * R's own headers beside it.
 */
#ifndef AUTOSMC_H
#define AUTOSMC_H

#ifdef __cplusplus
extern "C" {
#endif

/* Evaluate the log density, and when asked its gradient, at n points.
 *
 *   data   in/out  the context that the init routine returned, or NULL
 *   d      in      dimension of a point
 *   n      in      number of points
 *   x      in      d x n, column-major: x[i + d * k] is coordinate i of point k
 *   logp   out     n log densities; NaN or -Inf kill that point only
 *   grad   out     d x n gradients, laid out as x; NULL when not wanted
 *
 * Returns 0 when all went well. Any other value stops the run and is shown
 * to the user in the error. The memory belongs to the caller and is valid
 * during the call only.
 *
 * Called on R's main thread, so it may use R's API, and an R error raised here
 * is passed on cleanly. But where R's target_native() was told thread_safe =
 * TRUE, called from several threads at once, each time for some of the points:
 * then it must not use R's API, nor write to anything that its calls share. No
 * two calls at a time have the same context.
 */
typedef int (*autosmc_target_fn)(void *data, int d, int n, const double *x,
                                 double *logp, double *grad);

/* Turn the R object given as `data` (a SEXP) into the context of the target.
 * Called on the main thread before the first evaluation of a run: once, or with
 * thread_safe = TRUE once for every thread that there may be. The object stays
 * protected until the run has ended, so the context may point into it; memory
 * from R_alloc() lives as long, and then needs no release routine. May raise an
 * R error.
 */
struct SEXPREC;
typedef void *(*autosmc_init_fn)(struct SEXPREC *data);

/* Free a context. Called once for every return of the init routine, after the
 * run, also when that ended with an error or an interrupt.
 */
typedef void (*autosmc_release_fn)(void *data);

#ifdef __cplusplus
}
#endif

#endif
