# Help pages on topics that several functions share.

#' How smc() adapts
#'
#' [smc()] moves particles from a reference distribution to the target, through annealed densities in between. Its work
#' is to find a reference close to the target, and step sizes and temperatures for the way.
#'
#' @section Stages:
#'
#'   | stage | what it does | skipped when | recorded in |
#'   |:--|:--|:--|:--|
#'   | scout | locates the target by its gradients ([smc_scout()]) | `scout = FALSE`, no gradients, or from another fit | `fit$scout` |
#'   | race | a small run from each candidate reference | the scout found nothing | `fit$runs` |
#'   | rounds | fit a reference to the best run, tune a run from it, accept or reject it | `rounds = 0` | `fit$runs` |
#'   | islands | independent, unbiased runs with what was tuned | `smc_adapt()` | `fit$islands` |
#'   | bridge | a second estimate, from the islands' draws | see [estimates] | `fit$estimates` |
#'   | diagnostics | look for signs that the estimate is wrong | `smc_adapt()` | [`fit$diagnostics`][diagnostics] |
#'   | further passes | fit a reference to the islands' draws, then rounds and new islands | all diagnostics pass and the bridge error is below 0.01 (0.002 in the first pass with a shape), no better reference is found, or `whiten = FALSE` | `fit$runs` |
#'
#'   *Race.* The candidates are, in this order, `draws` (fitted to the draws of a Stan fit), `cover`, `shape` and `best`
#'   (from the scout), and `given` (the argument `reference`, but not the default N(0, I) where its ELBO is below that
#'   of the best basin by more than 16 log(256), so that none of 256 particles would be worth anything after one of 16
#'   steps). Each has a run of 256 particles. A run by HMC from a reference that fits chooses its temperatures by the
#'   effective sample size, of which each step keeps 80 %. Other runs have 16 steps. Where the scout has found one
#'   basin, and no `reference` is given, a run from a fitted reference that takes a single step ends the race. An
#'   estimate that misses a part of the target is too low, so a later candidate wins only if its estimate is higher by
#'   more than two standard errors. If the draws of one that lost are beyond those of the winner with 2 % of the
#'   evidence or more, a mixture of both is a candidate, too (`both`). A winner that is the given reference, or whose
#'   weight descends almost entirely from one particle, is run again with all particles and the whole schedule.
#'
#'   *Rounds.* A round is rejected if all its particles die, if its estimate falls by more than 0.5 and two standard
#'   errors, or if its barrier rises by more than 5 %. Simpler references are then tried. Rounds beyond the least number
#'   of `rounds` are made as long as the barrier falls by a fifth, the particles are wider than a normal reference, or a
#'   rejected round leaves a simpler reference to try.
#'
#'   *Further passes.* Another pass is made if another shape fits the islands' draws clearly better, if the shape of the
#'   reference was fitted to the particles of a single round, or if a diagnostic has failed and a new reference can be
#'   fitted. There are at most five; after the second, only while the estimate still rises. If no better reference is
#'   found, but a diagnostic has failed, the next pass has four times as many steps instead (at most `max_steps`). A
#'   pass that finds less evidence, or has twice the standard error without a higher estimate, is dropped, and the
#'   islands before it are kept.
#' @section From another fit: With `reference = fit`, the fit of a target with the same variables, there is neither a
#'   scout nor a race. The reference and the path of that fit, which is `fit` in the column `label`, have a small run.
#'   If its barrier is not much higher than it was there, islands follow at once; else rounds do. The islands draw from
#'   the reference anew, and so the estimate by SMC is unbiased, however far the other target is. From a near neighbour
#'   four islands take a fourth to a half of the evaluations of a fit from the beginning, with errors up to twice as
#'   large. With the same `precision` it is a tenth to a half: the less, the dearer the adaptation that is left out. If
#'   no particles arrive, or a diagnostic fails, the target is fitted from the beginning, as a message and `fit$runs`
#'   say. If variables have other bounds, or there are fewer, a distribution is fitted to the draws of the other fit, in
#'   place of its reference. If there are further variables, there is a scout, and its best normal distribution gives
#'   these, given the draws. A mode that the other target does not have may be missed: only the diagnostics look beyond
#'   the reference.
#' @section References: A round fits the first of these for which there are enough particles.
#'
#'   * `basins`: the scout's mixture of normal distributions, where it is the present reference and gives the
#'     particles a higher density than any shape.
#'   * `shape`: a transformed normal distribution, or a Student t (see the next section). No shape is fitted to
#'     particles that started from the given reference.
#'   * `normal`: a normal distribution, fitted to particles and gradients together.
#'
#'   A reference that is too narrow does more harm than one that is too wide. So fitted references
#'   are wider than what was fitted: a normal distribution has 1.5 times the variance (less above 250 variables), a
#'   shape up to that, and its parents up to 4 times, by how far the scores are from those of the fit. A target whose
#'   gradients show that it is exactly normal or Student t is its own reference, and two steps lead to it.
#' @section Shapes: `fit$maps` describes the shape of a fit in words, and `plot(fit, "maps")` shows it. Shapes are
#'   fitted on the unconstrained scale. Their parts, which `vignette("tuning")` describes, are variables that are
#'   exactly normal given others, as differences of gradients show (the row `"probe"` of `fit$runs`); variables
#'   (children) of which precision and pull, or location and scale, depend on others (parents); and skewness or tails of
#'   single variables, or of all of them together, a Student t. A part is kept only if, fitted to one half of the
#'   particles, it gives the other half a higher density. Without gradients there are no shapes. Above 250 variables
#'   only skewness and exactly normal variables are fitted; above 600 only skewness.
#' @section Kernels: If no `kernel` is given, runs from the given reference move by [kernel_klmc()],
#'   which keeps its direction on a long way. Runs from a reference that fits move by
#'   [kernel_hmc()], which needs half the steps for the same error, and so do runs at hard edges (see below) and where
#'   the draws of KLMC have a small effective sample size. Where the gradient of an R function of up to ten variables is
#'   taken by differences, runs from a fitted reference that is no mixture move by [kernel_pcn()], which asks for none.
#'
#'   The tuner cannot see paths that should have come from where no particle is. A long step of KLMC reaches such places
#'   if the density bends sharply; its estimate is then unbiased through rare large values alone, and is nearly always a
#'   few percent too low. Therefore islands of KLMC run with three quarters of the tuned step sizes (`step_fraction`),
#'   and with half of them from a reference with a shape, but not from the given one.
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
#'   `"infeasible"` when a search reached one of its bounds; NA where nothing was tuned.
#'
#'   `fit$runs` has a row for the surrogate of an integral over random effects and one for its correction (see
#'   [as_target()], section Random effects), one for the scout, one for the differences of gradients (`"probe"`), one
#'   for every run that tunes (`"adapt"`), and one for the islands of each pass together (`"final"`): `run`, `round`,
#'   `label`, `kernel`, `log_z`, `std_error`, `conf_low`, `conf_high` (SMC's in all rows), `biased`, `n_particles`,
#'   `n_steps`, `islands`, `barrier`, `n_objective_evals`, `n_target_evals` (of the islands with those of bridge and
#'   diagnostics), `n_calls` (of the user's function: by differences a gradient takes two for each variable, besides the
#'   one of the value), `n_impossible` (evaluations without a finite log density, except those of bridge and
#'   diagnostics), `seconds`, and `used`, whether a run, or the islands of a pass, took the place of the best before,
#'   and of the first runs the winner. `label` is the origin of the reference: a candidate of the race, a kind of fit
#'   (see References), `"fit"` for that of another fit, or `"longer"` for the last reference with more steps. A run that
#'   tunes is biased, and so is LMC with the detailed-balance backward kernel.
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
#' A fit compares itself with what must hold if its estimate is right. Each comparison is a diagnostic, a row of
#' `fit$diagnostics`: its `name`, `value`, `limit`, whether it `passed`, the `shift`, and, in `says`, what is wrong if
#' it has not passed (NA if it has). A fit of which a diagnostic has failed warns, and says so when it is printed.
#' `shift` is the difference of `log_z` that a failed diagnostic has seen (0 where it sees none); `rays`, `mirrors` and
#' `lines` may have one also where they pass, see [estimates].
#'
#' That all diagnostics pass does not prove an estimate right: a part of the target that neither the scout nor the
#' islands have come near shows in none of them. Diagnostics that do not apply are left out.
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
#'   `lower` and `upper`, or [kernel_mala()], for `jumps` this kernel; for `mirrors`, angles measured from another
#'   direction. For `width`, `rays`, `lines`, `elbo`, `basins` and `dead_islands`, a wide `reference` with `scout =
#'   FALSE`; for `ancestor_ess`, `mean_gradient`, `stein` and `passes`, another form of the model. For all except
#'   `proper` and `edges`, more particles.
#'
#'   Of the `shift` of a failed diagnostic, `rays`, `mirrors`, `lines`, `elbo`, `basins`, `rounds` and `passes` say by
#'   how much `log_z` may be too low; `estimates` has the difference of the two. Where `ancestor_ess` fails the errors
#'   themselves are too small, and any higher estimate, of an earlier pass or by the other method, counts. The others
#'   see none.
#'
#'   `ancestor_ess` applies if the standard error is above 0.02. The limit of `rays`, `mirrors` and `lines`
#'   is three standard errors of the rise, the standard error of `log_z` or 0.01, whichever is largest.
#'   `mirrors` reflects variables with two bounds, those of Stan programs excepted. Jumps are looked for where
#'   `mean_gradient` or `stein` would fail. `edges` and `jumps` have no limit with a Metropolis-adjusted kernel; and
#'   where there are edges or jumps, `mean_gradient` and `stein` do not apply.
#'
#'   A posterior looks improper if the density does not fall off along a variable, along the direction in which the draws
#'   are widest, or along a scale together with its effects. One that is constant until it is `Inf` or `NaN`, as `exp()`
#'   makes it, does not fall off; one that is `-Inf` from there on has an end. It also looks improper if draws are beyond 1e150 or within 1e-250 of zero; or if draws of a
#'   scale reach values at which the precision of its effects is lost to rounding.
#' @section Heavy tails: Moments of order below 1 / k exist if a tail has the shape k, that of a generalised Pareto
#'   distribution. The shape is fitted to a tenth of the draws on either side (Zhang and Stephens, 2009). From n
#'   independent draws a mean can be estimated if k is below 1 - 1 / log10(n), and a standard deviation if k is below
#'   half of that (Vehtari et al., 2024): 0.67 and 0.33 for 1,024 draws. `fit$heavy_tails` has a row for each variable
#'   beyond this limit: `variable`, `khat` (the larger k of its two tails) and `mean_ok` (whether its mean can be
#'   estimated). Report medians and quantiles of these variables instead. The log evidence is not affected.
#'
#'   Tails are judged on the user's scale, from 1,000 independent draws on, and not of variables with two bounds. A tail
#'   that ends too early for such a distribution, as that of a small mode does, is not heavy. An empty table does not
#'   guarantee finite moments. It is NULL for a fit of `smc_run()` that has kept moments only.
#' @section Warnings: All warnings of the package have the class `autosmc_warning` and, among others, one of
#'
#'   * `autosmc_warning_unreliable`: diagnostics have failed. The warning says which, what was tried, and what may help.
#'   * `autosmc_warning_precision`: `max_islands` did not reach `precision` or `draws`.
#'   * `autosmc_warning_budget`: `max_evals` has cut the fit short; the message says what was left out.
#'   * `autosmc_warning_gradient`: the log density is too rough for its gradient to be checked (see [check_gradient()]).
#'   * `autosmc_warning_infinite`: an R function has returned `+Inf`. Such a point counts as impossible.
#'   * `autosmc_warning_moments`: heavy tails (see above).
#'
#'   A warning of the target's own functions, such as `NaNs produced`, is shown once in a call.
#' @section Errors: All errors of the package have the class `autosmc_error` and one of
#'
#'   * `autosmc_error_input`: an argument is not what it should be.
#'   * `autosmc_error_budget`: `max_evals` was spent before there was an island. The element `runs` of the condition is
#'     a table of the runs so far.
#'   * `autosmc_error_target`: the target raised an error, or returned something
#'     that it should not. Fields: `run` (`"scout"`, `"adapt"` or `"final"`) and `step`.
#'   * `autosmc_error_degenerate`: no particle is left with a finite weight. Fields: `run`, `step`,
#'     and `trace`, the `steps` up to there.
#'   * `autosmc_error_mismatch`: the folder `checkpoint` has another run. The field `differs` names what is different.
#'   * `autosmc_error_worker`: under a plan of future, a worker was lost three times with the same island (the field
#'     `records` has what came back) or the same points, or has another version of autosmc (fields `host` and `paths`).
#'   * `autosmc_error_gradient`: the gradient disagrees with differences of the log density (see
#'     [check_gradient()]). Fields: `variable`, `gradient`, `difference`, and the point `x`.
#'
#'   Particles at which the log density is `NaN` or infinite get weight zero. At a gradient that is
#'   not finite, a particle moves without one.
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
#' The errors in `fit$estimates` are those of chance. Both estimates are too low if all islands miss a part of the
#' target. So `fit$std_error` counts what [diagnostics] have seen of this: it is `sqrt(sampling_error^2 + shift^2)`,
#' with the error of chance, `fit$sampling_error`, and the largest `shift` of `fit$diagnostics`. Mostly this is 0 where all
#' have passed. But mass that `rays`, `mirrors` or `lines` find beyond the draws counts before it is sure enough for a
#' warning, where the rise is above `sampling_error` and 0.01, and its own error below: then `shift^2` is the square of
#' the rise, less that of its error. The interval, [compare_evidence()] and [report()] follow it.
#'
#' Where random effects are integrated out, `fit$estimates` are of the density that is sampled, and `fit$log_z` and its
#' error count what leads from there to the exact evidence, or to that by Laplace's approximation: see [as_target()],
#' section Random effects.
#'
#' @section SMC: This estimate is the logarithm of the mean of the islands' estimates. Each of these is unbiased for any
#'   number of particles: the mean of `exp(log_z)` over all possible runs is the normalising constant. The logarithm
#'   itself is low by half its variance. The standard error is by the delta method from the spread of the islands, or
#'   from the standard deviations that they predict by themselves if that is larger. The interval is by Student's t over
#'   islands. A single island has no standard error.
#'
#'   `fit$islands` has a row for each island: its `log_z`, `ess`, `barrier`, `n_target_evals`, `n_calls`,
#'   `seconds`, and `predicted_sd`, the standard deviation of `log_z` that it predicts from the
#'   genealogy of its particles (Lee and Whiteley, 2018). Islands of the first further pass are
#'   numbered from 65,537 on, those of the next from 131,073 on. `smc_adapt()` has no islands.
#' @section Bridge: This estimate compares the islands' draws with draws of a distribution fitted to them (Meng and
#'   Wong, 1996). The distribution fitted to one half of the islands is bridged to the draws of the other half, the
#'   halves change places, and the mean of the two is the estimate. In the coordinates of the reference the distribution
#'   is normal, or a Student t or a mixture if the reference is one.
#'
#'   The bridge is consistent, not unbiased. Its standard error is mostly much smaller, since it does not carry the
#'   noise of the way from the reference. It counts particles with a common ancestor, or of one island, as one draw. It
#'   is never below 0.0001, because draws of an unadjusted kernel have a small bias. With several modes, or at hard
#'   edges, no such distribution is close, and the error may be too small, hence the margin of three quarters.
#'
#'   There is a bridge if `smc()` adapts with `whiten`, at least four islands live, and the kernel is not
#'   biased. `smc_run()` and `smc_adapt()` have SMC alone.
#' @source Lee and Whiteley (2018), *Variance estimation in the particle filter*.
#'
#'   Meng and Wong (1996), *Simulating ratios of normalizing constants via a simple identity:
#'   a theoretical exploration*.
#' @seealso `vignette("evidence")`, [compare_evidence()], [smc_extend()].
#' @name estimates
NULL

#' Reproducible, interrupted, parallel and large runs
#'
#' How to get the same fit again, to resume a call, to use several processes or threads, and to save memory.
#'
#' @section Reproducibility: The same seed gives the same fit on the same machine, except for
#'   the time it took (`seconds`), with any number of processes and threads. Another BLAS or
#'   processor changes the last bits of matrix products. The difference grows along a run, and the result is
#'   another fit of the same quality; `fit$session` records the versions in use.
#'
#'   `smc_run()` with the schedule, reference, kernel, number of islands and seed of a fit repeats its islands and its
#'   estimate by SMC. After further passes the islands are others of the same kind.
#' @section Interrupted runs: With `checkpoint = "folder"` the scout, each run that tunes, each
#'   island and each bridge is saved to a file as soon as it is finished. To resume a call
#'   that was cut off, by an error, an interrupt or the end of its process, make it again with
#'   the same arguments. What is in the folder is read, and the result is the same to the last bit. If
#'   `seed` is NULL, the seed in the folder is used. A call that had finished returns its fit at once.
#'
#'   A file is read only if it was made with the same settings, target and version of autosmc. Otherwise it is an error,
#'   and the file is left alone. More `islands` than before may be asked for. The target is the same if its functions
#'   have the same text, and the variables that they use have the same values, and if its log density and gradient are
#'   the same at four of the particles. These are evaluated when the file is written and when it is read, and not
#'   counted in `n_target_evals`. What the functions set by `<<-` or find in environments is not compared, so that they
#'   may count or remember there: data that make another model do not belong there.
#'
#'   Each file has the name of its run (`scout.smc`, `adapt-0.smc`, `final-3.smc`, ...). Files hold data only: nothing
#'   in them is run as code, and the values are checked as arguments are. A damaged file, as a checksum tells, is
#'   renamed to end in `.damaged`, with a warning, and its run is made again. What was being written when a process was
#'   killed has a name with `.part-` in it, and is not read. Files of version 0.1.0 (`.rds`) are an error.
#'
#'   A model object of TMB or RTMB is the same if its data, parameters and functions are, a Stan program if its text and
#'   its data are; the object may be made anew, and the program compiled anew.
#'
#'   If nothing can be written, for instance on a full disk, a warning says so once, and the run goes on.
#'   Several processes may share a folder.
#' @section Parallel runs: Under a plan of the package future, such as `future::plan("multisession")`, each island is a
#'   future, unless it would be finished here before workers have loaded the package. What the target's functions use of
#'   the workspace and the attached packages is sent with them. An island whose worker is lost is run again, up to three
#'   times in all. [smc_all()] and [check_evidence()] have a future for each model or data set instead. If the target is
#'   a function of one point and slow enough for it to pay, workers also evaluate a share of the points of runs that
#'   tune. Results are those of a single process.
#'
#'   Within a process the compiled code works on as many threads as there are cores that it may use, as
#'   [parallelly::availableCores()] has it; on one in workers of future or parallel, and where R was forked.
#'   `options(autosmc.threads = 1)` sets another number, at most 256. Results are those of one thread. Targets that may
#'   be called from several threads gain most: Stan programs, the built-in targets, and those of [target_native()] with
#'   `thread_safe = TRUE`. R functions, models of RTMB and TMB, and Stan programs that start threads themselves
#'   (`reduce_sum`, `map_rect`) are called on R's own thread.
#' @section Memory: The draws of a fit take `8 * islands * n_particles * d` bytes for `d` variables. The coordinates and
#'   gradients from which the bridge and the diagnostics are computed (`fit$state`) take twice as much again, for at
#'   most 8,192 draws of each island; of larger islands they have so many, spread evenly. More particles than that
#'   improve the draws and the estimate by SMC, but not the bridge, which gains by more islands. While it works, `smc()`
#'   takes two to four times what the fit does. Generated quantities of Stan programs that have more than 100 elements
#'   are not in the fit; see [as_draws.smc_fit()].
#'
#'   A smaller `keep` saves memory. A number keeps so many draws of each island; `"moments"` keeps the mean and
#'   covariance of the variables (`fit$moments`, with `means`, a row for each living island) and no draws. [coef()],
#'   [vcov()] and the means, standard deviations and Monte Carlo errors of [summary()] remain those of all draws;
#'   quantiles and whatever needs draws become errors, and for Stan programs and variables with types `vcov()`.
#'
#'   `smc()` works with all draws and drops the rest at the end, so that estimates and diagnostics do not depend on
#'   `keep`. [smc_extend()] and `smc_run()` drop it after each island: a very large number of islands is best added by
#'   [smc_extend()]. When islands are added, estimates and diagnostics are computed again from what was kept. SMC and
#'   the diagnostics of the islands' estimates are the same for every `keep`. With a number of draws, the bridge has a
#'   larger error, and below 256 draws in all there are no `rays`, `mirrors` and `lines`. With moments there is neither
#'   a bridge nor a diagnostic of the draws.
#' @seealso `vignette("large")`.
#' @name reproducibility
NULL
