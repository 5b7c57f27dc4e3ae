# The columns of draws of a Stan program: their names, their selection, and the function `outputs` of the target.

# Converts Stan's names, "beta.1" and "Sigma.2.1", to "beta[1]" and "Sigma[2,1]".
bracketed <- function(names) {
  indexed <- grepl(".", names, fixed = TRUE)
  opened <- sub(".", "[", names[indexed], fixed = TRUE)
  names[indexed] <- paste0(gsub(".", ",", opened, fixed = TRUE), "]")
  names
}

# Generated quantities with more elements, such as `log_lik` with one per observation, are computed only on request.
max_elements_at_once <- 100

# The columns of draws: list(names, block, which, at_once, later). `names` are those of all numbers that the program
# declares, `block` is 1 for parameters, 2 for transformed parameters and 3 for generated quantities, and `which` are
# the indices of the selected columns. Without `include`, `at_once` are the names of the columns in the draws of a fit,
# and `later` of those computed only on request.
select_columns <- function(described, include) {
  variables <- sub("[.:].*", "", described$outputs)
  n <- length(variables)
  first_blocks <- c(described$n_parameters, described$n_transformed)
  block <- rep(1:3, c(first_blocks, n - sum(first_blocks)))
  names <- bracketed(described$outputs)
  if (is.null(include)) {
    is_long <- block == 3 & table(variables)[variables] > max_elements_at_once
    return(list(names = names, block = block, which = seq_len(n), at_once = names[!is_long], later = names[is_long]))
  }
  if (!is.character(include) || length(include) == 0) {
    abort_argument(include, "include", "NULL or a character vector")
  }
  unknown <- setdiff(include, variables)
  if (length(unknown) > 0) {
    abort("{.arg include}: the program does not declare {.val {unknown}}. It declares {.val {unique(variables)}}.")
  }
  list(names = names, block = block, which = which(variables %in% include))
}

# Renames columns; those with a new name come first. renamed: c(old = "new").
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

# For the columns `which`: whether the blocks of transformed parameters and generated quantities are needed, and the
# indices of these columns among those of the needed blocks.
blocks_wanted <- function(columns, which) {
  blocks <- 2:3 %in% columns$block[which]
  list(blocks = blocks, which = match(which, base::which(columns$block %in% c(1, (2:3)[blocks]))))
}

# The function `outputs` of a target: it takes points and names of columns (NULL for all) and returns a matrix. ask: a
# function of points and the value of blocks_wanted(), by which the library returns list(values, failed, message).
stan_outputs <- function(name, columns, ask) {
  force(name)
  force(columns)
  function(unconstrained, names = NULL) {
    which <- if (is.null(names)) columns$which else match(names, columns$names)
    storage.mode(unconstrained) <- "double"
    announce_size(nrow(unconstrained), length(which))
    result <- as_input_error(ask(unconstrained, blocks_wanted(columns, which)))
    failed <- result$failed
    if (failed > 0) {
      n <- nrow(unconstrained)
      reason <- result$message
      warn("outputs", c(
        "The Stan program {.field {name}} failed at {failed} of {n} points;
          their generated quantities are NaN.",
        "x" = "The first failure: {reason}"
      ))
    }
    name_columns(result$values, columns$names[which])
  }
}

# A message before a gigabyte or more of memory is allocated.
announce_size <- function(n_points, n_columns) {
  gigabytes <- 8e-9 * n_points * n_columns
  if (gigabytes >= 1) {
    inform_once("size", c(
      "i" = "{count(n_columns)} quantities of a Stan program at {count(n_points)} draws take {fixed(gigabytes, 1)} GB.
        Use {.arg include} of {.fn target_stan} or {.arg generated} of {.fn as_draws} to select some."
    ))
  }
}
