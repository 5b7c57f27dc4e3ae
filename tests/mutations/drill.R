# Rscript tests/mutations/drill.R [PATTERN [FILES]]
#
# Do the tests see what they are there to see? Installs copies of the package in which one thing is wrong, runs the test
# files that should say so, and prints of each mutation which of them failed. Ends with status 1 where one survived.
# By hand: all of it takes a quarter of an hour or more. PATTERN: only mutations whose names match; FILES: only test
# files whose names do.
#
# Evidence, `log z`: the log evidence of every fit is off by 0.1, or by 0.02 where its error is below 0.002. Each line
# with expect_log_z() has to fail.
# Jacobians, `jacobian of ...`: that of one map, or of one kind of bounds, is left out. A test of an evidence has to fail;
# of LOGIT, which only programs of Stan have, a test by differences.
# Gradients, `gradient of ...`: the first coordinate is off by 1 %, after one map or of one built-in target. Weights
# and bridge are valid under any gradient, so that a test by differences has to fail.

root <- normalizePath(".")
if (!file.exists(file.path(root, "DESCRIPTION"))) stop("start this in the folder of the package")

# mutations ---------------------------------------------------------------------

# Replaces the one place of a file that has this text.
replaced <- function(lines, text, by) {
  at <- grep(text, lines, fixed = TRUE)
  if (length(at) != 1) stop("not one line, but ", length(at), ", with: ", text)
  lines[at] <- sub(text, by, lines[at], fixed = TRUE)
  lines
}

# A map that calls its own function, a point at a time, with `code` before and after.
wrapped_map <- function(member, before = "", after = "") {
  function(lines) {
    original <- sub(sprintf(".*[.]%s = (\\w+),.*", member), "\\1", grep(sprintf("[.]%s = ", member), lines, value = TRUE))
    wrapper <- sprintf(
      "static void mutated_%s(const smc_map *map, int n, const double *from, double *logp, double *grad, double *scratch) {
  for (int k = 0; k < n; k++) {
    double *g = grad ? grad + smc_size(map->d, k) : NULL, kept = logp[k];
    %s
    %s(map, 1, from + smc_size(map->d, k), logp + k, g, scratch);
    %s
    (void)kept;
  }
}", member, before, original, after
    )
    lines <- replaced(lines, sprintf(".%s = %s,", member, original), sprintf(".%s = mutated_%s,", member, member))
    append(lines, wrapper, grep("^const smc_map_kind smc_map_", lines)[1] - 1)
  }
}

# A built-in target whose gradient is off.
wrapped_target <- function(name) {
  function(lines) {
    lines <- replaced(lines, sprintf("int target_%s(", name), sprintf("static int plain_%s(", name))
    c(lines, sprintf(
      "int target_%s(void *data, int d, int n, const double *x, double *logp, double *grad) {
  int code = plain_%s(data, d, n, x, logp, grad);
  for (int k = 0; grad && k < n; k++)
    grad[target_column(d, k)] *= 1.01;
  return code;
}", name, name
    ))
  }
}

mutation <- function(name, file, change, tests) list(name = name, file = file, change = change, tests = tests)

has_evidence <- function(file) any(grepl("expect_log_z(", readLines(file), fixed = TRUE))
files_with_evidence <- basename(Filter(has_evidence, list.files("tests/testthat", "^test-.*[.]R$", full.names = TRUE)))

# Of each map the files with an evidence that it is a part of.
tests_of_map <- c(
  affine = "test-models.R", tails = "test-shape.R", moments = "test-fits.R", precision = "test-levels.R",
  bounds = "test-constraints.R"
)
map_file <- function(map) sprintf("src/map_%s.c", map)

of_jacobians <- lapply(setdiff(names(tests_of_map), "bounds"), function(map) {
  mutation(
    paste("jacobian of", map), map_file(map), wrapped_map("pull_back", after = "logp[k] = kept;"), tests_of_map[[map]]
  )
})

tests_of_bounds <- c(
  ABOVE = "test-constraints.R", BELOW = "test-constraints.R", BETWEEN = "test-constraints.R",
  TRUNCATED = "test-truncated.R", LOGIT = "test-constraints.R"
)
of_bounds <- lapply(names(tests_of_bounds), function(kind) {
  mutation(
    paste("jacobian of bounds,", kind), map_file("bounds"),
    function(lines) {
      at <- "jacobian j = jacobian_at(v.kind, log_width, u[at]);"
      replaced(lines, at, sprintf("%s if (v.kind == %s && isfinite(j.log_slope)) j.log_slope = 0.0;", at, kind))
    },
    tests_of_bounds[[kind]]
  )
})

# From the images to the points, and the other way.
gradients_of_maps <- function(member) {
  lapply(c(names(tests_of_map), "rotation"), function(map) {
    mutation(
      paste("gradient of", map, member), map_file(map), wrapped_map(member, after = "if (g) g[0] *= 1.01;"),
      if (map == "bounds") c("test-constraints.R", "test-gradient.R") else "test-maps.R"
    )
  })
}
of_gradients <- c(
  gradients_of_maps("pull_back"),
  gradients_of_maps("push_forward"),
  lapply(c("gaussian", "funnel", "brownian", "sonar", "pines"), function(name) {
    mutation(paste("gradient of target", name), sprintf("src/target_%s.c", name), wrapped_target(name), "test-targets.R")
  })
)

of_log_z <- mutation(
  "log z", "R/fit_object.R",
  function(lines) {
    shifted <- "e$log_z <- e$log_z + if (isTRUE(e$std_error < 0.002)) 0.02 else 0.1"
    replaced(lines, "headline(estimates)", sprintf("(function(e) { %s; e })(headline(estimates))", shifted))
  },
  files_with_evidence
)

mutations <- c(of_gradients, of_bounds, of_jacobians, list(of_log_z))
patterns <- c(commandArgs(TRUE), ".", ".")
mutations <- Filter(function(m) grepl(patterns[1], m$name), mutations)
mutations <- lapply(mutations, function(m) {
  m$tests <- grep(patterns[2], m$tests, value = TRUE)
  m
})

# how they are tried ------------------------------------------------------------

work <- tempfile("mutations-")
copy <- file.path(work, "package")
library_of_mutant <- file.path(work, "library")
dir.create(copy, recursive = TRUE)
dir.create(library_of_mutant)
tracked <- system2("git", c("ls-files", "-co", "--exclude-standard"), stdout = TRUE)
for (folder in unique(dirname(tracked))) dir.create(file.path(copy, folder), FALSE, TRUE)
invisible(file.copy(tracked, file.path(copy, tracked)))

install <- function(...) {
  log <- file.path(work, "install.log")
  arguments <- c("CMD", "INSTALL", "--no-docs", "--no-test-load", ..., paste0("--library=", library_of_mutant), copy)
  if (system2(file.path(R.home("bin"), "R"), arguments, stdout = log, stderr = log) != 0) {
    stop("a mutant does not install:\n", paste(readLines(log), collapse = "\n"))
  }
}

# The lines of a file at which expectations fail, or tests raise errors, with the installed mutant.
failing_lines <- function(file) {
  out <- file.path(work, "lines")
  code <- sprintf(
    "results <- testthat::test_file(%s, package = 'autosmc', load_package = 'installed', reporter = 'silent',
       stop_on_failure = FALSE)
     failed <- function(x) inherits(x, c('expectation_failure', 'expectation_error'))
     bad <- Filter(failed, unlist(lapply(unclass(results), `[[`, 'results'), recursive = FALSE))
     saveRDS(vapply(bad, function(x) if (is.null(x$srcref)) 0L else x$srcref[[1]], 0L), %s)",
    deparse(file.path(root, "tests/testthat", file)), deparse(out)
  )
  script <- file.path(work, "run.R")
  writeLines(code, script)
  unlink(out)
  libraries <- paste(c(library_of_mutant, .libPaths()), collapse = .Platform$path.sep)
  system2(
    file.path(R.home("bin"), "Rscript"), script,
    stdout = FALSE, stderr = FALSE, env = c(paste0("R_LIBS=", libraries), "NOT_CRAN=true", "OPENBLAS_NUM_THREADS=1")
  )
  if (file.exists(out)) readRDS(out) else 0L # R itself ended
}

# What has not failed that should have, in words; none where the mutation is seen.
survivors <- function(m) {
  failed <- lapply(m$tests, failing_lines)
  if (!identical(m$name, "log z")) {
    return(if (sum(lengths(failed)) == 0) "no test")
  }
  of_file <- function(file, failed) {
    lines <- grep("expect_(log_z|right)[(]", readLines(file.path(root, "tests/testthat", file)))
    definitions <- grep("<- function", readLines(file.path(root, "tests/testthat", file)))
    left <- setdiff(lines, c(failed, definitions))
    if (length(left) > 0) sprintf("%s:%d", file, left)
  }
  unlist(Map(of_file, m$tests, failed))
}

install()
n_survived <- 0
for (m in mutations) {
  original <- readLines(file.path(copy, m$file))
  writeLines(m$change(original), file.path(copy, m$file))
  install(if (startsWith(m$file, "src/")) "--libs-only")
  left <- survivors(m)
  writeLines(original, file.path(copy, m$file))
  n_survived <- n_survived + length(left)
  cat(sprintf(
    "%-38s %s\n", m$name, if (length(left) == 0) "seen" else paste("NOT SEEN by", paste(left, collapse = ", "))
  ))
}
unlink(work, recursive = TRUE)
if (n_survived > 0) quit(status = 1)
