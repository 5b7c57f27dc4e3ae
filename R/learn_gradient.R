# The check of gradients against differences of the log density, in the scout and in check_gradient().

# Draws of the best normal distribution, and the share of them with the highest density at which the gradient may be
# checked. Of 12 draws the four with the steepest slopes along a variable have slopes of about one standard deviation,
# at which an error of 1 % exceeds `wrong_slope`.
n_gradient_candidates <- 16
part_of_candidates <- 3 / 4
# Points at which the gradient is checked along each direction: one may be at a kink or lack digits.
n_gradient_points <- 4
# Largest number of directions; each variable is one where there are no more. The check then takes 1,024 evaluations.
most_gradient_directions <- 64
# Steps of differences as parts of the widest one. Several steps distinguish a rough density from a wrong gradient: the
# truncation error falls by a factor of 64 each time.
shorter_difference <- 1 / 8
# Least step relative to the point: with a smaller one the rounding of a log density of 1e5 changes a slope by 0.004,
# nearly `wrong_slope`.
narrowest_difference <- 4e-8
# Two differences have settled if they agree to this, half of the truncation error of the widest.
settled_slope <- 1e-3
# Factors of the step for which a slope must also be wrong, so that a kink does not count as a wrong gradient.
confirming_steps <- c(0.9, 0.8, 0.7)
# Rounding error of a difference in units of the last place, as of a sum of 64 terms.
rounding_slack <- 8

# in the scout ----------------------------------------------------------------

# The normal distributions without the best ones, if the gradient is wrong around these and right around the next: a
# gradient with a mistake in it would be wrong there, too, so that the log density must lack digits around the best.
# Returns list(normals, gradient, left_out): the check around the best that stays, and a point where another was wrong
# (1 x d) or NULL.
with_gradient <- function(target, evaluate, normals, start) {
  gradient <- first <- try_gradient(target, evaluate, normals, start)
  left <- normals
  for (i in seq_len(rules$n_refined)) {
    if (!gradient$verdict %in% "wrong" || length(left) < 2) break
    left <- left[-which.max(vapply(left, `[[`, 0, "elbo"))]
    gradient <- try_gradient(target, evaluate, left, start)
  }
  if (first$verdict %in% "wrong" && gradient$verdict %in% "right") {
    at <- first$place$x[first$place$worst, , drop = FALSE]
    list(normals = check_elbos_of(evaluate, left), gradient = gradient, left_out = at)
  } else {
    list(normals = normals, gradient = first, left_out = NULL)
  }
}

# Checks the gradient at draws of the best normal distribution along each variable, or where there are many variables
# along sums of several. Without a normal distribution, as where a wrong sign misleads all paths, at starts of paths.
# Returns list(verdict, place = list(x, width, worst)), with some points, the widths there, and the row of them with the
# largest error with the variables concerned; NA and NULL where there is no gradient to check.
try_gradient <- function(target, evaluate, normals, start) {
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

# Points of finite density, sorted by it: list(x, width, log_density, gradient), a row for each point, with the
# conditional widths of the variables. NULL where there are none. Points at which rounding hides moves of the variables
# are left out, and so are those of lowest density, since a density with an edge at a datum loses its digits in the tail
# towards it.
gradient_place <- function(target, evaluate, normals, start) {
  n <- n_gradient_candidates
  place <- if (length(normals) > 0) {
    normal <- normals[[which.max(vapply(normals, `[[`, 0, "elbo"))]]
    x <- draw_normal(normal, n)$x
    width <- matrix(conditional_sd(normal), n, target$dim, byrow = TRUE)
    with_digits(target, c(list(x = x, width = width), evaluate(x)))
  }
  if (is.null(place)) {
    at <- evaluate_starts(evaluate, scattered_starts(target$dim, n), start)
    place <- with_digits(target, c(list(width = pmax(abs(at$x), 1)), at))
  }
  place
}

with_digits <- function(target, at) {
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

# Whether the value of a variable on the user's scale has digits for the steps of differences, which it may lack next to
# a bound.
are_resolved <- function(target, x, width) {
  own <- function(u) change_scale(target, u, to_user = TRUE)
  step <- widest_difference * width
  abs(own(x + step) - own(x - step)) * settled_slope > .Machine$double.eps * abs(own(x))
}

# The directions, a row for each, in units of the widths: single variables, or sums of several where there are many.
gradient_directions <- function(dim) {
  n <- min(dim, most_gradient_directions)
  directions <- matrix(0, n, dim)
  directions[cbind(rep_len(seq_len(n), dim), seq_len(dim))] <- sample(c(-1, 1), dim, replace = TRUE)
  directions
}

# For each direction the points with the steepest slopes along it, at which errors are easiest to see: a data frame with
# a row for each `point` and `direction`.
gradient_trials <- function(place, directions) {
  n <- min(nrow(place$x), n_gradient_points)
  slopes <- abs(tcrossprod(place$gradient * place$width, directions))
  data.frame(
    point = c(apply(slopes, 2, function(slope) order(slope, decreasing = TRUE)[seq_len(n)])),
    direction = rep(seq_len(nrow(directions)), each = n)
  )
}

# Whether the gradient is wrong along each direction. At a single point noise may look like a wrong gradient, or the log
# density may lack digits.
wrong_directions <- function(verdicts, direction) {
  n_of <- function(verdict) tapply(verdicts == verdict, direction, sum)
  several <- pmin(2, tapply(verdicts != "unknown", direction, sum))
  n_of("wrong") > 0 & n_of("wrong") >= several & n_of("wrong") > n_of("rough")
}

# The verdict from those of all trials. An edge may be met by chance.
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

# Raises the error, or the warning, for what the scout has found.
act_on_scout <- function(target, scout) {
  if (scout$rises) {
    abort(
      c(
        "The log density rises without end: the scout has climbed to values above 1e11.",
        "i" = "Is it the negative log density, as {.fn optim} and {.fn MakeADFun} take it? {.fn smc} takes the log
          density itself.",
        "i" = "Or it has no digits left far out, as that of a negative binomial distribution where its shape is huge: a
          prior with a lighter tail keeps it from there."
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
      "i" = "If it jumps, is noisy, or comes from an iteration that ends early,
        {.fn kernel_rwmh}, which needs no gradient, may do better.",
      "i" = "See {.code check_gradient(target)}."
    ))
  }
}

# u: a point on the unconstrained scale, as a row.
warn_of_place <- function(target, u) {
  x <- if (is.null(target$outputs)) constrain(target, u) else kept_outputs(target, u)
  place <- sprintf("%s = %s", colnames(x), signif(x, 3))
  warn("gradient", c(
    "The log density contradicts its gradient around {several(place)}: it has no digits there.",
    "i" = "What is there is left out. A prior with a lighter tail keeps parameters from such places."
  ))
}

abort_gradient <- function(target, place) {
  x <- place$x[place$worst, ]
  table <- by_variable(target, counted_density(target), x, place$width[place$worst, ])[place$variables, ]
  error <- table$error
  error[!table$passed %in% FALSE] <- -Inf # where there is one, one that is wrong for sure
  worst <- if (any(error > -Inf)) which.max(error) else which.max(table$error)
  row <- table[worst, ]
  said <- vapply(c(row$gradient, row$difference), format, "", digits = 4)
  scale <- if (is_bounded(target)) ", on the unconstrained scale" else ""
  abort(
    c(
      "The gradient of the target is wrong: for {.field {row$variable}} it is {said[1]}
        where differences of the log density say {said[2]}{scale}.",
      "i" = "See {.code check_gradient(target)} for all variables.",
      "i" = "{.fn target_rtmb} finds gradients by itself; without one,
        {.fn target_function} takes differences."
    ),
    "gradient",
    variable = row$variable,
    gradient = row$gradient,
    difference = row$difference,
    x = constrain(target, x)
  )
}

# differences -----------------------------------------------------------------

# The table of check_gradient(), a row for each variable, at the point x of the unconstrained scale.
by_variable <- function(target, evaluate, x, width) {
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

# The slopes of the log density at rows of at$x along rows of v by the gradient and by differences. `error` is relative
# to the scale of the density along v. `verdict` is "right", "wrong", "rough" where differences settle for no step, or
# "unknown" where the density is not finite.
compare_slopes <- function(evaluate, at, v) {
  n <- nrow(v)
  slopes <- data.frame(
    difference = rep(NA_real_, n), scale = NA_real_, error = NA_real_, verdict = "unknown"
  )
  open <- which(is.finite(at$log_density))
  step <- widest_difference
  while (length(open) > 0 && step > narrowest_difference) {
    slopes[open, ] <- differences(evaluate, rows_of(at, open), v[open, , drop = FALSE], step)
    slopes <- confirm_wrong(slopes, evaluate, at, v, open, step)
    open <- open[!slopes$verdict[open] %in% c("right", "wrong")]
    step <- step * shorter_difference
  }
  slopes
}

# Of the rows that are `open`, differences that disagree with the gradient must do so equally for other steps.
# Differences of a noisy density that settle by chance do not.
confirm_wrong <- function(slopes, evaluate, at, v, open, step) {
  for (factor in confirming_steps) {
    wrong <- open[slopes$verdict[open] == "wrong"]
    if (length(wrong) == 0) {
      break
    }
    again <- differences(
      evaluate, rows_of(at, wrong), v[wrong, , drop = FALSE], factor * step
    )
    off <- abs(again$difference - slopes$difference[wrong])
    alike <- again$verdict == "wrong" & off <= rules$wrong_slope * again$scale / 2
    slopes$verdict[wrong[!alike]] <- "rough"
  }
  slopes
}

# Central differences over steps h v and h v / 2 minus the slope by the gradient. Their error is of order h^2, which the
# two together show and remove (Richardson extrapolation).
differences <- function(evaluate, at, v, h) {
  n <- nrow(v)
  points <- rbind(at$x + h * v, at$x - h * v, at$x + h / 2 * v, at$x - h / 2 * v)
  f <- matrix(evaluate(points, gradient = FALSE)$log_density, n)
  # along the step as rounded
  slope <- function(right, left, h) {
    step <- points[(right - 1) * n + seq_len(n), ] - points[(left - 1) * n + seq_len(n), ]
    list(
      f = (f[, right] - f[, left]) / (2 * h),
      g = rowSums(at$gradient * matrix(step, n)) / (2 * h)
    )
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
  # no slope at all, where there was one over wider steps: the density goes in stairs
  stair <- h < widest_difference / 2 & f[, 1] == f[, 2] & f[, 1] == at$log_density & wrong
  data.frame(
    difference = gradient + off,
    scale = scale,
    error = ifelse(finite, ifelse(scale > 0, abs(off) / scale, 0), NA),
    verdict = ifelse(
      !finite, "unknown", ifelse(!settled | stair, "rough", ifelse(wrong, "wrong", "right"))
    )
  )
}
