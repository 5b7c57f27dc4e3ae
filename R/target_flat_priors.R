# Flat priors, with which the evidence is undefined. Programs written by brms are evaluated without the likelihood,
# which the element `prior_only` of their data turns off. In other Stan programs the statements are read (see
# target_stan_priors.R).

# The names of the parameters whose prior is flat. An error gives none: a run meets the same error and reports it.
improper_parameters <- function(target) {
  tryCatch(
    if (is_of_brms(target)) {
      target$data$values$prior_only <- 1
      # not missing responses, whose density is part of the likelihood
      flat_by_evaluation(target, grep("^(Ymi|Yl)(_|\\[|$)", target$names, invert = TRUE))
    } else if (!is.null(target$program$code)) {
      target$names[base_names(target$names) %in% parameters_without_prior(target$program)]
    } else {
      character()
    },
    error = function(e) character()
  )
}

# place: where priors are given in such a model, in words.
warn_of_flat_priors <- function(target, place = "in the model block") {
  flat <- target$improper
  if (length(flat) > 0) {
    if (is_of_brms(target)) place <- "in {.code brm(prior = )}; {.fn brms::prior_summary} lists the present ones"
    warn("prior", c(
      "{cli::qty(flat)}The prior{?s} of {.field {flat}} {?is/are} flat, that is improper:
        {.field log_z} will hold only up to an unknown constant.",
      "i" = paste0(
        "Draws are not affected. For Bayes factors give {cli::qty(flat)}{?it a prior/them priors} ", place, "."
      )
    ))
  }
}

# A sentence for printed fits; NULL if no prior is flat.
describe_improper <- function(improper) {
  if (length(improper) > 0) {
    sprintf(
      "The prior%s of %s %s improper: log Z holds only up to an unknown constant, so it gives no Bayes factor with a
        model that has other parameters.",
      if (length(improper) > 1) "s" else "", several(improper), if (length(improper) > 1) "are" else "is"
    )
  }
}

# The names in `improper`, of a brms program, named by their covariates: b[1] may be another coefficient in another
# model. Covariates are the column names of the design matrix in `data`; a centred design matrix has an additional
# column for the intercept. Fits of brms have these names already.
name_coefficients <- function(improper, variables, data) {
  if (!is.list(data)) { # a file, which has no column names
    return(improper)
  }
  base <- base_names(improper)
  covariates <- lapply(unique(grep("^b(_|$)", base, value = TRUE)), function(b) {
    of_b <- grep(paste0("^", b, "\\["), variables, value = TRUE)
    columns <- utils::tail(colnames(data[[sub("^b", "X", b)]]), length(of_b))
    if (length(of_b) > 0 && length(columns) == length(of_b)) stats::setNames(columns, of_b)
  })
  covariates <- unlist(covariates)
  found <- covariates[match(improper, names(covariates))]
  if (!all(is.na(found))) stats::setNames(improper, ifelse(is.na(found), "", found)) else improper
}

# The names of the variables with flat priors, found by evaluation. Along such a variable the log density of the prior
# on the unconstrained scale is a straight line, the log Jacobian; no proper prior is. candidates: indices of variables.
flat_by_evaluation <- function(prior, candidates) {
  base <- prior_point(prior)
  if (is.null(base) || length(candidates) == 0) {
    return(character())
  }
  steps <- c(-300, -3, 3, 300)
  along <- density_along(prior, base$point, candidates, steps) - base$log_density
  slope <- along[, 4] / 300
  least <- 1e-6 * (1 + abs(base$log_density)) # well above rounding errors
  straight <- which(rowSums(abs(along - outer(slope, steps)) < least) == 4)
  # a proper prior may be constant over this range: very wide, or uniform with ends farther out
  level <- straight[abs(slope[straight]) < 0.5] # a bounded variable has slope 1 or -1
  far <- density_along(prior, base$point, candidates[level], c(-1e150, 1e150)) - base$log_density
  proper <- level[!rowSums(abs(far) < least) %in% 2]
  prior$names[candidates[setdiff(straight, proper)]]
}

is_of_brms <- function(target) {
  only <- target$data$values$prior_only
  by_brms(target$program) && is.numeric(only) && length(only) == 1
}

# list(point, log_density): a point at which the prior density is positive; NULL if none is found.
prior_point <- function(target) {
  shape <- sin(seq_len(target$dim))
  points <- rbind(0.3 * shape, shape, 0.01 * shape, -shape, 0)
  log_density <- evaluate_target(target, points, gradient = FALSE)$log_density
  i <- match(TRUE, is.finite(log_density))
  if (!is.na(i)) list(point = points[i, ], log_density = log_density[i])
}

# The log density at `point` plus a step along each variable: a row for each variable, a column for each step. Variables
# are evaluated in blocks to limit memory.
density_along <- function(target, point, variables, steps) {
  found <- lapply(blocks_of(length(variables), target$dim * length(steps)), function(rows) {
    each <- expand.grid(variable = variables[rows], step = steps)
    points <- matrix(rep(point, each = nrow(each)), nrow(each), target$dim)
    at <- cbind(seq_len(nrow(each)), each$variable)
    points[at] <- points[at] + each$step
    matrix(evaluate_target(target, points, gradient = FALSE)$log_density, length(rows))
  })
  do.call(rbind, found)
}
