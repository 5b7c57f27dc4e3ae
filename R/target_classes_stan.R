# Targets from the model and fit objects of rstan, rstanarm, brms and CmdStanR: methods of as_target().

#' Targets from the objects of rstan, rstanarm, brms and CmdStanR
#'
#' The Stan program of a model or fit is compiled again by [target_stan()], with all normalising constants: the packages
#' themselves may drop them. The target of a fit keeps the draws of the parameters, for `smc(fit, reference = "draws")`.
#'
#' @param x a `stanmodel` or `stanfit` of rstan, a `stanreg` of rstanarm, a `brmsfit` of
#'   brms (with either backend), a `CmdStanModel` of CmdStanR, or one of its fits.
#' @param data the data, as in [target_stan()]. A `brmsfit` and the fits of CmdStanR contain their data. A `stanfit`
#'   does not: give the data again, or see the section on fits without data.
#' @param ... further arguments of [target_stan()]: `include` and `seed`.
#' @param program the program, as `model` of [target_stan()]. It is needed, with `data`, for a fit that was read from
#'   the files of CmdStan by `rstan::read_stan_csv()` or `cmdstanr::as_cmdstan_fit()`, which does not contain it.
#' @return A target: an object of class `smc_target`.
#' @section Errors: Those of [target_stan()]; `autosmc_error_input` also when `data` are needed and missing, or when
#'   CmdStanR's data file no longer exists; `autosmc_error_package` when `x` is a `brmsfit` and brms is not installed.
#' @section Starting from draws: With `reference = "draws"` [smc()] starts from a distribution that is fitted to the
#'   draws, on the unconstrained scale. The draws are used for nothing else, so the estimates remain valid even if the
#'   draws are not exactly from the posterior; references that the scout proposes compete with this one.
#'
#'   The draws must contain all parameters. They do without `pars` in rstan, and with
#'   `save_pars = save_pars(all = TRUE)` in brms.
#' @section Fits without data: A `stanfit` without `data`, and a `stanreg`, are evaluated by the compiled model in the
#'   fit, point by point through R, which is slower; a message says so. A saved fit does not contain its compiled model.
#'   rstan drops the constants of `~` and `_lupdf`, so a program that uses these is an error here; the programs of
#'   rstanarm use neither. Such a target has no draws to start from.
#' @section A fit of brms: Draws have the names that brms gives them, such as `b_speed`. Variables that brms does not
#'   keep, such as standardised effects, come last, with the names of the program. `include` takes names of the program.
#'   [as_brmsfit()] turns the result into a `brmsfit`.
#'
#'   In brms, coefficients have flat priors unless others are given. With a flat prior the evidence is undefined:
#'   `log_z` holds up to an unknown constant, and a Bayes factor with a model that has other parameters is meaningless.
#'   So a warning of class `autosmc_warning_prior` names the parameters with flat priors; `brms::prior_summary()` shows
#'   all priors. They are found by evaluating the program without the likelihood, so the warning is also given when a
#'   program of brms is passed to [target_stan()] or belongs to a fit of CmdStanR. A prior that is improper jointly in
#'   several parameters but in none of them alone, as some spatial priors are, is not found. Nor is a flat prior between
#'   two bounds, which is proper up to a constant: its density counts as 1, so that with bounds -1 and 1 `log_z` is too
#'   high by log(2).
#'
#'   The thresholds of ordinal families are ordered, but their prior is not normalised for this: a message says by how
#'   much `log_z` is too low. The density of `car()` is not normalised either: a message says by how much `log_z` is too
#'   high. The program of `brm(normalize = FALSE)` lacks the constants of truncated priors and is an error. So is a fit
#'   of `brm_multiple()`, which contains several data sets.
#'
#'   ```r
#'   fit <- brm(dist ~ speed, data = cars, prior = prior(normal(0, 10), class = "b"))
#'   smc(fit)
#'   ```
#' @name as_target.stanfit
NULL

#' @rdname as_target.stanfit
#' @export
as_target.stanmodel <- function(x, data, ...) {
  check_stan_data(data, "A Stan program")
  target_stan(x, data, ...)
}

#' @rdname as_target.stanfit
#' @export
as_target.stanfit <- function(x, data, ..., program = NULL) {
  has_code <- any(nzchar(x@stanmodel@model_code))
  if (missing(data) && has_code) {
    check_dots_empty(...)
    return(target_of_stanfit(x, "Give its {.arg data} to compile it for autosmc, which is faster."))
  }
  program <- check_has_program(program, if (has_code) x@stanmodel)
  check_stan_data(data, "A fit of {.fn read_stan_csv}")
  draws <- draws_of_stanfit(x)
  if (!is.null(draws)) colnames(draws) <- bracketed(colnames(draws)) # CmdStan's files have "p.1"
  with_draws(target_stan(program, data, ...), draws)
}

# The user's argument `program` or, if that is NULL, the program of the fit.
check_has_program <- function(program, own) {
  if (is.null(program)) program <- own
  if (is.null(program)) {
    abort(c(
      "{.arg program} is missing: a fit that was read from the files of CmdStan does not contain its program.",
      "i" = "Give the path of its {.file .stan} file, or its text."
    ))
  }
  stan_program(program, "program") # so that errors are reported now
  program
}

# A matrix of draws without warm-up, all chains one below the other; NULL if the fit has none. Slots are read directly,
# so rstan need not be installed.
draws_of_stanfit <- function(x) {
  sim <- x@sim
  chains <- Map(function(chain, warmup) {
    draws <- do.call(cbind, chain)
    draws[seq_len(nrow(draws)) > warmup, , drop = FALSE]
  }, sim$samples, sim$warmup2)
  do.call(rbind, chains)
}

#' @rdname as_target.stanfit
#' @export
as_target.stanreg <- function(x, ...) {
  check_dots_empty(...)
  target <- target_of_stanfit(x$stanfit)
  target$improper <- flat_in_stanreg(x)
  warn_of_flat_priors(target, "by the arguments of the model that begin with `prior`")
  target
}

# The names of the coefficients and scales of a fit of rstanarm that have flat priors.
flat_in_stanreg <- function(x) {
  coefficients <- names(x$coefficients)
  is_intercept <- coefficients == "(Intercept)"
  of_prior <- list(
    prior = coefficients[!is_intercept], prior_intercept = coefficients[is_intercept],
    prior_aux = x$prior.info$prior_aux$aux_name
  )
  said <- intersect(names(of_prior), names(x$prior.info))
  is_flat <- vapply(x$prior.info[said], function(prior) identical(prior$dist, NA), NA)
  as.character(unlist(of_prior[said[is_flat]]))
}

# A target that calls the compiled model in a fit of rstan, an object of a C++ class. The logical arguments of its
# method `log_prob` are whether to add the log Jacobian and whether to return the gradient. faster: a hint at a faster
# way (string), or NULL if there is none, as for a stanreg.
target_of_stanfit <- function(x, faster = NULL) {
  name <- x@stanmodel@model_name
  if (drops_constants(x@stanmodel@model_code)) {
    abort(c(
      "{.arg data} are missing.",
      "i" = "A {.cls stanfit} does not contain its data. Without them rstan evaluates it, and drops the constants
        of {.code ~} and {.code _lupdf}, which the evidence needs."
    ))
  }
  model <- x@.MISC$stan_fit_instance
  names <- tryCatch(model$unconstrained_param_names(FALSE, FALSE), error = function(e) NULL)
  if (length(names) == 0) {
    cure <- if (is.null(faster)) {
      "Fit the model again, and call {.fn smc} in the same session: {.arg data} of a {.cls stanreg} are not used."
    } else {
      "Give its {.arg data}, or fit the model again."
    }
    abort(c("The fit does not contain its compiled model, which saving a fit removes.", "i" = cure))
  }
  inform_once("rstan", c("i" = "rstan evaluates {.field {name}} point by point.", "i" = faster))
  target <- target_function(
    function(u) unless_rejected(model$log_prob(u, TRUE, FALSE), -Inf),
    length(names),
    function(u) unless_rejected(as.double(model$grad_log_prob(u, TRUE)), 0 * u),
    names = bracketed(names)
  )
  target$label <- paste0("fit of rstan `", name, "`")
  target$outputs <- function(unconstrained) {
    out <- matrix(apply(unconstrained, 1, model$constrain_pars), nrow(unconstrained), byrow = TRUE)
    name_columns(out, bracketed(model$constrained_param_names(TRUE, TRUE)))
  }
  target
}

# The value of `code`, or `otherwise` if the program rejects the point.
unless_rejected <- function(code, otherwise) tryCatch(code, "std::domain_error" = function(e) otherwise)

drops_constants <- function(code) grepl("~|_lup[dm]f", plain_stan_code(list(code = paste(code, collapse = "\n"))))

#' @export
as_target.brmsfit_multiple <- function(x, ...) {
  abort(c(
    "A fit of {.fn brms::brm_multiple} contains several data sets, each with its own evidence.",
    "i" = "Make a fit for each: {.code smc_all(lapply(data, function(d) brm(..., data = d, empty = TRUE)))}, for which
      brms does not sample, or {.fn smc_all} of the list that {.code brm_multiple(combine = FALSE)} returns."
  ))
}

#' @rdname as_target.stanfit
#' @export
as_target.brmsfit <- function(x, ...) {
  check_installed("brms", "for the program and the data of a brmsfit")
  # brms is not a dependency, not even a suggested one, since it depends on rstan
  stancode <- getExportedValue("brms", "stancode")
  standata <- getExportedValue("brms", "standata")
  target <- tryCatch(
    stan_target(
      read_stan_program(as.character(stancode(x))), unclass(standata(x)), ...,
      rename = function(names) names_by_brms(x, names)
    ),
    autosmc_error_program = function(e) abort_old_brms(e, x)
  )
  if (methods::is(x$fit, "stanfit")) target <- with_draws(target, draws_of_stanfit(x$fit))
  x["fit"] <- list(NULL)
  target$brmsfit <- x # for as_brmsfit()
  target
}

# Adds to an error of Stan's compiler that brms wrote the program, and how to renew it.
abort_old_brms <- function(e, x) {
  version <- format(x$version$brms)
  abort_verbatim(
    paste0(
      conditionMessage(e), "\nThe program was written by brms ", if (length(version) == 1) paste0(version, " "),
      "and is not accepted by Stan ", format(utils::packageVersion("StanHeaders")),
      ". With a newer brms, `update(fit, recompile = TRUE)` writes it again."
    ),
    c("program", "input")
  )
}

#' @rdname as_target.stanfit
#' @export
as_target.CmdStanModel <- function(x, data, ...) {
  check_stan_data(data, "A Stan program")
  target_stan(paste(x$code(), collapse = "\n"), data, ...)
}

#' @rdname as_target.stanfit
#' @export
as_target.CmdStanFit <- function(x, data, ..., program = NULL) {
  own <- tryCatch(paste(x$code(), collapse = "\n"), error = function(e) NULL) # a fit read from files has no program
  program <- check_has_program(program, if (any(nzchar(own))) own)
  if (missing(data)) data <- tryCatch(x$data_file(), error = function(e) NULL)
  if (is.null(data)) {
    abort("{.arg data} are missing: a fit that was read from the files of CmdStan does not contain its data.")
  }
  target <- target_stan(program, data, ...)
  with_draws(target, unclass(x$draws(format = "draws_matrix")))
}

check_stan_data <- function(data, what) {
  if (missing(data)) abort(paste("{.arg data} are missing.", what, "does not contain its data."))
}
