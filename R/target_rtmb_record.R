# Records a function of a list of parameters by RTMB, with the checks and errors of target_rtmb().

# Evaluates `code` with RTMB attached, so that functions find its dnorm() and not R's. matmul: "atomic" records a matrix
# product as one operation; "plain" records many, which keep the sparsity of second derivatives.
recording <- function(code, matmul = "atomic") {
  if (!"package:RTMB" %in% search()) {
    attachNamespace("RTMB")
    on.exit(detach("package:RTMB"))
  }
  config <- RTMB::TapeConfig()
  on.exit(RTMB::TapeConfig(config), add = TRUE)
  RTMB::TapeConfig(matmul = matmul)
  code
}

# The log density as a tape of one vector: the elements of the parameters or, with types, the unconstrained variables.
# at: the vector at which it is recorded.
tape_function <- function(log_density, parameters, data, at, types) {
  returned <- NULL
  as_tape <- function(x) {
    made <- list(x = x, log_jacobian = 0)
    if (!is.null(types)) {
      made <- map_types(types, lapply(seq_along(x), function(j) x[j]))
      made$x <- do.call(c, made$x)
    }
    p <- fill_parameters(parameters, made$x)
    value <- if (is.null(data)) log_density(p) else log_density(p, data)
    returned <<- value
    if (is_recorded_number(value)) value + made$log_jacobian else 0
  }
  plain <- function() suppressWarnings(tryCatch(as_tape(at), error = identity))
  tape <- tryCatch(
    RTMB::MakeTape(as_tape, at),
    error = function(e) abort_unrecorded(e, plain(), log_density, names(parameters))
  )
  if (!is_recorded_number(returned)) {
    several <- is.numeric(returned) && length(returned) > 1
    given <- if (several) paste(length(returned), "numbers") else describe(returned)
    abort(c(
      "{.arg log_density} must return a number; it returned {given}.",
      "i" = if (several) "Is there a {.fn sum} missing?"
    ))
  }
  check_recorded(tape(at), plain())
  tape
}

# Explains why recording failed with error e. plain: the value for plain numbers, or its error. known: parameter names.
abort_unrecorded <- function(e, plain, log_density, known) {
  unknown <- setdiff(elements_asked_for(log_density), known)
  if (inherits(plain, "error")) {
    abort(
      c(
        "{.arg log_density} fails at {.arg parameters}.",
        "x" = if (length(unknown) > 0) "It asks for {.field {unknown}}; the parameters are {.field {known}}."
      ),
      parent = in_utf8(plain)
    )
  }
  failed <- conditionCall(e)
  reason <- if (grepl("Comparison", conditionMessage(e), fixed = TRUE)) {
    "A parameter is compared, as in {.code if (x > 0)} or {.fn ifelse}. Give bounds as {.arg lower} and
      {.arg upper}."
  } else if ("dunif" %in% all.names(body(log_density))) {
    "RTMB has no {.fn dunif}: between {.arg lower} and {.arg upper} it is the constant {.code -log(upper - lower)}."
  } else {
    "It must be a differentiable function of the parameters and use only functions that RTMB
      supports.{if (is.call(failed)) cli::format_inline(' It fails in {.fn {failed[[1]]}}.')}"
  }
  abort(
    c("{.arg log_density} cannot be recorded by RTMB, though it has a value at {.arg parameters}.", "i" = reason),
    parent = in_utf8(e)
  )
}

# The names of elements that a function takes from its first argument by `$`.
elements_asked_for <- function(f) {
  list <- as.name(names(formals(f))[1])
  asked <- function(code) {
    if (is.call(code) && identical(code[[1]], quote(`$`)) && identical(code[[2]], list)) {
      as.character(code[[3]])
    } else if (is.call(code)) {
      unlist(lapply(as.list(code), asked))
    }
  }
  asked(body(f))
}

# A version of record() with a check: an error if the value of the tape at a point differs from the first time. A
# function that is recorded again in another session may use other data.
same_at <- function(at, record) {
  first <- NULL
  function() {
    tape <- record()
    value <- tape(at)
    if (is.null(first)) first <<- value
    if (!isTRUE(all.equal(value, first, tolerance = 1e-6))) {
      abort(c(
        "{.arg log_density} is {signif(value, 6)} at {.arg parameters}, but was {signif(first, 6)} when the target was
          made: it uses other data.",
        "i" = "Pass the data as {.arg data}, which are kept with the target."
      ))
    }
    tape
  }
}

# Arguments of RTMB::MakeADFun() that do not belong to a log density.
check_not_of_object <- function(...) {
  if ("map" %in% ...names()) {
    abort(c(
      "{.arg map} is an argument of {.fn RTMB::MakeADFun}, whose models {.fn smc} also accepts.",
      "i" = "Here, write a fixed value as a number in {.arg log_density}, not as a parameter."
    ))
  }
  check_dots_empty(...)
}

check_random <- function(random, known, types) {
  if (!is.character(random) || length(random) == 0 || anyDuplicated(random) || !all(random %in% known) ||
    all(known %in% random)) {
    abort_argument(random, "random", "NULL, or names of some but not all of the parameters, each once")
  }
  if (!is.null(types)) abort("{.arg types} cannot be given with {.arg random}.")
  random
}

# The model object of a log density with parameters `random`. The log density is recorded alone first, for its errors.
effects_model <- function(log_density, parameters, data, random) {
  force(log_density)
  at <- unlist(parameters, use.names = FALSE)
  recording(tape_function(log_density, parameters, data, at, NULL))
  negative <- if (is.null(data)) function(p) -log_density(p) else function(p) -log_density(p, data)
  recording(RTMB::MakeADFun(negative, parameters, random = random, silent = TRUE), matmul = "plain")
}

# Identifies the session in which a tape was recorded: the environment of a tape that was saved or sent to another
# process, where its external pointers are lost, is a copy and not identical to this one.
session <- new.env()

# Records the tapes of a model again, and loads its library, if the model comes from another session. Without them its
# functions may crash R.
record_model <- function(model) {
  if (identical(model$env$recorded_in, session)) {
    return()
  }
  loadNamespace(if (model$env$DLL == "RTMB") "RTMB" else "TMB")
  if (!model$env$DLL %in% names(getLoadedDLLs())) dyn.load(model$env$library)
  model$env$recorded_in <- session
  model$env$beSilent()
  record <- function() model$env$retape(set.defaults = FALSE)
  if (model$env$DLL != "RTMB") record() else recording(record(), if (is.null(model$env$random)) "atomic" else "plain")
}

# An error if the recorded value differs from that for plain numbers (`plain`, or an error). Compiled code that does not
# support RTMB's numbers may misread them without an error.
check_recorded <- function(recorded, plain) {
  if (is_number(plain) && is_number(recorded) && abs(recorded - plain) > 1e-6 * (1 + abs(plain))) {
    abort(c(
      "{.arg log_density} is {signif(plain, 6)} at {.arg parameters}, but {signif(recorded, 6)} as recorded by RTMB.",
      "i" = "It calls a function that does not support RTMB, such as one of a package with compiled code. Use a function
        of RTMB instead, or {.fn target_function}."
    ))
  }
}

# Whether x is one number, plain or recorded by RTMB, which has a method of is.numeric().
is_recorded_number <- function(x) is.numeric(x) && length(x) == 1

# The list of parameters filled with the elements of x, which may be recorded numbers.
fill_parameters <- function(parameters, x) {
  end <- cumsum(lengths(parameters))
  for (k in seq_along(parameters)) {
    part <- x[seq(to = end[[k]], length.out = length(parameters[[k]]))]
    dim(part) <- dim(parameters[[k]]) # which takes names away
    dimnames(part) <- dimnames(parameters[[k]])
    names(part) <- names(parameters[[k]])
    parameters[[k]] <- part
  }
  parameters
}
