# From a Stan program to a library, and the cache of libraries.

# What R and the routines of inst/include/autosmc_stan.hpp tell each other, which has the same number.
stan_interface <- 6L

# What compiling takes, with the oldest versions that serve. StanHeaders has `stanc.js`
# too, the compiler from Stan to C++: of two versions neither would understand the other.
stan_packages <- c(
  BH = "1.75.0", QuickJSR = "1.0", RcppEigen = "0.3.4.0.0", RcppParallel = "5.1.4", StanHeaders = "2.39"
)

# the program -----------------------------------------------------------------

# list(code, name, file, includes): the text, names for messages of the program and of its
# file, and the texts of the files that it includes. model: a path to a .stan file, or a text.
read_stan_program <- function(model) {
  is_line <- !grepl("\n", model, fixed = TRUE)
  is_file <- is_line && suppressWarnings(utils::file_test("-f", model)) # which warns of a line that is too long
  if (!is_file && is_line && (endsWith(model, ".stan") || !grepl("{", model, fixed = TRUE))) {
    abort(c(
      "{.arg model}: there is no file {.file {model}}.",
      "i" = "Give the path of a {.file .stan} file, or the text of a program."
    ))
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

check_file <- function(file, arg) {
  if (!utils::file_test("-f", file)) abort("{.arg {arg}}: there is no file {.file {file}}.")
}

read_text <- function(file) {
  bytes <- readBin(file, "raw", file.size(file))
  if (any(bytes == 0)) abort("The file {.file {file}} is no text: it has NUL characters.")
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
    if (length(changes) > 0) {
      errors <- c(errors, sprintf(
        "The program is of an old version of Stan. Its %s were brought up to date; what the error names was not.",
        toString(changes)
      ))
    }
    abort_verbatim(paste(errors, collapse = "\n"), c("program", "input"))
  }
  if (length(changes) > 0) {
    by <- if (by_brms(program)) ", written by brms,"
    inform("update", c(
      "i" = "The Stan program {.field {program$name}}{by} is of an old version, and was brought up to date:
        {changes}."
    ))
  }
  for (warning in as.character(answer$warnings)) message(warning)
  answer$result
}

# The compiler's answer: a list with `result`, the C++, and `warnings`, or with `errors`.
ask_stanc <- function(program) {
  if (is.null(stanc$js)) { # reading it takes longer than most programs do
    js <- QuickJSR::JSContext$new(stack_size = 4 * 1024^2)
    js$source(system.file("stanc.js", package = "StanHeaders"))
    stanc$js <- js
  }
  flags <- as.array(paste0("filename-in-msg=", any_stan_file))
  includes <- if (length(program$includes) > 0) list(program$includes)
  answer <- do.call(stanc$js$call, c(list("stanc", "autosmc_stan_program", program$code, flags), includes))
  said <- c("errors", "warnings")
  answer[said] <- lapply(answer[said], function(text) gsub(any_stan_file, program$file, text, fixed = TRUE))
  answer
}

stanc <- new.env() # `js`, once it is read

# In place of the name of its file: programs of the same text share a library. The name in
# inst/include/autosmc_stan.hpp.
any_stan_file <- "autosmc_stan_file"

# the compiler ----------------------------------------------------------------

check_stan_packages <- function() {
  serves <- mapply(function(package, oldest) {
    nzchar(system.file(package = package)) && utils::packageVersion(package) >= oldest
  }, names(stan_packages), stan_packages)
  packages <- names(stan_packages)[!serves]
  if (length(packages) > 0) {
    install <- sprintf("install.packages(c(%s))", toString(dQuote(packages, FALSE)))
    abort(
      "To compile Stan programs takes {.pkg {packages}}, which {?is/are} missing or too old: {.code {install}}.",
      "package"
    )
  }
}

# The variables of the Makevars with which a program is compiled. Stan's tape must be
# hidden within the library: else all loaded libraries would share that of the first one. Each thread has a tape of its
# own, but where the program itself would start threads then, whose sums depend on who is first.
stan_makevars <- function(program) {
  include <- function(package, ...) paste0("-I", shQuote(system.file("include", ..., package = package)))
  new_tbb <- nzchar(system.file("include", "tbb", "version.h", package = "RcppParallel"))
  unique_symbols <- if (Sys.info()[["sysname"]] == "Linux") "-fno-gnu-unique"
  list(
    CXX_STD = "CXX17",
    PKG_CPPFLAGS = c(
      include("StanHeaders", "src"), include("StanHeaders"), include("RcppEigen"),
      include("BH"), include("RcppParallel"), include("autosmc"),
      "-D_REENTRANT", if (!starts_threads(program)) "-DSTAN_THREADS",
      if (new_tbb) "-DTBB_INTERFACE_NEW", "-DNEW_RSTAN", "-DUSING_R",
      "-DBOOST_DISABLE_ASSERTS", "-DBOOST_PHOENIX_NO_VARIADIC_EXPRESSION",
      "-DEIGEN_NO_DEBUG"
    ),
    PKG_CXXFLAGS = c("-w", unique_symbols, "-fvisibility=hidden"),
    PKG_LIBS = c(stan_solvers(), tbb_libraries())
  )
}

starts_threads <- function(program) {
  any(grepl("\\b(reduce_sum|map_rect|laplace_)", c(program$code, unlist(program$includes))))
}

# The solvers of differential equations, of which a program takes what it needs.
stan_solvers <- function() {
  archive <- system.file("lib", .Platform$r_arch, "libStanHeaders.a", package = "StanHeaders")
  if (nzchar(archive)) shQuote(archive)
}

# RcppParallel brings its own TBB, unless it was built for that of the system.
tbb_libraries <- function() {
  lib <- system.file("lib", .Platform$r_arch, package = "RcppParallel")
  c(if (nzchar(lib)) paste0(c("-L", "-Wl,-rpath,"), shQuote(lib)), "-ltbb", "-ltbbmalloc")
}

# Half of the time goes into optimising what -O1 optimises enough, and debugging symbols
# make a library 80 times as large. These come after all others, the user's too.
stan_last_flags <- "-O1 -g0"

# Compiles a program into `library`, a path. By way of a folder beside it, so that of two
# sessions that do so at once each finishes its own, and no other sees half of one.
compile_stan <- function(program, library) {
  cpp <- translate_stan(program)
  inform_once("compile", c("i" = "Compiling the Stan program {.field {program$name}}: this takes about half a minute."))
  folder <- tempfile("compiling-", dirname(library))
  if (!dir.create(folder, showWarnings = FALSE)) {
    abort(c(
      "The cache of compiled programs, {.file {dirname(library)}}, cannot be written to.",
      "i" = "The environment variable {.envvar R_USER_CACHE_DIR} moves it elsewhere."
    ))
  }
  on.exit(unlink(folder, recursive = TRUE))
  # the number of the statement that runs looks for interrupts
  cpp <- gsub("int current_statement__ = 0;", "autosmc_stan::statement current_statement__ = 0;", cpp, fixed = TRUE)
  # the C++ may end in a line of the preprocessor
  cpp <- c("#include <autosmc_statement.hpp>", cpp, "#include <autosmc_stan.hpp>")
  writeLines(cpp, file.path(folder, "program.cpp"))
  write_makefiles(folder, program)
  log <- run_shlib(folder)
  if (!dir.exists(folder)) {
    abort("The cache of compiled programs was removed while the program was compiled. Compile it again.")
  }
  built <- file.path(folder, paste0("program", .Platform$dynlib.ext))
  if (!file.exists(built)) {
    said <- c("The C++ compiler failed on the Stan program:", utils::tail(log, 20))
    abort_verbatim(paste(said, collapse = "\n"), "input")
  }
  writeLines(program$code, sub_extension(library, ".stan"))
  sum <- unname(tools::md5sum(built))
  if (file.rename(built, library)) {
    writeLines(sum, sum_file(library))
  } else if (!file.exists(library) || isFALSE(is_whole(library))) {
    abort("The compiled program could not be written to {.file {library}}.")
  }
}

# Beside a library is its checksum: to load one that was cut off, by a full disk say, ends R.
sum_file <- function(library) sub_extension(library, ".md5")

# Whether a library is as it was compiled; NA where there is no checksum beside it, as of one that the user has copied.
is_whole <- function(library) {
  file <- sum_file(library)
  if (!file.exists(file)) {
    return(NA)
  }
  identical(readLines(file, n = 1, warn = FALSE), unname(tools::md5sum(library)))
}

# Makevars for a program in this folder, and last.mk, which is read in place of the user's and has what that has.
write_makefiles <- function(folder, program) {
  variables <- vapply(stan_makevars(program), paste, "", collapse = " ")
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
  on.exit(if (is.na(old)) Sys.unsetenv("R_MAKEVARS_USER") else Sys.setenv(R_MAKEVARS_USER = old))
  Sys.setenv(R_MAKEVARS_USER = file.path(folder, "last.mk"))
  arguments <- c("SHLIB", options, "program.cpp")
  in_folder(folder, suppressWarnings(tools::Rcmd(arguments, stdout = TRUE, stderr = TRUE)))
}

in_folder <- function(folder, code) {
  here <- setwd(folder)
  on.exit(setwd(here))
  code
}

# The path of a library with another extension.
sub_extension <- function(library, extension) paste0(tools::file_path_sans_ext(library), extension)
