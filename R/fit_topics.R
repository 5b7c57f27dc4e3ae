# Help pages on topics: ?smc_rounds, ?diagnostics, ?estimates and ?reproducibility.

#' How smc() adapts
#'
#' [smc()] moves particles from a reference distribution to the target through annealed densities in between. Adaptation
#' finds a reference close to the target, and the step sizes and temperatures of the path.
#'
#' @section Stages:
#'
#'   | stage | what it does | skipped when | recorded in |
#'   |:--|:--|:--|:--|
#'   | scout | locates the target by its gradients ([smc_scout()]) | `scout = FALSE`, no gradients, or from another fit | `fit$scout` |
#'   | race | a small run from each candidate reference | the scout found no mode | `fit$runs` |
#'   | rounds | fit a reference to the best run, tune a run from it, accept or reject it | `rounds = 0` | `fit$runs` |
#'   | islands | independent, unbiased runs with what was tuned | `smc_adapt()` | `fit$islands` |
#'   | bridge | a second estimate, from the islands' draws | see [estimates] | `fit$estimates` |
#'   | diagnostics | look for signs that the estimate is wrong | `smc_adapt()` | [`fit$diagnostics`][diagnostics] |
#'   | further passes | fit a reference to the islands' draws, then rounds and new islands | all diagnostics pass and the bridge error is below 0.01 (0.002 in the first pass with a shape), no better reference is found, or `whiten = FALSE` | `fit$runs` |
#'
#'   *Race.* The candidates are, in this order, `draws` (fitted to the draws of a Stan fit), `cover`, `shape` and `best`
#'   (from the scout), and `given` (the argument `reference`). The default reference N(0, I) is left out if its ELBO is
#'   below that of the best basin by more than 16 log(256), so that the first of 16 steps would leave no particle with
#'   weight. Each candidate has a run of 256 particles. A run by HMC from a fitted reference chooses its temperatures so
#'   that each step keeps 80 % of the effective sample size; other runs have 16 steps. If the scout has found one basin,
#'   and no `reference` is given, the race ends with a run from a fitted reference that takes a single step. An estimate
#'   that misses a part of the target is too low, so a later candidate wins only if its estimate is higher by more than
#'   two standard errors. If draws of a losing candidate with at least 2 % of the evidence are beyond those of the
#'   winner, a mixture of both references is a candidate, too (`both`). The winner is run again with all particles and
#'   the whole schedule if it is the given reference, or if its weight descends almost entirely from one particle.
#'
#'   *Rounds.* A round is rejected if all its particles die, if its estimate falls by more than 0.5 and two standard
#'   errors, or if its barrier rises by more than 5 %. Simpler references are then tried. After the least number of
#'   `rounds` there are more as long as the barrier falls by a fifth, the particles are wider than a normal reference,
#'   or a simpler reference than a rejected one is left to try.
#'
#'   *Further passes.* Another pass is made if another shape fits the islands' draws clearly better, if the shape of the
#'   reference was fitted to the particles of a single round, or if a diagnostic has failed and a new reference can be
#'   fitted. There are at most five; after the second, only while the estimate still rises. If no better reference is
#'   found, but a diagnostic has failed, the next pass has four times as many steps instead (at most `max_steps`). A
#'   pass that finds less evidence, or has twice the standard error without a higher estimate, is dropped, and the
#'   islands before it are kept.
#' @section From another fit: With `reference = fit`, the fit of a target with the same variables, there is neither a
#'   scout nor a race, but one small run with the reference and the path of that fit (the `label` of the run is
#'   `"fit"`). If its barrier is not much higher than that of the other fit, islands follow at once; otherwise there are
#'   rounds. The islands draw new particles from the reference, so the estimate by SMC is unbiased, however different
#'   the two targets are. From a similar target four islands take a fourth to a half of the evaluations of a fit from
#'   the beginning, with errors up to twice as large. For the same `precision` it is a tenth to a half.
#'
#'   If all particles die, or a diagnostic fails, the target is fitted from the beginning, as a message and `fit$runs`
#'   say. If variables have other bounds, or there are fewer, a distribution fitted to the draws of the other fit is the
#'   reference. If there are further variables, there is a scout, and they are drawn from its best normal distribution,
#'   conditional on the draws of the others. A mode that the other target does not have may be missed: only the
#'   diagnostics look beyond the reference.
#' @section References: A round fits the first of these for which there are enough particles.
#'
#'   * `basins`: the scout's mixture of normal distributions, where it is the present reference and gives the
#'     particles a higher density than any shape.
#'   * `shape`: a transformed normal distribution, or a Student t (see the next section). No shape is fitted to
#'     particles that started from the given reference.
#'   * `normal`: a normal distribution, fitted to particles and gradients together.
#'
#'   A reference that is too narrow does more harm than one that is too wide. So fitted references are widened: a normal
#'   distribution to 1.5 times the variance (less above 250 variables), a shape up to that, and its parents up to 4
#'   times, depending on how well the fitted scores agree with those of the target. A target whose gradients show that
#'   it is exactly normal or Student t is its own reference, and is reached in two steps.
#' @section Shapes: `fit$maps` describes the shape of a fit in words, and `plot(fit, "maps")` shows it. Shapes are
#'   fitted on the unconstrained scale. Their parts, which `vignette("tuning")` describes, are: variables that are
#'   exactly normal conditional on others, as differences of gradients show (the row `"probe"` of `fit$runs`); variables
#'   (children) whose precision matrix and linear term, or location and scale, depend on others (parents); skewness or
#'   heavy tails of single variables; and a Student t for all together. A part is kept only if, fitted to one half of
#'   the particles, it gives the other half a higher density. Without gradients there are no shapes. Above 250 variables
#'   only skewness and exactly normal variables are fitted; above 600 only skewness.
#' @section Kernels: If no `kernel` is given, runs from the given reference use [kernel_klmc()], whose momentum persists
#'   over a long path. Runs from a fitted reference use [kernel_hmc()], which needs half the steps for the same error,
#'   and so do runs at hard edges (see below) and fits in which the draws of KLMC have a small effective sample size. If
#'   the gradient of an R function of up to ten variables is approximated by differences, runs from a fitted reference
#'   other than a mixture use [kernel_pcn()], which needs no gradient.
#'
#'   The tuner sees only the paths of the particles, not paths from regions without particles. If the density changes
#'   sharply, a long step of KLMC would have to be balanced by such paths: its estimate is then unbiased only through
#'   rare large values, and is nearly always a few percent too low. Therefore islands of KLMC run with three quarters of
#'   the tuned step sizes (`step_fraction`), and with half of them if the reference has a shape, except from the given
#'   reference.
#'
#'   *Hard edges.* If the density is zero beyond an edge near many particles, the unadjusted kernels lose the paths that
#'   would cross the edge and return, and the estimate is too low. If the diagnostic `edges` finds such an edge and no
#'   `kernel` was given, a further pass uses HMC, which rejects such moves. It is better to declare the edge as a bound
#'   (`lower`, `upper` of [target_function()]).
#' @section Cost: Cost is counted in evaluations of the target: one log density with its gradient at one point. A run
#'   without tuning takes exactly `n_particles * (n_moves * n_steps + 1)` of them (`n_moves` is mostly 1). Tuning adds
#'   `n_subsample` for each evaluation of its objective, the bridge one log density for every draw.
#' @section Records: `fit$steps` has a row for each step of each run: `run` (`"adapt"` or `"final"`), `round` and
#'   `island` (one of them NA), `step`, `lambda`, `step_size`, `refresh_rate`, `acceptance` (mean, of
#'   Metropolis-adjusted kernels), `ess`, `lcb` (the local communication barrier of Syed et al., 2024), `length` (as in
#'   [schedule_barrier()]), `barrier` (the cumulative sum of `lcb`), `resampled`, `log_z` (up to that step),
#'   `n_objective_evals`, `n_target_evals`, and `tuner_status`: `"converged"`; `"at_limit"`, `"exhausted"` or
#'   `"infeasible"` if the search ended at one of its limits; NA where nothing was tuned.
#'
#'   `fit$runs` has a row for the surrogate of an integral over random effects and one for its correction (see
#'   [as_target()], section Random effects), one for the scout, one for the differences of gradients (`"probe"`), one
#'   for every run that tunes (`"adapt"`), and one for the islands of each pass together (`"final"`): `run`, `round`,
#'   `label`, `kernel`, `log_z`, `std_error`, `conf_low`, `conf_high` (SMC's in all rows), `biased`, `n_particles`,
#'   `n_steps`, `islands`, `barrier`, `n_objective_evals`, `n_target_evals` (for islands including those of the bridge
#'   and the diagnostics), `n_calls` (of the user's function: a gradient by differences takes two calls for each
#'   variable, and the value one), `n_impossible` (evaluations without a finite log density, except those of bridge and
#'   diagnostics), `seconds`, and `used`: whether the run won the race, or the run or the islands of a pass replaced the
#'   best before. `label` is the origin of the reference: a candidate of the race, a kind of fit (see References),
#'   `"fit"` for that of another fit, or `"longer"` for the last reference with more steps. A run that tunes is biased,
#'   and so is LMC with the detailed-balance backward kernel.
#' @source Kim, Xu, Gardner and Campbell (2025), *Tuning sequential Monte Carlo samplers via
#'   greedy incremental divergence minimization*, algorithm 1.
#'
#'   Syed, Bouchard-Cote, Chern and Doucet (2024), *Optimised annealed sequential Monte
#'   Carlo samplers*, for the temperatures of the rounds.
#'
#'   Zhang, Carpenter, Gelman and Vehtari (2022), *Pathfinder: parallel quasi-Newton
#'   variational inference*, for the scout's paths.
#'
#'   Cai, Modi, Pillaud-Vivien, Margossian, Gower, Blei and Saul (2024), *Batch and match:
#'   black-box variational inference with a score-based divergence*, for normal distributions
#'   that minimise a Fisher divergence between gradients.
#'
#'   Hyvarinen (2005), *Estimation of non-normalized statistical models by score matching*.
#'
#'   Jones and Pewsey (2009), *Sinh-arcsinh distributions*.
#' @seealso `vignette("tuning")` for the ideas behind each stage.
#' @name smc_rounds
NULL

#' Diagnostics, warnings and errors
#'
#' A diagnostic compares a property of the fit with the value that it must have if the estimate is right. Each is a row
#' of `fit$diagnostics`: its `name`, `value`, `limit`, whether it `passed`, the `shift`, and `says`, a sentence on what
#' is wrong (NA if it has passed). If a diagnostic fails, the fit warns, and says so when it is printed. `shift` is the
#' change of `log_z` that a failed diagnostic implies (0 if it implies none); `rays`, `mirrors` and `lines` may have a
#' `shift` also if they pass, see [estimates].
#'
#' Passed diagnostics do not prove an estimate right: none can show a part of the target that neither the scout nor the
#' islands have come near. Diagnostics that do not apply are left out.
#'
#' @section Diagnostics:
#'
#'   | name | value | limit |
#'   |:--|:--|:--|
#'   | `scatter` | sd of the islands' `log_z`, over the sd that they predict | 1.8; more below ten islands |
#'   | `largest_share` | share of the largest island in the sum of all | 0.5 (from four islands on) |
#'   | `dead_islands` | number of islands that lost all particles | 0 |
#'   | `mean_gradient` | mean gradient at the draws, in standard errors from 0 | probability of 0.0001 |
#'   | `stein` | violation of Stein's identity, in standard errors | 3 |
#'   | `width` | variance of the draws over that of a normal reference | 4 |
#'   | `ancestor_ess` | effective number of ancestors over number of draws | at least 0.12 |
#'   | `edges` | share of points beside the draws with density zero | 0.05 |
#'   | `jumps` | largest step of the log density between draws | 0.01 |
#'   | `proper` | log10 of the posterior sd; 250 if the posterior looks improper | 12 |
#'   | `rays` | rise of `log_z` by mass on rays through the draws | see below |
#'   | `mirrors` | rise of `log_z` by mass at reflections of the draws | see below |
#'   | `lines` | rise of `log_z` by mass beyond the draws along a variable | see below |
#'   | `elbo` | excess of the scout's ELBO over `log_z` | 0.05 and 3 standard errors |
#'   | `basins` | evidence, as a share, in basins that hold too few draws | 0.02 |
#'   | `estimates` | difference of SMC and bridge, in its standard errors | 4 |
#'   | `rounds` | excess of an earlier run's estimate, in standard errors | 4, beyond 0.05 |
#'   | `passes` | rise of `log_z` in the last further pass | 0.02 and 2 standard errors |
#'   | `correction` | Pareto k of the ratios of the exact integral over random effects to what was sampled, where their mean has an error above 0.01 | 0.7 |
#'
#'   What helps: for `correction`, fewer effects that depend on each other; for `proper`, proper priors; for `edges`,
#'   bounds (`lower`, `upper`) or [kernel_mala()]; for `jumps`, this kernel; for `mirrors`, angles measured from another
#'   direction; for `width`, `rays`, `lines`, `elbo`, `basins` and `dead_islands`, a wide `reference` with `scout =
#'   FALSE`; for `ancestor_ess`, `mean_gradient`, `stein` and `passes`, another parametrisation of the model; and for
#'   all except `proper` and `edges`, more particles.
#'
#'   The `shift` of `rays`, `mirrors`, `lines`, `elbo`, `basins`, `rounds` and `passes` is the amount by which `log_z`
#'   may be too low; that of `estimates` is the difference of the two estimates. If `ancestor_ess` fails, the standard
#'   errors are too small, and its shift is the distance to any higher estimate, of an earlier pass or by the other
#'   method. The other diagnostics have no shift.
#'
#'   `ancestor_ess` applies if the standard error is above 0.02. The limit of `rays`, `mirrors` and `lines`
#'   is three standard errors of the rise, the standard error of `log_z` or 0.01, whichever is largest.
#'   `mirrors` reflects variables with two bounds, except those of Stan programs. `jumps` is computed if
#'   `mean_gradient` or `stein` would fail. `edges` and `jumps` have no limit with a Metropolis-adjusted kernel; and
#'   where there are edges or jumps, `mean_gradient` and `stein` do not apply.
#'
#'   A posterior looks improper if the density does not fall off along a variable, along the direction in which the
#'   draws are widest, or along a scale together with its effects. A density that is constant until it becomes `Inf` or
#'   `NaN`, as `exp()` may make it, does not fall off; one that becomes `-Inf` does. A posterior also looks improper if
#'   draws are beyond 1e150 or within 1e-250 of zero, or if draws of a scale reach values at which the precision of its
#'   effects is lost to rounding.
#' @section Heavy tails: A generalised Pareto distribution with shape k is fitted to the tenth of the draws on either
#'   side of a variable (Zhang and Stephens, 2009). Moments exist only up to the order 1 / k. From n independent draws a
#'   mean can be estimated if k is below 1 - 1 / log10(n), and a standard deviation if k is below half of that (Vehtari
#'   et al., 2024): 0.67 and 0.33 for 1,024 draws. `fit$heavy_tails` has a row for each variable whose standard
#'   deviation cannot be estimated: `variable`, `khat` (the larger k of its two tails) and `mean_ok` (whether its mean
#'   can be estimated). Report medians and quantiles of these variables instead. The log evidence is not affected.
#'
#'   Tails are checked on the user's scale, if there are 1,000 independent draws, except for variables with two bounds.
#'   A tail that ends too early for such a distribution, such as that of a small mode, is not heavy. An empty table does
#'   not guarantee finite moments. It is NULL for a fit of `smc_run()` that has kept moments only.
#' @section Warnings: All warnings of the package have the class `autosmc_warning` and, among others, one of
#'
#'   * `autosmc_warning_unreliable`: diagnostics have failed. The warning says which, what was tried, and what may help.
#'   * `autosmc_warning_precision`: `max_islands` islands did not reach `precision` or `draws`.
#'   * `autosmc_warning_budget`: `max_evals` did not suffice for all stages; the message says which were left out.
#'   * `autosmc_warning_gradient`: the log density is too rough for its gradient to be checked (see [check_gradient()]).
#'   * `autosmc_warning_infinite`: an R function has returned `+Inf`. Such a point has weight zero.
#'   * `autosmc_warning_moments`: heavy tails (see above).
#'
#'   A warning of the target's own functions, such as `NaNs produced`, is shown once in a call.
#' @section Errors: All errors of the package have the class `autosmc_error` and one of
#'
#'   * `autosmc_error_input`: an argument is not what it should be.
#'   * `autosmc_error_budget`: `max_evals` was spent before there was an island. The element `runs` of the condition is
#'     a table of the runs so far.
#'   * `autosmc_error_target`: the target raised an error, or returned an invalid value. Fields: `run` (`"scout"`,
#'     `"adapt"` or `"final"`) and `step`.
#'   * `autosmc_error_degenerate`: no particle has a finite weight. Fields: `run`, `step`, and `trace`, the `steps` up
#'     to there.
#'   * `autosmc_error_mismatch`: the folder `checkpoint` belongs to another run. The field `differs` names the
#'     difference.
#'   * `autosmc_error_worker`: under a plan of future, a worker was lost three times with the same island (the field
#'     `records` has the finished ones) or points, or has another version of autosmc (fields `host` and `paths`).
#'   * `autosmc_error_gradient`: the gradient disagrees with differences of the log density (see
#'     [check_gradient()]). Fields: `variable`, `gradient`, `difference`, and the point `x`.
#'
#'   Particles at which the log density is `NaN` or infinite get weight zero. Where the gradient is not finite, a
#'   particle moves without it.
#' @source Zhang and Stephens (2009), *A new and efficient estimation method for the generalized Pareto distribution*;
#'   Vehtari, Simpson, Gelman, Yao and Gabry (2024), *Pareto smoothed importance sampling*.
#' @seealso `vignette("trouble")`.
#' @name diagnostics
NULL

#' The estimates of the evidence, and their errors
#'
#' [smc()] has two estimates of the log evidence from the same islands, in `fit$estimates`: a row
#' for the `method` `"smc"` and, where there is one, a row for the `"bridge"`, with `log_z`,
#' `std_error`, `conf_low` and `conf_high`. `fit$log_z` is the bridge if its standard error is below
#' three quarters of that of SMC, and SMC otherwise. If the two differ by more than four standard errors it is the
#' higher one, since an estimate is too low where a part of the target is missed.
#'
#' The errors in `fit$estimates` are Monte Carlo errors. Both estimates are too low if all islands miss a part of the
#' target. `fit$std_error` includes what [diagnostics] have found of this: it is `sqrt(sampling_error^2 + shift^2)`,
#' with the Monte Carlo error, `fit$sampling_error`, and the largest `shift` of `fit$diagnostics`. The shift is mostly 0
#' if all have passed. The exception is mass that `rays`, `mirrors` or `lines` find beyond the draws, but not with
#' enough certainty for a warning: if the rise of `log_z` is above `sampling_error` and 0.01, and its own error below
#' the rise, `shift^2` is the square of the rise minus that of its error. The interval, [compare_evidence()] and
#' [report()] use `std_error`.
#'
#' If random effects are integrated out, `fit$estimates` are of the density that is sampled. `fit$log_z` and its error
#' include the correction that leads from there to the exact evidence, or to Laplace's approximation: see
#' [as_target()], section Random effects.
#'
#' @section SMC: This estimate is the logarithm of the mean of the islands' estimates. Each of these is unbiased for any
#'   number of particles: the expectation of `exp(log_z)` is the normalising constant. The logarithm has a bias of minus
#'   half its variance. The standard error is computed by the delta method from the spread of the islands, or from the
#'   standard deviations that they predict, if that is larger. The interval is that of Student's t over islands. A
#'   single island has no standard error.
#'
#'   `fit$islands` has a row for each island: its `log_z`, `ess`, `barrier`, `n_target_evals`, `n_calls`,
#'   `seconds`, and `predicted_sd`, the standard deviation of `log_z` that it predicts from the
#'   genealogy of its particles (Lee and Whiteley, 2018). Islands of the first further pass are
#'   numbered from 65,537 on, those of the next from 131,073 on. `smc_adapt()` has no islands.
#' @section Bridge: Bridge sampling (Meng and Wong, 1996) between the islands' draws and a distribution fitted to them.
#'   The distribution is fitted to one half of the islands, and compared with the draws of the other half; then the
#'   halves are exchanged, and the estimate is the mean of the two. In the coordinates of the reference the distribution
#'   is normal, or a Student t or a mixture if the reference is one.
#'
#'   The bridge estimate is consistent, not unbiased. Its standard error is mostly much smaller than that of SMC, since
#'   it does not include the variance of the importance weights along the path from the reference. The standard error
#'   treats particles with a common ancestor, or of one island, as one draw. It is at least 0.0001, because draws of an
#'   unadjusted kernel have a small bias. With several modes, or at hard edges, no such distribution is close, and the
#'   error may be too small: therefore the bridge must have less than three quarters of the error of SMC.
#'
#'   There is a bridge estimate if `smc()` adapts with `whiten`, at least four islands have living particles, and the
#'   kernel is not biased. `smc_run()` and `smc_adapt()` have only the estimate by SMC.
#' @source Lee and Whiteley (2018), *Variance estimation in the particle filter*.
#'
#'   Meng and Wong (1996), *Simulating ratios of normalizing constants via a simple identity:
#'   a theoretical exploration*.
#' @seealso `vignette("evidence")`, [compare_evidence()], [smc_extend()].
#' @name estimates
NULL

#' Reproducible, interrupted, parallel and large runs
#'
#' How to repeat a fit exactly, to resume an interrupted call, to use several processes or threads, and to save memory.
#'
#' @section Reproducibility: The same seed gives the same fit on the same machine, except for the time it took
#'   (`seconds`), with any number of processes and threads. Another BLAS or processor changes the last bits of matrix
#'   products. Such differences grow along a run, and the result is another fit of the same quality; `fit$session`
#'   records the versions in use.
#'
#'   `smc_run()` with the schedule, reference, kernel, number of islands and seed of a fit repeats its islands and its
#'   estimate by SMC. If the fit had further passes, the islands have other random numbers.
#' @section Interrupted runs: With `checkpoint = "folder"` the scout, each run that tunes, each island and each bridge
#'   is saved to a file as soon as it is finished. To resume a call that ended by an error, an interrupt or the end of
#'   its process, repeat it with the same arguments. Finished runs are read from the folder, and the result is the same
#'   to the last bit. If `seed` is NULL, the seed in the folder is used. A call that had finished returns its fit at
#'   once.
#'
#'   A file is read only if it was made with the same settings, target and version of autosmc. Otherwise it is an error,
#'   and the file is not changed. The number of `islands` may be larger than before. Two targets are the same if their
#'   functions have the same text, if the variables that these use have the same values, and if the log density and
#'   gradient are the same at four of the particles. These are evaluated when the file is written and when it is read,
#'   and not counted in `n_target_evals`. Values that functions set by `<<-` or read from environments are not compared,
#'   so that functions may count or cache there; data of the model must not be kept there.
#'
#'   Each file has the name of its run (`scout.smc`, `adapt-0.smc`, `final-3.smc`, ...). Files contain data only:
#'   nothing in them is run as code, and the values are checked as arguments are. A damaged file is detected by a
#'   checksum; it is renamed to end in `.damaged`, with a warning, and its run is repeated. Files whose names contain
#'   `.part-` were being written when a process was killed, and are not read. Files of version 0.1.0 (`.rds`) are an
#'   error.
#'
#'   Model objects of TMB or RTMB are the same if their data, parameters and functions are the same, Stan programs if
#'   their text and data are: the object may be made again, and the program compiled again.
#'
#'   If nothing can be written, for instance on a full disk, a warning says so once, and the run goes on.
#'   Several processes may share a folder.
#' @section Parallel runs: Under a plan of the package future, such as `future::plan("multisession")`, each island is a
#'   future, unless it takes less time than the workers need to load the package. The objects of the workspace and the
#'   attached packages that the functions of the target use are sent with them. An island whose worker is lost is run
#'   again, up to three times in all. [smc_all()] and [check_evidence()] have a future for each model or data set
#'   instead. If the target is a slow function of one point, workers also evaluate some of the points of runs that tune.
#'   Results are those of a single process.
#'
#'   Within a process the compiled code uses as many threads as [parallelly::availableCores()] allows, and one thread in
#'   workers of future or parallel and in forked processes. `options(autosmc.threads = 1)` sets another number, at most
#'   256. Results do not depend on it. Targets that can be called from several threads profit most: Stan programs, the
#'   built-in targets, and those of [target_native()] with `thread_safe = TRUE`. R functions, models of RTMB and TMB,
#'   and Stan programs that start threads themselves (`reduce_sum`, `map_rect`) are called on R's main thread.
#' @section Memory: The draws of a fit take `8 * islands * n_particles * d` bytes for `d` variables. The coordinates and
#'   gradients from which the bridge and the diagnostics are computed (`fit$state`) take twice as much again. They are
#'   kept for at most 8,192 draws of each island, spread evenly. More particles than that improve the draws and the
#'   estimate by SMC, but not the bridge estimate, which more islands improve. During the call, `smc()` takes two to
#'   four times the memory of the fit. Generated quantities of Stan programs that have more than 100 elements are not in
#'   the fit; see [as_draws.smc_fit()].
#'
#'   A smaller `keep` saves memory. A number keeps so many draws of each island; `"moments"` keeps the mean and
#'   covariance of the variables (`fit$moments`, with `means`, a row for each living island) and no draws. [coef()],
#'   [vcov()] and the means, standard deviations and Monte Carlo errors of [summary()] remain those of all draws;
#'   functions that need draws, such as quantiles, become errors, and for Stan programs and variables with types so does
#'   `vcov()`.
#'
#'   `smc()` works with all draws and drops the others at the end, so that estimates and diagnostics do not depend on
#'   `keep`. [smc_extend()] and `smc_run()` drop them after each island: a very large number of islands is best added by
#'   [smc_extend()]. When islands are added, estimates and diagnostics are computed again from what was kept. SMC and
#'   the diagnostics of the islands' estimates are the same for every `keep`. With a number of draws, the bridge has a
#'   larger error, and below 256 draws in all there are no `rays`, `mirrors` and `lines`. With moments there is neither
#'   a bridge nor a diagnostic of the draws.
#' @seealso `vignette("large")`.
#' @name reproducibility
NULL
