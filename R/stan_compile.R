# From a Stan program to a library, and the cache of libraries.

# What R and the routines of inst/include/autosmc_stan.hpp tell each other, which has
# the same number.
stan_interface <- 3L

# What compiling takes, with the oldest versions that serve. StanHeaders has `stanc.js`
# too, the compiler from Stan to C++: of two versions neither would understand the other.
stan_packages <- c(
  BH = "1.75.0",
  QuickJSR = "1.0",
  RcppEigen = "0.3.4.0.0",
  RcppParallel = "5.1.4",
  StanHeaders = "2.39"
)

# the program -----------------------------------------------------------------

# list(code, name, file, includes): the text, names for messages of the program and of its
# file, and the texts of the files that it includes. model: a path to a .stan file, or a text.
read_stan_program <- function(model) {
  if (grepl("\n|[{]", model)) {
    return(list(code = model, name = "model", file = "model.stan", includes = list()))
  }
  if (!utils::file_test("-f", model)) {
    abort(
      c(
        "{.arg model}: there is no file {.file {model}}.",
        "i" = "Give the path of a {.file .stan} file, or the text of a program."
      ),
      "input"
    )
  }
  code <- read_text(model)
  list(
    code = code,
    name = sub("[.]stan$", "", basename(model)),
    file = basename(model),
    includes = read_includes(code, dirname(model))
  )
}

read_text <- function(file) {
  paste(readLines(file, warn = FALSE, encoding = "UTF-8"), collapse = "\n")
}

# The files that the lines `#include name` ask for, and those that these ask for. What
# is not there is left for stanc to complain of.
read_includes <- function(code, folder, found = list()) {
  lines <- strsplit(code, "\n", fixed = TRUE)[[1]]
  pattern <- "^\\s*#include\\s+[<\"]?([^>\"]*[^>\"[:space:]])[>\"]?\\s*(//.*)?$"
  names <- sub(pattern, "\\1", grep(pattern, lines, value = TRUE))
  for (name in setdiff(names, names(found))) {
    file <- file.path(folder, name)
    if (file.exists(file)) {
      found[[name]] <- read_text(file)
      found <- read_includes(found[[name]], folder, found)
    }
  }
  found
}

# The C++ of a program; an error with stanc's own words where it is none.
translate_stan <- function(program) {
  js <- QuickJSR::JSContext$new(stack_size = 4 * 1024^2)
  js$source(system.file("stanc.js", package = "StanHeaders"))
  flags <- as.array(paste0("filename-in-msg=", program$file))
  stanc <- c(list("stanc", "autosmc_stan_program", program$code, flags))
  if (length(program$includes) > 0) {
    stanc <- c(stanc, list(program$includes))
  }
  answer <- do.call(js$call, stanc)
  if (is.null(answer$result)) {
    abort_verbatim(paste(setdiff(answer$errors, "0"), collapse = "\n"), "input")
  }
  for (warning in as.character(answer$warnings)) {
    message(warning)
  }
  answer$result
}

# the compiler ----------------------------------------------------------------

check_stan_packages <- function() {
  serves <- mapply(function(package, oldest) {
    nzchar(system.file(package = package)) && utils::packageVersion(package) >= oldest
  }, names(stan_packages), stan_packages)
  if (!all(serves)) {
    packages <- names(stan_packages)[!serves]
    quoted <- toString(dQuote(packages, FALSE))
    install <- sprintf("install.packages(c(%s))", quoted)
    abort(
      c(
        "To compile Stan programs takes {.pkg {packages}}, which {?is/are} missing or too
          old: {.code {install}}."
      ),
      "package"
    )
  }
}

# The variables of the Makevars with which a program is compiled. Stan's tape must be
# hidden within the library: else all loaded libraries would share that of the first one.
stan_makevars <- function() {
  include <- function(package, ...) {
    paste0("-I", shQuote(system.file("include", ..., package = package)))
  }
  new_tbb <- nzchar(system.file("include", "tbb", "version.h", package = "RcppParallel"))
  unique_symbols <- if (Sys.info()[["sysname"]] == "Linux") "-fno-gnu-unique"
  list(
    CXX_STD = "CXX17",
    PKG_CPPFLAGS = c(
      include("StanHeaders", "src"), include("StanHeaders"), include("RcppEigen"),
      include("BH"), include("RcppParallel"), include("autosmc"),
      "-D_REENTRANT", if (new_tbb) "-DTBB_INTERFACE_NEW", "-DNEW_RSTAN", "-DUSING_R",
      "-DBOOST_DISABLE_ASSERTS", "-DBOOST_PHOENIX_NO_VARIADIC_EXPRESSION",
      "-DEIGEN_NO_DEBUG"
    ),
    PKG_CXXFLAGS = c("-w", unique_symbols, "-fvisibility=hidden"),
    PKG_LIBS = c(stan_solvers(), tbb_libraries())
  )
}

# The solvers of differential equations, of which a program takes what it needs.
stan_solvers <- function() {
  archive <- system.file(
    "lib", .Platform$r_arch, "libStanHeaders.a",
    package = "StanHeaders"
  )
  if (nzchar(archive)) shQuote(archive)
}

# RcppParallel brings its own TBB, unless it was built for that of the system.
tbb_libraries <- function() {
  lib <- system.file("lib", .Platform$r_arch, package = "RcppParallel")
  c(
    if (nzchar(lib)) {
      c(paste0("-L", shQuote(lib)), paste0("-Wl,-rpath,", shQuote(lib)))
    },
    "-ltbb", "-ltbbmalloc"
  )
}

# Half of the time goes into optimising what -O1 optimises enough, and debugging symbols
# make a library 80 times as large. These come after all others, the user's too.
stan_last_flags <- "-O1 -g0"

# Compiles a program into `library`, a path. By way of a folder beside it, so that of two
# sessions that do so at once each finishes its own, and no other sees half of one.
compile_stan <- function(program, library) {
  cpp <- translate_stan(program)
  name <- program$name
  tell(
    c("i" = "Compiling the Stan program {.field {name}}, which takes about half a minute."),
    class = "autosmc_message_compile"
  )
  folder <- tempfile("compiling-", dirname(library))
  if (!dir.create(folder, showWarnings = FALSE, recursive = TRUE)) {
    cache <- dirname(library)
    abort(
      c(
        "The cache of compiled programs, {.file {cache}}, cannot be written to.",
        "i" = "The environment variable {.envvar R_USER_CACHE_DIR} moves it elsewhere."
      ),
      "input"
    )
  }
  on.exit(unlink(folder, recursive = TRUE))
  # the C++ may end in a line of the preprocessor
  writeLines(c(cpp, "#include <autosmc_stan.hpp>"), file.path(folder, "program.cpp"))
  variables <- vapply(stan_makevars(), paste, "", collapse = " ")
  writeLines(paste(names(variables), "=", variables), file.path(folder, "Makevars"))
  writeLines(
    c(
      paste("-include", user_makevars()),
      paste("CXX17FLAGS +=", stan_last_flags)
    ),
    file.path(folder, "last.mk")
  )
  log <- run_shlib(folder)
  if (!dir.exists(folder)) {
    abort(
      "The cache of compiled programs was removed while the program was compiled. Compile
        it again.",
      "input"
    )
  }
  built <- file.path(folder, paste0("program", .Platform$dynlib.ext))
  if (!file.exists(built)) {
    abort_verbatim(
      paste(
        c("The C++ compiler failed on the Stan program:", utils::tail(log, 20)),
        collapse = "\n"
      ),
      "input"
    )
  }
  writeLines(program$code, sub_extension(library, ".stan"))
  sum <- unname(tools::md5sum(built))
  if (file.rename(built, library)) {
    writeLines(sum, sum_file(library))
  } else if (!file.exists(library) || isFALSE(is_whole(library))) {
    abort("The compiled program could not be written to {.file {library}}.", "input")
  }
}

# Beside a library is its checksum: to load one that was cut off, by a full disk say, ends R.
sum_file <- function(library) sub_extension(library, ".md5")

# Whether a library is as it was compiled; NA where there is no checksum beside it, as of one
# that the user has copied.
is_whole <- function(library) {
  file <- sum_file(library)
  if (!file.exists(file)) {
    return(NA)
  }
  identical(readLines(file, n = 1, warn = FALSE), unname(tools::md5sum(library)))
}

# What R itself would read, which R_MAKEVARS_USER hides.
user_makevars <- function() {
  file <- Sys.getenv("R_MAKEVARS_USER", unset = NA)
  if (is.na(file)) file <- path.expand("~/.R/Makevars")
  file
}

# Its output, line by line.
run_shlib <- function(folder) {
  here <- setwd(folder)
  on.exit(setwd(here))
  old <- Sys.getenv("R_MAKEVARS_USER", unset = NA)
  on.exit(
    if (is.na(old)) Sys.unsetenv("R_MAKEVARS_USER") else Sys.setenv(R_MAKEVARS_USER = old),
    add = TRUE
  )
  Sys.setenv(R_MAKEVARS_USER = file.path(folder, "last.mk"))
  suppressWarnings(system2(
    file.path(R.home("bin"), "R"),
    c("CMD", "SHLIB", "program.cpp"),
    stdout = TRUE,
    stderr = TRUE
  ))
}

# the cache -------------------------------------------------------------------

#' Compiled Stan programs
#'
#' [target_stan()] keeps what it has compiled for later sessions: in
#' `tools::R_user_dir("autosmc", "cache")`, a library and the text of the program
#' under a name that is made of the program, the versions of the packages and of R,
#' and the compiler's flags. A program is compiled anew when any of these changes.
#'
#' @param clear whether to remove all of them (TRUE or FALSE). Targets of this
#'   session stay usable, and where a library is needed again it is compiled again.
#' @return A data frame with a row a library, the newest first: `program` (its first
#'   line that is not empty), `library` (the path, which [target_stan()] takes as a
#'   `model`), `megabytes` and `compiled` (when). With `clear`, what was removed,
#'   invisibly.
#' @section Errors: `autosmc_error_input` when `clear` is not TRUE or FALSE.
#' @examples
#' stan_cache()
#' @export
stan_cache <- function(clear = FALSE) {
  check_flag(clear, "clear")
  pattern <- paste0("^autosmc_stan_.*\\", .Platform$dynlib.ext, "$")
  libraries <- list.files(stan_cache_folder(), pattern, full.names = TRUE)
  info <- file.info(libraries)
  table <- tibble::tibble(
    program = vapply(libraries, first_line, "", USE.NAMES = FALSE),
    library = libraries,
    megabytes = info$size / 1e6,
    compiled = info$mtime
  )
  table <- table[order(table$compiled, decreasing = TRUE), ]
  if (clear) {
    unlink(stan_cache_folder(), recursive = TRUE)
    return(invisible(table))
  }
  table
}

stan_cache_folder <- function() {
  file.path(tools::R_user_dir("autosmc", "cache"), "stan")
}

sub_extension <- function(library, extension) {
  paste0(substr(library, 1, nchar(library) - nchar(.Platform$dynlib.ext)), extension)
}

first_line <- function(library) {
  source <- sub_extension(library, ".stan")
  if (!file.exists(source)) {
    return(NA_character_)
  }
  lines <- trimws(readLines(source, warn = FALSE))
  c(lines[nzchar(lines)], NA)[1]
}

# The path of the library of a program, compiled if need be.
cached_library <- function(program) {
  check_stan_packages()
  versions <- vapply(names(stan_packages), function(package) {
    format(utils::packageVersion(package))
  }, "")
  header <- system.file("include", "autosmc_stan.hpp", package = "autosmc")
  key <- c(
    program$code, names(program$includes), unlist(program$includes),
    versions, R.version.string, R.version$platform, unlist(stan_makevars()),
    stan_last_flags, tools::md5sum(header)
  )
  library <- file.path(
    stan_cache_folder(),
    paste0("autosmc_stan_", substr(md5_of(key), 1, 16), .Platform$dynlib.ext)
  )
  if (!isTRUE(is_whole(library))) {
    compile_stan(program, library)
  }
  library
}

md5_of <- function(text) {
  file <- tempfile()
  on.exit(unlink(file))
  writeLines(text, file, useBytes = TRUE)
  unname(tools::md5sum(file))
}
