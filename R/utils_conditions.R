# Errors, warnings and messages, all with classes of the package. Every error has the class `autosmc_error` and one of
# `autosmc_error_input` (an argument is wrong), `autosmc_error_target` (the target failed), `autosmc_error_gradient`
# (its gradient is wrong), `autosmc_error_mode` (it has no mode), `autosmc_error_degenerate` (no particle has weight),
# `autosmc_error_memory` (a run is too large), `autosmc_error_package` (a suggested package is not installed),
# `autosmc_error_mismatch` (a checkpoint is of another run, or a library of another model) and
# `autosmc_error_worker` (a worker was lost, or cannot take part).

# Raises an error. message: with cli's markup, which is resolved here, once; cli_abort() would resolve it again each
# time the message is read.
abort <- function(message, class = "input", ..., .envir = parent.frame()) {
  message[] <- vapply(message, function(line) {
    paste(cli::ansi_strwrap(cli::format_inline(line, .envir = .envir), exdent = 2), collapse = "\n")
  }, "")
  rlang::abort(
    message,
    class = c(paste0("autosmc_error_", class), "autosmc_error"), ..., call = NULL
  )
}

# Text that cli shows as it is: braces, as in names of variables, are doubled.
verbatim <- function(text) gsub("([{}])", "\\1\\1", text)

# A warning with its own class, and that of all warnings of the package.
warn <- function(class, message, .envir = parent.frame()) {
  cli::cli_warn(message, class = c(paste0("autosmc_warning_", class), "autosmc_warning"), .envir = .envir)
}

inform <- function(class, message, .envir = parent.frame()) {
  cli::cli_inform(message, class = paste0("autosmc_message_", class), .envir = .envir)
}

# A message about a target. In a document made by knitr it appears once, not in each chunk.
inform_once <- function(class, message, .envir = parent.frame()) {
  said <- paste(vapply(message, cli::format_inline, "", .envir = .envir), collapse = "\n")
  if (isTRUE(getOption("knitr.in.progress"))) {
    if (said %in% messages_shown$messages) {
      return(invisible())
    }
    messages_shown$messages <- c(messages_shown$messages, said)
  }
  inform(class, message, .envir)
}

messages_shown <- new.env()

# The value of `code`, in which each warning, and each message about a missing gradient, is shown once: a user's
# function may repeat it at every point.
once_each <- function(code) {
  heard <- character()
  hear <- function(condition, restart) {
    message <- conditionMessage(condition)
    if (message %in% heard) {
      invokeRestart(restart)
    }
    heard <<- c(heard, message)
  }
  withCallingHandlers(
    code,
    warning = function(w) hear(w, "muffleWarning"),
    autosmc_message_gradient = function(m) hear(m, "muffleMessage")
  )
}

# The error for a wrong argument. expected: what it should be, such as "a positive whole number".
abort_argument <- function(x, arg, expected) {
  abort("{.arg {arg}} must be {expected}, not {describe(x)}.")
}

# A short description of an object for error messages: a single number or string is shown as it is.
describe <- function(x) {
  if (is.null(x)) {
    "NULL"
  } else if (is.function(x)) {
    "a function"
  } else if (is.object(x)) {
    paste("an object of class", class(x)[1])
  } else if (is.list(x)) {
    "a list"
  } else if (is.matrix(x)) {
    article <- if (grepl("^8|^1[18](...)*$", nrow(x))) "an" else "a"
    sprintf("%s %d x %d %s matrix", article, nrow(x), ncol(x), typeof(x))
  } else if (!is.atomic(x)) {
    paste("an object of type", typeof(x))
  } else if (length(x) == 1) {
    if (is.character(x)) dQuote(as_utf8(x), FALSE) else format(x, digits = 7)
  } else if (is.numeric(x) && length(x) > 1 && length(x) <= 6) {
    sprintf("c(%s)", toString(format(x, digits = 4, trim = TRUE)))
  } else {
    type <- if (!is.numeric(x)) typeof(x) else if (anyNA(x)) "numeric (with NA)" else "numeric"
    sprintf("a %s vector of length %d", type, length(x))
  }
}

# An error with the message of another program, whose layout is kept. class: one or several.
abort_verbatim <- function(message, class) {
  class <- c(paste0("autosmc_error_", class), "autosmc_error")
  stop(errorCondition(message, class = class))
}

# A handler for withCallingHandlers() that calls `handle` for errors that are raised. It ignores errors that are only
# signalled by signalCondition(), except those of rlang, which signals errors before it raises them; and it ignores the
# end of a time limit, which is not an error of the code.
if_raised <- function(handle) {
  function(e) {
    is_signalled <- identical(sys.function(-1), signalCondition)
    is_raised <- !is_signalled || inherits(e, "rlang_error")
    if (is_raised && !is_time_limit(e)) handle(e)
  }
}

# Whether an error is the end of a limit of setTimeLimit() or setSessionTimeLimit(). R's error has no class of its own,
# so that its message is compared. Only simple errors are: after a stack overflow conditionMessage() may fail.
is_time_limit <- function(e) {
  said <- c("reached elapsed time limit", "reached CPU time limit")
  said <- c(said, sub("reached", "reached session", said))
  inherits(e, "simpleError") && conditionMessage(e) %in% c(said, gettext(said, domain = "R"))
}

# Warns of a problem of a result, and returns the sentence, which the result keeps. said: details, a line each.
warn_of_problem <- function(sentence, said = character(), advice, class) {
  details <- sprintf("{said[%d]}", seq_along(said)) # in which nothing is markup
  warn(class, c(verbatim(sentence), stats::setNames(details, rep("*", length(said))), "i" = advice))
  gsub("\\s+", " ", sentence)
}

# Raises an error of the target (or reference) again, with the run and the step in which it occurred. Errors that have
# these already, and those of a lost worker, are left alone.
rethrow_at_step <- function(e, step, run) {
  if (is.null(step) || inherits(e, c("autosmc_error_located", "autosmc_error_worker"))) {
    return()
  }
  failed <- "target"
  if (inherits(e, "autosmc_error_reference")) {
    failed <- "reference"
    e <- e$parent
  }
  hint <- NULL
  if (inherits(e, "autosmc_error_hint")) {
    hint <- e$message
    e <- e$parent
  }
  abort(
    c("The {failed} failed {where_in_run(step, run)}.", "i" = if (!is.null(hint)) "{hint}"),
    c("target", "located"),
    parent = in_utf8(e),
    step = step,
    run = run
  )
}

# A condition with a valid UTF-8 message: other bytes are written as "<ff>".
in_utf8 <- function(e) {
  message <- conditionMessage(e)
  if (!all(validUTF8(message))) {
    e$message <- as_utf8(message)
  }
  e
}

as_utf8 <- function(text) {
  if (all(Encoding(text) != "bytes") && all(validEnc(text))) {
    enc2utf8(text)
  } else {
    iconv(text, "UTF-8", "UTF-8", sub = "byte")
  }
}

where_in_run <- function(step, run) {
  switch(run,
    scout = "in the scout, before the first run",
    bridge = "at a draw for the bridge estimate, after the last run",
    checkpoint = "at particles of an earlier run",
    if (step == 0) {
      sprintf("at the start of the %s run, at a draw from the reference", run)
    } else {
      sprintf("at step %d of the %s run", step, run)
    }
  )
}

# The value of `code`, which calls a routine of a Stan program: its errors concern the arguments. without_class()
# removes the class names that Stan puts before messages on data.
as_input_error <- function(code) {
  tryCatch(code, error = function(e) {
    if (inherits(e, "autosmc_error")) stop(e)
    abort_verbatim(without_class(conditionMessage(e)), "input")
  })
}

without_class <- function(said) {
  sub("^autosmc_stan_program[^ ]*: ", "", sub("^Exception: ", "", said))
}
