# The three verbs.

#' Log evidence and posterior draws with self-tuning SMC
#'
#' Give `smc()` a model, and it returns the log evidence of the model with a standard
#' error, and draws from its posterior. There are four arguments to know: `target`, the
#' model; `seed`, for the same result again; `precision`, for a smaller standard error; and
#' `n_particles`, to be raised when a fit warns. The rest have defaults to leave alone; the
#' section Arguments says when to change one.
#'
#' `smc()` looks for the target, tunes a sampler on it, and then runs the tuned sampler
#' several times with fresh randomness. These runs, the islands, give two estimates of the
#' evidence: that of SMC, the mean of the islands' own estimates, which are unbiased; and
#' mostly a second one by bridge sampling, from the islands' draws. Where the bridge has
#' clearly the smaller standard error it is `log_z`, else that of SMC is (see the section
#' Estimates). `smc_adapt()` is the first half, which tunes; `smc_run()` is the second, which
#' runs with a given schedule.
#'
#' @param target what to sample: a target, as [target_function()], [target_posterior()],
#'   [target_rtmb()], [target_stan()], [target_native()] or one of the built-in constructors
#'   such as [target_sonar()] makes it; or a function or a model object of another package,
#'   which [as_target()] turns into one.
#' @param ... for a function, the other arguments of [target_function()]: at
#'   least `dim`.
#' @param n_particles number of particles (whole number of at least 2).
#' @param n_steps number of steps from the reference to the target (positive
#'   integer).
#' @param rounds how often adaptation is repeated: two whole numbers, the least and the
#'   most, or one, for exactly so many. Rounds beyond the least are made as long as they
#'   help (see the section on rounds). Each spreads the temperatures anew, by
#'   [schedule_barrier()], and with `whiten` brings the reference closer to the target. 0
#'   for the paper's method.
#' @param whiten whether each round's reference is fitted to the best run before (TRUE or
#'   FALSE). Kernels then move in coordinates in which the target is close to standard
#'   normal.
#' @param scout whether the gradients of the target are used to find it before any particle
#'   moves, as [smc_scout()] does (TRUE or FALSE). What it finds competes with `reference`.
#'   Nothing is done for a kernel without gradients. Without the scout the gradient is not checked,
#'   which [check_gradient()] does: a wrong one makes the error of `log_z` larger, and mostly the
#'   diagnostic `stein` fails.
#' @param max_steps at most so many steps in the rounds after the first (whole number
#'   of at least 2). The barrier of LMC grows with the number of steps, and without a
#'   limit would double it in every round.
#' @param step_fraction the fraction of the tuned step sizes with which the islands run
#'   (number in (0, 1]), for KLMC from a reference other than the one that was given. The
#'   other kernels take the tuned step sizes as they are. See the section on long steps. The
#'   refreshment rates of such islands are not the tuner's either: see [kernel_klmc()].
#' @param islands how many independent unbiased runs are made with the schedule
#'   found (positive integer). With one there is no standard error; from four on there is
#'   the bridge estimate too.
#' @param precision NULL; or a standard error of `log_z` (positive number) for which
#'   islands are added, up to `max_islands` (positive integer).
#' @param max_islands see `precision`.
#' @param max_evals the most evaluations of the target that `smc()` may take (number), the
#'   scout, all rounds, islands and the bridge included. What is left after the first round
#'   is kept for the islands: rounds and further passes that would use it up are not made, and
#'   where it is less than the islands asked for take, there are fewer. It is an error if
#'   not even one can be run: before the target is asked for anything, where no fit takes as few.
#' @param kernel how particles move: [kernel_klmc()], [kernel_lmc()], [kernel_mala()] or
#'   [kernel_rwmh()]; or by name, with the options' defaults, `"klmc"`, `"lmc"`, `"mala"` or
#'   `"rwmh"`. NULL in `smc()` and `smc_adapt()` is KLMC from the given reference and in more than 40
#'   variables, and else MALA (see the section on rounds). When
#'   step sizes are given in the kernel there is nothing to tune, and `smc()` makes the final
#'   run only. For `smc_run()`, whose step sizes come from the
#'   schedule, the default is the kernel that the schedule's column `kernel` names, with its
#'   other options by their defaults; without this column, KLMC when the schedule has
#'   refreshment rates and LMC when not.
#' @param schedule for `smc()` and `smc_adapt()`, the temperatures of the first run:
#'   a numeric vector that rises from 0 to 1, such as [schedule_power()] makes; or
#'   [schedule_adaptive()]. For
#'   `smc_run()`, a data frame with a row a step and the columns `lambda`,
#'   `step_size` and, for KLMC, `refresh_rate`, such as `fit$schedule`; a column
#'   `kernel` (`"klmc"`, `"lmc"`, `"mala"` or `"rwmh"`) is optional.
#' @param reference where the particles start: [reference_gaussian()], or any
#'   other distribution with [reference_function()]. Or `"prior"`, for a target that was given its `prior`. Or draws of the posterior, to which a distribution is then fitted:
#'   a matrix or a data frame with a column for each variable, of any program; draws of the packages posterior, coda or
#'   rstan; a list of chains, as NIMBLE has it; another fit of `smc()`; or `"draws"`, for a fit of Stan that
#'   has draws (see [as_target.stanfit]). Such draws need not be quite those of the posterior: they are used for nothing else.
#' @param tuner how the kernel is tuned: [tuner_kl()].
#' @param resampling resampling scheme: `"ssp"` (Srinivasan sampling process),
#'   `"systematic"`, `"stratified"`, `"residual"` or `"multinomial"`.
#' @param ess_threshold resample when the effective sample size falls below this
#'   fraction of `n_particles` (number from 0 to 1).
#' @param keep what is kept of each island: all its `"draws"`; a number of draws (positive
#'   integer), which weigh the same; or only the `"moments"` of the variables, their means and
#'   covariances. See the section Memory.
#' @param seed a whole number from 0 to 2^32 - 1 that fixes all randomness; NULL
#'   to draw one from R's generator (one draw), so that [set.seed()] governs.
#' @param checkpoint NULL, or the path of a folder (string) in which each finished run is
#'   kept, and from which the next call of the same takes what is there. See the section
#'   Interrupted runs.
#' @param progress whether a call that takes more than two seconds shows a line of
#'   progress (TRUE or FALSE): the round or island under way, its step and
#'   temperature, the effective sample size and `log_z` so far, and the time left.
#'   Of islands that run in other processes it says how many are done.
#'
#' @section No variables: A target of dimension 0, as a Stan program without parameters is, has for its evidence the one value
#'   of its density. `smc()` returns it as a fit with the standard error 0 and no runs, to be compared with others.
#' @return An object of class `smc_fit`, a list with
#'
#' * `log_z`: the estimated log normalising constant; `std_error`, its standard error;
#'   `conf_low` and `conf_high`, a 95 % interval. They are a row of `estimates`:
#'   the bridge, where its standard error is below three quarters of that of SMC, else SMC.
#'   The last three are NA for a single island.
#' * `estimates`: a data frame with a row for the `method` `"smc"` and, where there is one,
#'   a row for the `"bridge"`: `log_z`, `std_error`, `conf_low` and `conf_high`. See the
#'   section Estimates. `smc_run()` and `smc_adapt()` give `"smc"` alone.
#' * `particles`: numeric matrix, a row a draw, the columns named; all islands
#'   together. `log_weights`: their log weights, each island in proportion to its
#'   estimate (numeric vector; the weights sum to one). A draw whose weight is zero may be
#'   a copy of one with weight. `island`: the island of each draw.
#' * `moments`: NULL; or with `keep = "moments"`, in place of particles, a list with the `mean`
#'   and the `covariance` of the variables, and `means`, a matrix with a row for each living
#'   island.
#' * `schedule`: a data frame to give to `smc_run()`, a row a step, with `lambda`,
#'   `step_size`, `refresh_rate` (NA where it does not apply) and `kernel`, its name.
#'   `reference`: what it starts from, to be given with it.
#' * `steps`: a data frame with a row a run and step: `run` (`"adapt"` or
#'   `"final"`), `round` and `island` (one of them NA), `step`, `lambda`,
#'   `step_size`, `refresh_rate`, `acceptance` (the mean, of Metropolis-adjusted
#'   kernels), `ess`, `lcb` (the local communication barrier of Syed et al., 2024:
#'   how hard the step was), `length` (how far it led, as in [schedule_barrier()]), `barrier`
#'   (the cumulative sum of `lcb`), `resampled`, `log_z` (up
#'   to that step), `n_objective_evals`, `n_target_evals` (the first step's has the
#'   evaluations at the start), and `tuner_status`: `"converged"`, or `"at_limit"`,
#'   `"exhausted"` or `"infeasible"` when a search reached one of its bounds, and
#'   NA where nothing was tuned.
#' * `runs`: a data frame with a row for the `"scout"`, where differences of gradients were taken one
#'   for these, the `"probe"`, one for every run of `"adapt"`, and one for the `"final"`
#'   islands together: `run`, `round`, `label`, `kernel`, `log_z`,
#'   `std_error`, `conf_low`, `conf_high`, `biased`, `n_particles`, `n_steps`, `islands`,
#'   `barrier` (the global one; the mean over islands), `n_objective_evals`,
#'   `n_target_evals`, `n_impossible` (how many of them, but for those of the bridge and the
#'   diagnostics, had no finite log density, such as
#'   points that a Stan program rejects), `seconds` (of the run itself), and `used`: FALSE for a run whose
#'   reference was rejected.
#'   A run that tunes is biased, and so is LMC with the detailed-balance backward kernel.
#'   `log_z` and the three after it are SMC's in all rows; `n_target_evals` of the `"final"`
#'   row has the evaluations of the bridge and of the diagnostics `edges`, `proper`, `rays`, `mirrors` and
#'   `lines` too.
#'   `label` says where the reference comes from: `"best"` and `"cover"` from the scout,
#'   `"given"` from the user, `"draws"` from the draws of a fit, `"location"`, `"normal"`,
#'   `"shape"` (in the race from the scout) and `"basins"` from a fit, and `"longer"` from the pass before, with more steps.
#'   `kernel` is the name of the kernel. Both are NA for the scout and the probe.
#' * `islands`: a data frame with a row an island: its `log_z`, `ess`, `barrier`,
#'   `n_target_evals`, `seconds`, and `predicted_sd`, the standard deviation of `log_z`
#'   that it predicts by itself, from how its particles descend from those that it began
#'   with (Lee and Whiteley, 2018), among others. Those of the first further pass are
#'   numbered from 65,537 on, and each pass begins 65,536 later. NULL for `smc_adapt()`.
#' * `diagnostics`: a data frame with a row a diagnostic: `name`, `value`, `limit`,
#'   `passed`, and `says`, what is wrong where it has not passed, NA where it has. See the section on
#'   warnings. NULL for `smc_adapt()`.
#' * `improper`: the names of parameters with an improper prior, so that `log_z` is no evidence (character vector, mostly
#'   empty). They are known of Stan programs alone (see [target_stan()] and [as_target.stanfit]). A coefficient of brms has
#'   the covariate as the name of its element.
#' * `heavy_tails`: a data frame with a row for each variable whose tails are so heavy that its standard
#'   deviation cannot be estimated from the draws: `variable`, `khat`, the shape of the heavier tail, and `mean_ok`,
#'   whether the mean can be. See the section on warnings. NULL for a fit of `smc_run()` that has kept moments only.
#' * `scout`: what [smc_scout()] returns; NULL where there was none.
#' * `maps`: what the fitted reference says of the shape of the target, a sentence each
#'   (character vector), such as `"scale of x1, x2 depends on tau"`, on the unconstrained scale; NULL
#'   where it is normal. `plot(fit, "maps")` shows it.
#' * `target`, `kernel`, `seed`, `rounds`, `whiten` and all other settings.
#' * `state`: what [smc_extend()] goes on from, with the coordinates and gradients of
#'   draws (see the section Memory). Without it (`fit$state <- NULL`) a fit is smaller, down to a
#'   third, and cannot be extended, nor shown by `plot(fit, "maps")`.
#' * `call`, as it was made, for [update()]; `session`, a list with the versions of
#'   autosmc and R, the platform, and the BLAS and LAPACK in use; and `seconds`, the time that
#'   the call took, with those that added islands.
#'
#' @section Arguments: In the order in which it makes sense to change them:
#'
#'   | | change this when |
#'   |:--|:--|
#'   | **what most users need** | |
#'   | `target`, `...` | always: it is your model |
#'   | `seed` | the same result is wanted again, without `set.seed()` |
#'   | `precision`, `max_islands` | the standard error is too large |
#'   | `max_evals` | the target is dear |
#'   | `n_particles` | a fit warns, or there may be several modes: 4096, say |
#'   | **where particles start** | |
#'   | `reference` | you know where the target is, or that it has far-off modes: make it wide |
#'   | **how long runs are** | |
#'   | `islands` | you have more processes (under a plan of future) than eight |
#'   | `n_steps` | the given reference is far from the target, and the scout is of no use |
#'   | `max_steps` | particles are lost in many dimensions |
#'   | **how particles move** | |
#'   | `kernel` | there are no gradients (`"rwmh"`), or edges that are no bounds (`"mala"`) |
#'   | `step_fraction` | halved steps raise the estimate (see Long steps) |
#'   | `resampling`, `ess_threshold` | never, but to compare methods |
#'   | **how it adapts** | |
#'   | `scout`, `rounds`, `whiten` | to compare with simpler methods, or to save evaluations |
#'   | `schedule`, `tuner` | to try other temperatures or another search |
#'   | **the session** | |
#'   | `progress` | the line of progress is in the way |
#'   | `keep` | a fit takes too much memory |
#' @section Rounds: `smc()` goes through these stages:
#'
#'   | stage | what it does | when it is left out | where |
#'   |:--|:--|:--|:--|
#'   | scout | looks for the target by its gradients | `scout = FALSE`, or RWMH | `fit$scout` |
#'   | race | one small run from each candidate: `draws`, `cover`, `shape`, `best`, `given` | the scout found nothing | `fit$runs` |
#'   | rounds | fit a reference to the best run, tune a run from it, keep it or reject it | `rounds = 0` | `fit$runs` |
#'   | islands | independent, unbiased runs with what was tuned | `smc_adapt()` | `fit$islands` |
#'   | bridge | a second estimate, from the islands' draws | `smc_run()`, `whiten = FALSE`, fewer than four islands | `fit$estimates` |
#'   | diagnostics | look for signs that the estimate is wrong | `smc_adapt()` | `fit$diagnostics` |
#'   | further passes | fit a reference to the islands' draws, then rounds and new islands | nothing calls for it, or `whiten = FALSE` | `fit$runs` |
#'
#'   *Race.* The runs have 256 particles. Those by MALA, of a reference that fits, go on at each step to
#'   the temperature that leaves 80 % of the effective sample size: from the target itself that is one
#'   step. Others have 16 steps (32 from `cover`, which spans several
#'   basins, or a long ridge: a mixture of normal distributions and of one that covers them all). `shape` is
#'   there where gradients at draws of the scout's best normal distribution tell that most variables are
#'   normal given the others, exactly or nearly (see Fits). What an
#'   estimate misses lowers it, so a candidate later in the order wins where its estimate is higher by more than two errors. Where the given reference wins, it is
#'   run again with all particles and along the whole schedule. So is a winner nearly all of
#'   whose weight descends from a single particle.
#'
#'   *Fits.* A round fits the first of these that it can and may fit.
#'
#'   * `basins`: the mixture of `cover` again, where it is the reference and the particles are
#'     likelier so than in any other shape.
#'   * `shape`: a distribution that makes the particles likelier than a normal one does.
#'     Location and log scale of some variables may depend on others, the conditioning
#'     variables (funnels, curved targets), the log scale as a straight line, and the location as a parabola, or as a
#'     curve that is straight but for up to eight knees; or they may do so on one side of a variable
#'     only, as those of a hierarchy that is written as it is, and in the non-centred form of one
#'     the products of such variables with the scale. Variables may be normal given some others, with
#'     a precision that depends on these, as effects of groups are given scales and correlations:
#'     differences of gradients at some points, the row `"probe"` of `fit$runs`, tell which these are,
#'     and find the precision. Then only the distribution of the others is fitted; of these again some may be
#'     normal given the rest, as in a chain in which each variable is normal given the one before. Effects of which the
#'     data are counts or proportions are nearly normal given their scales: these are given the precision
#'     at the mean of the particles, for effects that are not centred in the coordinates of their
#'     products with scales and correlations. Where the precision depends on these in another way, as that of
#'     a Gaussian process on its length, the means and the factor of the nearest normal distributions are
#'     polynomials of them, fitted near the particles. Polynomials may follow a precision that is not near enough
#'     by itself: far from the particles they are constant, and it goes on. Neither is used where the density falls
#'     off just beyond the particles. Where variables are nearly normal given up to six others, some draws of
#'     the former tell the marginal density of these others at any place (as in nested approximations; Rue, Martino and
#'     Chopin, 2009): so it is asked for around the particles, and as far as it goes, and the reference is fitted to
#'     these places, whether or not particles have been there. What is nearly normal may be skew, as its
#'     gradients tell, and any other variable skew or with heavy tails, by the sinh-arcsinh transformation. Where no conditioning variable is found,
#'     the reference may be a Student t instead; where gradients show that the target is one, or
#'     normal, this is found exactly. Necks are found by the gradients: where a
#'     variable is normal with mean zero given the others, `sqrt(abs(z / g))` of its value
#'     `z` and the gradient `g` is its scale at that very point. Kernels without gradients
#'     have `log(abs(z))` alone, which is noisy. Such a fit is kept only where, made again
#'     from one half of the particles, it makes the other half likelier. In more than 250 variables
#'     only what differences of gradients tell is fitted, or else the skew of each coordinate; in more than 600
#'     skew alone: a hierarchy of so many is low, and warned of.
#'   * `normal`: a normal distribution from particles and gradients together: as wide as the gradients
#'     say, unless the particles are wider or narrower by more than chance.
#'   * `location`: the last reference, moved to the mean.
#'
#'   Fitted references have 1.5 times the variance (less above 250 variables, where it costs more; and
#'   of variables that are nearly normal given others, or of hundreds that are skew, as their gradients tell), and
#'   their conditioning variables 4 times: a reference that is too narrow does more harm than one that is
#'   too wide. No shape is fitted to particles that started from the given reference. A normal or Student t
#'   distribution that the target is, by its gradients, is taken as it is, and two steps lead from it to the target.
#'
#'   *Verdict.* A round is rejected when all its particles die, when its estimate falls by
#'   more than 0.5 and two errors, or when its barrier rises by more than 5 %. Then simpler
#'   fits remain. Rounds go on, up to the most, as long as the barrier falls by a fifth, the
#'   particles are wider than a normal reference, or a rejected fit leaves a simpler one. After
#'   one from the target itself there is no other.
#'
#'   *Kernels.* Where no `kernel` is given, runs from the given reference move by [kernel_klmc()], which
#'   keeps its direction on a long way. Those from a reference that fits move by [kernel_mala()]. Its
#'   weights depend on the temperatures alone, so that half the steps do for the same error, and it
#'   rejects a step that is too long. In more than 40 variables its steps are short, and KLMC is kept,
#'   but for four cases. From a mixture one length of steps is too long for the narrow basins, where KLMC
#'   loses its particles; from the target itself MALA is exact; at edges that are no bounds (the
#'   diagnostic `edges`) KLMC is biased; and where its draws are worth little it has hardly moved them.
#'
#'   *Further passes.* One is made where another shape fits the islands' draws clearly
#'   better, where the reference has a shape and the first pass is over (particles of a
#'   single round have shown it only roughly), or where a diagnostic has failed and a
#'   reference can be fitted; none where the bridge has an error below 0.01 and all
#'   diagnostics have passed. At most five are made; after the second only while the
#'   estimate still rises (the diagnostic `passes`). Where nothing better can be fitted, or
#'   what was fitted is rejected, but less than 15 % of the draws are independent and the error is
#'   above 0.02, the next pass has the same reference and four times as many steps, at most
#'   `max_steps`, of MALA where no `kernel` is given; and so have those after it as long as the diagnostic
#'   `worth` fails. A proposal whose first run finds less evidence is rejected, and the islands stay; so
#'   they do where the next ones have twice the error, and no higher estimate.
#' @section Estimates: The estimate of SMC is the logarithm of the mean of the islands'
#'   estimates. Each of these is unbiased: the mean of `exp(log_z)` over all runs that might
#'   have been made is the normalising constant, for any number of particles. (Its logarithm
#'   is low by half its variance.) The standard error is by the delta method from the spread
#'   of the islands, or from what they predict by themselves (`predicted_sd`) where that is
#'   more; the interval is by Student's t over islands.
#'
#'   The bridge is an estimate from the islands' draws and from draws of a distribution that
#'   is fitted to them (Meng and Wong, 1996). The islands are halved: the distribution fitted
#'   to one half is bridged to the draws of the other, then the halves change places, and
#'   the mean of the two is the estimate. This is done in the coordinates of the reference,
#'   where the distribution is normal, or a Student t or a mixture where the reference is one.
#'   The bridge is not unbiased. It is consistent: right in the limit of many particles, where these
#'   represent the target. Its standard error is mostly much smaller, since it does not
#'   carry the noise of the way from the reference. The error is that of its two samples,
#'   where particles with a common ancestor, or of one island, count as one draw. It is never
#'   less than 0.0001, since the draws of an unadjusted kernel are off by a little.
#'
#'   `smc()` makes the bridge where it adapts with `whiten`, where at least four islands
#'   live, and where the kernel is not biased. Both estimates fall short where
#'   all islands have missed a part of the target. With several modes, or at hard edges, no
#'   normal distribution is close, and the standard error of the bridge may be too small: so
#'   it is reported only where it is below three quarters of that of SMC. Where the two
#'   contradict each other the diagnostic `estimates` fails.
#' @section Warnings: All warnings of the package have the class `autosmc_warning`. One of class
#'   `autosmc_warning_unreliable` says which diagnostics
#'   have failed, what was tried, and what may help; a fit says so when it is printed. All are in
#'   `fit$diagnostics`:
#'
#'   | name | what it compares | limit | what to do |
#'   |:--|:--|:--|:--|
#'   | `scatter` | spread of the islands' `log_z` with what they predict by themselves | 1.8; more below ten islands | more particles |
#'   | `largest_share` | largest island with the sum of all (from four islands on) | 0.5 | more particles |
#'   | `dead_islands` | islands that lost all particles | none | more particles, a wide reference with `scout = FALSE` |
#'   | `mean_gradient` | mean gradient at the draws with zero, in standard errors | chance of 0.0001 | more particles, another form of the model |
#'   | `stein` | covariance of draws and gradients with what it must be, in standard errors | 3 | more particles, another form of the model |
#'   | `width` | variance of the draws with that of the reference | 4 | more particles, a wide reference with `scout = FALSE` |
#'   | `worth` | share of the draws that are independent, by their ancestors (where the error is above 0.02) | 0.12 | more particles, another form of the model |
#'   | `edges` | share of points beside the draws where the density is zero | 0.05 | `lower` and `upper`, or `kernel_mala()` |
#'   | `proper` | decimal logarithm of the width that the scout found; 250, where draws are beyond 1e150 or within 1e-250 of 0, where the density never falls off along a variable, or along a scale with its effects, and where draws of such a scale go to where the precision of the effects is rounding | 12 | a prior that is proper |
#'   | `rays` | rise of `log_z` by what rays through the draws find further out, or in | 3 errors above 0.01, or above the error of `log_z` | more particles, a wide reference with `scout = FALSE` |
#'   | `mirrors` | rise of `log_z`, at the least, by draws whose variables with two bounds (not those of Stan) are mirrored between these | 3 errors above 0.01, or above the error of `log_z` | angles measured from another direction |
#'   | `lines` | rise of `log_z` by what lines along a variable, or along one given which others are normal, find beyond the draws | 3 errors above 0.01, or above the error of `log_z` | more particles, a wide reference with `scout = FALSE` |
#'   | `bound` | `log_z` with the evidence bound of the scout's normals | 3 errors below it | more particles, a wide reference with `scout = FALSE` |
#'   | `basins` | evidence of basins that hold too few draws | 0.02 | more particles, a wide reference with `scout = FALSE` |
#'   | `estimates` | the estimate of SMC with that of the bridge, in errors of the difference | 4 | more particles |
#'   | `rounds` | the estimate of SMC with earlier, surer runs that found more | 4 errors beyond 0.05 | more particles |
#'   | `passes` | `log_z` with that of the pass before (after further passes) | 2 errors and 0.02 above it | more particles, another form of the model |
#'
#'   A diagnostic that does not apply is left out. That all have passed does not prove the
#'   estimate right: what neither scout nor islands have seen, none of them shows. A warning
#'   of class `autosmc_warning_precision` says that `max_islands` did not reach `precision`. One
#'   of class `autosmc_warning_budget` says that `max_evals` has left a single island, so that the
#'   error is not known. One of class `autosmc_warning_gradient` says that the log density is too rough for its
#'   gradient to be checked (see [check_gradient()]). One of class `autosmc_warning_infinite`
#'   says that an R function has returned `+Inf`: such a point counts as impossible. One of class
#'   `autosmc_warning_moments` names variables with such heavy tails that their standard deviations, or even their
#'   means, cannot be estimated from the draws, and may not exist (`fit$heavy_tails`): report medians and quantiles
#'   instead. The shape k of a tail, `khat`, is that of a generalised Pareto distribution fitted to a tenth of the draws
#'   on either side (Zhang and Stephens, 2009). Moments of order below 1 / k exist. Of 8,192 independent draws the standard
#'   deviation is not used where k is above 0.37, nor the mean where it is above 0.74: the limit for n draws is
#'   1 - 1 / log10(n), and half of it for the standard deviation (Vehtari et al., 2024). Tails are judged on the scale of
#'   the variable itself, where there are 1,000 independent draws by their weights, and not of variables with two
#'   bounds. A tail that ends too early for such a distribution counts as none, as that of a small mode does; so does one
#'   of which the draws have seen little. No row is no proof. A warning of the target's own
#'   functions, such as `NaNs produced`, is shown once in a call.
#' @section Cost: A run without tuning evaluates the target (log density and
#'   gradient) exactly `n_particles * (n_steps + 1)` times, or with `n_moves` moves
#'   a step `n_particles * (n_moves * n_steps + 1)` times. Tuning adds
#'   `n_subsample` for each evaluation of its objective. The bridge evaluates the log density
#'   once for every draw of the islands, without a gradient.
#' @section Reproducibility: The same seed gives the same fit on the same machine, but for
#'   the time it took (`seconds`), with any number of processes and threads. With another BLAS or
#'   processor the last bits of matrix products differ. They grow on the way, so that the
#'   fit is another one of the same quality; `fit$session` says what it was made with.
#'   `smc_run()` with the schedule, the reference, the kernel, the number of islands and the
#'   seed of a fit repeats its islands, and so its estimate by SMC; after further passes they
#'   are other islands of the same kind.
#' @section Interrupted runs: With `checkpoint = "folder"` the scout, each run that tunes, each
#'   island and each bridge is kept in a file of its own as soon as it is finished. A call
#'   that was cut off, by an error, an interrupt or the end of its process, is made again with
#'   the same arguments: what is in the folder is taken from there, and the result is the one
#'   that the first call would have had, to the last bit. Where `seed` is NULL, it is the seed
#'   in the folder. When all is done the call returns the fit again in no time.
#'
#'   A file is taken only where it was made with the same settings, by the same version of
#'   autosmc, and where the target has the same values at four of its particles, which are
#'   evaluated when it is written and when it is read (they are not counted in
#'   `n_target_evals`). Otherwise it is an error, and the file stays as it is. More `islands`
#'   than before are welcome. A file that cannot be read is put aside, with a warning. Where
#'   nothing can be written, as on a full disk, a warning says so once, and the run goes on.
#'   Two processes may share a folder.
#' @section Memory: The draws of a fit with `islands` islands of `n_particles` draws of `d`
#'   variables take `8 * islands * n_particles * d` bytes. Their coordinates and gradients, from
#'   which the bridge and the diagnostics are made, take twice as much again, but not of more than
#'   8,192 draws of each island: of larger islands these are so many, spread evenly over all. So with more
#'   particles than that the draws and the estimate of SMC are better, and the bridge is not; it gains by
#'   more islands. While `smc()` works it takes two to four times what the fit does. Where that
#'   is too much, `keep` is for less. `smc()` itself works with all draws of its islands, and drops
#'   what is not kept at the end: its estimates and diagnostics do not depend on `keep`.
#'   [smc_extend()] and `smc_run()` drop it after each island, so a very large number of islands is
#'   best added by [smc_extend()].
#'
#'   When islands are added, all is made again from what is kept. The estimate of SMC, its
#'   error, and the diagnostics of the islands' estimates are the same for every `keep`. With a
#'   number of draws the bridge and the other diagnostics are made from these: the fewer there
#'   are, the larger is the error of the bridge, and from less than 256 in all there are no `rays`,
#'   `mirrors` and `lines`. With moments there is no bridge, which may
#'   well have had the smaller error, and no diagnostic of the draws (`mean_gradient`,
#'   `stein`, `width`, `edges`, `proper`, `rays`, `mirrors`, `lines`, `basins`). [coef()], [vcov()], and the means, standard
#'   deviations and Monte Carlo errors of [summary()] are those of all draws; there are no
#'   quantiles, and what needs draws is an error.
#' @section Parallel runs: Under a plan of the package future, such as
#'   `future::plan("multisession")`, islands are run by its workers, each island as a future,
#'   unless they would be done here before workers have loaded the package.
#'   What the target's functions use of the workspace and the attached packages goes with
#'   them. An island whose worker was lost is run again, up to three times in all. The results
#'   are those of a single process. So are those of the runs that tune, where workers take a share of
#'   the points of an evaluation: for a target that is a function of one point, as soon as its batches
#'   take longer than a future is on its way. See `vignette("large")`.
#'
#'   `options(autosmc.threads = 2)`, say, lets each run work on two threads (256 at most), without other
#'   processes; workers of future have an option of their own. Compiled targets that may be called
#'   from several threads gain the most: the built-in ones, and those of [target_native()] with
#'   `thread_safe = TRUE`. R functions are called on R's own thread. The results are those of
#'   one thread.
#' @section Errors: All have the class `autosmc_error` and one of
#'
#' * `autosmc_error_input`: an argument is not what it should be.
#' * `autosmc_error_target`: the target raised an error, or returned something
#'   that it should not. The error has the fields `run` (`"scout"`, `"adapt"` or `"final"`)
#'   and `step`.
#' * `autosmc_error_degenerate`: no particle is left with a finite weight. The
#'   error has the fields `run`, `step`, and `trace`: the `steps` up to there.
#' * `autosmc_error_mismatch`: the folder `checkpoint` has another run; the field `differs`
#'   names what is different.
#' * `autosmc_error_worker`: under a plan of future, a worker was lost three times with the
#'   same island (the field `records` has what came back) or the same points, or has not this version
#'   of autosmc (the fields `host` and `paths` say where).
#' * `autosmc_error_gradient`: the gradient disagrees with differences of the log density,
#'   after the scout (see [check_gradient()]). The error has the fields `variable`,
#'   `gradient`, `difference`, and `x`, where that is so.
#'
#' Particles at which the log density is `NaN` or infinite are dropped (their
#' weight is zero); at a gradient that is not finite a particle moves without
#' one.
#' @section Hard edges: Where the density is zero beyond an edge that many particles come
#'   near, the unadjusted kernels (`kernel_klmc()`, `kernel_lmc()`) lose the paths that would
#'   have crossed it and come back, and the estimate is too low on average. The diagnostic
#'   `edges` looks for such edges. Where it fails and no `kernel` was asked for, a further
#'   pass uses `kernel_mala()`, which rejects such moves. With that kernel it has no limit; and where
#'   there are edges the diagnostics `mean_gradient` and `stein` do not apply. It is better to give the edge as
#'   the bound of a variable (`lower`, `upper` of [target_function()]).
#' @section Long steps: The divergence that the tuner minimises is a mean over the paths
#'   that the particles take. It does not see those that would have to come from where no
#'   particle is. A long step of KLMC can lead there, where the density bends sharply. With
#'   such steps the estimate of SMC is still unbiased, but by values so rare that no run meets
#'   them: it is nearly always a few percent too low, and the islands agree on it. So islands of
#'   KLMC run with three quarters of the tuned step sizes (`step_fraction`), and with two thirds
#'   of that from a reference with a shape. The price in variance is small. On the long way
#'   from the given reference it is not, so there the steps are left as they are.
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
#'   black-box variational inference with a score-based divergence*, for the scout's normals
#'   and those of the rounds, which minimise a Fisher divergence between the gradients.
#'
#'   Mira, Solgi and Imparato (2013), *Zero variance Markov chain Monte Carlo for Bayesian
#'   estimators*, for the means of references that are only moved.
#'
#'   Lee and Whiteley (2018), *Variance estimation in the particle filter*, for
#'   `predicted_sd`.
#'
#'   Meng and Wong (1996), *Simulating ratios of normalizing constants via a simple identity:
#'   a theoretical exploration*, for the bridge.
#'
#'   Rue, Martino and Chopin (2009), *Approximate Bayesian inference for latent Gaussian models by using
#'   integrated nested Laplace approximations*, for the marginal density of a few variables given which others are nearly
#'   normal.
#'
#'   Marchenko and Pastur (1967), *Distribution of eigenvalues for some sets of random matrices*, for whether the
#'   target is asked again.
#'
#'   Jones and Pewsey (2009), *Sinh-arcsinh distributions*, for references with skew
#'   variables or heavy tails.
#'
#'   Zhang and Stephens (2009), *A new and efficient estimation method for the generalized Pareto distribution*, and
#'   Vehtari, Simpson, Gelman, Yao and Gabry (2024), *Pareto smoothed importance sampling*, for draws with heavy tails.
#' @examples
#' # a function of one's own, whose log evidence is log(2 pi) = 1.838; the interval of the
#' # estimate holds it, and the last line says that all is well
#' fit <- smc(function(x) -sum(x^2) / 2,
#'   dim = 2, gradient = function(x) -x, n_particles = 32, n_steps = 4, seed = 1
#' )
#' fit
#' coef(fit)
#'
#' # the two halves; the schedule may be looked at and edited in between
#' target <- target_gaussian(2, mean = 3)
#' adapted <- smc_adapt(target, n_particles = 128, n_steps = 8, seed = 1)
#' adapted$schedule
#' smc_run(target, adapted$schedule, reference = adapted$reference, seed = 2)
#'
#' # the paper's method
#' smc(target, n_particles = 128, rounds = 0, whiten = FALSE, islands = 1, seed = 1)
#' @export
smc <- function(
  target,
  ...,
  n_particles = 1024,
  n_steps = 64,
  rounds = c(1, 8),
  whiten = TRUE,
  scout = whiten && max(rounds) > 0,
  max_steps = max(64, n_steps),
  step_fraction = if (max(rounds) > 0 && whiten) 0.75 else 1,
  islands = 8,
  precision = NULL,
  max_islands = 64,
  max_evals = Inf,
  kernel = NULL,
  schedule = schedule_power(n_steps),
  reference = reference_gaussian(),
  tuner = tuner_kl(),
  resampling = "ssp",
  ess_threshold = 0.5,
  keep = "draws",
  seed = NULL,
  checkpoint = NULL,
  progress = interactive()
) {
  call <- call_of("smc", match.call())
  target <- check_any_target(target, ...)
  if (target$dim == 0) {
    return(fit_without_variables(target, n_particles, seed, call))
  }
  check_n_steps(n_steps, schedule, missing(n_steps))
  chooses_kernel <- is.null(kernel)
  kernel <- check_kernel(if (chooses_kernel) "klmc" else kernel)
  path <- check_path(schedule, kernel)
  plan <- check_plan(rounds, whiten, scout, max_steps, step_fraction, max_evals)
  islands <- check_islands(islands, precision, max_islands)
  plan$n_islands <- islands$islands
  plan$seeks_precision <- !is.null(precision)
  keep <- check_keep(keep)
  sampler <- new_sampler(target, list(
    n_particles = n_particles, kernel = kernel, reference = reference, tuner = tuner,
    resampling = resampling, ess_threshold = ess_threshold, seed = seed,
    checkpoint = checkpoint, progress = progress, path = path, plan = plan
  ))
  sampler$chooses_kernel <- chooses_kernel
  adapts <- needs_adapting(kernel, path)
  islands$bridges <- adapts && makes_bridge(plan, kernel)
  n_rounds <- if (adapts) n_runs_foreseen(plan, kernel) else 0
  sampler$progress <- new_progress(sampler$show_progress, n_rounds, islands$islands)
  result <- once_each(if (adapts) {
    passes(sampler, path, plan, islands)
  } else {
    islands <- affordable_islands(islands, sampler, path, NULL, plan)
    conclude(sampler, run_islands(sampler, path, islands))
  })
  reduce_fit(new_fit(result$sampler, result, c(plan, islands), call), keep)
}

#' @rdname smc
#' @export
smc_adapt <- function(
  target,
  ...,
  n_particles = 1024,
  n_steps = 64,
  rounds = c(1, 8),
  whiten = TRUE,
  scout = whiten && max(rounds) > 0,
  max_steps = max(64, n_steps),
  kernel = NULL,
  schedule = schedule_power(n_steps),
  reference = reference_gaussian(),
  tuner = tuner_kl(),
  resampling = "ssp",
  ess_threshold = 0.5,
  seed = NULL,
  checkpoint = NULL,
  progress = interactive()
) {
  call <- call_of("smc_adapt", match.call())
  target <- check_target(target, ...)
  check_n_steps(n_steps, schedule, missing(n_steps))
  chooses_kernel <- is.null(kernel)
  kernel <- check_kernel(if (chooses_kernel) "klmc" else kernel)
  path <- check_path(schedule, kernel)
  plan <- check_plan(rounds, whiten, scout, max_steps)
  if (!needs_adapting(kernel, path)) {
    abort(
      c(
        "{.arg kernel} has its step sizes given: there is nothing to tune.",
        "i" = "Leave out {.arg step_size}, or use {.fn smc} or {.fn smc_run}."
      ),
      "input"
    )
  }
  sampler <- new_sampler(target, list(
    n_particles = n_particles, kernel = kernel, reference = reference, tuner = tuner,
    resampling = resampling, ess_threshold = ess_threshold, seed = seed,
    checkpoint = checkpoint, progress = progress
  ))
  sampler$chooses_kernel <- chooses_kernel
  sampler$progress <- new_progress(
    sampler$show_progress, n_runs_foreseen(plan, kernel),
    n_islands = 0
  )
  course <- once_each({
    sampler <- scouted(sampler, plan)
    adapt(sampler, path, plan)
  })
  sampler <- sampler_of_best(sampler, course)
  plan$bridges <- makes_bridge(plan, kernel)
  new_fit(sampler, list(course = course), plan, call)
}

#' @rdname smc
#' @export
smc_run <- function(
  target,
  schedule,
  ...,
  n_particles = 1024,
  islands = 1,
  precision = NULL,
  max_islands = 64,
  kernel = kernel_of_schedule(schedule),
  reference = reference_gaussian(),
  resampling = "ssp",
  ess_threshold = 0.5,
  keep = "draws",
  seed = NULL,
  checkpoint = NULL,
  progress = interactive()
) {
  call <- call_of("smc_run", match.call())
  if (missing(schedule)) {
    abort(
      "{.arg schedule} is missing: a data frame such as {.code fit$schedule}.",
      "input"
    )
  }
  target <- check_target(target, ...)
  kernel <- check_kernel(kernel)
  path <- check_schedule_frame(schedule, kernel)
  islands <- check_islands(islands, precision, max_islands)
  islands$bridges <- FALSE
  sampler <- new_sampler(target, list(
    n_particles = n_particles, kernel = kernel, reference = reference, tuner = tuner_kl(),
    resampling = resampling, ess_threshold = ess_threshold, keep = keep, seed = seed,
    checkpoint = checkpoint, progress = progress
  ))
  sampler$progress <- new_progress(sampler$show_progress, n_rounds = 0, islands$islands)
  result <- once_each({
    final <- run_islands(sampler, path, islands)
    conclude(sampler, final)
  })
  new_fit(result$sampler, result, islands, call)
}

# what is to be run -----------------------------------------------------------

# The call of a verb as it would be written: a program may have called it by another name.
call_of <- function(verb, call) {
  call[[1]] <- as.name(verb)
  call
}

# A target with variables to sample.
check_target <- function(target, ...) {
  target <- check_any_target(target, ...)
  if (target$dim == 0) {
    abort("{.arg target} has no variables, so there is nothing to run: {.fn smc} gives its evidence.", "input")
  }
  target
}

check_any_target <- function(target, ...) {
  if (missing(target)) {
    abort(
      c(
        "{.arg target} is missing: a target, or a function with {.arg dim}.",
        "i" = if ("log_density" %in% names(list(...))) "Give the function as {.arg target}, or first and without a name."
      ),
      "input"
    )
  }
  as_target(target, ...)
}

# n_steps is there to make the default schedule; with a schedule of one's own
# it can only agree.
check_n_steps <- function(n_steps, schedule, is_default) {
  n_steps <- check_count(n_steps, "n_steps")
  if (!is_default && !is_adaptive(schedule) && length(schedule) != n_steps + 1) {
    n <- length(schedule)
    abort(
      "{.arg schedule} must have {.arg n_steps} + 1 = {n_steps + 1}
        temperatures, not {n}.",
      "input"
    )
  }
}

# The temperatures, or how to find them, and the parameters that the kernel was given: the
# `path` of run_sampler().
check_path <- function(schedule, kernel) {
  if (!is_adaptive(schedule)) {
    path <- list(lambda = check_schedule(schedule))
    n_steps <- length(path$lambda)
  } else if (kernel$adjusted) {
    path <- list(adaptive_ess = schedule$ess, n_steps = schedule$max_steps)
    n_steps <- path$n_steps
  } else {
    label <- kernel$label
    abort(
      c(
        "{.fn schedule_adaptive} needs a kernel whose weights do not depend on the
          move, not {label}.",
        "i" = "Use {.fn kernel_mala} or {.fn kernel_rwmh}, or let {.arg rounds}
          find the temperatures."
      ),
      "input"
    )
  }
  if (!is_to_be_tuned(kernel)) {
    every_step <- function(x, arg) {
      if (!is.null(x)) rep_len(check_positive(x, arg, c(1, n_steps)), n_steps)
    }
    path$step_size <- every_step(kernel$step_size, "step_size")
    path$refresh_rate <- every_step(kernel$refresh_rate, "refresh_rate")
  }
  path
}

# Whether there are parameters or temperatures to be found.
needs_adapting <- function(kernel, path) {
  is_to_be_tuned(kernel) || !is.null(path$adaptive_ess)
}

makes_bridge <- function(plan, kernel) plan$whiten && !is_biased(kernel)

# At least so many runs of adaptation: a first one, or a race of at least two, and rounds.
n_runs_foreseen <- function(plan, kernel) {
  plan$rounds[1] + if (plan$scout && kernel$gradients) 2 else 1
}
