# The cache of compiled Stan programs.

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
#' @return A data frame with a row a library, the newest first: `program` (its first line that is not empty), `library`
#'   (the path, which [target_stan()] takes as a `model`), `megabytes` and `compiled` (when). With `clear`, what was
#'   removed, invisibly.
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

# The folder where libraries are kept, made if need be: that of stan_cache(), or one of the session where others may
# write to that, or to the folder that it is in.
safe_cache_folder <- function() {
  folder <- stan_cache_folder()
  dir.create(folder, showWarnings = FALSE, recursive = TRUE, mode = "0700")
  if (!any(is_shared(c(folder, dirname(folder))))) {
    return(folder)
  }
  inform("cache", c(
    "!" = "The cache of compiled programs, {.file {folder}}, is not used: others may write to it.",
    "i" = "With {.code Sys.chmod()} make it, and the folder that it is in, yours alone (mode 700)."
  ))
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
  library <- file.path(safe_cache_folder(), paste0("autosmc_stan_", stan_key(program), .Platform$dynlib.ext))
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
  versions <- vapply(names(stan_packages), function(package) format(utils::packageVersion(package)), "")
  parts <- c(
    program = program$code, include = unlist(program$includes), version = versions,
    R = R.version.string, platform = R.version$platform, header = unname(tools::md5sum(headers)),
    compiler = compiler_key(program)
  )
  hash_of(charToRaw(paste0(names(parts), " ", nchar(parts, "bytes"), "\n", parts, collapse = "\n")))
}

# What the compiler is: the commands with which a program is compiled, and the constants that it defines by itself,
# among them its version and what of the processor it uses, as by -march=native. Asked once for each set of flags.
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
