# The cache of compiled Stan programs: libraries in a folder of the user, named by a hash of everything they depend on.

#' Compiled Stan programs
#'
#' [target_stan()] keeps compiled programs for later sessions: in `tools::R_user_dir("autosmc", "cache")` are a library
#' and the text of each program. Their name is a hash of the program with the files that it includes, the versions of R
#' and the packages, and the compiler with its version and flags. A program is compiled again when any of these changes.
#'
#' When a program is compiled, libraries are removed that no session has used for 90 days; and if the cache exceeds 100
#' megabytes, those that were last used longest ago. For security, a folder is not used if its owner or its permissions
#' allow other users to write to it. Programs are then compiled for the session only, with a message of class
#' `autosmc_message_cache`.
#'
#' @param clear whether to remove all compiled programs (TRUE or FALSE). Targets of this session remain usable: a
#'   library that is needed again is compiled again. Other files are not removed.
#' @return A data frame with a row for each library, the newest first: `program` (the first line that is not empty),
#'   `library` (the path, which [target_stan()] accepts as `model`), `megabytes` and `compiled` (the time). With
#'   `clear`, the libraries that were removed, invisibly.
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
  list.files(folder, paste0("^autosmc_stan_.*\\", .Platform$dynlib.ext, "$"), full.names = TRUE)
}

remove_libraries <- function(libraries) {
  unlink(c(libraries, sub_extension(libraries, ".stan"), sum_file(libraries)), expand = FALSE)
}

# The folder for libraries, created if necessary: stan_cache_folder() or, if other users may write to it or to its
# parent folder, one in the temporary folder of the session.
safe_cache_folder <- function() {
  folder <- stan_cache_folder()
  dir.create(folder, showWarnings = FALSE, recursive = TRUE, mode = "0700")
  if (!any(is_shared(c(folder, dirname(folder))))) {
    return(folder)
  }
  inform("cache", c(
    "!" = "The cache of compiled programs, {.file {folder}}, is not used: other users may write to it.",
    "i" = "Restrict it and its parent folder to yourself (mode 700), with {.code Sys.chmod()}."
  ))
  folder <- file.path(tempdir(), "autosmc-stan")
  dir.create(folder, showWarnings = FALSE, mode = "0700")
  folder
}

# Whether a folder belongs to another user or can be written to by others. Always FALSE on Windows.
is_shared <- function(folder) {
  info <- file.info(folder)
  own <- file.info(tempdir())$uid
  shared <- bitwAnd(as.integer(info$mode), strtoi("22", 8)) > 0 | info$uid != own
  .Platform$OS.type == "unix" & !is.na(shared) & shared
}

# Limits of the cache, as documented in stan_cache().
stan_cache_megabytes <- 100
stan_cache_days <- 90

# Removes libraries beyond these limits, and folders older than a day, which are left by compilations that were killed.
# keep: a library that is not removed.
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

first_line <- function(library) {
  source <- sub_extension(library, ".stan")
  if (!file.exists(source)) {
    return(NA_character_)
  }
  lines <- trimws(readLines(source, warn = FALSE))
  c(lines[nzchar(lines)], NA)[1]
}

# The path of a program's library, which is compiled if necessary.
cached_library <- function(program) {
  check_stan_packages()
  library <- file.path(safe_cache_folder(), paste0("autosmc_stan_", stan_key(program), .Platform$dynlib.ext))
  if (!isTRUE(is_whole(library))) {
    compile_stan(program, library)
    tidy_cache(library)
  }
  Sys.setFileTime(sum_file(library), Sys.time()) # the time of last use, for tidy_cache()
  library
}

# A hash of everything that a library depends on: the texts of the program and its includes, the versions of packages
# and of R, and compiler_key().
stan_key <- function(program) {
  headers <- system.file("include", c("autosmc_stan.hpp", "autosmc_statement.hpp"), package = "autosmc")
  versions <- vapply(names(stan_packages), function(package) format(utils::packageVersion(package)), "")
  parts <- c(
    program = program$code, include = unlist(program$includes), version = versions,
    R = R.version.string, platform = R.version$platform, header = unname(tools::md5sum(headers)),
    compiler = compiler_key(program)
  )
  hash_of(charToRaw(paste0(names(parts), " ", nchar(parts, "bytes"), "\n", parts, collapse = "\n")))
}

# Identifies the compiler: the commands that compile a program, with the user's flags, and the macros that the compiler
# predefines, which include its version and the processor features it uses (as with -march=native). Computed once for
# each set of flags.
compiler_key <- function(program) {
  makevars <- user_makevars()
  asked <- paste(c(unlist(stan_makevars(program)), makevars, Sys.getenv("PATH")), collapse = "\n")
  if (is.null(compilers[[asked]])) {
    folder <- tempfile("autosmc-compiler-")
    dir.create(folder)
    on.exit(unlink(folder, recursive = TRUE))
    write_makefiles(folder, program)
    file.create(file.path(folder, "program.cpp"))
    commands <- run_shlib(folder, "--dry-run")
    commands <- commands[-seq_len(match("make would use", commands, 0))] # lines before contain the folder's name
    compile <- grep("-c program.cpp", commands, value = TRUE, fixed = TRUE)[1]
    ask <- paste(sub(" -c program.cpp.*", "", compile), "-dM -E -x c++ program.cpp")
    constants <- tryCatch( # an error if there is no such compiler, which the compilation reports
      in_folder(folder, system(ask, intern = TRUE, ignore.stderr = TRUE)),
      error = function(e) NULL,
      warning = function(w) NULL
    )
    assign(asked, paste(c(commands, constants), collapse = "\n"), compilers)
  }
  compilers[[asked]]
}

compilers <- new.env()
