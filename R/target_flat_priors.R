# Improper priors. Those of the programs that brms writes are found by numbers, since their data say by `prior_only`
# whether the likelihood is left out; those of all other Stan programs by their statements (see target_stan_priors.R).

# The names of the parameters whose prior is flat, so that there is no evidence. What fails here fails in a run too,
# which says more.
improper_parameters <- function(target) {
  tryCatch(
    if (is_of_brms(target)) {
      target$data$values$prior_only <- 1
      # missing responses, whose density is in the likelihood, have no prior
      flat_by_numbers(target, grep("^(Ymi|Yl)(_|\\[|$)", target$names, invert = TRUE))
    } else if (!is.null(target$program$code)) {
      target$names[base_names(target$names) %in% parameters_without_prior(target$program)]
    } else {
      character()
    },
    error = function(e) character()
  )
}

# place: where such a model has its priors, in words.
warn_of_flat_priors <- function(target, place = "in the model block") {
  flat <- target$improper
  if (length(flat) > 0) {
    if (is_of_brms(target)) place <- "in {.code brm(prior = )}; {.fn brms::prior_summary} shows which there are"
    warn("prior", c(
      "{cli::qty(flat)}The prior{?s} of {.field {flat}} {?is/are} flat, that is improper:
        {.field log_z} will be that of the model up to a constant that nobody knows.",
      "i" = paste0(
        "The draws do not depend on it. For Bayes factors give {cli::qty(flat)}{?it a prior/them priors} ", place, "."
      )
    ))
  }
}

# In a sentence, for a fit; NULL where there are none.
describe_improper <- function(improper) {
  if (length(improper) > 0) {
    sprintf(
      "The prior%s of %s %s improper: log Z holds but for an unknown constant, so it makes no Bayes factor with a model
        that has other parameters.",
      if (length(improper) > 1) "s" else "", several(improper), if (length(improper) > 1) "are" else "is"
    )
  }
}

# A coefficient of brms is known by its covariate: b[1] may be another one in another model. With the names of the
# columns of its design matrix, of which one that is centred has an intercept more. In a fit of brms it has that name
# already.
name_coefficients <- function(improper, variables, data) {
  if (!is.list(data)) { # a file, which has no names of columns
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

# By numbers, since a prior can be written in many ways: the log density of a prior alone, on the unconstrained scale,
# is a straight line along a variable, the Jacobian's, which no proper prior is. candidates: the places of variables.
flat_by_numbers <- function(prior, candidates) {
  base <- prior_base(prior)
  if (is.null(base) || length(candidates) == 0) {
    return(character())
  }
  steps <- c(-300, -3, 3, 300)
  along <- density_along(prior, base$point, candidates, steps) - base$log_density
  slope <- along[, 4] / 300
  least <- 1e-6 * (1 + abs(base$log_density)) # more than rounding
  straight <- which(rowSums(abs(along - outer(slope, steps)) < least) == 4)
  # a proper prior may be as wide, or end farther out
  level <- straight[abs(slope[straight]) < 0.5] # or 1, of a bound
  far <- density_along(prior, base$point, candidates[level], c(-1e150, 1e150)) - base$log_density
  proper <- level[!rowSums(abs(far) < least) %in% 2]
  prior$names[candidates[setdiff(straight, proper)]]
}

is_of_brms <- function(target) {
  only <- target$data$values$prior_only
  by_brms(target$program) && is.numeric(only) && length(only) == 1
}

# list(point, log_density): a point at which the prior has a density, or NULL.
prior_base <- function(target) {
  shape <- sin(seq_len(target$dim))
  points <- rbind(0.3 * shape, shape, 0.01 * shape, -shape, 0)
  log_density <- evaluate_target(target, points, gradient = FALSE)$log_density
  i <- match(TRUE, is.finite(log_density))
  if (!is.na(i)) list(point = points[i, ], log_density = log_density[i])
}

# The log density a step from `point` along variables: a row a variable, a column a step. Some
# variables at a time, since many points of many variables are large.
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
