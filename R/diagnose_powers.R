# Powers: coordinates in which others do not spread out as a variable moves. Effects whose scale is exp(t) grow with t
# where the data leave them free, if only on one side, as those of groups in which all answers are the same.

# Times that centres and powers are found in turn.
n_centred <- 3

# The ends of parents towards which other variables spread out, in coordinates in which they do not: n at most, and none
# where most variables are parents.
ends_in_powers <- function(draws, parents, n) {
  children <- setdiff(seq_len(ncol(draws$x)), parents)
  if (length(parents) == 0 || length(parents) > length(children)) {
    return(list())
  }
  draws <- thinned_draws(draws, rules$most_judged)
  draws$x <- through_maps(draws$maps, draws$x)$x
  ends <- utils::head(ends_along(draws, parents), n)
  without_null(lapply(ends, function(end) in_powers(end, children, setdiff(parents, end$variable))))
}

# An end in the coordinates (u - c) exp(-k t) of these children, with c linear in the other parents.
in_powers <- function(end, children, others) {
  draws <- end$draws
  t <- draws$x[, end$variable]
  places <- places_of(t, draws$w, end$side)
  if (places[4] == places[1]) {
    return(NULL)
  }
  middle <- end$side * places[1]
  features <- linear_features(others, draws$x)
  phi <- feature_values(features, draws$x)
  found <- powers_of(draws$x[, children, drop = FALSE], t - middle, phi, draws$w, end$side)
  if (any(end$side * found$k > 0)) {
    end$powers <- list(list(
      name = "moments", order = as.double(children),
      features = cbind(features, feature_of(end$variable, "linear", 1, middle)),
      location = cbind(t(found$b), 0), log_scale = cbind(0 * t(found$b), found$k)
    ))
    end$draws$maps <- end$powers
    end$draws$x <- before_maps(end$powers, draws$x)$x
    end
  }
}

# How far each column of u is from its centre, which is linear in phi, is in proportion to exp(k away) where `away` is
# of this side: list(k, b), with the coefficients of the centre, a column each. k is 0 or the same for all: a half or
# one, or the negative of these, where `away` is the logarithm of a variance, a standard deviation, or the inverse of
# one.
powers_of <- function(u, away, phi, w, side) {
  is_there <- side * away > 0
  design <- cbind(1, away[is_there]) * sqrt(w[is_there])
  common <- 0
  for (pass in seq_len(n_centred)) {
    narrow <- sqrt(w) * exp(-common * away - max(-common * away))
    b <- least_squares(phi * narrow, u * narrow)
    off <- abs(u - phi %*% b)[is_there, , drop = FALSE]
    slopes <- least_squares(design, log(off + .Machine$double.xmin) * sqrt(w[is_there]))[2, ]
    common <- stats::median(slopes[abs(slopes) >= 0.25])
    if (!isTRUE(abs(common) < 1.25)) common <- 0
  }
  common <- round(2 * common) / 2
  k <- ifelse(abs(slopes - common) < abs(slopes), common, 0)
  list(k = k, b = sweep(b, 2, k != 0, "*"))
}
