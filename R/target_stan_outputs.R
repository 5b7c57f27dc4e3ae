# What a Stan program declares, as the user sees it.

# "beta.1" and "Sigma.2.1" are Stan's names of what R users know as "beta[1]" and
# "Sigma[2,1]".
bracketed <- function(names) {
  indexed <- grepl(".", names, fixed = TRUE)
  opened <- sub(".", "[", names[indexed], fixed = TRUE)
  names[indexed] <- paste0(gsub(".", ",", opened, fixed = TRUE), "]")
  names
}

# Which columns draws are to have: list(names, which, blocks), `which` among those of the
# blocks that are needed, `blocks` whether transformed parameters and generated
# quantities are.
select_columns <- function(described, include) {
  names <- bracketed(described$outputs)
  n <- length(names)
  block <- rep(1:3, c(
    described$n_parameters,
    described$n_transformed,
    n - described$n_parameters - described$n_transformed
  ))
  keep <- rep(TRUE, n)
  if (!is.null(include)) {
    variables <- sub("[.:].*", "", described$outputs)
    if (!is.character(include) || length(include) == 0) {
      abort_argument(include, "include", "NULL or a character vector")
    }
    unknown <- setdiff(include, variables)
    if (length(unknown) > 0) {
      known <- unique(variables)
      abort(
        "{.arg include}: the program has no {.val {unknown}}, but {.val {known}}.",
        "input"
      )
    }
    keep <- variables %in% include
  }
  blocks <- 2:3 %in% block[keep]
  made <- block %in% c(1, (2:3)[blocks])
  list(names = names[keep], which = which(keep[made]), blocks = blocks)
}

# The function `outputs` of a target. ask: a function of a matrix, which the program's
# library answers with list(values, failed, message).
stan_outputs <- function(name, columns, ask) {
  force(name)
  force(columns)
  function(unconstrained) {
    storage.mode(unconstrained) <- "double"
    result <- as_input_error(ask(unconstrained))
    failed <- result$failed
    if (failed > 0) {
      n <- nrow(unconstrained)
      reason <- result$message
      cli::cli_warn(
        c(
          "The Stan program {.field {name}} failed at {failed} of {n} points;
            their generated quantities are NaN.",
          "x" = "The first time: {reason}"
        ),
        class = warning_class("outputs")
      )
    }
    name_columns(result$values[, columns$which, drop = FALSE], columns$names)
  }
}
