# Compiled targets for the tests: native/autosmc_test.c, compiled and loaded when
# a test first asks for it, and unloaded by teardown-native.R.

native <- new.env()

# The library, loaded; the test is skipped where it cannot be compiled.
native_library <- function() {
  if (is.null(native$library)) {
    native$library <- compile_library(test_path("native", "autosmc_test.c"))
  }
  if (is.character(native$library)) {
    skip(native$library)
  }
  native$library
}

# A DLLInfo; or, where this machine cannot compile, the reason (a string).
compile_library <- function(source) {
  if (!nzchar(Sys.which("make"))) {
    return("there is no `make`, so no compiled target can be tested")
  }
  folder <- tempfile("autosmc-native-")
  dir.create(folder)
  file.copy(source, folder)
  name <- sub("[.]c$", "", basename(source))
  built <- file.path(folder, paste0(name, .Platform$dynlib.ext))
  include <- system.file("include", package = "autosmc")
  log <- run_shlib(folder, basename(source), paste0("-I", shQuote(include)))
  if (!file.exists(built)) {
    compiler <- system2(r_program("R"), c("CMD", "config", "CC"), stdout = TRUE)
    if (!nzchar(Sys.which(strsplit(compiler[1], " ")[[1]][1]))) {
      return("there is no C compiler, so no compiled target can be tested")
    }
    stop("R CMD SHLIB failed:\n", paste(log, collapse = "\n"))
  }
  dyn.load(built)
}

run_shlib <- function(folder, file, flags) {
  here <- setwd(folder)
  old <- Sys.getenv("PKG_CPPFLAGS", NA)
  on.exit({
    setwd(here)
    if (is.na(old)) {
      Sys.unsetenv("PKG_CPPFLAGS")
    } else {
      Sys.setenv(PKG_CPPFLAGS = old)
    }
  })
  Sys.setenv(PKG_CPPFLAGS = flags)
  suppressWarnings(system2(
    r_program("R"),
    c("CMD", "SHLIB", file),
    stdout = TRUE,
    stderr = TRUE
  ))
}

r_program <- function(name) file.path(R.home("bin"), name)

unload_native_library <- function() {
  if (inherits(native$library, "DLLInfo")) {
    path <- native$library[["path"]]
    dyn.unload(path)
    unlink(dirname(path), recursive = TRUE)
  }
  native$library <- NULL
}

# Standard normals in `dim` dimensions, by a routine with a context of its own
# that counts, and at call `at` does what `mode` says; "sleep" is at every call,
# for `at` milliseconds.
counted_target <- function(dim = 2, mode = "never", at = 0, ...) {
  modes <- c("never", "return_code", "raise_error", "sleep", "kill_all")
  target_native(
    "counted",
    native_library(),
    dim,
    init = c("counted_init", "counted_release"),
    data = c(match(mode, modes) - 1, at),
    ...
  )
}

# `live` contexts, and since the last call `made` contexts, and the `points` that
# released contexts had evaluated.
counted_totals <- function() {
  symbol <- getNativeSymbolInfo("counted_totals", native_library())
  totals <- .Call(symbol)
  list(live = totals[1], made = totals[2], points = totals[3])
}
