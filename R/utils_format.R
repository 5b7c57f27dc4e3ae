# Numbers as text for print(), report() and messages.

# Numbers with so many decimals. 0 is "0", a negative number that rounds to 0 has no sign, and numbers that are very
# large, or too small for `most_decimals`, are in scientific notation.
fixed <- function(x, decimals = 3) {
  text <- sprintf("%.*f", as.integer(decimals), x)
  text[x %in% 0] <- "0"
  large <- is.finite(x) & abs(x) >= 1e9
  text[large] <- sprintf("%.3e", x[large])
  tiny <- rep_len(decimals >= most_decimals, length(x)) & x != 0 & abs(x) < 10^(2 - most_decimals)
  text[tiny %in% TRUE] <- sprintf("%.2e", x[tiny %in% TRUE])
  sub("^-(0[.]?0*)$", "\\1", text)
}

most_decimals <- 8

# The number of decimals that shows `digits` significant digits of a number of this size.
decimals_for <- function(size, digits, least = 0, most = most_decimals) {
  decimals <- digits - 1 - floor(log10(size))
  pmin(pmax(decimals, least), most)
}

# The decimals of an estimate: at least three, and as many as show one digit of the smallest of these errors; or as many
# as show `digits` digits of it.
decimals_of_error <- function(error, digits = NULL) {
  error <- min(error[is.finite(error) & error > 0], Inf)
  if (error == Inf) {
    3
  } else if (is.null(digits)) {
    decimals_for(error, 1, least = 3)
  } else {
    decimals_for(error, digits, most = 15)
  }
}

# Seconds as text, in the largest unit of which there are two.
duration <- function(seconds) {
  units <- c(days = 86400, hours = 3600, minutes = 60, seconds = 1)
  unit <- which(seconds >= 2 * units)[1]
  if (is.na(unit)) "a second" else paste(format(seconds / units[[unit]], digits = 2), names(units)[unit])
}

count <- function(n) trimws(format(n, big.mark = ",", scientific = FALSE))

# "1 step", "2 steps".
count_of <- function(n, noun) paste0(count(n), " ", noun, if (n != 1) "s")

# Probabilities with as many decimals as distinguish all of them from 0 and from 1, up to six.
format_probability <- function(p) {
  distance <- pmin(p, 1 - p)
  distance <- distance[is.finite(distance) & distance > 0]
  decimals <- if (length(distance) == 0) 3 else decimals_for(min(distance), 1, 3, 6)
  smallest <- 10^-decimals
  text <- fixed(p, decimals)
  text[p > 0 & p < smallest / 2] <- paste0("<", fixed(smallest, decimals))
  text[p < 1 & p > 1 - smallest / 2] <- paste0(">", fixed(1 - smallest, decimals))
  text
}

# The names, or their number and the first three.
several <- function(names) {
  most <- 3
  if (length(names) <= most) {
    return(paste(names, collapse = ", "))
  }
  sprintf("%d variables (%s, ...)", length(names), paste(names[seq_len(most)], collapse = ", "))
}

# The number of calls of the user's function in brackets, if it exceeds the number of evaluations, as with finite
# differences; else NULL. counts: a list or table of `n_target_evals` and `n_calls`.
say_calls <- function(counts) {
  n <- sum(counts[["n_calls"]])
  if (n > sum(counts$n_target_evals)) sprintf(" (%s calls of the function)", count(n))
}

# Names of variables without their indices.
base_names <- function(names) sub("\\[.*", "", names)
