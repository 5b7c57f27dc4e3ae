# The decisions of the stages of smc(), each with its reason in the line above. What other values of a rule
# change is in bench/results/rules.csv, which bench/rules.R writes.
rules <- list(
  # scout ----------------------------------------------------------------------
  # Paths start from scales of 1 to this: data in raw units have coefficients in the hundreds.
  widest_start = 100,
  # Most points of a quasi-Newton path. Most paths end sooner, and eight that do not cost a
  # hundredth of a fit.
  most_path_evals = 150,
  # A start where the target is impossible is halved so often: 2^-30 of it is 0 within 1e-7.
  most_start_halvings = 30,
  # Points of a batch, and batches, that are tried if all starts are impossible: six variables in
  # random order are in the required one at one point of 720.
  start_batch = 512,
  most_start_batches = 8,
  # A path ends where its next step can gain no more log density than the least error that a fit
  # claims (`least_bridge_error`).
  path_tolerance = 1e-4,
  # A step must rise by this part of what its slope promises, as is usual for line searches (Nocedal
  # and Wright, 2006).
  sufficient_rise = 1e-4,
  # Cosine of a step and the change of the gradient, below which their product is rounding.
  least_curvature = 1e-10,
  # Part of a whole step below which nothing is left but rounding.
  shortest_step = 1e-14,
  # Differences of gradients from which a path estimates the curvature (Nocedal and Wright, 2006,
  # recommend 3 to 20).
  n_pairs = 20,
  # Points of a path at which a normal distribution is tried, spread evenly, the last among them.
  n_candidates = 25,
  # Draws for the ELBO of each candidate of a path: only a ranking, which is made again later.
  n_elbo_draws = 5,
  # If none along the path is possible, normal distributions between its end and its start, each
  # half as far from the end as the one before; and their least standard deviation, over the
  # largest.
  n_on_chord = 12,
  least_on_chord = 1e-3,
  # A batch has as many draws as dimensions, from this ...
  least_batch = 16,
  # ... to this.
  most_batch = 64,
  # Batches in a pass, after which normal distributions that have come together go on as one.
  n_batches = 5,
  # Passes for the normal distribution of every path ...
  n_passes = 3,
  # ... and for the best ones, as long as they gain.
  most_passes = 12,
  # A pass that raises the best ELBO by less is the last: its noise is as large.
  least_gain = 0.1,
  # Normal distributions that are refined further: the best so far may not end best.
  n_refined = 3,
  # Normal distributions whose means are closer than this, in standard deviations of either, are the
  # same basin: at this distance they have an eighth of their mass in common.
  basin_distance = 3,
  # A basin whose ELBO is lower by more has a thousandth of the best one's evidence at most.
  basin_range = 7,
  # Points on the way between two places, at which it is seen whether the density dips there, ...
  n_on_way = 9,
  # ... and by how much it must, so that they are modes of their own: between two equal normal
  # distributions it dips by so much where their means are 3.7 standard deviations apart.
  least_dip = 1,
  # No particle gets further from a basin than this, in its standard deviations: the furthest of
  # 1,024 from a normal distribution inflated by 1.5 are at 4.
  reach = 6,
  # Share of the covering normal distribution in a mixture of basins: if the basins are not normal
  # it must reach what they miss.
  covering_part = 0.5,
  # Points around what was found at which further basins are looked for. A mode of a tenth of the
  # width, 6 standard deviations away, has about four of them in two dimensions and 0.4 in three,
  # ...
  n_outside = 2048,
  # ... and one of half the width some 60 in four dimensions and 12 in six. In more dimensions paths
  # from them end in places that are no basins.
  largest_outside = 6,
  # They are between this and this much further out, evenly in the logarithm.
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
  # angles -----------------------------------------------------------------------
  # Logit of a place that is as good as a bound, and the relative difference of densities at two
  # such that is rounding: a density that changes by a thousand over the width has changed by 1e-10
  # there.
  end_of_scale = 30,
  same_at_ends = 1e-8,
  # Draws of a mode that tell where an angle is, to a tenth of its spread.
  n_turning_draws = 64,
  # Length of the mean direction of an angle, below which it has none: that of a uniform one is 0.1
  # by chance.
  least_direction = 0.2,
  # edges ------------------------------------------------------------------------
  # Points and places between the bounds that tell whether a variable is normal given the others:
  # five have two third differences.
  n_truncated_points = 2,
  n_truncated_places = 5,
  # Draws of a normal distribution that tell which part of it is between the bounds, and the least
  # part: of 8,192 draws 400 are left there, which leave an error of 0.05.
  n_inside_draws = 256,
  least_inside = 0.05,
  # Points that are tried for the marginal density of a few coordinates: where a part of
  # `least_inside` is between the edges, all of them are beyond in one case of five, and where a
  # tenth is in one of thirty.
  n_marginal_draws = 32,
  # ratios -----------------------------------------------------------------------
  # Points that tell what a program makes of its variables: what holds at one by chance does not at
  # another.
  n_ratio_points = 3,
  # gradients ------------------------------------------------------------------
  # Draws of the best normal, and the part of them, the likeliest, at which the gradient may be checked: of 12 draws the four
  # with the steepest slopes along a variable have slopes of a standard deviation or so, which tell 1 % from `wrong_slope`.
  n_gradient_candidates = 16,
  part_of_candidates = 3 / 4,
  # Points at which the gradient is checked along each direction: one may be at a kink, or have no digits.
  n_gradient_points = 4,
  # Directions, which are the variables where these are no more: the check takes 1,024 evaluations, as one run of the race
  # does in four steps.
  most_gradient_directions = 64,
  # Differences are taken over this part of the normal's width, where what a central one
  # leaves out is a sixth of the square, 0.2 % of a slope that changes as much, ...
  widest_difference = 0.1,
  # ... and over parts of it, to tell a rough density from a wrong gradient: what is left out falls
  # by 64 each time.
  shorter_difference = 1 / 8,
  # No closer than this, relative to the point: there rounding of a log density of 1e5 makes a
  # difference of 0.004 in a slope, nearly `wrong_slope`.
  narrowest_difference = 4e-8,
  # Two differences that agree to this have settled: half of what the widest leaves out.
  settled_slope = 1e-3,
  # A gradient further than this from a settled difference is wrong: five times as far.
  wrong_slope = 5e-3,
  # Other widths by which a wrong slope must be wrong too, so that a kink is not taken for one.
  confirming_steps = c(0.9, 0.8, 0.7),
  # Rounding errors of a difference, in units of the last place: a sum of 64 terms has as many.
  rounding_slack = 8,
  # Restarts of the search for a mode; two have always been enough.
  most_climbs = 5,
  # A mode is one where the Newton step from it is shorter, in sds: its normal is as good then.
  mode_distance = 0.01,
  # Factor by which widths may still change where the curvature at a mode is taken: differences over
  # a tenth of a width that is wrong by less leave out 1 %.
  settled_curvature = 2,
  # race -----------------------------------------------------------------------
  # Particles of a first run: enough to tell apart references that differ by nats, at a quarter of a
  # round's cost.
  race_particles = 256L,
  # Part of the effective sample size that a step by MALA leaves in a first run.
  race_ess = 0.8,
  # Steps of other first runs from a fitted reference ...
  race_steps = 16,
  # ... and from one that covers several basins, which is further from the target.
  cover_steps = 32,
  # Estimates differ when they are further apart than this many errors: 95 % of a normal.
  errors_apart = 2,
  # kernels --------------------------------------------------------------------
  # MALA is used from references that fit up to this dimension. It takes half of the evaluations of
  # KLMC for the same error in low dimensions; the advantage is lost between 40 and 100 variables.
  largest_adjusted = 40,
  # rounds ---------------------------------------------------------------------
  # Steps for each unit of the barrier, as Syed et al. (2024) recommend.
  steps_per_barrier = 2,
  # Share of the way below which a step adds nothing to it: the inverse's slope would be 1e8.
  least_progress = 1e-8,
  # A path has at least one temperature between reference and target.
  least_steps = 2,
  # A further round is made if the last has lowered the barrier by this factor.
  lower_barrier = 0.8,
  # The draws' variance in units of the reference's; above it the reference is too narrow.
  settled_width = 1,
  # Standard errors by which a variance must be too large. Chance alone gives that to one of 740,
  # and it is the largest of all.
  width_errors = 3,
  # A barrier higher by no more than 5 % may be so by chance.
  equal_barrier = 1.05,
  # predicted_sd where one genealogy has 70 % of the weight: such an estimate is chance.
  one_genealogy = 0.7,
  # A round's estimate may fall by this beyond the errors: estimates of runs that tune may be too
  # high.
  fall = 0.5,
  # fits -----------------------------------------------------------------------
  # The variance of a fitted reference over that of the particles: tails that are too light make an
  # estimate that is too low without a sign.
  inflation = 1.5,
  # Dimension above which it falls, so that the barrier that it costs, ln(1.5) sqrt(d / (2 pi)),
  # stays the same.
  inflation_dim = 250,
  # Factor of the excess of their variance over 1 that gradients call for, of hundreds of skew
  # variables.
  wider_skewed = 1,
  # The same of variables that are nearly normal given others: beyond the draws they are further
  # from normal than the gradients at these tell.
  wider_given = 2,
  # The variance of conditioning variables over what was fitted: particles that began in the middle
  # of a neck have not seen its ends.
  inflation_conditioning = 4,
  # Particles with a smaller share of the largest weight are left out of fits, which a single one
  # far off can spoil.
  least_weight = 1e-12,
  # Below this effective sample size nothing is fitted: means are off by a third of a standard
  # deviation.
  least_ess = 10,
  # A reference is not moved if draws are twice as wide: it might leave a mode behind.
  widest_moved = 4,
  # Variance relative to the squared mean that may be rounding: (1e-12)^2.
  rounding = 1e-24,
  # Added to squares before their logarithm is taken; smaller than any square that matters.
  least_square = 1e-300,
  # A statistic this many standard deviations above what chance gives is real; many pairs are
  # compared.
  chance_sds = 8,
  # Share of the variance of log squares that a variable must explain.
  least_explained = 0.1,
  # Variance of log scales that a variable must explain: an sd of 0.1 costs next to nothing.
  least_log_scale = 0.01,
  # Share of a variance that another variable's square must explain.
  least_bend = 0.05,
  # Rows times squared dimension that a search for shapes may take: two seconds or so ...
  shape_work = 1e6,
  # ... but no fewer rows than this, as many as a round has.
  least_rows = 1024,
  # Part of a column that others do not make up, to have a coefficient of its own: with less this is
  # a hundred times what it stands for, and cancels with others.
  collinear = 0.01,
  # Leverage of a point, above which half of the digits of its residual are rounding.
  most_leverage = 1 - 1e-8,
  # Times that conditional location and scale are fitted in turn; they settle in three.
  location_sweeps = 4,
  # Slopes of log scales that are tried for a neck: those by the logarithm of a standard deviation,
  # a variance, a precision, and of the root of this.
  neck_slopes = c(1, 0.5, -0.5, -1),
  # Centres that are tried, in standard deviations of the variable. The last are those of funnels,
  # which do not open where particles have been; the first those of necks of which only the open
  # side is there.
  neck_centres = c(-10, -6, -4, seq(-3, 3, by = 0.25), 4, 6, 10),
  # Relative error of a coefficient of the gradients that is to be that of a multiple: least squares
  # on a prior of another form than those that are tried is right to about a tenth.
  same_rate = 0.1,
  # Share of the gradients' mean square that a neck may leave, to count as exact: then it is right
  # also where no point has been. By the logarithmic Sobolev inequality a hundred variables of which
  # so much is left are at most 0.1 nats from what was fitted.
  linear_gradients = 2e-3,
  # Residual share below which the two-scale neck is not tried.
  nothing_left = 1e-6,
  # Residual share below which the axes are taken from the gradients, not from moments.
  nearly_linear = 0.1,
  # The same of one coordinate among many, from which it is not taken for normal: such are those of
  # which the data say little, and which a bound cuts off.
  far_from_normal = 0.5,
  # Share of the coordinates that may be such.
  max_nongaussian_share = 0.1,
  # Draws of a reference, and as many points, that tell whether the density falls off beside the
  # points: ...
  n_beside = 64,
  # ... where the target is lower by so many nats, next to the normal distribution, than at any of
  # these points, ...
  next_to_nothing = 10,
  # ... is more than this part of it.
  part_fallen = 0.05,
  # Widths of a knee, in standard deviations of the conditioning variable: a narrower one is a
  # corner, and a wider one the square.
  knee_widths = c(0.1, 10),
  # Steps of Nelder and Mead's method, which takes 60 to 120 for the place and the width of a knee.
  knee_steps = 100,
  # Where one more knee is tried first, in the same units: the best of these is moved from there.
  first_places = c(-2, -1, 0, 1, 2),
  # Bends of all conditioning variables together: a curve with so many knees is as smooth a function
  # as draws can tell.
  most_bends = 8,
  # Degrees of freedom that are tried, from Cauchy to nearly normal.
  student_df = c(1, 1.5, 2, 3, 4, 6, 10),
  # Steps of the EM algorithm for a Student t, which converges fast from the normal distribution.
  em_steps = 8,
  # Share, in what a normal distribution leaves of gradients, of what is along the points, from
  # which a Student t is fitted by gradients: for exact t distributions it is 0.46 or more.
  least_radial = 0.25,
  # Degrees of freedom from which those of a Student t are searched for by gradients.
  first_df = 2,
  # Steps of that search, which takes 4 to 8, ...
  newton_steps = 12,
  # ... halvings of a step, ...
  most_newton_halvings = 5,
  # ... and points for each coefficient. All are tried in the end.
  points_per_bend = 4,
  # Genealogies a dimension: with fewer the covariance is too uncertain to show tails.
  genealogies_per_dimension = 2,
  # Share of a precision that counts as none. Least squares finds shares to 1e-14, and where a neck
  # opens by so little nothing of it is seen.
  least_share = 1e-10,
  # Points a coefficient of a least squares fit to gradients: with one, nothing is ever left.
  points_per_coefficient = 2,
  # Part of a column that those before it do not make up, from which on least squares are solved by
  # the normal equations: with less, rounding of these has more than 1e-10 of the coefficients.
  far_from_collinear = 1e-3,
  # Bound of the Kullback-Leibler divergence, in nats, below which a target counts as normal: then
  # the log weights of draws from the normal have a standard deviation of about 0.04.
  normal_nats = 1e-3,
  # What others may gain from a single variable on which they depend, in nats, without a search for
  # shapes: a scale that only its effects tell gains a half, however many these are, since its
  # variance is one over twice their number ...
  least_coupled = 0.25,
  # ... and the share of this in what a normal distribution leaves.
  share_coupled = 0.2,
  # What may be gained, in nats, if a normal distribution of the others depends on one more
  # coordinate: log weights then have a standard deviation of 0.2.
  least_driven = 0.02,
  # The same, below which no scales are looked for, of which others may be multiples.
  least_scale = 0.01,
  # Coordinates that are tried again once others are given: twice as many as may be given. Each
  # takes 36 evaluations.
  most_tried = 48,
  # Part of what all coordinates gain that may be left with one more given: one of five scales of
  # the same kind takes a fifth of it away.
  less_driven = 0.8,
  # Random moves by which it is found what a coordinate gains.
  n_driven_moves = 8,
  # Part of them that is moved, so that no scale changes on the way, where they are small; and step
  # of a second difference at 0 along a coordinate of which the scale is about 1, ...
  small_step = 1e-3,
  # ... and how far curvatures over squares of gradients may be apart there, to be in proportion:
  # those of other functions differ by a factor.
  same_share = 1e-2,
  # Coordinates for which that is asked: of some the gradient at 0 may be 0.
  most_asked = 8,
  # Draws at which it is sought which coordinates are normal given which.
  n_linear_probes = 32,
  # Moves of differences, in standard deviations: gradients that are linear are so at any distance.
  probe_step = 0.5,
  # Half of the way of a difference of log densities along a parabola, in standard deviations: so a
  # log density of 1,000, with 16 digits, makes an error of 1e-11.
  wide_difference = 0.02,
  # Where gradients are only nearly linear, moves are no longer than so many standard deviations
  # that a coordinate has given the others: a longer difference need not be a precision.
  widest_probe = 2,
  # Coordinates that may be given: effects of groups may have three scales, three correlations and
  # errors with a scale, and twenty coefficients scales of their own.
  most_given = 24,
  # Entry of a precision, over the roots of those of the diagonal, that is rounding of a difference.
  independent = 1e-6,
  # Points along an axis, where entries are sums of up to six functions, ...
  n_along_axis = 24,
  # ... and axes: on a single one sums of two functions might always be the same sum.
  n_axes = 3,
  # Coordinates given that are further from 0 than this are also tried there: beyond, 1 + exp(t) is
  # 1 or exp(t) but for 2 %.
  one_function_beyond = 4,
  # Singular value of entries along an axis that is rounding, over the largest.
  rounding_of_entry = 1e-9,
  # Part of a function that may be outside of the span of entries: others have a hundred times as
  # much.
  rounding_of_factor = 1e-6,
  # Part of a function that others do not make up, to be one of its own.
  collinear_factor = 1e-4,
  # Points at which the last terms are fitted, at least.
  n_probes = 128,
  # Evaluations for that, less than what a fit takes.
  most_probe_evals = 1e5,
  # Terms that may be tried for an entry at a time: with three correlations they are up to a
  # hundred.
  most_terms = 512,
  # Part of a term that those before it do not make up, ...
  collinear_term = 1e-10,
  # ... and contribution of a term that is rounding.
  rounding_of_term = 1e-8,
  # Part of the least pivot at these points, below which a precision counts as none.
  least_pivot = 1e-3,
  # The same of the median, where others are only nearly normal and the least is none: the curvature
  # at one point may be of the other sign.
  least_near_pivot = 0.1,
  # Steps of a factorisation at a point: those of a full precision of 114 variables, which take 0.3
  # ms.
  most_factor_work = 5e5,
  # Bound of the divergence, in nats, below which no nearer space is looked for: it would make
  # little difference to the barrier.
  next_to_near = 2,
  # Degree of the polynomials of a mean and a factor that depend on others in a smooth way; the
  # fourth gains little over the third.
  most_degree = 3,
  # Standard deviations of a coordinate after which they bend off.
  polynomial_width = 3,
  # Points at which they are asked for, for each polynomial: at a third there may be none.
  points_per_polynomial = 3,
  # Factor by which widths may change in a step to the nearest normal distribution: some of them
  # never settle.
  most_spread = 2,
  # Such steps, ...
  nearest_steps = 5,
  # ... and the root mean square of the last, in standard deviations, with which it counts as found.
  settled_step = 0.1,
  # Standard deviations by which the draws at which they are fitted are scattered: without, they are
  # right only where draws have been.
  wider_than_draws = 0.75,
  # Points of the target that are asked for: with 8 draws of the others at each place of the
  # coordinates given, 5 of 256 places are in a tail of 2 %.
  n_asked = 2048,
  # Independent places that these must be worth, for each coordinate given: a covariance takes that,
  # ...
  places_per_given = 5,
  # ... and coordinates that may be given: in more dimensions there are few around a point.
  most_asked_given = 6,
  # Share of the mean square of the gradient by a coordinate that is left, from which it is tried as
  # one more that is given.
  one_more_left = 0.1,
  # Most times that the marginal density is evaluated, while points get wider or one more is given.
  most_askings = 6,
  # Points a dimension for a neck: with fewer, one is found by chance.
  points_per_dimension = 2,
  # Standard errors of skewness or kurtosis, above which a coordinate is not normal: chance alone
  # gives that to one of 16,000.
  odd_moment = 4,
  # Location in standard deviations, log scale and skew of a coordinate with tails, to both sides:
  # with more, it has hardly anything in common with the normal distribution from which it was
  # found.
  widest_tails = c(3, 3, 2),
  # Points from whose gradients the skew of a coordinate is estimated: to 0.01.
  n_for_skew = 512,
  # Tails that are heavier are a Student t's.
  heaviest_tail = 0.2,
  # budget ---------------------------------------------------------------------
  # A run that tunes may take this much more than the last, by more steps or searches.
  dearer_run = 2,
  # islands --------------------------------------------------------------------
  # Particles of an island that bridge, diagnostics and fits see: more would need three times the
  # memory that the draws take. Eight islands of so many tell a mean to 0.004 standard deviations.
  most_judged = 8192,
  # Numbers in a matrix of particles, from which R collects its memory after each of several
  # islands.
  large_island = 1e6,
  # Friction of the islands' KLMC: with 2 a standard normal coordinate is critically damped, and
  # comes to rest soonest.
  damping = 2,
  # passes ---------------------------------------------------------------------
  # If the error of the bridge is smaller, and no diagnostic has failed, no other shape is tried: a
  # distribution that misses a part of the draws has a larger error.
  sure_bridge = 0.01,
  # The same for a first shape, whose draws may not have seen all of a neck.
  sure_shape = 0.002,
  # Share of the draws that must be independent, if the error is larger than `sure_enough`, or the
  # next pass has more steps.
  sure_ancestor_ess = 0.15,
  # Times as many steps, if draws are worth little.
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
  # The same as a share of what a normal distribution leaves, if this is little along any direction.
  share_gained = 0.1,
  # A new shape may have an estimate lower than the islands' by this beyond the errors.
  fall_reshaped = 0.05,
  # Islands are added for a precision so few at a time, or the error is not known better, ...
  fewest_added = 4,
  # ... and at most so many: the number that it takes is itself known from the islands so far.
  most_added = 64,
  # How often an island is tried whose worker was lost: a worker that is lost by accident once in a
  # hundred times is so three times with the same island once in a million.
  most_tries = 3,
  # Seconds of this process that it takes to start a future and to take its value: measured.
  future_seconds = 0.005,
  # Seconds that workers take to load the package, which is what islands must save: measured.
  loading_seconds = 0.5,
  # Seconds after which workers are asked again whether they are ready.
  ready_seconds = 0.2,
  # The last shares of workers that tell how late the next will come: the median of so many is not
  # that of a single one that was late by chance.
  n_late = 5,
  # Lower the lateness estimate by a fifth after an early result.
  less_late = 0.8,
  # Islands of later passes are numbered so far apart that their random streams differ.
  islands_apart = 2^16,
  # checkpoints ----------------------------------------------------------------
  # Relative difference of numbers that were computed alike on other machines: far above rounding,
  # and what a person changes differs by more.
  same_setting = 1e-6,
  # The same of the log density at one point: a million times the rounding of a double.
  same_density = 1e-10,
  # estimates ------------------------------------------------------------------
  # The least error of an estimate: rounding of log densities of 1e5 and of sums of so many.
  least_error = 1e-8,
  # bridge ---------------------------------------------------------------------
  # Islands from which a bridge is made: two in each half, so that its error can be told.
  bridge_islands = 4,
  # Ratio of the bridge's standard error to that of SMC, below which the bridge is reported: above,
  # SMC is about as good.
  bridge_gain = 0.75,
  # Steps of the iteration, which converges in ten or so.
  most_bridge_steps = 500,
  # Where two steps differ by less it has converged.
  bridge_tolerance = 1e-8,
  # Least standard error of the bridge: draws of an unadjusted kernel have a bias of about a third
  # of it in 100 dimensions.
  least_bridge_error = 1e-4,
  # diagnostics ----------------------------------------------------------------
  # From so many islands on one that makes up half of the mean is suspicious.
  least_islands = 4,
  # Share of the mean that one island may make up: with more, the rest is of no account.
  largest_share = 0.5,
  # Scatter over prediction, which about one of a hundred good fits exceeds.
  suspicious_scatter = 1.8,
  # Few islands scatter more by chance: then the limit is this quantile.
  scatter_level = 0.999,
  # Added to a predicted scatter that is 0 but for rounding.
  scatter_rounding = 1e-7,
  # Probability that a right fit fails.
  gradient_level = 1e-4,
  # Independent draws from which a standard error can be told: from 20 to a sixth.
  least_genealogies = 20,
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
  # Points tried beside the draws, at least two a variable: a share of 5 % is known to 1.4 %.
  n_edge_trials = 256,
  # Share of them that may be impossible.
  largest_edge = 0.05,
  # Least number of draws for rays, mirrors and lines: with fewer, rays may be wrong about a fit
  # that is right.
  least_draws_beside = 256,
  # Rays through the draws, at most: a tenth outside is known to 0.001, ...
  most_rays = 32,
  # ... and at least; else none ...
  least_rays = 8,
  # ... that take no more than this share of the evaluations of the islands. It affords ten rays if
  # a single step is enough, from a reference that is nearly the target, ...
  share_of_rays = 0.04,
  # ... distances on each between the nearest and the furthest draws, ...
  n_between = 28,
  # ... before and beyond these, each a fifth nearer or further than the last, which lead to a tenth
  # and to 80 times the distance.
  n_before = 11,
  n_beyond = 22,
  step_of_rays = 0.2,
  # Shares of the draws on the other side of a distance. Of a part that was seen by too few draws,
  # the largest tells most.
  shares_there = c(0.001, 0.01, 0.1),
  # Draws whose variables are mirrored, at least, else none: a part of 5 % outside is missed by one
  # in five; ...
  least_mirrored_draws = 32,
  # ... at most, in no more evaluations than rays take; ...
  few_mirrored_draws = 64,
  # ... and where these find something, in no more than this share of those of the islands.
  many_mirrored_draws = 1024,
  share_of_mirrors = 0.15,
  # Variables that are mirrored.
  most_mirrored = 16,
  # Lines for each part of an end of a variable, at as many ends as this share of the evaluations of
  # the islands pays for; ...
  few_lines = 8,
  share_of_lines = 0.05,
  # ... if what they find is so many errors above zero, so many lines estimate it; ...
  errors_of_few_lines = 2,
  many_lines = 64,
  # ... and as long as that is above zero and within its limit, so many times as many, the last of
  # which take no more than that share.
  more_lines = 4,
  # Places on a line within the part, and beyond it, up to a hundred times as far.
  n_within_part = 4,
  n_beyond_part = 9,
  step_beyond_part = 0.5,
  # Tolerated rise of log Z found by rays, mirrors or lines, and standard errors of it on top.
  most_of_rays = 0.01,
  errors_of_rays = 3,
  # An estimate this many errors below what a normal proves is too low.
  elbo_errors = 3,
  # Draws for a final ELBO: its error is an eleventh of the log ratios' sd.
  n_elbo_checks = 128,
  # A normal vector is longer than sqrt(d) + 3 by a chance below 1e-4.
  basin_radius = 3,
  # A basin with less than a tenth of the draws that it should have is missed.
  basin_part = 10,
  # Evidence, as a share, that basins without draws may have: log Z would rise by as much.
  basin_missed = 0.02,
  # log10 of the largest standard deviation that is not taken for improper: beyond, a double has
  # four digits left for a variable of the size of one.
  widest_proper = 12,
  # log10 of a size that no unit explains: draws above it, or as much below 1, have gone to where
  # numbers end, at 308, ...
  largest_size = 250,
  # ... and draws above this one have squares that are no numbers.
  largest_square = 150,
  # Part of the draws that may be so, ...
  part_beyond = 0.05,
  # ... among so many draws.
  n_sizes = 128,
  # Points that tell whether a variable stays in a finite range, and by which part it may grow from afar to ten times as
  # far: what grows like a logarithm does so by a third.
  n_range_points = 32,
  same_range = 0.01,
  # Standard deviations of the draws between which a density that never falls off is seen: beyond what
  # most draws reach, and not so far that exponentials of a log scale end.
  far_out = c(5, 25),
  # Parts of these distances, of which the longest is taken where a precision is still known:
  # between 0.5 and 2.7 standard deviations a normal distribution still falls by a factor of 30, the
  # inverse of the distance by one of 5.
  shorter_far_out = 0.8^(0:10),
  # Part of a diagonal entry of a precision that is left to rounding: the coefficients have an error
  # of 2e-15, so that there are four digits left.
  least_left = 1e-11,
  # Rounds that predict a larger scatter prove nothing by a high estimate: with this sd one of 44 is
  # high by 1 or more.
  sure_round = 0.5,
  # Rounds tune, and have a small bias: so much is tolerated.
  round_margin = 0.05,
  # Standard errors by which bridge and SMC may differ: chance alone gives more to one of 16,000.
  errors_of_estimates = 4,
  # A pass that raises the estimate by more than this beyond the errors is not the last.
  rise_of_pass = 0.02,
  # Errors by which a round may have found more: as for bridge and SMC, and the largest of several
  # is compared.
  round_errors = 4,
  # Part of the draws from which the shape of a tail is estimated: fewer make its error too large,
  # more see the bulk of skew distributions.
  part_of_tail = 0.1,
  # Draws in a tail that tell its shape: to 0.1, for an exponential one.
  least_in_tail = 100,
  # Probability that the largest draw of a heavy tail is no larger. Below it, the tail ends: it is a
  # mode apart.
  tail_level = 0.01,
  # Points from which it is told how scales change along a variable, with errors of 2 %; as many as
  # a scatter plot can show.
  n_described = 1000L,
  # Change of a logarithm of a scale, and bend in units of a scale, that is worth a word: a tenth is
  # five of these errors, and cannot be seen in a plot.
  least_described = 0.1
)
