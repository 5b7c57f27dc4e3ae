# The numbers that the stages of smc() decide by. The line above each says what it means,
# and why it has this value. Where another one "does as well", estimates of models in which the
# rule has a say were the same with it within their errors, and none was warned of: see
# bench/rules.R and bench/results/rules.csv.
rules <- list(
  # scout ----------------------------------------------------------------------
  # Paths start from scales of 1 to this: data in raw units have coefficients in the hundreds.
  widest_start = 100,
  # A quasi-Newton path has at most so many points; paths on regressions take less, and eight
  # that take all cost a hundredth of a fit.
  most_path_evals = 150,
  # A start where the target is impossible is halved so often: 2^-30 of it is 0 within 1e-7.
  most_start_halvings = 30,
  # Points of a batch, and batches, that are tried where all starts are impossible: six variables that must
  # be in order are so at one point in 720.
  start_batch = 512,
  most_start_batches = 8,
  # A path ends where its next step can gain no more log density than the least error that a
  # fit claims (`least_bridge_error`).
  path_tolerance = 1e-4,
  # A step must rise by this part of what its slope promises, as is usual for line searches
  # (Nocedal and Wright, 2006).
  sufficient_rise = 1e-4,
  # Cosine of a step and the change of the gradient, below which their product is rounding.
  least_curvature = 1e-10,
  # Part of a whole step below which nothing is left but rounding.
  shortest_step = 1e-14,
  # Pairs of differences that the path remembers of the curvature: 3 to 20 serve, say Nocedal
  # and Wright (2006), and here memory is no matter.
  n_pairs = 20,
  # Points of a path at which a normal is tried, spread evenly, the last among them. With the
  # draws for each, eight paths take 1,000 evaluations, about as many as they have points.
  n_candidates = 25,
  # Draws for the bound of each candidate of a path: only a ranking, made again later.
  n_bound_draws = 5,
  # Normals between the end of a path and its start, each half as far from the end as the one before, where
  # none along the path is possible; and their least standard deviation, over the largest.
  n_on_chord = 12,
  least_on_chord = 1e-3,
  # A batch has as many draws as dimensions, from this ...
  least_batch = 16,
  # ... to this: 1,000 to 4,000 evaluations a normal placed regressions in raw units.
  most_batch = 64,
  # Batches in a pass, after which normals that have come together go on as one. Half or twice does
  # as well.
  n_batches = 5,
  # Passes for the normal of every path: 15 batches, as in the trials that placed regressions.
  n_passes = 3,
  # Passes for the best normals, as long as they gain: 60 batches, as in those trials.
  most_passes = 12,
  # A pass that raises the best bound by less is the last: noise of a bound is as large. Half or
  # twice does as well.
  least_gain = 0.1,
  # So many of the best normals are refined further: the first of them may not end best. Half or
  # twice does as well.
  n_refined = 3,
  # Normals whose means are closer than this, in sds of either, are the same basin: two that
  # are as far apart have an eighth of their mass in common.
  basin_distance = 3,
  # A basin whose bound is lower by more has a thousandth of the best one's evidence at most.
  basin_range = 7,
  # Points on the way between two places, at which it is seen whether the density dips there, ...
  n_on_way = 9,
  # ... and by how much it must, so that they are modes of their own: between two equal normal distributions
  # it dips by so much where their means are 3.7 standard deviations apart.
  least_dip = 1,
  # No particle gets to what is further from a basin than this, in its sds: the furthest of 1,024 from
  # a normal inflated by 1.5 are at 4.
  reach = 6,
  # The share of a mixture of basins that its covering normal has: where the basins are not normal
  # distributions it must reach what they miss. Half of it or half as much again does as well.
  covering_part = 0.5,
  # Points around what was found that are tried for basins of their own: of these a mode of a
  # tenth of the width, 6 sds away, has about four in two dimensions and 0.4 in three, ...
  n_outside = 2048,
  # ... and one of half the width, as far off as you like, some 60 in four and 12 in six, so that it is not done in
  # more. There paths from them end in places that are no basins: with them Brownian was off by 0.3 and 0.4 in two
  # fits of four.
  largest_outside = 6,
  # ... between this and this much further out, evenly in the logarithm. Half or twice does as
  # well.
  outside = c(1.5, 15),
  # Paths from those of them that most exceed what was found. Half or twice does as well.
  n_outside_paths = 4L,
  # Matrices up to this dimension, standard deviations alone beyond: the cost is cubic, and a
  # factor of 250 variables takes 5 million operations.
  largest_dense = 250,
  # Shapes that gradients tell exactly up to this dimension: that of 500 effects and their scale
  # takes a minute with a fast BLAS. The search for others but skew takes more: with 322 variables it took
  # three times as long as all else, and found nothing.
  largest_exact = 600,
  # The scout's best normal has a matrix up to this dimension: that of 2,000 variables takes 32 MB, and
  # its factor and its inverse some seconds ...
  largest_curved = 2000,
  # ... where its bound is higher by more than this than with standard deviations alone: less than
  # a nat makes hardly a difference to the barrier, and each step would cost a product with a matrix.
  least_curved_gain = 1,
  # Paths, and twice as many where they disagree. Twice as many do as well; with half, the error of
  # eight modes was larger by 25 times.
  n_starts = 8L,
  # angles -----------------------------------------------------------------------
  # Logit of a place that is as good as a bound, and the relative difference of densities at two such that is rounding:
  # a density that changes by a thousand over the width has changed by 1e-10 there.
  end_of_scale = 30,
  same_at_ends = 1e-8,
  # Draws of a mode that tell where an angle is, to a tenth of its spread.
  n_turning_draws = 64,
  # Length of the mean direction of an angle, below which it has none: that of a uniform one is 0.1 by chance.
  least_direction = 0.2,
  # edges ------------------------------------------------------------------------
  # Points and places between the bounds that tell whether a variable is normal given the others: five have two third
  # differences.
  n_edged_points = 2,
  n_edged_places = 5,
  # Draws of a normal distribution that tell which part of it is between the bounds, and the least part: of 8,192 draws
  # 400 are left there, which leave an error of 0.05.
  n_inside_draws = 256,
  least_inside = 0.05,
  # Points that are tried for the marginal density of a few coordinates: where a part of `least_inside` is between the
  # edges, all of them are beyond in one case of five, and where a tenth is in one of thirty.
  n_marginal_draws = 32,
  # ratios -----------------------------------------------------------------------
  # Points that tell what a program makes of its variables: what holds at one by chance does not at another.
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
  # ... and over parts of it, to tell a rough density from a wrong gradient: what is left out
  # falls by 64 each time.
  shorter_difference = 1 / 8,
  # No closer than this, relative to the point: there rounding of a log density of 1e5 makes a
  # difference of 0.004 in a slope, nearly `wrong_slope`.
  narrowest_difference = 4e-8,
  # Two differences that agree to this have settled: half of what the widest leaves out.
  settled_slope = 1e-3,
  # A gradient further than this from a settled difference is wrong: five times as far.
  wrong_slope = 5e-3,
  # Other widths, by which a wrong slope must be wrong too. With one or none of them a kink was
  # taken for a wrong gradient in one scout of 30.
  confirming_steps = c(0.9, 0.8, 0.7),
  # Rounding errors of a difference, in units of the last place: a sum of 64 terms has as many.
  rounding_slack = 8,
  # Restarts of the search for a mode: of fifteen models of the suites none took more than two.
  most_climbs = 5,
  # A mode is one where the Newton step from it is shorter, in sds: its normal is as good then.
  mode_distance = 0.01,
  # Factor by which widths may still change where the curvature at a mode is taken: differences
  # over a tenth of a width that is wrong by less leave out 1 %.
  settled_curvature = 2,
  # race -----------------------------------------------------------------------
  # Enough to tell references that differ by nats, at a quarter of a round's cost. Half or twice
  # does as well.
  race_particles = 256L,
  # Part of the effective sample size that a step by MALA leaves, in a first run from a reference. Such
  # runs are some steps long where 16 had been given to each, and as good a start: in the suites the
  # evaluations fell by a fifth, and errors stayed as they were. 0.6 or 0.9 does as well.
  race_ess = 0.8,
  # From a fitted reference 16 steps gave as many right fits as 64; with 8 funnels were off by 1.
  race_steps = 16,
  # From a reference that covers several basins 21 of 22 fits were right with so many.
  cover_steps = 32,
  # Estimates differ when they are further apart than this many errors: 95 % of a normal.
  errors_apart = 2,
  # kernels --------------------------------------------------------------------
  # MALA from references that fit up to this dimension. With it the variance of an estimate times its
  # evaluations is half of KLMC's in the suites; regressions and skew variables in 8 to 40 dimensions took
  # half of the evaluations for the same error, and draws were worth as much or more for what they cost. In
  # 50 to 100 dimensions the errors were equal, and draws worth less.
  largest_adjusted = 40,
  # rounds ---------------------------------------------------------------------
  # Steps for each unit of the barrier, as Syed et al. (2024) recommend.
  steps_per_barrier = 2,
  # Share of the way below which a step adds nothing to it: the inverse's slope would be 1e8.
  least_progress = 1e-8,
  # A path has at least one temperature between reference and target.
  least_steps = 2,
  # Another round must have paid by this factor in the barrier; a tenth was too little to pay.
  lower_barrier = 0.8,
  # The draws' variance in units of the reference's; above it the reference is too narrow.
  settled_width = 1,
  # Standard errors by which a variance must be too large. Chance alone gives that to one of
  # 740, and it is the largest of all.
  width_errors = 3,
  # A barrier higher by no more than 5 % may be so by chance. 2 % or 10 % does as well.
  equal_barrier = 1.05,
  # predicted_sd where one genealogy has 70 % of the weight: such an estimate is chance.
  one_genealogy = 0.7,
  # A round's estimate may fall by this beyond the errors: tuned ones may be too high. Half or
  # twice does as well.
  fall = 0.5,
  # fits -----------------------------------------------------------------------
  # The variance of a fitted reference over that of the particles: tails that are too light make
  # an estimate that is too low, and looks fine. With 2 and 3 Brownian and the funnel were lower.
  inflation = 1.5,
  # Dimension above which it falls, so that the barrier that it costs, ln(1.5) sqrt(d / (2 pi)), stays
  # the same.
  inflation_dim = 250,
  # Times what gradients call for of hundreds of skew variables: the part of their variance above 1. With twice as much
  # the reference of 505 was ten nats from the target, where the fit was 1.2.
  wider_skewed = 1,
  # The same of what is nearly normal given others. Where the others are beyond the draws it is further off than the
  # gradients at these tell: with 1 effects on durations and counts were off by 0.023, with 2 by 0.014.
  wider_given = 2,
  # The variance of conditioning variables over what was fitted: particles that began in the middle of a neck have
  # not seen its ends. With 1.5 a one-way hierarchy was off by 0.059, with 4 by 0.041.
  inflation_conditioning = 4,
  # Particles with a smaller share of the largest weight are left out: one at -2617 spoilt a fit.
  least_weight = 1e-12,
  # Below this effective sample size nothing is fitted: means are off by a third of an sd.
  least_ess = 10,
  # A reference is not moved where draws are twice as wide: of two modes it left one behind.
  widest_moved = 4,
  # Variance relative to the squared mean that may be rounding: (1e-12)^2.
  rounding = 1e-24,
  # Added to squares before their logarithm is taken; smaller than any square that matters.
  least_square = 1e-300,
  # A statistic this many sds above what chance gives is real; many pairs are compared. Half or
  # twice does as well.
  chance_sds = 8,
  # Share of log squares' variance that a variable must explain; with 1 % Brownian was off.
  least_explained = 0.1,
  # Variance of log scales that a variable must explain: an sd of 0.1 costs next to nothing.
  least_log_scale = 0.01,
  # Share of a variance that another variable's square must explain, as in trials on bananas.
  least_bend = 0.05,
  # Rows times squared dimension that a search for shapes may take: two seconds or so. Half or
  # twice does as well.
  shape_work = 1e6,
  # But no fewer rows than this, as many as a round has. Twice does as well; with half, shapes were
  # found in a regression with 61 coefficients that are none.
  least_rows = 1024,
  # Part of a column that others do not make up, to have a coefficient of its own: with less this
  # is a hundred times what it stands for, and cancels with others.
  collinear = 0.01,
  # Leverage of a point, above which half of the digits of its residual are rounding.
  most_leverage = 1 - 1e-8,
  # Times that conditional location and scale are fitted in turn; they settle in three.
  location_sweeps = 4,
  # Slopes of log scales that are tried for a neck: those by the logarithm of a standard
  # deviation, a variance, a precision, and of the root of this.
  neck_slopes = c(1, 0.5, -0.5, -1),
  # Centres that are tried, in standard deviations of the variable. The last are those of funnels,
  # which do not open where particles have been, the first those of what is only there open. Half
  # or twice as many do as well.
  neck_centres = c(-10, -6, -4, seq(-3, 3, by = 0.25), 4, 6, 10),
  # Relative error of a coefficient of the gradients that is to be that of a multiple: least squares
  # on a prior of another form than those that are tried is right to about a tenth.
  same_rate = 0.1,
  # Share of the gradients' mean square that a neck may leave, to count as exact: then it is right
  # also where no point has been. By the logarithmic Sobolev inequality a hundred variables of
  # which so much is left are at most 0.1 nats from what was fitted.
  linear_gradients = 2e-3,
  # The same, to take the neck on one variable without trying for less with two: a funnel's leaves
  # 1e-7, since its scale falls for ever, and a share's does not.
  nothing_left = 1e-6,
  # The same, to take the axes from the gradients, not from moments. Half or twice does as
  # well.
  nearly_linear = 0.1,
  # The same of one coordinate among many, from which it is not taken for normal: such are those that the
  # data say little of, and a bound cuts off.
  far_from_normal = 0.5,
  # Share of them that may be such: with half, two of four, a horseshoe was off by four errors.
  few_far = 0.1,
  # Draws of a reference, and as many points, that tell whether the density falls off beside the points: ...
  n_beside = 64,
  # ... where the target is lower by so many nats, next to the normal distribution, than at any of these points, ...
  next_to_nothing = 10,
  # ... is more than this part of it.
  part_fallen = 0.05,
  # Widths of a knee, in standard deviations of the conditioning variable: a narrower one is a corner, and a wider one
  # the square.
  knee_widths = c(0.1, 10),
  # Steps of Nelder and Mead's method, which takes 60 to 120 for the place and the width of a knee.
  knee_steps = 100,
  # Where one more knee is tried first, in the same units: the best of these is moved from there.
  first_places = c(-2, -1, 0, 1, 2),
  # Bends of all conditioning variables together: a curve with so many knees is as smooth a function as draws can tell.
  most_bends = 8,
  # Degrees of freedom that are tried, from Cauchy to nearly normal. Half or twice as many do as
  # well.
  student_df = c(1, 1.5, 2, 3, 4, 6, 10),
  # Steps of the EM algorithm for a Student t, which converges fast from the normal. Half or twice
  # does as well.
  em_steps = 8,
  # Share of what a normal distribution leaves of gradients that is along the points, to try a Student t by
  # gradients: of t distributions of 3 to 100 dimensions and 4.5 to 2,000 degrees of freedom 0.46 or more,
  # of Sonar 0.07 to 0.11.
  least_radial = 0.25,
  # Degrees of freedom from which those of a Student t are searched for by gradients. Of 560 sets of
  # points of t distributions, of 1 to 60 dimensions and 0.5 to 20 degrees of freedom, all but 17 were
  # found from 2, and all but 56 from 1.
  first_df = 2,
  # Steps of that search, which takes 4 to 8, ...
  newton_steps = 12,
  # ... halvings of a step, ...
  most_newton_halvings = 5,
  # ... and points for each coefficient. All are tried in the end.
  points_per_bend = 4,
  # Genealogies a dimension: with fewer the covariance is too uncertain to show tails. Half or
  # twice does as well.
  genealogies_per_dimension = 2,
  # Share of a precision that counts as none. Least squares finds shares to 1e-14, and where a
  # neck opens by so little nothing of it is seen.
  least_share = 1e-10,
  # Points a coefficient of a least squares fit to gradients: with one, nothing is ever left.
  points_per_coefficient = 2,
  # Part of a column that those before it do not make up, from which on least squares are solved by the
  # normal equations: with less, rounding of these has more than 1e-10 of the coefficients.
  far_from_collinear = 1e-3,
  # Bound of the Kullback-Leibler divergence, in nats, below which a target counts as normal: then
  # the log weights of draws from the normal have a standard deviation of about 0.04.
  normal_nats = 1e-3,
  # What others may gain from a single variable that they depend on, in nats, without being asked for
  # shapes: a scale that only its effects tell gains a half, however many these are, since its variance is
  # one over twice their number. Sonar's 0.10 to 0.14 are no such. ...
  least_coupled = 0.25,
  # ... and its share in what a normal distribution leaves: with one variable given most would still be
  # left, as 0.9 of Sonar's. In the suites all that was found, but for tails, had a share of 0.21 or more.
  share_coupled = 0.2,
  # What may be gained, in nats, where a normal distribution of the others depends on one more
  # coordinate: by so much log weights have a standard deviation of 0.2. The scale of six schools, of which
  # the classes are known with another scale, gains 0.03 to 0.4.
  least_driven = 0.02,
  # The same, below which no scales are looked for, of which others may be multiples.
  least_scale = 0.01,
  # Coordinates that are tried again once others are given: twice as many as may be given. It takes 36
  # evaluations for each, and with all 530 of a model of responses took 190,000.
  most_tried = 48,
  # Part of what all coordinates gain that may be left with one more given: one of five scales
  # of the same kind takes a fifth of it away.
  less_driven = 0.8,
  # Random moves by which it is told what a coordinate gains: with four, the scales of a model were missed
  # once in three.
  n_driven_moves = 8,
  # Part of them that is moved, so that no scale changes on the way, where they are small; and step of a
  # second difference at 0 along a coordinate of which the scale is about 1, ...
  small_step = 1e-3,
  # ... and how far curvatures over squares of gradients may be apart there, to be in proportion: those of
  # other functions differ by a factor.
  same_share = 1e-2,
  # Coordinates for which that is asked: of some the gradient at 0 may be 0.
  most_asked = 8,
  # Draws at which it is sought which coordinates are normal given which.
  n_linear_probes = 32,
  # Moves of differences, in standard deviations: gradients that are linear are so at any distance.
  probe_step = 0.5,
  # Half of the way of a difference of log densities along a parabola, in standard deviations: so a log
  # density of 1,000, with 16 digits, makes an error of 1e-11.
  wide_difference = 0.02,
  # Where gradients are only nearly linear, no further than so many standard deviations that a coordinate has
  # given the others: of a local linear trend of 50 counts, not centred, the matrix of differences over half
  # a standard deviation of the draws was no precision.
  widest_probe = 2,
  # Coordinates that may be given. Seven are, where effects of groups have three scales, three
  # correlations, and errors with a scale; and twenty-two where twenty coefficients have scales of their
  # own.
  most_given = 24,
  # Entry of a precision, over the roots of those of the diagonal, that is rounding of a difference.
  independent = 1e-6,
  # Points along an axis, where entries are sums of up to six functions, ...
  n_along_axis = 24,
  # ... and axes: on a single one sums of two functions might always be the same sum.
  n_axes = 3,
  # Coordinates given that are further from 0 than this are also tried there: beyond, 1 + exp(t) is 1 or exp(t) but for 2 %.
  one_function_beyond = 4,
  # Singular value of entries along an axis that is rounding, over the largest.
  rounding_of_entry = 1e-9,
  # Part of a function that may be outside of the span of entries: others have a hundred times as much.
  rounding_of_factor = 1e-6,
  # Part of a function that others do not make up, to be one of its own.
  collinear_factor = 1e-4,
  # Points at which the last terms are fitted, at least.
  n_probes = 128,
  # Evaluations for that, less than what a fit takes: effects of groups take 1,000 to 10,000, fifteen
  # coefficients with a scale each 30,000, and a full precision of 100 variables with two scales 35,000, twice
  # where products are looked for first.
  most_probe_evals = 1e5,
  # Terms that may be tried for an entry at a time: with three correlations they are up to a hundred.
  most_terms = 512,
  # Part of a term that those before it do not make up, ...
  collinear_term = 1e-10,
  # ... and contribution of a term that is rounding.
  rounding_of_term = 1e-8,
  # Part of the least pivot at these points, below which a precision counts as none.
  least_pivot = 1e-3,
  # The same of the median, where others are only nearly normal and the least is none: the curvature at
  # one point may be of the other sign.
  least_near_pivot = 0.1,
  # Steps of a factorisation at a point: those of a full precision of 114 variables, which take 0.3 ms. A
  # random walk of thirty log rates with overdispersion, not centred, has 4e4, and a local linear trend of 50
  # counts 3.5e5; without its precision it was off by 0.5 to 2.6.
  most_factor_work = 5e5,
  # Bound of the divergence, in nats, below which no nearer space is looked for: it would make little
  # difference to the barrier, and in 388 variables it takes 40,000 evaluations to look for it.
  next_to_near = 2,
  # Degree of the polynomials of a mean and a factor that depend on others in a smooth way. The mean divergence
  # of a Gaussian process of 40 counts, given its length, amplitude and mean, was 0.9 nats by the second
  # degree, 0.3 by the third and 0.1 by the fourth; of a state space model of 386 variables 19, 1.0 and 1.2.
  most_degree = 3,
  # Standard deviations of a coordinate after which they bend off. With 2 these were 0.5 and 3, 4 does as well.
  polynomial_width = 3,
  # Points at which they are asked for, for each polynomial: at a third there may be none.
  points_per_polynomial = 3,
  # Factor by which widths may change in a step to the nearest normal distribution: some of them never settle.
  most_spread = 2,
  # Such steps, ...
  nearest_steps = 5,
  # ... and the root mean square of the last, in standard deviations, with which it counts as found: that of 388
  # variables of a likelihood that is not concave is 0.02 to 0.06.
  settled_step = 0.1,
  # Standard deviations by which the draws that they are fitted at are scattered: with none the divergence of
  # the process was 2.5, with a third 0.8, with a half 0.3.
  wider_than_draws = 0.75,
  # Points of the target that are asked for: with 8 draws of the others at each place of the coordinates given, 5 of
  # 256 places are in a tail of 2 %.
  n_asked = 2048,
  # Independent places that these must be worth, for each coordinate given: a covariance takes that, ...
  places_per_given = 5,
  # ... and coordinates that may be given: in more dimensions there are few around a point.
  most_asked_given = 6,
  # Share of the mean square of the gradient by a coordinate that is left, from which it is tried as one more that is
  # given: a share of animals had 0.12 to 0.40, the next coordinates 0.04.
  one_more_left = 0.1,
  # How often the target is asked at most, while points get wider or one more is given: from the first normal
  # distribution of 385 effects and three variables given, a third as wide as the target, it took five times.
  most_askings = 6,
  # Points a dimension for a neck: with about one, a normal of 200 variables had one. Half or twice
  # does as well.
  points_per_dimension = 2,
  # Standard errors of skewness or kurtosis, above which a coordinate is not normal: chance
  # alone gives that to one of 16,000.
  odd_moment = 4,
  # Location in sds, log scale and skew of a coordinate with tails, to both sides: with more, it
  # has hardly anything in common with the normal distribution that it was found by. Half or twice
  # does as well.
  widest_tails = c(3, 3, 2),
  # Points from whose gradients the skew of a coordinate is told: to 0.01, where others change these by a quarter.
  n_for_skew = 512,
  # Tails that are heavier are a Student t's. Half or twice does as well.
  heaviest_tail = 0.2,
  # budget ---------------------------------------------------------------------
  # A run that tunes may take this much more than the last, by more steps or searches: of 57 runs
  # in fits of the suites none took more than 1.7 times as much.
  dearer_run = 2,
  # islands --------------------------------------------------------------------
  # Particles of an island that bridge, diagnostics and fits see: more would need three times the memory that
  # the draws take. Eight islands of so many tell a mean to 0.004 standard deviations.
  most_judged = 8192,
  # Numbers in a matrix of particles, from which memory is collected after each of several islands. Without
  # it eight islands of 1e5 particles in ten dimensions take a fifth more.
  large_island = 1e6,
  # Friction of the islands' KLMC: with 2 a standard normal coordinate is critically damped, and comes
  # to rest soonest. Draws of regressions in 60 and 100 dimensions were worth 3,700 and 3,500
  # independent ones, of skew variables 1,800; with 1, 3,500, 3,000 and 1,900; with 3, 3,900, 3,100 and 1,500.
  damping = 2,
  # passes ---------------------------------------------------------------------
  # With a smaller error of the bridge, and no diagnostic failed, no other shape is tried: a
  # distribution that misses a part of the draws has a larger one. Half or twice does as well.
  sure_bridge = 0.01,
  # The same for a first shape, whose draws may not have seen all of a neck: one funnel that
  # was off by 0.16 claimed 0.009, those that were right 0.0003 to 0.001. With twice
  # this, eight schools and a Student t were off by 0.008 and 0.005, not 0.0003 and 0.0001.
  sure_shape = 0.002,
  # Share of the draws that must be independent, where the error is larger than `sure_enough`, or
  # the next pass has more steps. Correlated effects that were off by -0.4 had 0.064.
  sure_worth = 0.15,
  # Times as many steps, where draws are worth little: with 32 steps for 7 the error of correlated
  # effects by SMC fell from 0.15 to 0.07, and the estimate rose by 0.4.
  longer = 4,
  # One pass cured most funnels, two centred eight schools; more only as the estimate rises, ...
  sure_passes = 2,
  # ... up to so many: funnels of 20 and 30 variables rose in each of three. 3 or 10 does as well.
  most_further_passes = 5,
  # A pass whose error is so many times that of the one before is dropped: passes that agree differ
  # by half at most, one that lost a hierarchy's neck by a factor of eight. 1.5 or 4 does as well.
  spoilt = 2,
  # Times 0.75 it is a half, which halved the errors on bananas, horseshoes and eight schools.
  shaped_fraction = 2 / 3,
  # Gain in mean log density for which a shape is worth a pass; less is noise of the fit. Half or
  # twice does as well.
  least_shape_gain = 0.02,
  # The same as a share of what a normal distribution leaves, where this is little along any direction:
  # tails of Sonar gained a hundredth in 7 of 30 fits, which took twice as many evaluations with them, and
  # had an error larger by a third.
  share_gained = 0.1,
  # A new shape may have an estimate lower than the islands' by this beyond the errors. Half or
  # twice does as well.
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
  # The last shares of workers that tell how late the next will come: the median of so many is not that of
  # a single one that was late by chance.
  n_late = 5,
  # Where a share was there before this process had done its own, it may come sooner than was thought: by a fifth,
  # so that a guess that was right is soon so again.
  less_late = 0.8,
  # Islands of later passes are numbered so far apart that their random streams differ.
  islands_apart = 2^16,
  # checkpoints ----------------------------------------------------------------
  # Relative difference of numbers that were computed alike on other machines: far above
  # rounding, and what a person changes differs by more.
  same_setting = 1e-6,
  # The same of the log density at one point: a million times the rounding of a double.
  same_density = 1e-10,
  # estimates ------------------------------------------------------------------
  # The least error of an estimate: rounding of log densities of 1e5 and of sums of so many.
  least_error = 1e-8,
  # bridge ---------------------------------------------------------------------
  # Islands from which a bridge is made: two in each half, so that its error can be told.
  bridge_islands = 4,
  # Error over that of SMC, below which the bridge is reported: of 311 fits of the suites 28 were
  # between this and 1, and SMC was a little nearer there in two sets of three.
  bridge_gain = 0.75,
  # Steps of the iteration, which converges in ten or so.
  most_bridge_steps = 500,
  # Where two steps differ by less it has converged.
  bridge_tolerance = 1e-8,
  # Draws of an unadjusted kernel are off by a little: on normal targets of 100 variables the
  # bridge was off by 3e-5, where it claimed 1e-5.
  least_bridge_error = 1e-4,
  # diagnostics ----------------------------------------------------------------
  # From so many islands on one that makes up half of the mean is suspicious.
  least_islands = 4,
  # Share of the mean that one island may make up: with more, the rest is of no account.
  largest_share = 0.5,
  # Scatter over prediction: 0.5 % (Gaussian) and 1.5 % (Brownian) of 200 good fits have more.
  suspicious_scatter = 1.8,
  # Few islands scatter more by chance: then the limit is this quantile.
  scatter_level = 0.999,
  # Added to a predicted scatter that is 0 but for rounding.
  scatter_rounding = 1e-7,
  # Chance that a right fit fails; limits of 4 to 5 told 46 wrong fits from 19 right ones.
  gradient_level = 1e-4,
  # Independent draws from which a standard error can be told: from 20 to a sixth.
  least_genealogies = 20,
  # Root mean square t: 19 of 64 wrong and 5 of 140 right fits of hard shapes have more.
  stein = 3,
  # Variance of the draws in units of the reference's; more, and it is half as wide as the target.
  widest = 4,
  # The same, or the fit is not to be trusted. In fits of correlated effects that were off by 0.1 to
  # 1.2 it was 0.001 to 0.035, in others that were off by 3.7 to 9.5 errors 0.06 to 0.11. Of 1,075 fits
  # of the suites one that was right is warned of for this alone.
  least_worth = 0.12,
  # With a smaller error draws may be worth less: the bridge shows that nothing is missed. Of 438
  # fits of the suites eight claim more.
  sure_enough = 0.02,
  # Points tried beside the draws, at least two a variable: a share of 5 % is known to 1.4 %.
  n_edge_trials = 256,
  # Share of them that may be impossible. Half or twice does as well.
  largest_edge = 0.05,
  # Draws from which it is told what is beside them, by rays or mirrors, at least. What the others are is known
  # from a tenth of them. Of 160 draws of a normal distribution rays were wrong in 5 of 40 fits, of 320 in none of 20.
  least_draws_beside = 256,
  # Rays through the draws, at most: a tenth outside is known to 0.001, ...
  most_rays = 32,
  # ... and at least; else none ...
  least_rays = 8,
  # ... that take no more than this share of the evaluations of the islands: a single step of eight islands, from a
  # reference that is nearly the target, still affords ten rays, and with 0.03 had none. What such a reference misses
  # nothing else shows, ...
  share_of_rays = 0.04,
  # ... distances on each between the nearest and the furthest draws, ...
  n_between = 28,
  # ... before and beyond these, each a fifth nearer or further than the last, which lead to a tenth
  # and to 80 times the distance.
  n_before = 11,
  n_beyond = 22,
  step_of_rays = 0.2,
  # Shares of the draws that are on the other side of a distance. Of a part that has been seen, but by
  # too few draws, the largest tells most.
  shares_there = c(0.001, 0.01, 0.1),
  # Draws whose variables are mirrored, at least, else none: a part of 5 % outside is missed by one in five; ...
  least_mirrored_draws = 32,
  # ... at most, in no more evaluations than rays take; ...
  few_mirrored_draws = 64,
  # ... and where these find something, in no more than this share of those of the islands.
  many_mirrored_draws = 1024,
  share_of_mirrors = 0.15,
  # Variables that are mirrored.
  most_mirrored = 16,
  # Lines for each part of an end of a variable, at as many ends as this share of the evaluations of the islands pays
  # for; with half as many lines thin tails were missed; ...
  few_lines = 8,
  share_of_lines = 0.05,
  # ... where what they find is so many errors above none, so many lines tell how much it is; ...
  errors_of_few_lines = 2,
  many_lines = 64,
  # ... and as long as that is above none and within its limit, so many times as many, the last of which take no more
  # than that share. A tail of 0.5 was found as 0.57 with an error of 0.19 by 64 lines, and as 0.54 with one of 0.06 by 1,024.
  more_lines = 4,
  # Places on a line within the part, and beyond it, up to a hundred times as far.
  n_within_part = 4,
  n_beyond_part = 9,
  step_beyond_part = 0.5,
  # By so much log Z may rise with what rays, mirrors or lines find, and by its own error. In right fits of the suites
  # it is 0.001.
  most_of_rays = 0.01,
  errors_of_rays = 3,
  # An estimate this many errors below what a normal proves is too low.
  bound_errors = 3,
  # Draws for a final bound: its error is an eleventh of the log ratios' sd.
  n_bound_checks = 128,
  # A normal vector is longer than sqrt(d) + 3 by a chance below 1e-4.
  basin_radius = 3,
  # A basin with less than a tenth of the draws that it should have is missed. A fifth or a
  # twentieth does as well.
  basin_part = 10,
  # Evidence, as a share, that basins without draws may have: log Z would rise by as much. Half or
  # twice does as well.
  basin_missed = 0.02,
  # Decimal logarithm of the widest sd of a normal that is not taken for improper: wider, a
  # double has four digits left for a variable of the size of one.
  widest_proper = 12,
  # The same of a size that variables have in no unit: where a part of the draws is larger, or as much
  # smaller than 1, they have gone on to where numbers end, at 308; a gamma distribution of shape 0.01
  # has a share of 0.003 there, ...
  largest_size = 250,
  # ... and so where a part of the draws is this large: their squares are no numbers, nor is a standard deviation.
  largest_square = 150,
  # ... and with a tail as heavy as Cauchy's none is; the part is looked for ...
  part_beyond = 0.05,
  # ... among so many draws, of which it is six.
  n_sizes = 128,
  # Points that tell whether a variable stays in a finite range, and by which part it may grow from afar to ten times as
  # far: what grows like a logarithm does so by a third.
  n_range_points = 32,
  same_range = 0.01,
  # Standard deviations of the draws between which a density that never falls off is seen: beyond what
  # most draws reach, and not so far that exponentials of a log scale end.
  far_out = c(5, 25),
  # Parts of these distances, of which the longest is taken where a precision is still known: between
  # 0.5 and 2.7 standard deviations a normal distribution still falls by a factor of 30, the inverse of
  # the distance by one of 5.
  shorter_far_out = 0.8^(0:10),
  # Part of a diagonal entry of a precision that is left to rounding: the coefficients have an error of
  # 2e-15, so that there are four digits left.
  least_left = 1e-11,
  # Rounds that predict a larger scatter prove nothing by a high estimate: with this sd one of
  # 44 is high by 1 or more.
  sure_round = 0.5,
  # Rounds tune, and are biased by a little: so much is forgiven. Half or twice does as well.
  round_margin = 0.05,
  # Errors by which bridge and SMC may differ: chance alone gives more to one of 16,000.
  errors_of_estimates = 4,
  # A pass that raises the estimate by more than this beyond the errors is not the last. Half or
  # twice does as well.
  rise_of_pass = 0.02,
  # Errors by which a round may have found more: as for bridge and SMC, and the largest of
  # several is compared.
  round_errors = 4,
  # Part of the draws that tells the shape of a tail: of 8,192 draws of t with 4, 3, 2.5 and 2 degrees of freedom in 0,
  # 0, 50 and 100 of 100 samples the standard deviation is not trusted, where it has errors of 4, 9, 14 % and no limit. With
  # the 3 % of Vehtari et al. shapes have twice the error. With 20 % that of Gamma(0.1) is not trusted, which has
  # an error of 4 %.
  part_of_tail = 0.1,
  # Draws in a tail that tell its shape: to 0.1, for an exponential one.
  least_in_tail = 100,
  # Chance that the largest draw of a heavy tail is no larger: of modes apart with 1 to 8 % of the draws it was below 1e-3.
  tail_level = 0.01,
  # Points from which it is told how scales change along a variable, with errors of 2 %; and as many
  # as a scatter plot can show.
  n_described = 1000L,
  # Change of a logarithm of a scale, and bend in units of a scale, that is worth a word: a tenth
  # is five of these errors, and cannot be seen in a plot.
  least_described = 0.1
)
