# The decisions of the stages of smc(), each with its reason in the line above. What other values of a rule
# change is in bench/results/rules.csv, which bench/rules.R writes.
rules <- list(
  # scout ----------------------------------------------------------------------
  # Batches in a pass, after which normal distributions that have come together go on as one.
  n_batches = 5,
  # A pass that raises the best ELBO by less is the last: its noise is as large.
  least_gain = 0.1,
  # Normal distributions that are refined further: the best so far may not end best.
  n_refined = 3,
  # Normal distributions whose means are closer than this, in standard deviations of either, are the
  # same basin: at this distance they have an eighth of their mass in common.
  basin_distance = 3,
  # A basin whose ELBO is lower by more has a thousandth of the best one's evidence at most.
  basin_range = 7,
  # No particle gets further from a basin than this, in its standard deviations: the furthest of
  # 1,024 from a normal distribution inflated by 1.5 are at 4.
  reach = 6,
  # Share of the covering normal distribution in a mixture of basins: if the basins are not normal
  # it must reach what they miss.
  covering_part = 0.5,
  # Further basins are looked for around what was found up to this dimension: of the points tried, a mode of
  # half the width has some 60 in four dimensions and 12 in six. In more dimensions paths from them end in places
  # that are no basins.
  largest_outside = 6,
  # These points are between this and this much further out, evenly in the logarithm.
  outside = c(1.5, 15),
  # Paths from those of them that most exceed what was found.
  n_outside_paths = 4L,
  # Covariances up to this dimension, standard deviations alone beyond: the cost is cubic, and a
  # factor of 250 variables takes 5 million operations.
  largest_dense = 250,
  # Shapes that gradients determine exactly are fitted up to this dimension, beyond which they take
  # minutes.
  largest_exact = 600,
  # The scout's best normal has a matrix up to this dimension: that of 2,000 variables takes 32 MB,
  # and its factor and its inverse some seconds ...
  largest_curved = 2000,
  # ... if its ELBO is higher by more than this, in nats: less makes hardly a difference to the
  # barrier, and each step costs a product with a matrix.
  least_curved_gain = 1,
  # Paths, and twice as many if they disagree.
  n_starts = 8L,
  # edges ------------------------------------------------------------------------
  least_inside = 0.05,
  # gradients ------------------------------------------------------------------
  # A gradient further than this from a settled difference is wrong: five times as far.
  wrong_slope = 5e-3,
  # race -----------------------------------------------------------------------
  # Particles of a first run: enough to tell apart references that differ by nats, at a quarter of a
  # round's cost.
  race_particles = 256L,
  # Part of the effective sample size that a step by HMC leaves in a first run.
  race_ess = 0.8,
  # Steps of other first runs from a fitted reference.
  race_steps = 16,
  # Estimates differ when they are further apart than this many errors: 95 % of a normal, ...
  errors_apart = 2,
  # ... and by more than this: runs that tune have a small bias.
  margin = 0.05,
  # A run that tunes may be lower by this than the best such run, which was chosen since its estimate is high.
  fall = 0.5,
  # Standard errors by which what is the largest of many, or must not be wrong, is no chance, ...
  errors_seen = 3,
  # ... and by which two estimates contradict each other: chance alone gives more to one of 16,000.
  errors_contradict = 4,
  # Tolerated rise of log Z, beyond the errors, by a pass, and part of the evidence in basins that are missed.
  least_rise = 0.02,
  # rounds ---------------------------------------------------------------------
  # Steps for each unit of the barrier, as Syed et al. (2024) recommend.
  steps_per_barrier = 2,
  # A further round is made if the last has lowered the barrier by this factor.
  lower_barrier = 0.8,
  # A barrier higher by no more than 5 % may be so by chance.
  equal_barrier = 1.05,
  # The chance that two draws have the same ancestor, where one has 70 % of the weight: such an estimate is chance.
  one_genealogy = 0.5,
  # fits -----------------------------------------------------------------------
  # The variance of a fitted reference over that of the particles, at most: tails that are too light make an
  # estimate that is too low without a sign.
  inflation = 1.5,
  # Dimension above which it falls, so that the barrier that it costs, ln(1.5) sqrt(d / (2 pi)),
  # stays the same.
  inflation_dim = 250,
  # The same of parents at most: particles that began in the middle have not seen both ends.
  inflation_parents = 4,
  # Below this effective sample size nothing is fitted: means are off by a third of a standard
  # deviation.
  least_ess = 10,
  # A statistic this many standard deviations above what chance gives is real; many pairs are
  # compared.
  chance_sds = 8,
  # Rows that diagnostics see at least, as many as a round has.
  least_rows = 1024,
  # Share of the mean square of gradients that may be left of those that are linear: rounding.
  nothing_left = 1e-6,
  # Degrees of freedom that are tried, from Cauchy to nearly normal.
  student_df = c(1, 1.5, 2, 3, 4, 6, 10),
  # Share, in what a normal distribution leaves of gradients, of what is along the points, from
  # which a Student t is fitted by gradients: for exact t distributions it is 0.46 or more.
  least_radial = 0.25,
  # Genealogies a dimension: with fewer the covariance is too uncertain to show tails.
  genealogies_per_dimension = 2,
  # Bound of the Kullback-Leibler divergence, in nats, below which a target counts as normal: then
  # the log weights of draws from the normal have a standard deviation of about 0.04.
  normal_nats = 1e-3,
  # What others may leave to a single variable on which they depend, in nats, without a trial of it as a parent: a
  # scale that only its effects tell gains a half, however many these are, since its variance is one over twice their
  # number ...
  least_coupled = 0.25,
  # ... and the share of this in all that is left.
  share_coupled = 0.2,
  # Coordinates that may be given: effects of groups may have three scales, three correlations and
  # errors with a scale, and twenty coefficients scales of their own.
  most_given = 24,
  # Evaluations for that, less than what a fit takes.
  most_probe_evals = 1e5,
  # Terms that may be tried for an entry at a time: with three correlations they are up to a
  # hundred.
  most_terms = 512,
  # Steps of a factorisation at a point: those of a full precision of 114 variables, which take 0.3
  # ms.
  most_factor_work = 5e5,
  # Standard errors of skewness or kurtosis, above which a coordinate is not normal: chance alone
  # gives that to one of 16,000.
  odd_moment = 4,
  # Location in standard deviations, log scale and skew of a coordinate with tails, to both sides:
  # with more, it has hardly anything in common with the normal distribution from which it was
  # found.
  widest_tails = c(3, 3, 2),
  # budget ---------------------------------------------------------------------
  # A run that tunes may take this much more than the last, by more steps or searches.
  dearer_run = 2,
  # islands --------------------------------------------------------------------
  # Particles of an island that bridge, diagnostics and fits see: more would need three times the
  # memory that the draws take. Eight islands of so many tell a mean to 0.004 standard deviations.
  most_judged = 8192,
  # Friction of the islands' KLMC: with 2 a standard normal coordinate is critically damped, and
  # comes to rest soonest.
  damping = 2,
  # passes ---------------------------------------------------------------------
  # If the error of the bridge is smaller, and no diagnostic has failed, no other shape is tried: a
  # distribution that misses a part of the draws has a larger error. What is beside the draws matters if it is more.
  sure_bridge = 0.01,
  # The same for a first shape, whose draws may not have seen all of a neck.
  sure_shape = 0.002,
  # Times as many steps, if draws are worth little, or particles, where these are left to us.
  longer = 4,
  # One pass cures most funnels, two most hierarchies; more only as the estimate rises, ...
  sure_passes = 2,
  # ... up to so many.
  most_further_passes = 5,
  # A pass whose error is so many times that of the one before is dropped: passes that agree differ
  # by half at most.
  spoilt = 2,
  # Factor of the step sizes of KLMC from a reference with a shape. Times 0.75 it is a half.
  shaped_fraction = 2 / 3,
  # Gain in mean log density for which a shape is worth a pass; less is noise of the fit.
  least_shape_gain = 0.02,
  # bridge ---------------------------------------------------------------------
  # Islands from which a bridge is made: two in each half, so that its error can be told.
  bridge_islands = 4,
  # Ratio of the bridge's standard error to that of SMC, below which the bridge is reported: above,
  # SMC is about as good.
  bridge_gain = 0.75,
  # Least standard error of the bridge: draws of an unadjusted kernel have a bias of about a third
  # of it in 100 dimensions.
  least_bridge_error = 1e-4,
  # diagnostics ----------------------------------------------------------------
  # Share of the mean that one island may make up: with more, the rest is of no account.
  largest_share = 0.5,
  # Scatter over prediction, which about one of a hundred good fits exceeds.
  suspicious_scatter = 1.8,
  # Few islands scatter more by chance: then the limit is this quantile.
  scatter_level = 0.999,
  # Probability that a right fit fails.
  gradient_level = 1e-4,
  # Root mean square of standard errors, which one of thirty good fits of hard shapes exceeds.
  stein = 3,
  # Variance of the draws in units of the reference's: with more, the reference is half as wide as
  # the target.
  widest = 4,
  # Effective number of ancestors over number of draws, or the fit is not to be trusted.
  least_ancestor_ess = 0.12,
  # If the standard error is smaller, draws may be worth less: the bridge shows that nothing is
  # missed.
  sure_enough = 0.02,
  # Share of the points beside the draws that may be impossible.
  largest_edge = 0.05,
  # Rays and a few lines take no more than this share of the evaluations of the islands each, which affords 19 rays
  # where these are few or small; ...
  share_beside = 0.05,
  # ... and mirrors and more lines, where a few have found something.
  share_of_found = 0.15,
  # A basin with less than a tenth of the draws that it should have is missed.
  basin_part = 10,
  # log10 of the largest standard deviation that is not taken for improper, also in units of the narrowest sum of the
  # variables: beyond, a double has four digits left for a variable, or a sum, of the size of one.
  widest_proper = 12,
  # log10 of a size that no unit explains: draws above it, or as much below 1, have gone to where
  # numbers end, at 308, ...
  largest_size = 250,
  # Part of the draws that may be so, ...
  part_beyond = 0.05,
  # Rounds that predict a larger scatter prove nothing by a high estimate: with this sd one of 44 is
  # high by 1 or more.
  sure_round = 0.5,
  # Part of the draws from which the shape of a tail is estimated: fewer make its error too large,
  # more see the bulk of skew distributions.
  part_of_tail = 0.1,
  # Probability that the largest draw of a heavy tail is no larger. Below it, the tail ends: it is a
  # mode apart.
  tail_level = 0.01
)
