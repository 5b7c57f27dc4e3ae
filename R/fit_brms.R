#' The fit of a model of brms, as brms has it
#'
#' Puts the draws of a fit into the `brmsfit` that it was made of, under the names that brms gives its parameters
#' (`b_Days`, `sd_Subject__Intercept`). All that brms does with its own fits it then does with this one:
#' `summary()`, `fitted()`, `plot()`, `loo()` and all the rest.
#'
#' These it does with the fit itself: `posterior_predict()`, `posterior_epred()`, `posterior_linpred()`,
#' `predictive_error()`, `log_lik()`, `bayes_R2()`, `conditional_effects()`, `conditional_smooths()`, `hypothesis()`,
#' `pp_check()`, `fixef()`, `ranef()`, `VarCorr()`, `loo()`, `fitted()` and `predict()`. Each makes a `brmsfit` first,
#' so that for several of them it is quicker to make one by `as_brmsfit()`.
#'
#' The draws weigh the same, as those of [as.matrix()][as.matrix.smc_fit] do; each island is a chain. What brms
#' reads of Hamiltonian Monte Carlo, such as divergent transitions, is 0, and so is `lp__`.
#'
#' @param fit a fit that [smc()] made of a `brmsfit`, which may be one without draws, of `brm(empty = TRUE)`.
#' @return A `brmsfit`.
#' @section Errors: `autosmc_error_input` when the fit is not of a `brmsfit` or has no draws, and
#'   `autosmc_error_package` when brms or rstan is not installed.
#' @seealso [as_target.brmsfit()]
#' @examples
#' # brms compiles for a minute, which is longer than an example may take
#' \dontrun{
#' prior <- brms::prior(normal(0, 10), class = "b")
#' fit <- smc(brms::brm(dist ~ speed, cars, prior = prior, empty = TRUE))
#' in_brms <- as_brmsfit(fit)
#' brms::conditional_effects(in_brms)
#' }
#' @export
as_brmsfit <- function(fit) {
  check_class(fit, "fit", "smc_fit", "smc()")
  x <- fit$target$brmsfit
  if (is.null(x)) {
    label <- fit$target$label
    abort("{.arg fit} must be of a {.cls brmsfit}, not of the {label}.", "input")
  }
  check_has_draws(fit)
  check_installed("brms", "for fits of brms")
  check_installed("rstan", "in which brms keeps its draws")
  draws <- as.array(fit, generated = TRUE)
  renamed <- fit$target$renamed
  dimnames(draws)[[3]] <- renamed_as(dimnames(draws)[[3]], stats::setNames(names(renamed), renamed))
  as_brms_has_it(x, draws)
}

# A brmsfit with draws: an array of iterations, chains and variables, under the names of the program.
as_brms_has_it <- function(x, draws) {
  x$fit <- as_stanfit(draws, excluded = unsaved_by_brms(x))
  getExportedValue("brms", "rename_pars")(x)
}

# The names of brms for the variables of its program, in its order: c("b[1]" = "b_Days"). Of a draw in which the value
# of each variable is its number brms makes one in which its place is seen. None where brms cannot do that.
names_by_brms <- function(x, names) {
  draw <- array(seq_along(names), c(1, 1, length(names)), list(NULL, NULL, names))
  by_brms <- tryCatch(as_brms_has_it(x, draw)$fit@sim$samples[[1]], error = function(e) list())
  place <- vapply(by_brms, `[`, 0, 1)
  is_variable <- place %in% seq_along(names)
  stats::setNames(names(by_brms)[is_variable], names[place[is_variable]])
}

is_of_brmsfit <- function(fit) !is.null(fit$target$brmsfit)

# What brms does with its fits.
ask_brms <- function(name, fit, ...) getExportedValue("brms", name)(as_brmsfit(fit), ...)

# What brms leaves out of the draws of its own fits, such as standardised effects: names without indices.
unsaved_by_brms <- function(x) {
  exclude_pars <- get0("exclude_pars", asNamespace("brms"))
  if (is.function(exclude_pars)) exclude_pars(x)
}

# draws: an array of iterations, chains and variables.
as_stanfit <- function(draws, excluded) {
  base_of <- function(names) sub("\\[.*", "", names)
  draws <- draws[, , !base_of(dimnames(draws)[[3]]) %in% excluded, drop = FALSE]
  names <- c(dimnames(draws)[[3]], "lp__")
  pars <- unique(base_of(names))
  samples <- lapply(seq_len(dim(draws)[2]), function(chain) {
    of_chain <- matrix(draws[, chain, ], dim(draws)[1])
    columns <- lapply(seq_len(ncol(of_chain)), function(j) of_chain[, j])
    zero <- numeric(nrow(of_chain))
    structure(
      stats::setNames(c(columns, list(zero)), names),
      mean_pars = colMeans(of_chain), mean_lp__ = 0,
      sampler_params = list(divergent__ = zero, treedepth__ = zero), adaptation_info = "",
      elapsed_time = c(warmup = 0, sample = 0),
      args = list(method = "autosmc", algorithm = "SMC", chain_id = chain)
    )
  })
  n <- dim(draws)[1]
  dims <- lapply(stats::setNames(pars, pars), function(par) dims_of(names[base_of(names) == par]))
  sim <- list(
    samples = samples, iter = n, thin = 1, warmup = 0, chains = length(samples), n_save = rep(n, length(samples)),
    warmup2 = rep(0, length(samples)), permutation = rep(list(seq_len(n)), length(samples)),
    pars_oi = pars, dims_oi = dims, fnames_oi = names, n_flatnames = length(names)
  )
  methods::new(
    methods::getClass("stanfit", where = asNamespace("rstan")),
    model_name = "autosmc", model_pars = pars, par_dims = dims, mode = 0L, sim = sim, inits = list(),
    stan_args = lapply(samples, attr, "args"), stanmodel = empty_stanmodel(), date = date(),
    .MISC = new.env(parent = emptyenv())
  )
}

empty_stanmodel <- function() {
  of_rstan <- function(class, ...) methods::new(methods::getClass(class, where = asNamespace("rstan")), ...)
  of_rstan(
    "stanmodel",
    model_name = "autosmc", model_code = character(0), model_cpp = list(), dso = of_rstan(
      "cxxdso",
      sig = list(character(0)), dso_saved = FALSE, dso_filename = character(0), modulename = character(0),
      system = R.version$system, cxxflags = character(0), .CXXDSOMISC = new.env(parent = emptyenv())
    )
  )
}

# The dimensions of the variable whose elements have these names, x or x[1,1], x[2,1], ...
dims_of <- function(names) {
  index <- sub("^[^[]*\\[?", "", sub("\\]$", "", names))
  if (identical(index, "")) {
    return(numeric(0))
  }
  as.numeric(apply(do.call(rbind, lapply(strsplit(index, ","), as.integer)), 2, max))
}

# The methods ----------------------------------------------------------------------

#' @exportS3Method rstantools::posterior_predict
posterior_predict.smc_fit <- function(object, ...) ask_brms("posterior_predict", object, ...)

#' @exportS3Method rstantools::posterior_epred
posterior_epred.smc_fit <- function(object, ...) ask_brms("posterior_epred", object, ...)

#' @exportS3Method rstantools::posterior_linpred
posterior_linpred.smc_fit <- function(object, transform = FALSE, ...) {
  ask_brms("posterior_linpred", object, transform = transform, ...)
}

#' @exportS3Method rstantools::predictive_error
predictive_error.smc_fit <- function(object, ...) ask_brms("predictive_error", object, ...)

#' @exportS3Method rstantools::log_lik
log_lik.smc_fit <- function(object, ...) ask_brms("log_lik", object, ...)

#' @exportS3Method rstantools::bayes_R2
bayes_R2.smc_fit <- function(object, ...) ask_brms("bayes_R2", object, ...)

#' @exportS3Method brms::conditional_effects
conditional_effects.smc_fit <- function(x, ...) ask_brms("conditional_effects", x, ...)

#' @exportS3Method brms::conditional_smooths
conditional_smooths.smc_fit <- function(x, ...) ask_brms("conditional_smooths", x, ...)

#' @exportS3Method brms::hypothesis
hypothesis.smc_fit <- function(x, ...) ask_brms("hypothesis", x, ...)

#' @exportS3Method bayesplot::pp_check
pp_check.smc_fit <- function(object, ...) ask_brms("pp_check", object, ...)

#' @exportS3Method nlme::fixef
fixef.smc_fit <- function(object, ...) ask_brms("fixef", object, ...)

#' @exportS3Method nlme::ranef
ranef.smc_fit <- function(object, ...) ask_brms("ranef", object, ...)

#' @exportS3Method nlme::VarCorr
VarCorr.smc_fit <- function(x, sigma = 1, ...) ask_brms("VarCorr", x, sigma = sigma, ...)
