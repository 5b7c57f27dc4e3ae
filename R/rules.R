# The tuning constants of the stages of smc(), each explained in the line above. The effect of other values is in
# bench/results/rules.csv, which bench/rules.R writes.
rules <- list(
  # scout ----------------------------------------------------------------------
  # Batches in a pass, after which normal distributions that have converged to the same one are merged.
  n_batches = 5,
  # A pass that raises the best evidence lower bound (ELBO) by less than this is the last: its noise is as large.
  least_gain = 0.1,
  # Number of normal distributions that are refined: the best one so far may not remain the best.
  n_refined = 3,
  # Normal distributions belong to the same basin if their means are closer than this, in standard deviations of either:
  # at this distance an eighth of their mass overlaps.
  basin_distance = 3,
  # Basins whose ELBO is lower than the best by more than this are dropped: they have a thousandth of its evidence at
  # most.
  basin_range = 7,
  # Largest distance of a particle from a basin, in its standard deviations: the furthest of 1,024 draws from a normal
  # distribution inflated by 1.5 are at 4.
  reach = 6,
  # Weight of the covering normal distribution in a mixture of basins, which reaches what they miss if they are not
  # normal.
  covering_part = 0.5,
  # Largest dimension in which further basins are searched for around those found. Of the points tried, some 60 fall
  # into a mode of half the width in four dimensions, and 12 in six. In more dimensions the paths from them end in
  # places that are no basins.
  largest_outside = 6,
  # Range of the distance of these points, as a multiple, uniform in its logarithm.
  outside = c(1.5, 15),
  # Paths start from this number of these points, those with the largest excess over what was found.
  n_outside_paths = 4L,
  # Largest dimension for covariance matrices; beyond it standard deviations are used. The cost is cubic: a Cholesky
  # factor of 250 variables takes 5 million operations.
  largest_dense = 250,
  # Largest dimension for forms that gradients determine exactly: beyond it they take minutes.
  largest_exact = 600,
  # Largest dimension for a matrix in the scout's best normal distribution: for 2,000 variables it takes 32 MB, and its
  # factor and its inverse some seconds.
  largest_curved = 2000,
  # Least gain of the ELBO by this matrix, in nats: less hardly changes the barrier, and each step costs a product with
  # the matrix.
  least_curved_gain = 1,
  # Number of paths; twice as many if they disagree.
  n_starts = 8L,
  # edges ------------------------------------------------------------------------
  # Least share of a normal distribution inside the bounds for a truncated normal scale: of 8,192 draws it leaves 400,
  # with a relative error of 0.05.
  least_inside = 0.05,
  # gradients ------------------------------------------------------------------
  # Relative difference from a converged finite difference beyond which a gradient is wrong: five times the tolerance
  # for convergence.
  wrong_slope = 5e-3,
  # race -----------------------------------------------------------------------
  # Particles of a first run: enough to tell apart references that differ by nats, at a quarter of the cost of a round.
  race_particles = 256L,
  # Relative effective sample size after a step by HMC in a first run.
  race_ess = 0.8,
  # Steps of other first runs from a fitted reference.
  race_steps = 16,
  # Estimates differ if their distance exceeds this many standard errors, a 95 % interval of a normal distribution, ...
  errors_apart = 2,
  # ... and this margin, since adapting runs have a small bias.
  margin = 0.05,
  # Tolerance by which an adapting run may be below the best one, whose estimate is biased upwards by selection.
  fall = 0.5,
  # Standard errors beyond which the largest of many differences, or one that must not be wrong, is significant.
  errors_seen = 3,
  # Standard errors by which two estimates contradict each other: chance alone exceeds this once in 16,000.
  errors_contradict = 4,
  # Tolerated rise of log Z by a further pass, beyond the errors; and tolerated share of the evidence in missed basins.
  least_rise = 0.02,
  # rounds ---------------------------------------------------------------------
  # Steps for each unit of the barrier, as Syed et al. (2024) recommend.
  steps_per_barrier = 2,
  # A further round follows if the last one has lowered the barrier to less than this multiple.
  lower_barrier = 0.8,
  # A barrier that is higher by less than 5 % may be so by chance.
  equal_barrier = 1.05,
  # Probability that two draws have the same ancestor above which an estimate is unreliable: one ancestor then has about
  # 70 % of the weight.
  one_genealogy = 0.5,
  # fits -----------------------------------------------------------------------
  # Largest factor by which the variance of a fitted reference exceeds that of the particles: a reference with too light
  # tails gives an estimate that is too low, without a sign of it.
  inflation = 1.5,
  # Dimension above which the inflation decreases, so that the barrier that it adds, ln(1.5) sqrt(d / (2 pi)), stays the
  # same.
  inflation_dim = 250,
  # Largest inflation of parents: particles that began near the centre have not reached both ends.
  inflation_parents = 4,
  # Least effective sample size for a fit: at 10 the error of a mean is a third of a standard deviation.
  least_ess = 10,
  # Standard deviations above the chance level beyond which a statistic counts as real; many pairs are compared.
  chance_sds = 8,
  # Least number of rows in thinned draws, as many as a round has.
  least_rows = 1024,
  # Share of the mean square of gradients that may remain by rounding where a linear form is exact.
  nothing_left = 1e-6,
  # Degrees of freedom that are tried, from Cauchy to nearly normal.
  student_df = c(1, 1.5, 2, 3, 4, 6, 10),
  # Least share of the radial part in the residual of the gradients of a normal distribution for which a Student t is
  # fitted by gradients: for exact t distributions it is 0.46 or more.
  least_radial = 0.25,
  # Genealogies for each dimension: with fewer the covariance is too uncertain to show tails.
  genealogies_per_dimension = 2,
  # Bound of the Kullback-Leibler divergence, in nats, below which a target counts as normal: the log weights of draws
  # from the normal distribution then have a standard deviation of about 0.04.
  normal_nats = 1e-3,
  # Residual of a single variable, in nats, above which it is tried as a parent in any case. A scale that only its
  # effects determine gains half a nat, however many effects there are, since its variance is one over twice their
  # number. The smaller of this and the next bound applies.
  least_coupled = 0.25,
  # The same as a share of the total residual.
  share_coupled = 0.2,
  # Largest number of parents: a group's effects may have three scales, three correlations and errors with a scale, and
  # twenty coefficients scales of their own.
  most_given = 24,
  # Largest number of evaluations for finding parents, less than what a fit takes.
  most_probe_evals = 1e5,
  # Largest number of terms that are tried for one entry of the precision: with three correlations there are up to a
  # hundred.
  most_terms = 512,
  # Operations for the factorisation of a precision at one point: those of a full matrix of 114 variables, which take
  # 0.3 ms.
  most_factor_work = 5e5,
  # Standard errors of skewness or kurtosis beyond which a coordinate is not normal: chance alone exceeds this once in
  # 16,000.
  odd_moment = 4,
  # Largest location in standard deviations, log scale and skewness, on either side, of a coordinate with a sinh-arcsinh
  # margin: beyond, it has hardly any mass in common with the normal distribution from which it was found.
  widest_tails = c(3, 3, 2),
  # budget ---------------------------------------------------------------------
  # An adapting run may take this multiple of the cost of the last one, by more steps or longer searches.
  dearer_run = 2,
  # islands --------------------------------------------------------------------
  # Largest number of an island's particles that enter bridge, diagnostics and fits: more would need three times the
  # memory of the draws. Eight islands of this size determine a mean to 0.004 standard deviations.
  most_judged = 8192,
  # Friction of the KLMC kernel of the islands: with 2 a standard normal coordinate is critically damped, and forgets
  # its start soonest.
  damping = 2,
  # passes ---------------------------------------------------------------------
  # If the standard error of the bridge is smaller and no diagnostic has failed, no other form is tried: a distribution
  # that misses some of the draws has a larger error. It is also the least rise by mass beyond the draws that matters.
  sure_bridge = 0.01,
  # The same for a first form, whose draws may not have reached all of a funnel's neck.
  sure_shape = 0.002,
  # Factor for the number of steps where a diagnostic fails, or for that of particles where they are chosen
  # automatically.
  longer = 4,
  # Number of passes after which a further one is made only if the estimate rises: one pass is enough for most funnels,
  # two for most hierarchies.
  sure_passes = 2,
  # Largest number of further passes.
  most_further_passes = 5,
  # A pass whose standard error exceeds that of the one before by this factor is dropped: errors of passes that agree
  # differ by half at most.
  spoilt = 2,
  # Factor of the KLMC step sizes for a reference with maps. With the factor 0.75 for all references it gives a half.
  shaped_fraction = 2 / 3,
  # Least gain in mean log density for a further pass with another form: less is noise of the fit.
  least_shape_gain = 0.02,
  # bridge ---------------------------------------------------------------------
  # Least number of islands for a bridge: two in each half, so that its error can be estimated.
  bridge_islands = 4,
  # The bridge is reported if its standard error is below this multiple of that of SMC; otherwise SMC is about as good.
  bridge_gain = 0.75,
  # Least standard error of the bridge: draws of an unadjusted kernel cause a bias of about a third of it in 100
  # dimensions.
  least_bridge_error = 1e-4,
  # diagnostics ----------------------------------------------------------------
  # Largest share of one island in the mean: above it one island outweighs all others.
  largest_share = 0.5,
  # Ratio of observed to predicted scatter that about one of a hundred good fits exceeds.
  suspicious_scatter = 1.8,
  # Quantile that is the limit for few islands, which scatter more by chance.
  scatter_level = 0.999,
  # Probability that a correct fit fails the diagnostic of the mean gradient.
  gradient_level = 1e-4,
  # Root mean square of the standardised deviations from Stein's identity, which one of thirty good fits of hard shapes
  # exceeds.
  stein = 3,
  # Variance of the draws in units of the reference's: at 4 the reference is half as wide as the target.
  widest = 4,
  # Least ratio of the effective number of ancestors to the number of draws.
  least_ancestor_ess = 0.12,
  # If the standard error is smaller, this ratio is not judged: the bridge shows that nothing is missed.
  sure_enough = 0.02,
  # Largest share of the points near the draws at which the density may be zero.
  largest_edge = 0.05,
  # Share of the islands' evaluations for the rays, and for the first lines. It allows 19 rays for few or small islands.
  share_beside = 0.05,
  # Share for the mirrors, and for more lines, where the first ones have found something.
  share_of_found = 0.15,
  # A basin is missed if it has less than a tenth of the draws that it should have.
  basin_part = 10,
  # log10 of the largest standard deviation of a proper posterior, also in units of the narrowest linear combination of
  # the variables: beyond it a double has four digits left for a variable, or a sum, of size one.
  widest_proper = 12,
  # log10 of a size that no choice of units explains: draws above it, or below its inverse, are near overflow or
  # underflow, at 308.
  largest_size = 250,
  # Largest share of the draws that may be so.
  part_beyond = 0.05,
  # Largest predicted standard deviation of a round whose higher estimate counts: at 0.5 one in 44 is too high by 1 or
  # more.
  sure_round = 0.5,
  # Share of the draws from which the shape of a tail is estimated: with fewer its error is too large, more include the
  # bulk of skew distributions.
  part_of_tail = 0.1,
  # Level of the test whether the largest draw is too small for a heavy tail. If it is, the tail is a separate mode.
  tail_level = 0.01
)
