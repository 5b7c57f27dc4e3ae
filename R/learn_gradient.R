# Comparison of a target's gradient with central differences of its log density, with Richardson extrapolation over two
# steps. Called by the scout, which stops or warns where they disagree, and by check_gradient().

# Draws of the best normal distribution.
n_gradient_candidates <- 16
# The share of these, the likeliest, at which the gradient may be checked. Of 12 draws the four with the steepest slopes
# along a variable have slopes of about one over its standard deviation, enough to detect a relative error of 1 %.
part_of_candidates <- 3 / 4
# Points at which the gradient is checked along each direction: one of them may be at a kink, or have no digits.
n_gradient_points <- 4
# Largest number of directions; up to so many variables each is a direction. The check then takes 1,024 evaluations.
most_gradient_directions <- 64
# Factor by which the step is shortened, to inform_once a rough density from a wrong gradient. Each time the truncation
# error decreases by a factor of 64.
shorter_difference <- 1 / 8
# Smallest step, relative to the width: for a shorter one the rounding of a log density of 1e5 changes a slope by 0.004,
# nearly `wrong_slope`.
narrowest_difference <- 4e-8
# Two differences that agree up to this have converged: half the truncation error over the largest step.
settled_slope <- 1e-3
# Further steps, relative to the first, over which a gradient must also be wrong, so that a kink is not mistaken for
# one.
confirming_steps <- c(0.9, 0.8, 0.7)
# Rounding error of a difference, in units of the last place: that of a sum of 64 terms.
rounding_slack <- 8

# in the scout ----------------------------------------------------------------

# Checks the gradient around the best normal distribution. If it is wrong there and right around the next, the first is
# left out: its log density has no digits, since a programming error would show around the next, too. Returns
# list(normals, gradient, left_out): the normals kept, the result of check_gradient_near(), and the point where the
# gradient was wrong (1 x d), or NULL.
check_basin_gradients <- function(target, evaluate, normals, start) {
  gradient <- first <- check_gradient_near(target, evaluate, normals, start)
  left <- normals
  for (i in seq_len(rules$n_refined)) {
    if (!gradient$verdict %in% "wrong" || length(left) < 2) break
    left <- left[-which.max(vapply(left, `[[`, 0, "elbo"))]
    gradient <- check_gradient_near(target, evaluate, left, start)
  }
  if (first$verdict %in% "wrong" && gradient$verdict %in% "right") {
    at <- first$place$x[first$place$worst, , drop = FALSE]
    list(normals = check_elbos_of(evaluate, left), gradient = gradient, left_out = at)
  } else {
    list(normals = normals, gradient = first, left_out = NULL)
  }
}

# Checks the gradient at draws of the best normal distribution, or without one (say, because the gradient has the wrong
# sign) at starts of paths; along each variable, or along several together if there are many. Returns list(verdict,
# place = list(x, width, worst, variables)): "right", "wrong", "rough" or NA; the points and widths; the row with the
# largest error, and the variables moved there. The place is NULL if there is no point.
check_gradient_near <- function(target, evaluate, normals, start) {
  place <- gradient_place(target, evaluate, normals, start)
  if (is.null(place) || !evaluate(place$x, "own")) {
    return(list(verdict = NA_character_, place = place))
  }
  directions <- gradient_directions(target$dim)
  trials <- gradient_trials(place, directions)
  slopes <- compare_slopes(
    evaluate, rows_of(place, trials$point),
    directions[trials$direction, , drop = FALSE] * place$width[trials$point, , drop = FALSE]
  )
  is_wrong <- wrong_directions(slopes$verdict, trials$direction)[trials$direction] & slopes$verdict == "wrong"
  worst <- which.max(ifelse(is_wrong, slopes$error, -Inf))
  place$worst <- trials$point[worst]
  place$variables <- which(directions[trials$direction[worst], ] != 0)
  list(
    verdict = verdict_of(slopes$verdict, any(is_wrong)),
    place = place[c("x", "width", "worst", "variables")]
  )
}

# The points at which the gradient may be checked, the likeliest first: list(x, width, log_density, gradient), a row a
# point, where `width` has the conditional standard deviations of the variables; NULL if there are none.
gradient_place <- function(target, evaluate, normals, start) {
  n <- n_gradient_candidates
  place <- if (length(normals) > 0) {
    normal <- normals[[which.max(vapply(normals, `[[`, 0, "elbo"))]]
    x <- draw_normal(normal, n)$x
    width <- matrix(conditional_sd(normal), n, target$dim, byrow = TRUE)
    resolved_points(target, c(list(x = x, width = width), evaluate(x)))
  }
  if (is.null(place)) {
    at <- evaluate_starts(evaluate, scattered_starts(target$dim, n), start)
    place <- resolved_points(target, c(list(width = pmax(abs(at$x), 1)), at))
  }
  place
}

# Of evaluated points those of finite log density at which steps exceed the rounding of the variables, without the least
# likely: the log density of a model with an edge at a datum loses its digits in the tail next to the edge.
resolved_points <- function(target, at) {
  ok <- which(at$log_density > -Inf & rowSums(!are_resolved(target, at$x, at$width)) == 0)
  ok <- ok[order(at$log_density[ok], decreasing = TRUE)]
  rows <- utils::head(ok, ceiling(part_of_candidates * length(ok)))
  if (length(rows) > 0) {
    c(list(width = at$width[rows, , drop = FALSE]), rows_of(at, rows))
  }
}

conditional_sd <- function(normal) {
  L <- normal$L
  if (is.matrix(L)) 1 / sqrt(colSums(inverse_of_lower(L)^2)) else L
}

# Whether the steps of differences exceed the rounding of each variable on the user's scale (n x d): next to a bound
# they may not.
are_resolved <- function(target, x, width) {
  own <- function(u) change_scale(target, u, to_user = TRUE)
  step <- widest_difference * width
  abs(own(x + step) - own(x - step)) * settled_slope > .Machine$double.eps * abs(own(x))
}

# Directions in units of the widths, a row each. Each moves one variable, or several with random signs if there are more
# than `most_gradient_directions`.
gradient_directions <- function(dim) {
  n <- min(dim, most_gradient_directions)
  directions <- matrix(0, n, dim)
  directions[cbind(rep_len(seq_len(n), dim), seq_len(dim))] <- sample(c(-1, 1), dim, replace = TRUE)
  directions
}

# For each direction the points with the steepest slopes along it, where errors show best: a data frame with the columns
# `point` and `direction`.
gradient_trials <- function(place, directions) {
  n <- min(nrow(place$x), n_gradient_points)
  slopes <- abs(tcrossprod(place$gradient * place$width, directions))
  data.frame(
    point = c(apply(slopes, 2, function(slope) order(slope, decreasing = TRUE)[seq_len(n)])),
    direction = rep(seq_len(nrow(directions)), each = n)
  )
}

# Whether the gradient is wrong along each direction: at two points or more (if two could be checked), and at more than
# are rough. At a single point noise may look like a wrong gradient, or the log density may have no digits.
wrong_directions <- function(verdicts, direction) {
  n_of <- function(verdict) tapply(verdicts == verdict, direction, sum)
  several <- pmin(2, tapply(verdicts != "unknown", direction, sum))
  n_of("wrong") > 0 & n_of("wrong") >= several & n_of("wrong") > n_of("rough")
}

# The overall verdict. "rough" takes at least half of the trials, since a few may meet an edge by chance.
verdict_of <- function(verdicts, is_wrong) {
  n_rough <- sum(verdicts == "rough")
  if (is_wrong) {
    "wrong"
  } else if (n_rough > 0 && n_rough >= sum(verdicts != "unknown") / 2) {
    "rough"
  } else if (any(verdicts == "right")) {
    "right"
  } else {
    NA_character_
  }
}

# Signals the errors and warnings for what the scout has found.
signal_scout_problems <- function(target, scout) {
  if (scout$rises) {
    abort(
      c(
        "The log density seems unbounded: the scout found values above 1e11.",
        "i" = "Is it the negative log density, which {.fn optim} and {.fn MakeADFun} take? {.fn smc} takes the log
          density itself.",
        "i" = "Or rounding dominates it far out, as for a negative binomial distribution with a huge shape: then use a
          prior with a lighter tail."
      ),
      "mode"
    )
  }
  if (scout$gradient %in% "wrong") {
    abort_gradient(target, scout$gradient_place)
  }
  if (!is.null(scout$left_out)) warn_of_place(target, scout$left_out)
  if (scout$gradient %in% "rough") {
    warn("gradient", c(
      "The log density is rough: its differences do not converge, so that its gradient
        cannot be checked.",
      "i" = "If it jumps, is noisy, or comes from an iteration that stops early,
        try {.fn kernel_rwmh}, which needs no gradient.",
      "i" = "See {.code check_gradient(target)}."
    ))
  }
}

# Warns of a basin that was left out. u: the point there, a row on the unconstrained scale.
warn_of_place <- function(target, u) {
  x <- if (is.null(target$outputs)) constrain(target, u) else kept_outputs(target, u)
  place <- sprintf("%s = %s", colnames(x), signif(x, 3))
  warn("gradient", c(
    "The log density contradicts its gradient around {several(place)}: rounding dominates it there.",
    "i" = "This basin is left out. A prior with a lighter tail would exclude it."
  ))
}

abort_gradient <- function(target, place) {
  x <- place$x[place$worst, ]
  table <- slopes_by_variable(target, counted_density(target), x, place$width[place$worst, ])[place$variables, ]
  error <- table$error
  error[!table$passed %in% FALSE] <- -Inf # variables that failed the check come first
  worst <- if (any(error > -Inf)) which.max(error) else which.max(table$error)
  row <- table[worst, ]
  said <- vapply(c(row$gradient, row$difference), format, "", digits = 4)
  scale <- if (is_bounded(target)) ", on the unconstrained scale" else ""
  abort(
    c(
      "The gradient of the target is wrong: for {.field {row$variable}} it is {said[1]},
        but differences of the log density give {said[2]}{scale}.",
      "i" = "See {.code check_gradient(target)} for all variables.",
      "i" = "{.fn target_rtmb} differentiates automatically; without a gradient,
        {.fn target_function} uses differences."
    ),
    "gradient",
    variable = row$variable, gradient = row$gradient, difference = row$difference, x = constrain(target, x)
  )
}

# differences -----------------------------------------------------------------

# The table of check_gradient() for one point x on the unconstrained scale.
slopes_by_variable <- function(target, evaluate, x, width) {
  d <- length(x)
  value <- evaluate_located(target, t(x), "scout")
  at <- list(
    x = matrix(x, d, d, byrow = TRUE),
    log_density = rep(value$log_density, d),
    gradient = matrix(value$gradient, d, d, byrow = TRUE)
  )
  missing <- !is.finite(value$gradient[1, ])
  at$gradient[, missing] <- 0
  slopes <- compare_slopes(evaluate, at, diag(width, d))
  slopes$verdict[!are_resolved(target, t(x), t(width))] <- "unknown"
  passed <- c(right = TRUE, wrong = FALSE, rough = NA, unknown = NA)
  data.frame(
    variable = target$names,
    gradient = value$gradient[1, ],
    difference = slopes$difference / width,
    error = ifelse(missing, NA, slopes$error),
    passed = !missing & unname(passed[slopes$verdict])
  )
}

# Compares the slopes of the log density at rows of at$x along rows of v, by gradient and by differences: a data frame
# with the columns of compare_at_step(). `verdict` is "right" or "wrong"; "rough" if the differences converge for no
# step; "unknown" if the density is not finite.
compare_slopes <- function(evaluate, at, v) {
  n <- nrow(v)
  slopes <- data.frame(difference = rep(NA_real_, n), scale = NA_real_, error = NA_real_, verdict = "unknown")
  open <- which(is.finite(at$log_density))
  step <- widest_difference
  while (length(open) > 0 && step > narrowest_difference) {
    slopes[open, ] <- compare_at_step(evaluate, rows_of(at, open), v[open, , drop = FALSE], step)
    slopes <- confirm_wrong(slopes, evaluate, at, v, open, step)
    open <- open[!slopes$verdict[open] %in% c("right", "wrong")]
    step <- step * shorter_difference
  }
  slopes
}

# The slopes with "wrong" replaced by "rough", in the rows `open`, unless further steps give the same difference: noise
# can make differences converge by chance.
confirm_wrong <- function(slopes, evaluate, at, v, open, step) {
  for (factor in confirming_steps) {
    wrong <- open[slopes$verdict[open] == "wrong"]
    if (length(wrong) == 0) {
      break
    }
    again <- compare_at_step(evaluate, rows_of(at, wrong), v[wrong, , drop = FALSE], factor * step)
    off <- abs(again$difference - slopes$difference[wrong])
    alike <- again$verdict == "wrong" & off <= rules$wrong_slope * again$scale / 2
    slopes$verdict[wrong[!alike]] <- "rough"
  }
  slopes
}

# Compares central differences over steps h v and h v / 2 with the gradient. Their error is of order h^2: the change
# from the one to the other estimates it, and Richardson extrapolation cancels it. `error` is relative to `scale`, the
# larger of the slope and the root of the curvature.
compare_at_step <- function(evaluate, at, v, h) {
  n <- nrow(v)
  points <- rbind(at$x + h * v, at$x - h * v, at$x + h / 2 * v, at$x - h / 2 * v)
  f <- matrix(evaluate(points, gradient = FALSE)$log_density, n)
  # the gradient is taken along the step as rounded
  slope <- function(right, left, h) {
    step <- points[(right - 1) * n + seq_len(n), ] - points[(left - 1) * n + seq_len(n), ]
    list(f = (f[, right] - f[, left]) / (2 * h), g = rowSums(at$gradient * matrix(step, n)) / (2 * h))
  }
  far <- slope(1, 2, h)
  near <- slope(3, 4, h / 2)
  off_far <- far$f - far$g
  off_near <- near$f - near$g
  off <- (4 * off_near - off_far) / 3
  rounding <- rounding_slack * .Machine$double.eps * apply(abs(f), 1, max) / h
  bend <- abs(f[, 3] + f[, 4] - 2 * at$log_density) / (h / 2)^2 - 8 * rounding / h
  gradient <- rowSums(at$gradient * v)
  scale <- pmax(abs(gradient), abs(gradient + off), sqrt(pmax(bend, 0)))
  settled <- abs(off_far - off_near) <= settled_slope * scale + rounding
  wrong <- abs(off) > rules$wrong_slope * scale + 4 * rounding
  finite <- is.finite(rowSums(f))
  # no slope over a short step where wider ones had one: the density is piecewise constant
  stair <- h < widest_difference / 2 & f[, 1] == f[, 2] & f[, 1] == at$log_density & wrong
  data.frame(
    difference = gradient + off,
    scale = scale,
    error = ifelse(finite, ifelse(scale > 0, abs(off) / scale, 0), NA),
    verdict = ifelse(!finite, "unknown", ifelse(!settled | stair, "rough", ifelse(wrong, "wrong", "right")))
  )
}
