# Classed errors: every error of the package has the class `autosmc_error` and
# one of `autosmc_error_input` (an argument is wrong), `autosmc_error_target`
# (the target failed), `autosmc_error_gradient` (its gradient is wrong),
# `autosmc_error_mode` (it has no mode), `autosmc_error_degenerate` (no particle is left),
# `autosmc_error_memory` (a run is too large), `autosmc_error_package` (a suggested
# package is not installed), `autosmc_error_mismatch` (what was kept is of another run,
# or a library of another model) and
# `autosmc_error_worker` (a worker was lost, or cannot take part).

# message: with cli's markup, which is resolved here, once: by cli_abort() it is so again whenever
# the message is asked for, and an error takes three times as long.
abort <- function(message, class = "input", ..., .envir = parent.frame()) {
  message[] <- vapply(message, function(line) {
    paste(cli::ansi_strwrap(cli::format_inline(line, .envir = .envir), exdent = 2), collapse = "\n")
  }, "")
  rlang::abort(
    message,
    class = c(paste0("autosmc_error_", class), "autosmc_error"), ..., call = NULL
  )
}

# Text as a line of a message, whatever is in it: names of variables, say, may have braces.
verbatim <- function(text) gsub("([{}])", "\\1\\1", text)

# A warning with its own class, and that of all warnings of the package.
warn <- function(class, message, .envir = parent.frame()) {
  cli::cli_warn(message, class = c(paste0("autosmc_warning_", class), "autosmc_warning"), .envir = .envir)
}

inform <- function(class, message, .envir = parent.frame()) {
  cli::cli_inform(message, class = paste0("autosmc_message_", class), .envir = .envir)
}

# A message about a target; in a document that knitr makes once, where each chunk would tell it anew.
tell <- function(class, message, .envir = parent.frame()) {
  said <- paste(vapply(message, cli::format_inline, "", .envir = .envir), collapse = "\n")
  if (isTRUE(getOption("knitr.in.progress"))) {
    if (said %in% told$messages) {
      return(invisible())
    }
    told$messages <- c(told$messages, said)
  }
  inform(class, message, .envir)
}

told <- new.env()

# Evaluates `code`; what warns in the same words, or tells of the same missing gradient,
# again and again, as a user's function does at every point, is heard once.
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

# expected: what an argument should be, in words.
abort_argument <- function(x, arg, expected) {
  abort("{.arg {arg}} must be {expected}, not {describe(x)}.")
}

# What an object is, in the words of an error message.
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

# A message of another program, with lines and columns of its own. class: one or several.
abort_verbatim <- function(message, class) {
  class <- c(paste0("autosmc_error_", class), "autosmc_error")
  stop(errorCondition(message, class = class))
}

# A handler for withCallingHandlers() that calls `handle` on errors that are raised. One
# that is only signalled, by signalCondition(), ends nothing in R, and passes; but rlang
# signals its errors in the same way before it raises them. The end of a limit of time
# passes, too: it is nobody's fault.
if_raised <- function(handle) {
  function(e) {
    is_signalled <- identical(sys.function(-1), signalCondition)
    is_raised <- !is_signalled || inherits(e, "rlang_error")
    if (is_raised && !is_time_limit(e)) handle(e)
  }
}

# The end of the time that setTimeLimit() or setSessionTimeLimit() allows, which R tells by an error without a class
# of its own. Others are not asked for their message: a stack that has overflowed leaves no room for it.
is_time_limit <- function(e) {
  said <- c("reached elapsed time limit", "reached CPU time limit")
  said <- c(said, sub("reached", "reached session", said))
  inherits(e, "simpleError") && conditionMessage(e) %in% c(said, gettext(said, domain = "R"))
}

# A warning of what is wrong with a result that is kept beside it: a sentence, which is returned. said: the details.
warn_of_problem <- function(sentence, said = character(), advice, class) {
  details <- sprintf("{said[%d]}", seq_along(said)) # in which nothing is markup
  warn(class, c(verbatim(sentence), stats::setNames(details, rep("*", length(said))), "i" = advice))
  gsub("\\s+", " ", sentence)
}

# What the user's own function threw, with the step named. The package's own
# errors come here too, on their way from the checks of a function's value. That a
# worker was lost is no fault of the target.
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

# A condition whose message can be shown: bytes that are not UTF-8 are written as "<ff>".
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

# An error of a routine that was asked by .Call() is about what it was given. Stan puts the
# name of a class before what a check says of data.
as_input_error <- function(code) {
  tryCatch(code, error = function(e) {
    if (inherits(e, "autosmc_error")) stop(e)
    abort_verbatim(without_class(conditionMessage(e)), "input")
  })
}

without_class <- function(said) {
  sub("^autosmc_stan_program[^ ]*: ", "", sub("^Exception: ", "", said))
}
