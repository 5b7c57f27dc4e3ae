# Targets from libraries compiled by BridgeStan (Roualdes et al., 2023), called through its C interface.

#' A target from a compiled model of BridgeStan
#'
#' The posterior of a Stan program that BridgeStan has compiled (`NAME_model.so`), with its data. No compiler and no
#' other package are needed. If you have the program itself, [target_stan()] compiles it.
#'
#' As with [target_stan()] the log density has all its constants, and draws come back as the program declares them.
#'
#' @param library the path of the library (string).
#' @param data the data: the path of a JSON file, or JSON itself (string).
#' @param include,seed as in [target_stan()].
#' @return A target: an object of class `smc_target`, with an element `outputs` as in [target_stan()].
#' @section Points at which the program throws: Their log density is -Inf. BridgeStan does not say whether the program
#'   rejects the point or fails for another reason, so both count as impossible points. If the generated quantities
#'   throw, all quantities are NaN, with a warning.
#' @section Errors: Of class `autosmc_error_input` when the library does not exist or is not one of BridgeStan's, when
#'   the data are not as declared (with BridgeStan's message), and when `include` names an unknown variable. Of class
#'   `autosmc_error_mismatch` when the library has changed since the target was made.
#' @source Roualdes, Ward, Carpenter, Seyboldt and Axen (2023), *BridgeStan: Efficient
#'   in-memory access to the methods of a Stan model*.
#' @seealso [target_stan()]
#' @examples
#' \dontrun{
#' smc(target_bridgestan("eight_schools_model.so", "eight_schools.json"))
#' }
#' @export
target_bridgestan <- function(library, data = "{}", include = NULL, seed = 1) {
  check_string(library, "library")
  check_file(library, "library")
  library <- file_record(library)
  data <- list(
    find = function() bridgestan_routines(library),
    values = read_json_text(data),
    seed = check_seed(check_number(seed, "seed"))
  )
  described <- as_input_error(.Call(r_bridgestan_describe, data))
  described[1:2] <- strsplit(as.character(described[1:2]), ",", fixed = TRUE)
  columns <- select_columns(described, include)
  routine <- "target_bridgestan"
  target <- target_native(
    routine, own_library(), length(described$unconstrained),
    init = paste0(routine, c("_init", "_release")), data = data, names = bracketed(described$unconstrained)
  )
  target$label <- paste0("BridgeStan's library `", library$dll, "`")
  target$outputs <- stan_outputs(library$dll, columns, function(x, wanted) {
    result <- .Call(r_bridgestan_outputs, data, x, wanted$blocks)
    result$values <- result$values[, wanted$which, drop = FALSE]
    result
  })
  target[c("at_once", "later")] <- columns[c("at_once", "later")]
  target$why <- function(unconstrained) .Call(r_bridgestan_why, data, unconstrained)
  target
}

read_json_text <- function(data) {
  check_string(data, "data")
  if (grepl("^\\s*[{]", data)) {
    return(data)
  }
  check_file(data, "data")
  read_text(data)
}

# A named list of the addresses of the library's routines, which are valid in this session only.
bridgestan_routines <- function(library) {
  info <- open_library(library)
  names <- c(
    "bs_model_construct", "bs_model_destruct", "bs_free_error_msg", "bs_param_names",
    "bs_param_unc_names", "bs_param_num", "bs_param_constrain", "bs_log_density",
    "bs_log_density_gradient", "bs_rng_construct", "bs_rng_destruct"
  )
  lapply(stats::setNames(names, names), find_routine, info)
}
