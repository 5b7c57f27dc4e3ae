# Gradients, compared with differences of the log density.

#' Check the gradient of a target
#'
#' Compares the gradient of a target with central differences of its log density, variable
#' by variable, on the unconstrained scale (see [unconstrain()]). [smc()] and [smc_adapt()]
#' do so by themselves along a few directions, after the scout: a wrong gradient is an
#' error, and a rough log density, whose differences do not settle, brings a warning.
#'
#' The step of a difference is a tenth of the target's width at first. As long as the
#' differences over a step and over half of it disagree the step is made shorter. What
#' rounding can do to the log density is allowed for. Where no step settles, the log
#' density is rough there: it jumps, or is noisy, or found by an iteration that ends early.
#'
#' @param target what to check: a target, or something that [as_target()] makes one of.
#' @param x where: an `n x dim` numeric matrix, a row a point, or a vector for one point,
#'   on the scale of the target's variables; NULL for a few draws from the best normal
#'   distribution of [smc_scout()].
#' @param ... for a function, the other arguments of [target_function()].
#' @param seed for the scout: a whole number from 0 to 2^32 - 1; NULL to draw one from R's
#'   generator.
#' @return A data frame with a row a point and variable: `point`, its number; `variable`;
#'   `gradient`, as the target has it; `difference`, as the log density says; both on the
#'   unconstrained scale; `error`, their difference relative to the largest of the two and the
#'   root of the curvature; and `passed`: whether the
#'   error is at most 0.005 and what rounding explains, FALSE too where the gradient is not
#'   finite, and NA where differences do not settle or the target is impossible.
#' @section Cost: One evaluation for each point, and for each point and variable four of the log
#'   density alone, or more if the step has to be shortened.
#' @section Errors: Of class `autosmc_error_input` when the target has no gradient of its
#'   own; otherwise those of [smc_scout()]. In [smc()] and [smc_adapt()], of class
#'   `autosmc_error_gradient` when the gradient is wrong, with the fields `variable`,
#'   `gradient`, `difference` and `x`.
#' @section Warnings: In [smc()] and [smc_adapt()], of class `autosmc_warning_gradient` when
#'   the log density is rough.
#' @seealso [target_rtmb()], which finds gradients by itself.
#' @examples
#' log_density <- function(x) dnorm(x[1], 1, 2, log = TRUE) + dnorm(x[2], x[1], log = TRUE)
#' wrong <- function(x) c(-(x[1] - 1) / 4, x[1] - x[2])
#' check_gradient(log_density, dim = 2, gradient = wrong, x = c(0, 1))
#'
#' right <- function(x) c(-(x[1] - 1) / 4 + x[2] - x[1], x[1] - x[2])
#' check_gradient(log_density, dim = 2, gradient = right, x = c(0, 1))
#' @export
check_gradient <- function(target, x = NULL, ..., seed = NULL) {
  target <- check_target(target, ...)
  if (is.null(x)) {
    place <- smc_scout(target, seed = seed)$gradient_place
    if (is.null(place)) {
      abort(
        c(
          "No point was found at which to check the gradient.",
          "i" = "Give one as {.arg x}."
        ),
        "input"
      )
    }
  } else {
    u <- change_scale(target, check_user_points(x, target, "x"), to_user = FALSE)
    place <- list(x = u, width = pmax(abs(u), 1))
  }
  if (!has_own_gradient(target, place$x)) {
    abort(
      "The target has no gradient of its own: there is nothing to check.",
      "input"
    )
  }
  evaluate <- counted_density(target)
  tables <- once_each(lapply(seq_len(nrow(place$x)), function(i) {
    table <- by_variable(target, evaluate, place$x[i, ], place$width[i, ])
    cbind(point = i, table)
  }))
  table <- bind_rows(tables)
  table[c("point", "variable", "gradient", "difference", "error", "passed")]
}

# in the scout ----------------------------------------------------------------

# The gradient at a few draws of the best normal, each along a random direction. Where
# there is no normal, as where a flipped sign leads all paths astray, at starts of paths.
# Returns list(verdict, place = list(x, width, worst)): the points, the widths there, and
# the number of the point with the largest error. NA and NULL where there is none to check.
try_gradient <- function(target, evaluate, normals, start) {
  place <- gradient_place(evaluate, target$dim, normals, start)
  if (is.null(place) || !evaluate(place$x, "own")) {
    return(list(verdict = NA_character_, place = place))
  }
  slopes <- compare_slopes(evaluate, place$at, place$direction)
  list(
    verdict = verdict_of(slopes$verdict),
    place = c(
      place[c("x", "width")],
      worst = which.max(ifelse(slopes$verdict == "wrong", slopes$error, -Inf))
    )
  )
}

# Points of finite density, a row a point, with a direction for each and the widths of
# the variables; NULL where there are none.
gradient_place <- function(evaluate, dim, normals, start) {
  n <- rules$n_gradient_points
  signs <- matrix(sample(c(-1, 1), n * dim, replace = TRUE), n) / sqrt(dim)
  if (length(normals) > 0) {
    normal <- normals[[which.max(vapply(normals, `[[`, 0, "elbo"))]]
    x <- draw_normal(normal, n)$x
    origin <- normal
    origin$mean <- numeric(dim)
    sd <- sqrt(variances(normal))
    place <- list(
      x = x, at = evaluate(x), direction = to_user(origin, signs),
      width = matrix(sd, n, dim, byrow = TRUE)
    )
    if (any(place$at$log_density > -Inf)) {
      return(finite_places(place))
    }
  }
  first <- evaluate_starts(evaluate, scattered_starts(dim, n), start)
  width <- pmax(abs(first$x), 1)
  place <- list(
    x = first$x, at = first[c("log_density", "gradient")], direction = signs * width,
    width = width
  )
  if (any(place$at$log_density > -Inf)) finite_places(place)
}

finite_places <- function(place) {
  ok <- place$at$log_density > -Inf
  place[c("x", "direction", "width")] <- lapply(
    place[c("x", "direction", "width")], function(m) m[ok, , drop = FALSE]
  )
  place$at <- list(
    x = place$x,
    log_density = place$at$log_density[ok],
    gradient = place$at$gradient[ok, , drop = FALSE]
  )
  place
}

# Of the verdicts along single directions. Noise may pass for a wrong gradient once, but
# then it is seen as such along the others. An edge may be met by chance.
verdict_of <- function(verdicts) {
  n_wrong <- sum(verdicts == "wrong")
  n_rough <- sum(verdicts == "rough")
  if (n_wrong > n_rough) {
    "wrong"
  } else if (n_wrong > 0 || n_rough > 0 && n_rough >= length(verdicts) / 2) {
    "rough"
  } else if (any(verdicts == "right")) {
    "right"
  } else {
    NA_character_
  }
}

# Stops, or warns, as the scout has found.
act_on_gradient <- function(target, scout) {
  if (scout$gradient %in% "wrong") {
    abort_gradient(target, scout$gradient_place)
  }
  if (scout$gradient %in% "rough") {
    cli::cli_warn(
      c(
        "The log density is rough: its differences do not converge, so that its gradient
          cannot be checked.",
        "i" = "If it jumps, is noisy, or comes from an iteration that ends early,
          {.fn kernel_rwmh}, which needs no gradient, may do better.",
        "i" = "See {.code check_gradient(target)}."
      ),
      class = warning_class("gradient")
    )
  }
}

abort_gradient <- function(target, place) {
  x <- place$x[place$worst, ]
  table <- by_variable(target, counted_density(target), x, place$width[place$worst, ])
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

# Whether the gradients are the target's own, and not differences themselves; `u` has a
# point in its first row.
has_own_gradient <- function(target, u) {
  if (!inherits(target, "smc_target_function")) {
    return(TRUE)
  }
  shared <- target[c("dim", "names", "vectorized", "lower", "upper")]
  x <- unname(constrain(target, u[1, , drop = FALSE]))
  located("scout", all(vapply(target$terms, function(term) {
    !is.null(term$gradient) || !is.null(density_caller(c(term, shared))(x)$gradient)
  }, NA)))
}

# Whether a call of the target must tell.
is_told_by_call <- function(target) {
  inherits(target, "smc_target_function") && any(vapply(target$terms, function(term) is.null(term$gradient), NA))
}

# A row a variable, at the point x of the unconstrained scale.
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
  passed <- c(right = TRUE, wrong = FALSE, rough = NA, unknown = NA)
  data.frame(
    variable = target$names,
    gradient = value$gradient[1, ],
    difference = slopes$difference / width,
    error = ifelse(missing, NA, slopes$error),
    passed = !missing & unname(passed[slopes$verdict])
  )
}

# The slope of the log density at rows of at$x along rows of v, as the gradient there has it
# and by differences. `error` is relative to the density's own scale along v. `verdict` is
# "right" or "wrong"; "rough" where the differences of no step settle; and "unknown" where the
# density is not finite.
compare_slopes <- function(evaluate, at, v) {
  n <- nrow(v)
  slopes <- data.frame(
    difference = rep(NA_real_, n), scale = NA_real_, error = NA_real_, verdict = "unknown"
  )
  open <- which(is.finite(at$log_density))
  step <- rules$widest_difference
  while (length(open) > 0 && step > rules$narrowest_difference) {
    slopes[open, ] <- differences(evaluate, rows_of(at, open), v[open, , drop = FALSE], step)
    slopes <- confirm_wrong(slopes, evaluate, at, v, open, step)
    open <- open[!slopes$verdict[open] %in% c("right", "wrong")]
    step <- step * rules$shorter_difference
  }
  slopes
}

# Differences that disagree with the gradient, of the rows that are `open`, must do so alike
# over other steps: those that noise makes settle by chance do not.
confirm_wrong <- function(slopes, evaluate, at, v, open, step) {
  for (factor in rules$confirming_steps) {
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

rows_of <- function(at, rows) {
  list(
    x = at$x[rows, , drop = FALSE],
    log_density = at$log_density[rows],
    gradient = at$gradient[rows, , drop = FALSE]
  )
}

# Central differences over steps h v and h v / 2, less what the gradient says. Their error is
# of order h^2, which the two together show, and cancel.
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
  rounding <- rules$rounding_slack * .Machine$double.eps * apply(abs(f), 1, max) / h
  bend <- abs(f[, 3] + f[, 4] - 2 * at$log_density) / (h / 2)^2 - 8 * rounding / h
  gradient <- rowSums(at$gradient * v)
  scale <- pmax(abs(gradient), abs(gradient + off), sqrt(pmax(bend, 0)))
  settled <- abs(off_far - off_near) <= rules$settled_slope * scale + rounding
  wrong <- abs(off) > rules$wrong_slope * scale + 4 * rounding
  finite <- is.finite(rowSums(f))
  # no slope at all, where there was one over wider steps: the density goes in stairs
  stair <- h < rules$widest_difference / 2 & f[, 1] == f[, 2] & f[, 1] == at$log_density & wrong
  data.frame(
    difference = gradient + off,
    scale = scale,
    error = ifelse(finite, ifelse(scale > 0, abs(off) / scale, 0), NA),
    verdict = ifelse(
      !finite, "unknown", ifelse(!settled | stair, "rough", ifelse(wrong, "wrong", "right"))
    )
  )
}
