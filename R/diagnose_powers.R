# Powers: coordinates in which others spread out as a variable moves. Effects whose scale is exp(t) grow with t where
# the data leave them free, if only on one side, as those of a group in which all answers are the same.

# Times that centres and powers are found in turn.
n_centred <- 3

# The ends of these parents towards which other variables spread out, in coordinates in which they do not.
ends_in_powers <- function(draws, parents) {
  children <- setdiff(seq_len(ncol(draws$x)), parents)
  if (length(parents) == 0 || length(children) == 0) {
    return(list())
  }
  draws$x <- through_maps(draws$maps, draws$x)$x
  ends <- ends_along(draws, parents)
  without_null(lapply(ends, function(end) in_powers(end, children, setdiff(parents, end$variable))))
}

# In the coordinates (u - c) exp(-k t) of these children, with c linear in the other parents.
in_powers <- function(end, children, others) {
  x <- end$draws$x
  t <- x[, end$variable]
  middle <- places_of(t, end$draws$w, end$side)[1]
  away <- t - end$side * middle
  features <- linear_features(others, x)
  phi <- feature_values(features, x)
  fits <- lapply(children, function(j) {
    power_of_child(x[, j], away, phi, end$draws$w, which(end$side * away > 0))
  })
  k <- vapply(fits, `[[`, 0, "k")
  if (!any(end$side * k > 0)) {
    return(NULL)
  }
  map <- list(
    name = "moments", order = as.double(children), features = cbind(features, feature_of(end$variable, "linear", 1, end$side * middle)),
    location = cbind(do.call(rbind, lapply(fits, `[[`, "b")), 0), log_scale = cbind(matrix(0, length(k), ncol(phi)), k)
  )
  end$draws$maps <- list(map)
  end$draws$x <- before_maps(list(map), x)$x
  end
}

# How far u is from its centre, which is linear in phi, is in proportion to exp(k away) at the draws of an end: list(k,
# b), with the coefficients of the centre. k is a half or one, as where `away` is the logarithm of a variance or of
# a standard deviation, or the inverse of these; 0 where it is not.
power_of_child <- function(u, away, phi, w, end) {
  k <- 0
  design <- cbind(1, away[end])
  for (pass in seq_len(n_centred)) {
    narrow <- sqrt(w) * exp(-k * away - max(-k * away))
    b <- coefficients_of(phi * narrow, u * narrow)
    off <- log(abs(u - drop(phi %*% b))[end])
    seen <- is.finite(off)
    k <- coefficients_of((design * sqrt(w[end]))[seen, , drop = FALSE], (sqrt(w[end]) * off)[seen])[2]
    k <- if (abs(k) <= 1.25) k else 0
  }
  k <- round(2 * k) / 2
  list(k = k, b = if (k == 0) 0 * b else b)
}
