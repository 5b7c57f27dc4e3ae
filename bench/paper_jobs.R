# What the scripts of the paper's experiments share: the problems, and a table that is
# written as it grows. Each script makes a list of jobs, and runs those that are not in
# its table yet: stopped at any time, it goes on where it was. Options of all of them:
#
#   --only REGEX        the problems that match
#   --seeds 1:32        the seeds (an expression of R)
#   --posteriordb DIR   also the paper's problems from posteriordb, of which DIR is a checkout
#
# Seeds run side by side with as many processes as the environment variable MC_CORES says
# (one without it).
source("bench/common.R")
source("bench/known_evidence.R")

paper_options <- function(args = commandArgs(TRUE), seeds = "1:32") {
  list(
    only = option_of(args, "--only", ""),
    seeds = eval(str2lang(option_of(args, "--seeds", seeds))),
    posteriordb = option_of(args, "--posteriordb", NULL)
  )
}

# The problems: for each a function that makes its target. The first four are built in.
paper_problems <- function(options) {
  problems <- targets[c("funnel", "brownian", "sonar", "pines")]
  if (!is.null(options$posteriordb)) {
    from_posteriordb <- lapply(posteriordb_names, function(name) {
      function() posteriordb_target(options$posteriordb, name)
    })
    problems <- c(problems, from_posteriordb)
  }
  problems[grepl(options$only, names(problems))]
}

# The paper's names of its problems from posteriordb, and posteriordb's.
posteriordb_names <- c(
  bones = "bones_data-bones_model",
  surgical = "surgical_data-surgical_model",
  hmm = "hmm_gaussian_simulated-hmm_gaussian",
  loss_curves = "loss_curves-losscurve_sislob",
  pilots = "pilots-pilots",
  diamonds = "diamonds-diamonds",
  seeds = "seeds_data-seeds_stanified_model",
  downloads = "rstan_downloads-prophet",
  rats = "rats_data-rats_model",
  radon = "radon_mn-radon_hierarchical_intercept_centered",
  election88 = "election88-election88_full",
  butterfly = "butterfly-multi_occupancy",
  birds = "GLMM_data-GLMM1_model",
  drivers = "uk_drivers-state_space_stochastic_level_stochastic_seasonal",
  capture = "Mh_data-Mh_model",
  science = "science_irt-grsm_latent_reg_irt",
  three_men = "three_men3-ldaK2",
  timss = "timssAusTwn_irt-gpcm_latent_reg_irt"
)

# folder: a checkout of posteriordb.
posteriordb_file <- function(folder, ...) {
  file <- file.path("posterior_database", ...)
  if (!file.exists(file.path(folder, file))) stop("The checkout has no file ", file, ".")
  file.path(folder, file)
}

posteriordb_target <- function(folder, name) {
  program <- paste0(about_posterior(folder, name)$model_name, ".stan")
  target_stan(
    posteriordb_file(folder, "models", "stan", program), posteriordb_data(folder, name)
  )
}

posteriordb_data <- function(folder, name) {
  zip <- paste0(about_posterior(folder, name)$data_name, ".json.zip")
  zip <- posteriordb_file(folder, "data", "data", zip)
  jsonlite::fromJSON(utils::unzip(zip, exdir = tempfile()))
}

about_posterior <- function(folder, name) {
  jsonlite::fromJSON(posteriordb_file(folder, "posteriors", paste0(name, ".json")))
}

# A target; or where it cannot be made, NULL, and a message why.
make_target <- function(problems, problem) {
  tryCatch(problems[[problem]](), error = function(e) {
    message(problem, " is left out: ", conditionMessage(e))
  })
}

paper_kernels <- list(lmc = kernel_lmc(), klmc = kernel_klmc())

# fits that may fail --------------------------------------------------------------

# The fit that f() returns, NULL where it ends in an error, and columns of a table. target: a
# target; or the error in its place, where it could not be made.
try_fit <- function(target, f) {
  no_target <- inherits(target, "error")
  warned <- FALSE
  started <- proc.time()
  fit <- withCallingHandlers(
    tryCatch(if (no_target) target else f(), error = identity),
    warning = function(w) {
      warned <<- warned || doubts_evidence(w)
      tryInvokeRestart("muffleWarning")
    }
  )
  failed <- inherits(fit, "error")
  of_fit <- function(value) if (failed) NA else value
  list(
    fit = if (!failed) fit,
    row = data.frame(
      d = if (no_target) NA else target$dim,
      log_z = of_fit(fit$log_z),
      std_error = of_fit(fit$std_error),
      n_target_evals = of_fit(sum(fit$runs$n_target_evals)),
      warned = warned,
      seconds = sum((proc.time() - started)[1:2]), # of the processor
      failure = if (failed) first_line(conditionMessage(fit)) else ""
    )
  )
}

first_line <- function(text) {
  strsplit(trimws(cli::ansi_strip(text)), "\n")[[1]][1]
}

# tables that grow ---------------------------------------------------------------

# NULL where there is none yet.
read_results <- function(name) {
  if (file.exists(results_file(name))) utils::read.csv(results_file(name))
}

# Adds rows, with their commit and date.
append_results <- function(rows, name) {
  double <- vapply(rows, is.double, TRUE)
  rows[double] <- lapply(rows[double], signif, 9) # log Z of thousands, with errors of a thousandth
  append_rows(with_provenance(rows), results_file(name))
}

# The jobs (a data frame, a row a job) whose rows are not in the table: a row of the
# table belongs to the job with which it agrees in all columns of `jobs`.
jobs_to_do <- function(jobs, name) {
  done <- read_results(name)
  key <- function(rows) do.call(paste, c(lapply(rows[names(jobs)], plain), sep = "|"))
  if (is.null(done)) jobs else jobs[!key(jobs) %in% key(done), , drop = FALSE]
}

# Numbers as the table has them.
plain <- function(x) {
  if (is.numeric(x)) trimws(formatC(x, digits = 6, format = "g")) else x
}

# Runs what is left of the jobs, those that differ in nothing but the seed side by side:
# f(job) returns a data frame, whose rows begin with the columns of the job.
run_jobs <- function(jobs, name, f) {
  todo <- jobs_to_do(jobs, name)
  cells <- do.call(paste, todo[setdiff(names(todo), "seed")])
  cells <- split(todo, factor(cells, unique(cells)))
  started <- proc.time()[["elapsed"]]
  for (i in seq_along(cells)) {
    rows <- parallel::mclapply(
      split(cells[[i]], seq_len(nrow(cells[[i]]))), f,
      mc.cores = getOption("mc.cores", 1L)
    )
    append_results(do.call(rbind, unname(rows)), name)
    minutes <- (proc.time()[["elapsed"]] - started) / 60
    message(sprintf(
      "%s: %d of %d (%s); %.1f minutes, about %.0f left",
      name, i, length(cells), names(cells)[i], minutes, minutes / i * (length(cells) - i)
    ))
  }
}

# The value of an expression without the warning of fits that are not to be trusted; or
# `otherwise`, where all particles have died.
unless_dead <- function(expr, otherwise) {
  tryCatch(
    withCallingHandlers(
      expr,
      autosmc_warning_unreliable = function(w) tryInvokeRestart("muffleWarning")
    ),
    autosmc_error_degenerate = function(e) otherwise
  )
}
