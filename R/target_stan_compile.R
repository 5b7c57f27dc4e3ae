# Translates a Stan program to C++ by Stan's compiler stanc and compiles it to a shared library.

# The version of the interface between R and the routines of inst/include/autosmc_stan.hpp, which has the same number.
stan_interface <- 6L

# The packages that compilation needs, with their oldest supported versions. StanHeaders also has `stanc.js`, the
# compiler from Stan to C++, which requires the headers of its own version.
stan_packages <- c(
  BH = "1.75.0", QuickJSR = "1.0", RcppEigen = "0.3.4.0.0", RcppParallel = "5.1.4", StanHeaders = "2.39"
)

# the program -----------------------------------------------------------------

# list(code, name, file, includes): the text, the names of the program and of its file for messages, and the texts of
# the included files. model: the path of a .stan file, or a text.
read_stan_program <- function(model, arg = "model") {
  is_line <- !grepl("\n", model, fixed = TRUE)
  is_file <- is_line && suppressWarnings(utils::file_test("-f", model)) # warns if the line is too long
  if (!is_file && is_line && (endsWith(model, ".stan") || !grepl("{", model, fixed = TRUE))) {
    abort(c(
      "{.arg {arg}}: there is no file {.file {model}}.",
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
  if (any(bytes == 0)) abort("{.file {file}} is not a text file: it contains NUL characters.")
  sub("\n$", "", plain_text(rawToChar(bytes)))
}

# The text in UTF-8, with lines that end in "\n", and without a byte order mark.
plain_text <- function(text) {
  text <- gsub("\r\n?", "\n", sub("^\xef\xbb\xbf", "", enc2utf8(text), useBytes = TRUE), useBytes = TRUE)
  Encoding(text) <- "UTF-8"
  text
}

# A named list of the texts of all files that `#include` lines name, recursively. stanc reports files that do not exist.
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

# The C++ code of a program. A program that stanc rejects is updated from old Stan versions; if it is still rejected,
# the error has stanc's message.
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
        "The program is in an old version of Stan. Its %s were updated, but this error remains.",
        toString(changes)
      ))
    }
    abort_verbatim(paste(errors, collapse = "\n"), c("program", "input"))
  }
  if (length(changes) > 0) {
    by <- if (by_brms(program)) ", written by brms,"
    inform("update", c(
      "i" = "The Stan program {.field {program$name}}{by} is in an old version of Stan, and was updated: {changes}."
    ))
  }
  for (warning in as.character(answer$warnings)) message(warning)
  answer$result
}

# The output of stanc: a list with `result`, the C++ code, and `warnings`, or with `errors`.
ask_stanc <- function(program) {
  if (is.null(stanc$js)) { # once per session, since loading takes longer than translating most programs
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

stanc <- new.env() # `js`, once it is loaded

# Replaces the name of the program's file, so that programs of the same text share a library. Also in
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
      "Compiling Stan programs needs {.pkg {packages}}, which {?is/are} missing or too old: {.code {install}}.",
      "package"
    )
  }
}

# The variables of Makevars for a program. Stan's autodiff tape must be hidden within the library, or all loaded
# libraries would share the tape of the first. With STAN_THREADS each thread has its own tape. It is not set for a
# program that would then start threads itself, because the order of their sums is not reproducible.
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

# The static library of Stan's solvers of differential equations, if there is one.
stan_solvers <- function() {
  archive <- system.file("lib", .Platform$r_arch, "libStanHeaders.a", package = "StanHeaders")
  if (nzchar(archive)) shQuote(archive)
}

# Flags for the TBB of RcppParallel or, if that was built without one, of the system.
tbb_libraries <- function() {
  lib <- system.file("lib", .Platform$r_arch, package = "RcppParallel")
  c(if (nzchar(lib)) paste0(c("-L", "-Wl,-rpath,"), shQuote(lib)), "-ltbb", "-ltbbmalloc")
}

# Flags that come after all others, including the user's. Optimisation beyond -O1 would double the compile time with
# little gain, and debugging symbols make a library 80 times as large.
stan_last_flags <- "-O1 -g0"

# Compiles a program into `library`, a path. It is compiled in a separate folder and then renamed, so that several
# sessions can do so at the same time, and none loads an incomplete library.
compile_stan <- function(program, library) {
  cpp <- translate_stan(program)
  inform_once("compile", c("i" = "Compiling the Stan program {.field {program$name}}: this takes about half a minute."))
  folder <- tempfile("compiling-", dirname(library))
  if (!dir.create(folder, showWarnings = FALSE)) {
    abort(c(
      "The cache of compiled programs, {.file {dirname(library)}}, cannot be written to.",
      "i" = "Set the environment variable {.envvar R_USER_CACHE_DIR} to another folder."
    ))
  }
  on.exit(unlink(folder, recursive = TRUE))
  # the type of this variable checks for interrupts whenever the number of the statement is set
  cpp <- gsub("int current_statement__ = 0;", "autosmc_stan::statement current_statement__ = 0;", cpp, fixed = TRUE)
  # one element per line, since the C++ code may end in a preprocessor line
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

# The file with a library's checksum. Loading a truncated library, for instance after the disk was full, crashes R.
sum_file <- function(library) sub_extension(library, ".md5")

# Whether a library has its original checksum; NA if the checksum file is missing, as for a copy that the user has made.
is_whole <- function(library) {
  file <- sum_file(library)
  if (!file.exists(file)) {
    return(NA)
  }
  identical(readLines(file, n = 1, warn = FALSE), unname(tools::md5sum(library)))
}

# Writes Makevars for a program into the folder, and last.mk, which replaces the user's Makevars and contains its lines.
write_makefiles <- function(folder, program) {
  variables <- vapply(stan_makevars(program), paste, "", collapse = " ")
  writeLines(paste(names(variables), "=", variables), file.path(folder, "Makevars"))
  writeLines(c(user_makevars(), paste("CXX17FLAGS +=", stan_last_flags)), file.path(folder, "last.mk"))
}

# The lines of the user's Makevars, which R itself would read if R_MAKEVARS_USER were not set.
user_makevars <- function() {
  file <- Sys.getenv("R_MAKEVARS_USER", unset = path.expand("~/.R/Makevars"))
  if (utils::file_test("-f", file)) readLines(file, warn = FALSE)
}

# Runs R CMD SHLIB in the folder and returns the lines of its output.
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
