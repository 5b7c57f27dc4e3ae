# What a Stan program declares, as the user sees it.

# "beta.1" and "Sigma.2.1" are Stan's names of what R users know as "beta[1]" and "Sigma[2,1]".
bracketed <- function(names) {
  indexed <- grepl(".", names, fixed = TRUE)
  opened <- sub(".", "[", names[indexed], fixed = TRUE)
  names[indexed] <- paste0(gsub(".", ",", opened, fixed = TRUE), "]")
  names
}

# A generated quantity with more elements, such as `log_lik` and `y_rep`, which have one an observation, is made when it
# is asked for.
most_generated <- 100

# Which columns draws can have: list(names, block, which), the names of all that a program has, the number of the block
# of each, and which there are to be; of these the names of those that the draws of a fit have, `at_once`, and of those
# that are made `later`.
select_columns <- function(described, include) {
  variables <- sub("[.:].*", "", described$outputs)
  n <- length(variables)
  first_blocks <- c(described$n_parameters, described$n_transformed)
  block <- rep(1:3, c(first_blocks, n - sum(first_blocks)))
  names <- bracketed(described$outputs)
  if (is.null(include)) {
    is_long <- block == 3 & table(variables)[variables] > most_generated
    return(list(names = names, block = block, which = seq_len(n), at_once = names[!is_long], later = names[is_long]))
  }
  if (!is.character(include) || length(include) == 0) {
    abort_argument(include, "include", "NULL or a character vector")
  }
  unknown <- setdiff(include, variables)
  if (length(unknown) > 0) {
    abort("{.arg include}: the program has no {.val {unknown}}, but {.val {unique(variables)}}.")
  }
  list(names = names, block = block, which = which(variables %in% include))
}

# The columns under other names, those that have one before the others.
rename_columns <- function(columns, renamed) {
  columns$which <- columns$which[order(match(columns$names[columns$which], names(renamed)))]
  columns$at_once <- intersect(columns$names[columns$which], columns$at_once)
  columns[c("names", "at_once", "later")] <- lapply(columns[c("names", "at_once", "later")], renamed_as, renamed)
  columns
}

renamed_as <- function(names, renamed) {
  is_renamed <- names %in% names(renamed)
  replace(names, is_renamed, unname(renamed[names[is_renamed]]))
}

# What a program is asked for, for some of its columns: whether the blocks of transformed parameters and generated
# quantities are needed, and which these columns are in what the needed blocks have.
blocks_wanted <- function(columns, which) {
  blocks <- 2:3 %in% columns$block[which]
  list(blocks = blocks, which = match(which, base::which(columns$block %in% c(1, (2:3)[blocks]))))
}

# The function `outputs` of a target: of points, and of the names of columns, NULL for all. ask: a function of a matrix
# and of what blocks_wanted() returns, which the program's library answers with list(values, failed, message).
stan_outputs <- function(name, columns, ask) {
  force(name)
  force(columns)
  function(unconstrained, names = NULL) {
    which <- if (is.null(names)) columns$which else match(names, columns$names)
    storage.mode(unconstrained) <- "double"
    foretell_size(nrow(unconstrained), length(which))
    result <- as_input_error(ask(unconstrained, blocks_wanted(columns, which)))
    failed <- result$failed
    if (failed > 0) {
      n <- nrow(unconstrained)
      reason <- result$message
      warn("outputs", c(
        "The Stan program {.field {name}} failed at {failed} of {n} points;
          their generated quantities are NaN.",
        "x" = "The first time: {reason}"
      ))
    }
    name_columns(result$values, columns$names[which])
  }
}

# Before the memory is taken, if that is a gigabyte or more.
foretell_size <- function(n_points, n_columns) {
  gigabytes <- 8e-9 * n_points * n_columns
  if (gigabytes >= 1) {
    inform_once("size", c(
      "i" = "{count(n_columns)} quantities of a Stan program at {count(n_points)} draws take {fixed(gigabytes, 1)} GB:
        {.arg include} of {.fn target_stan} selects among them, and so does {.arg generated} of {.fn as_draws}."
    ))
  }
}
