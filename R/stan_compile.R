# From a Stan program to a library, and the cache of libraries.

# What R and the routines of inst/include/autosmc_stan.hpp tell each other, which has
# the same number.
stan_interface <- 4L

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
  is_line <- !grepl("\n", model, fixed = TRUE)
  is_file <- is_line && suppressWarnings(utils::file_test("-f", model)) # which warns of a line that is too long
  if (!is_file && is_line && (endsWith(model, ".stan") || !grepl("{", model, fixed = TRUE))) {
    abort(
      c(
        "{.arg model}: there is no file {.file {model}}.",
        "i" = "Give the path of a {.file .stan} file, or the text of a program."
      ),
      "input"
    )
  }
  if (!is_file) {
    return(list(code = plain_text(model), name = "model", file = "model.stan", includes = list()))
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
  bytes <- readBin(file, "raw", file.size(file))
  if (any(bytes == 0)) {
    abort("The file {.file {file}} is no text: it has NUL characters.", "input")
  }
  sub("\n$", "", plain_text(rawToChar(bytes)))
}

# In UTF-8, with lines that end in "\n", and without the mark by which some editors begin a file.
plain_text <- function(text) {
  text <- gsub("\r\n?", "\n", sub("^\xef\xbb\xbf", "", enc2utf8(text), useBytes = TRUE), useBytes = TRUE)
  Encoding(text) <- "UTF-8"
  text
}

# The files that the lines `#include name` ask for, and those that these ask for. What
# is not there is left for stanc to complain of.
read_includes <- function(code, folder, found = list()) {
  lines <- strsplit(code, "\n", fixed = TRUE)[[1]]
  pattern <- "^\\s*#include\\s+[<\"]?([^>\"]*[^>\"[:space:]])[>\"]?\\s*(//.*)?$"
  names <- sub(pattern, "\\1", grep(pattern, lines, value = TRUE))
  for (name in setdiff(names, names(found))) {
    file <- file.path(folder, name)
    if (utils::file_test("-f", file)) {
      found[[name]] <- read_text(file)
      found <- read_includes(found[[name]], folder, found)
    }
  }
  found
}

# The C++ of a program, which is brought up to date if it is an old one; an error with stanc's own words where it is
# none.
translate_stan <- function(program) {
  answer <- ask_stanc(program)
  changes <- character()
  if (is.null(answer$result)) {
    updated <- update_stan(program)
    changes <- updated$changes
    if (length(changes) > 0) answer <- ask_stanc(updated$program)
  }
  if (is.null(answer$result)) {
    errors <- setdiff(answer$errors, "0")
    if (length(changes) > 0) errors <- c(errors, still_old(changes))
    abort_verbatim(paste(errors, collapse = "\n"), c("program", "input"))
  }
  if (length(changes) > 0) {
    name <- program$name
    cli::cli_inform(
      c("i" = "The Stan program {.field {name}} is of an old version, and was brought up to date: {changes}."),
      class = "autosmc_message_update"
    )
  }
  for (warning in as.character(answer$warnings)) {
    message(warning)
  }
  answer$result
}

# What is said where the compiler refuses a program that was brought up to date.
still_old <- function(changes) {
  sprintf(
    "The program is of an old version of Stan. Its %s were brought up to date; what the error names was not.", toString(changes)
  )
}

# The compiler's answer: a list with `result`, the C++, and `warnings`, or with `errors`.
ask_stanc <- function(program) {
  js <- QuickJSR::JSContext$new(stack_size = 4 * 1024^2)
  js$source(system.file("stanc.js", package = "StanHeaders"))
  flags <- as.array(paste0("filename-in-msg=", any_stan_file))
  stanc <- c(list("stanc", "autosmc_stan_program", program$code, flags))
  if (length(program$includes) > 0) {
    stanc <- c(stanc, list(program$includes))
  }
  answer <- do.call(js$call, stanc)
  said <- c("errors", "warnings")
  answer[said] <- lapply(answer[said], function(text) gsub(any_stan_file, program$file, text, fixed = TRUE))
  answer
}

# In place of the name of its file: programs of the same text share a library. The name in inst/include/autosmc_stan.hpp.
any_stan_file <- "autosmc_stan_file"

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
  if (!dir.create(folder, showWarnings = FALSE)) {
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
  # the number of the statement that runs looks for interrupts
  cpp <- gsub("int current_statement__ = 0;", "autosmc_stan::statement current_statement__ = 0;", cpp, fixed = TRUE)
  # the C++ may end in a line of the preprocessor
  writeLines(
    c("#include <autosmc_statement.hpp>", cpp, "#include <autosmc_stan.hpp>"),
    file.path(folder, "program.cpp")
  )
  write_makefiles(folder)
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

# Makevars for a program in this folder, and last.mk, which is read in place of the user's and has what that has.
write_makefiles <- function(folder) {
  variables <- vapply(stan_makevars(), paste, "", collapse = " ")
  writeLines(paste(names(variables), "=", variables), file.path(folder, "Makevars"))
  writeLines(c(user_makevars(), paste("CXX17FLAGS +=", stan_last_flags)), file.path(folder, "last.mk"))
}

# The lines of what R itself would read, which R_MAKEVARS_USER hides.
user_makevars <- function() {
  file <- Sys.getenv("R_MAKEVARS_USER", unset = path.expand("~/.R/Makevars"))
  if (utils::file_test("-f", file)) readLines(file, warn = FALSE)
}

# Its output, line by line.
run_shlib <- function(folder, options = NULL) {
  old <- Sys.getenv("R_MAKEVARS_USER", unset = NA)
  on.exit(
    if (is.na(old)) Sys.unsetenv("R_MAKEVARS_USER") else Sys.setenv(R_MAKEVARS_USER = old)
  )
  Sys.setenv(R_MAKEVARS_USER = file.path(folder, "last.mk"))
  in_folder(folder, suppressWarnings(system2(
    file.path(R.home("bin"), "R"),
    c("CMD", "SHLIB", options, "program.cpp"),
    stdout = TRUE,
    stderr = TRUE
  )))
}

in_folder <- function(folder, code) {
  here <- setwd(folder)
  on.exit(setwd(here))
  code
}

# the cache -------------------------------------------------------------------

#' Compiled Stan programs
#'
#' [target_stan()] keeps what it has compiled for later sessions: in
#' `tools::R_user_dir("autosmc", "cache")`, a library and the text of the program
#' under a name that is made of the program with the files that it includes, the versions of the packages and of R, and
#' the compiler with its version and flags. A program is compiled anew when any of these changes.
#'
#' When a program is compiled, others make room: those that no session has used for 90 days, and those that were used
#' longest ago if there are more than 100 megabytes. A folder that others may write to, by its owner or its mode, is not
#' used, since what is in it is run: programs are then compiled for the session alone, with a message of class
#' `autosmc_message_cache`.
#'
#' @param clear whether to remove all of them (TRUE or FALSE). Targets of this
#'   session stay usable, and where a library is needed again it is compiled again. Other files stay.
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
  folder <- stan_cache_folder()
  libraries <- cached_libraries(folder)
  info <- file.info(libraries)
  table <- tibble::tibble(
    program = vapply(libraries, first_line, "", USE.NAMES = FALSE),
    library = libraries,
    megabytes = info$size / 1e6,
    compiled = info$mtime
  )
  table <- table[order(table$compiled, decreasing = TRUE), ]
  if (clear) {
    remove_libraries(libraries)
    unlink(list.files(folder, "^compiling-", full.names = TRUE), recursive = TRUE, expand = FALSE)
    if (length(dir(folder, all.files = TRUE, no.. = TRUE)) == 0) unlink(folder, recursive = TRUE)
    return(invisible(table))
  }
  table
}

stan_cache_folder <- function() {
  folder <- file.path(tools::R_user_dir("autosmc", "cache"), "stan")
  is_absolute <- grepl("^(/|~|\\\\|[A-Za-z]:)", folder)
  path.expand(if (is_absolute) folder else file.path(getwd(), folder))
}

cached_libraries <- function(folder) {
  pattern <- paste0("^autosmc_stan_.*\\", .Platform$dynlib.ext, "$")
  list.files(folder, pattern, full.names = TRUE)
}

remove_libraries <- function(libraries) {
  unlink(c(libraries, sub_extension(libraries, ".stan"), sum_file(libraries)), expand = FALSE)
}

# The folder where libraries are kept, made if need be: that of stan_cache(), or one of the session where others may
# write to that, or to the folder that it is in.
safe_cache_folder <- function() {
  folder <- stan_cache_folder()
  dir.create(folder, showWarnings = FALSE, recursive = TRUE, mode = "0700")
  if (!any(is_shared(c(folder, dirname(folder))))) {
    return(folder)
  }
  cli::cli_inform(
    c(
      "!" = "The cache of compiled programs, {.file {folder}}, is not used: others may write to it.",
      "i" = "With {.code Sys.chmod()} make it, and the folder that it is in, yours alone (mode 700)."
    ),
    class = "autosmc_message_cache"
  )
  folder <- file.path(tempdir(), "autosmc-stan")
  dir.create(folder, showWarnings = FALSE, mode = "0700")
  folder
}

# Whether a folder belongs to another user, or is one that others may write to. Windows does not tell.
is_shared <- function(folder) {
  info <- file.info(folder)
  own <- file.info(tempdir())$uid
  shared <- bitwAnd(as.integer(info$mode), strtoi("22", 8)) > 0 | info$uid != own
  .Platform$OS.type == "unix" & !is.na(shared) & shared
}

# What stan_cache() says of the cache.
stan_cache_megabytes <- 100
stan_cache_days <- 90

# Removes what was not used for long, so that what remains is small enough, and what compilations that were killed have
# left behind: none takes a day. `keep` is a library that stays.
tidy_cache <- function(keep) {
  folder <- dirname(keep)
  age <- function(files) as.numeric(difftime(Sys.time(), file.info(files)$mtime, units = "days"))
  left <- list.files(folder, "^compiling-", full.names = TRUE)
  unlink(left[age(left) > 1], recursive = TRUE, expand = FALSE)
  libraries <- setdiff(cached_libraries(folder), keep)
  unused <- pmin(age(libraries), age(sum_file(libraries)), na.rm = TRUE)
  libraries <- libraries[order(unused)]
  megabytes <- cumsum(file.size(c(keep, libraries)))[-1] / 1e6
  remove_libraries(libraries[sort(unused) > stan_cache_days | megabytes > stan_cache_megabytes])
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
  library <- file.path(
    safe_cache_folder(),
    paste0("autosmc_stan_", stan_key(program), .Platform$dynlib.ext)
  )
  if (!isTRUE(is_whole(library))) {
    compile_stan(program, library)
    tidy_cache(library)
  }
  Sys.setFileTime(sum_file(library), Sys.time()) # by which tidy_cache() knows what is used
  library
}

# A hash of all that a library is made of and by: the texts, each with the name of its file; and the versions, the
# commands of the compiler with the user's flags, and what these mean on this machine.
stan_key <- function(program) {
  headers <- system.file("include", c("autosmc_stan.hpp", "autosmc_statement.hpp"), package = "autosmc")
  versions <- vapply(names(stan_packages), function(package) {
    format(utils::packageVersion(package))
  }, "")
  parts <- c(
    program = program$code, include = unlist(program$includes), version = versions,
    R = R.version.string, platform = R.version$platform, header = unname(tools::md5sum(headers)),
    compiler = compiler_key()
  )
  hash_of(charToRaw(paste0(names(parts), " ", nchar(parts, "bytes"), "\n", parts, collapse = "\n")))
}

# What the compiler is: the commands with which a program is compiled, and the constants that it defines by itself,
# among them its version and what of the processor it uses, as by -march=native. Asked once for each set of flags.
compiler_key <- function() {
  makevars <- user_makevars()
  asked <- paste(c(unlist(stan_makevars()), makevars, Sys.getenv("PATH")), collapse = "\n")
  if (is.null(compilers[[asked]])) {
    folder <- tempfile("autosmc-compiler-")
    dir.create(folder)
    on.exit(unlink(folder, recursive = TRUE))
    write_makefiles(folder)
    file.create(file.path(folder, "program.cpp"))
    commands <- run_shlib(folder, "--dry-run")
    commands <- commands[-seq_len(match("make would use", commands, 0))] # before are names of the folder
    compile <- grep("-c program.cpp", commands, value = TRUE, fixed = TRUE)[1]
    ask <- paste(sub(" -c program.cpp.*", "", compile), "-dM -E -x c++ program.cpp")
    constants <- tryCatch( # an error where there is no such compiler, which the compilation will say
      in_folder(folder, system(ask, intern = TRUE, ignore.stderr = TRUE)),
      error = function(e) NULL,
      warning = function(w) NULL
    )
    assign(asked, paste(c(commands, constants), collapse = "\n"), compilers)
  }
  compilers[[asked]]
}

compilers <- new.env()
