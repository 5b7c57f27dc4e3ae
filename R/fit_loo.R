# Leave-one-out cross-validation and WAIC by the package loo, of the log likelihoods that Stan programs generate.

# Log likelihoods in a block of observations, over all draws: 4 MB, of which loo needs a dozen copies. A Stan program
# computes all observations whenever some are requested, so that several blocks are computed at a time (160 MB).
loo_block <- 5e5
blocks_at_a_time <- 40

#' @rdname loo.smc_fit
#' @exportS3Method loo::loo
loo.smc_fit <- function(x, ...) {
  if (is_of_brmsfit(x)) {
    return(ask_by_name(loo::loo, x, deparse1(substitute(x)), ...))
  }
  by_block(x, "loo", at_once = isTRUE(list(...)$save_psis), function(log_lik) {
    loo::loo(log_lik, r_eff = loo::relative_eff(exp(log_lik)), ...)
  })
}

#' @rdname loo.smc_fit
#' @exportS3Method loo::waic
waic.smc_fit <- function(x, ...) {
  if (is_of_brmsfit(x)) {
    return(ask_by_name(loo::waic, x, deparse1(substitute(x)), ...))
  }
  by_block(x, "waic", function(log_lik) loo::waic(log_lik, ...))
}

# Calls loo() or waic() of brms, with the name of the fit as that of the model, unless another is given.
ask_by_name <- function(ask, fit, name, ...) {
  do.call(ask, c(list(as_brmsfit(fit)), utils::modifyList(list(model_names = name), list(...))))
}

# The result of judge(), a function of log likelihoods (iterations x islands x observations), computed by blocks of
# observations. name: that of the user's function. at_once: whether all observations are one block.
by_block <- function(fit, name, judge, at_once = FALSE) {
  names <- log_lik_names(fit)
  if (length(names) == 0) {
    abort(c(
      "{.fn {name}} needs the log likelihood of each observation, {.code log_lik}, among the draws.",
      "i" = "A Stan program has it in its generated quantities. For another model make the matrix by {.fn predict},
        with {.code summary = FALSE}, for {.code loo::{name}()}."
    ))
  }
  rows <- equal_rows(fit)
  is_later <- names[1] %in% fit$target$later
  most <- if (at_once || !is_later) length(names) else max(1, loo_block %/% length(rows))
  in_blocks <- function(x, size) unname(split(x, (seq_along(x) - 1) %/% size))
  n_chains <- nchains.smc_fit(fit)
  parts <- once_each(lapply(in_blocks(names, blocks_at_a_time * most), function(names) {
    values <- if (is_later) generated_at(fit, rows, names) else fit$particles[rows, names, drop = FALSE]
    lapply(in_blocks(seq_along(names), most), function(j) {
      judge(array(values[, j], c(length(rows) / n_chains, n_chains, length(j))))
    })
  }))
  join_blocks(unlist(parts, recursive = FALSE))
}

# Joins the results of loo for blocks of observations.
join_blocks <- function(parts) {
  whole <- parts[[1]]
  if (length(parts) == 1) {
    return(whole)
  }
  whole$pointwise <- do.call(rbind, lapply(parts, `[[`, "pointwise"))
  if (!is.null(whole$diagnostics)) whole$diagnostics <- do.call(Map, c(c, lapply(parts, `[[`, "diagnostics")))
  what <- rownames(whole$estimates)
  values <- whole$pointwise[, what]
  whole$estimates[] <- c(colSums(values), sqrt(nrow(values) * apply(values, 2, stats::var)))
  numbers <- stats::setNames(as.list(c(whole$estimates)), c(what, paste0("se_", what)))
  under_names <- intersect(names(numbers), names(whole)) # as older versions have them
  whole[under_names] <- numbers[under_names]
  attr(whole, "dims")[2] <- nrow(values)
  whole
}

# The names of the log likelihoods of single observations, `log_lik`, in a Stan program.
log_lik_names <- function(fit) {
  grep("^log_lik(\\[|$)", c(colnames(fit$particles), fit$target$later), value = TRUE)
}
