# What the benchmark scripts share. Run them from the top of the checkout, with
# the package installed: `Rscript bench/NAME.R`. They print what they find and
# keep it in bench/results/NAME.csv.
#
# An evaluation of a target is the unit of cost, so most figures do not depend on
# the machine. Where BLAS starts threads of its own, keep it to one
# (OPENBLAS_NUM_THREADS=1): the replications already use all cores.

library(autosmc)
options(width = 120)

targets <- list(
  gaussian = function() target_gaussian(10, mean = 3),
  funnel = target_funnel,
  brownian = target_brownian,
  sonar = target_sonar,
  pines = target_pines
)

# Their log evidences: exact, but that of Brownian by quadrature over the two scales, all else
# being normal, and those of Sonar and Pines by long runs.
truths <- list(gaussian = 0, funnel = 0, brownian = 1.18775, sonar = -108.357, pines = 501.8)

# f(seed), a named numeric vector, for each seed; a matrix with a row a seed.
replicate_seeds <- function(seeds, f) {
  cores <- if (.Platform$OS.type == "windows") 1 else parallel::detectCores()
  do.call(rbind, parallel::mclapply(seeds, f, mc.cores = cores))
}

# The paper's method: one adapting run and one unbiased run from N(0, I).
smc_paper <- function(target, ...) {
  smc(target, ..., rounds = 0, whiten = FALSE, islands = 1)
}

# log Z over seeds: median, 80 % band and spread.
spread <- function(z, seeds) {
  data.frame(
    seeds = sprintf("%d to %d", min(seeds), max(seeds)),
    median = median(z),
    q10 = quantile(z, 0.1, names = FALSE),
    q90 = quantile(z, 0.9, names = FALSE),
    sd = sd(z),
    mad = mad(z)
  )
}

# One row: unbiased log Z by the paper's method over seeds, and what the tuning
# cost, as a multiple of a run without.
measure <- function(target, seeds, ...) {
  out <- replicate_seeds(seeds, function(seed) {
    fit <- smc_paper(target, seed = seed, ...)
    steps <- fit$steps[fit$steps$run == "adapt", ]
    c(
      log_z = fit$log_z,
      cost = fit$runs$n_target_evals[1] / fit$runs$n_target_evals[2],
      first = steps$n_objective_evals[1],
      later = mean(steps$n_objective_evals[-1])
    )
  })
  cbind(
    spread(out[, "log_z"], seeds),
    data.frame(
      adapt_cost = mean(out[, "cost"]),
      evals_first = mean(out[, "first"]),
      evals_later = mean(out[, "later"])
    )
  )
}

# The numbers that a script of this folder prints, called with these arguments in a process of its own;
# library: one that comes before the others.
numbers_by <- function(script, args, library = NULL) {
  said <- system2(
    file.path(R.home("bin"), "Rscript"), c("--no-echo", file.path("bench", script), args),
    stdout = TRUE, env = paste0("R_LIBS=", paste(c(library, .libPaths()), collapse = ":"))
  )
  if (!is.null(attr(said, "status"))) stop(script, " ", toString(args), " has failed.")
  scan(text = said, quiet = TRUE)
}

# Compiles C files that include the package's header, and loads them as one library of this
# name. include: other folders of headers.
load_routines <- function(name, sources, include = NULL) {
  folder <- tempfile()
  dir.create(folder)
  file.copy(sources, folder)
  include <- c(system.file("include", package = "autosmc"), include)
  Sys.setenv(PKG_CPPFLAGS = paste0("-I", include, collapse = " "))
  library_file <- file.path(folder, paste0(name, .Platform$dynlib.ext))
  args <- c("CMD", "SHLIB", "-o", library_file, file.path(folder, basename(sources)))
  stopifnot(system2(file.path(R.home("bin"), "R"), args) == 0)
  dyn.load(library_file)
}

# Whether a warning says that an estimate of the evidence is not to be trusted: one of autosmc, unless it is about the
# moments of draws with heavy tails.
doubts_evidence <- function(w) inherits(w, "autosmc_warning") && !inherits(w, "autosmc_warning_moments")

# What follows a flag on the command line.
option_of <- function(args, flag, default) {
  at <- match(flag, args)
  if (is.na(at)) default else args[at + 1]
}

results_file <- function(name) file.path("bench", "results", paste0(name, ".csv"))

# Adds rows to a file, with a header where there is none.
append_rows <- function(rows, file) {
  is_new <- !file.exists(file)
  utils::write.table(
    rows, file,
    append = !is_new, col.names = is_new, row.names = FALSE, sep = ",", qmethod = "double"
  )
}

# Rows with the last commit of the checkout that changed the package, and the date.
with_provenance <- function(rows) {
  commit <- system2("git", c("log", "-1", "--format=%h", "--", "R", "src"), stdout = TRUE)
  cbind(rows, commit = commit, date = format(Sys.Date()))
}

keep <- function(table, name) {
  print(format(table, digits = 4), row.names = FALSE)
  numeric <- vapply(table, is.double, TRUE)
  table[numeric] <- lapply(table[numeric], signif, 8) # log Z of hundreds, errors of 1e-4
  utils::write.csv(table, results_file(name), row.names = FALSE, quote = FALSE)
}

# Puts rows into a table that is kept, in place of those that are the same in the columns of `key`,
# and in its order: a list of the values that each of these columns may have.
keep_rows <- function(new, name, key) {
  file <- results_file(name)
  table <- new
  if (file.exists(file)) {
    old <- utils::read.csv(file)
    old[setdiff(names(new), names(old))] <- NA
    which_row <- function(rows) do.call(paste, rows[names(key)])
    table <- rbind(old[!which_row(old) %in% which_row(new), names(new)], new)
  }
  keep(table[do.call(order, unname(Map(match, table[names(key)], key))), ], name)
}
