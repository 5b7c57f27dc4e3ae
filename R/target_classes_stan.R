# Stan programs that other packages hold.

#' Targets from the objects of rstan, rstanarm, brms and CmdStanR
#'
#' The Stan program of a model or of a fit is compiled again, by [target_stan()], with all its constants: the packages
#' themselves leave out those that do not matter to them. The target of a fit keeps the draws of the parameters, for
#' `smc(fit, reference = "draws")`.
#'
#' @param x a `stanmodel` or `stanfit` of rstan, a `stanreg` of rstanarm, a `brmsfit` of
#'   brms (with either backend), a `CmdStanModel` of CmdStanR, or one of its fits.
#' @param data the data, as in [target_stan()]. A `brmsfit` and the fits of CmdStanR have their own. A `stanfit` does
#'   not keep them: give them once more, or see the section on fits without data.
#' @param ... further arguments of [target_stan()]: `include` and `seed`.
#' @param program the program, as `model` of [target_stan()], of a fit that has none: one that was read from the files
#'   of CmdStan by `rstan::read_stan_csv()` or `cmdstanr::as_cmdstan_fit()`, for which `data` are needed too.
#' @return A target: an object of class `smc_target`.
#' @section Errors: Those of [target_stan()]; `autosmc_error_input` also when `data` are
#'   missing and needed, or when CmdStanR's file of the data is no longer there, and
#'   `autosmc_error_package` when brms is not installed for a `brmsfit`.
#' @section Starting from draws: With `reference = "draws"` [smc()] starts from a distribution that is fitted to the
#'   draws, on the unconstrained scale. What is estimated is the same: the draws are used for nothing else. Nor does it
#'   matter if they are not quite those of the posterior, since the scout's proposals compete with them.
#'
#'   All parameters must be among the draws, as they are without `pars` in rstan and with
#'   `save_pars = save_pars(all = TRUE)` in brms.
#' @section Fits without data: A `stanfit` without `data`, and a `stanreg`, are evaluated by the compiled model that the
#'   fit holds, point by point through R, which is slower; a message says so. A fit that was saved has lost its model.
#'   rstan drops the constants of `~` and of `_lupdf`, so a program that has these is rejected here; those of rstanarm
#'   have none. Such a target has no draws to start from.
#' @section A fit of brms: The draws have the names that brms gives them, such as `b_speed`; what brms does not keep,
#'   such as standardised effects, comes after them under the names of the program. `include` takes those of the
#'   program. [as_brmsfit()] is the way back, to all that brms does with its fits.
#'
#'   Coefficients have flat priors in brms unless one is given, with which there is no evidence: `log_z` is then that of
#'   the model up to a constant that nobody knows, and a Bayes factor with a model that has other parameters means
#'   nothing. So a warning of class `autosmc_warning_prior` names the parameters whose prior is flat;
#'   `brms::prior_summary()` shows all priors. It is found by evaluating the program without the likelihood, which
#'   brms's data can leave out; so it comes also where the program of brms is given to [target_stan()], or is that of a
#'   fit of CmdStanR. A prior that is improper in several parameters together but in none alone, as some spatial ones
#'   are, is not found. Nor is one that is flat between two bounds, since that is proper but for a constant: its density
#'   counts as 1, so that with bounds -1 and 1 `log_z` is too large by log(2).
#'
#'   The thresholds of ordinal families are ordered, and their prior is not normalised for that: a message says by how
#'   much `log_z` is low; and by how much it is high with `car()`, whose density lacks its constants. The program of
#'   `brm(normalize = FALSE)` has lost constants of truncated priors, and is an error; so is a fit of `brm_multiple()`,
#'   which is of several data sets.
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
    return(target_of_stanfit(x, "With its {.arg data} it is compiled for autosmc, and is faster."))
  }
  program <- check_has_program(program, if (has_code) x@stanmodel)
  check_stan_data(data, "A fit of {.fn read_stan_csv}")
  draws <- draws_of_stanfit(x)
  if (!is.null(draws)) colnames(draws) <- bracketed(colnames(draws)) # CmdStan's files have "p.1"
  with_draws(target_stan(program, data, ...), draws)
}

# The program that is given, or that of the fit.
check_has_program <- function(program, own) {
  if (is.null(program)) program <- own
  if (is.null(program)) {
    abort(c(
      "{.arg program} is missing: a fit that was read from the files of CmdStan has none.",
      "i" = "Give the path of its {.file .stan} file, or its text."
    ))
  }
  program
}

# From the slots, for which rstan need not be there: chains one below the other, without
# warm-up. NULL where there are none.
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

# The coefficients and scales of a fit of rstanarm whose prior is flat, by its names.
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

# By the compiled model that a fit of rstan holds, an object of a class of C++: of its
# methods `log_prob` takes whether to add the Jacobian, and whether to return the gradient.
# faster: what to say of a faster way (string), or NULL where there is none: of a stanreg.
target_of_stanfit <- function(x, faster = NULL) {
  name <- x@stanmodel@model_name
  if (drops_constants(x@stanmodel@model_code)) {
    abort(c(
      "{.arg data} are missing.",
      "i" = "A {.cls stanfit} does not keep its data. Without them it is evaluated by
        rstan, which drops constants where the program has {.code ~} or {.code _lupdf}."
    ))
  }
  model <- x@.MISC$stan_fit_instance
  names <- tryCatch(model$unconstrained_param_names(FALSE, FALSE), error = function(e) NULL)
  if (length(names) == 0) {
    cure <- if (is.null(faster)) {
      "Fit the model again, and call {.fn smc} in the same session: a {.cls stanreg} cannot be given its data."
    } else {
      "Give its {.arg data}, or fit the model again."
    }
    abort(c("The fit has lost its compiled model, as a fit that was saved does.", "i" = cure))
  }
  inform_once("rstan", c("i" = "{.field {name}} is evaluated point by point by rstan.", "i" = faster))
  target <- target_function(
    function(u) possible(model$log_prob(u, TRUE, FALSE), -Inf),
    length(names),
    function(u) possible(as.double(model$grad_log_prob(u, TRUE)), 0 * u),
    names = bracketed(names)
  )
  target$label <- paste0("fit of rstan `", name, "`")
  target$outputs <- function(unconstrained) {
    out <- matrix(apply(unconstrained, 1, model$constrain_pars), nrow(unconstrained), byrow = TRUE)
    name_columns(out, bracketed(model$constrained_param_names(TRUE, TRUE)))
  }
  target
}

# Where the program throws, another value.
possible <- function(code, otherwise) tryCatch(code, "std::domain_error" = function(e) otherwise)

drops_constants <- function(code) grepl("~|_lup[dm]f", plain_stan_code(list(code = paste(code, collapse = "\n"))))

#' @export
as_target.brmsfit_multiple <- function(x, ...) {
  abort(c(
    "A fit of {.fn brms::brm_multiple} is of several data sets, and has an evidence for each.",
    "i" = "Make a fit of each: {.code smc_all(lapply(data, function(d) brm(..., data = d, empty = TRUE)))}, which
      takes no sampling by brms, or of a list of {.code brm_multiple(combine = FALSE)}."
  ))
}

#' @rdname as_target.stanfit
#' @export
as_target.brmsfit <- function(x, ...) {
  check_installed("brms", "for the program and the data of a brmsfit")
  # brms is no dependency, not even a suggested one: it would bring rstan
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

# The program of a brmsfit is not of the user's writing.
abort_old_brms <- function(e, x) {
  version <- format(x$version$brms)
  abort_verbatim(
    paste0(
      conditionMessage(e), "\nThe program was written by brms ", if (length(version) == 1) paste0(version, " "),
      "and is not understood by Stan ", format(utils::packageVersion("StanHeaders")),
      ". With a newer brms, `update(fit, recompile = TRUE)` writes it anew."
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
  own <- tryCatch(paste(x$code(), collapse = "\n"), error = function(e) NULL) # none of one that was read from files
  program <- check_has_program(program, if (any(nzchar(own))) own)
  if (missing(data)) data <- tryCatch(x$data_file(), error = function(e) NULL)
  if (is.null(data)) abort("{.arg data} are missing: a fit that was read from the files of CmdStan has none.")
  target <- target_stan(program, data, ...)
  with_draws(target, unclass(x$draws(format = "draws_matrix")))
}

check_stan_data <- function(data, what) {
  if (missing(data)) abort(paste("{.arg data} is missing.", what, "does not keep its data."))
}
