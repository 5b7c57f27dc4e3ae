# What the scripts of the paper's experiments share: the problems, and a table that is
# written as it grows. Each script makes a list of jobs, and runs those that are not in
# its table yet: stopped at any time, it goes on where it was. Options of all of them:
#
#   --only REGEX        the problems that match
#   --seeds 1:32        the seeds (an expression of R)
#   --posteriordb DIR   also the problems of posteriordb.R, from a checkout of posteriordb
#
# Seeds run side by side with as many processes as the environment variable MC_CORES says
# (one without it).
source("bench/common.R")

paper_options <- function(args = commandArgs(TRUE), seeds = "1:32") {
  value <- function(flag, default) {
    at <- match(flag, args)
    if (is.na(at)) default else args[at + 1]
  }
  list(
    only = value("--only", ""),
    seeds = eval(str2lang(value("--seeds", seeds))),
    posteriordb = value("--posteriordb", NULL)
  )
}

# The problems: for each a function that makes its target. The first four are the paper's
# with gradients of their own.
paper_problems <- function(options) {
  problems <- targets[c("funnel", "brownian", "sonar", "pines")]
  if (!is.null(options$posteriordb)) {
    source("bench/posteriordb.R", local = (tools <- new.env()))
    problems <- c(problems, tools$posteriordb_problems(options$posteriordb))
  }
  problems[grepl(options$only, names(problems))]
}

# Their log evidences: two exact, that of Brownian by quadrature, those of Sonar and Pines
# as in the README; and of posteriordb's the median of the fits by the defaults.
paper_truths <- function() {
  truths <- c(funnel = 0, brownian = 1.18775, sonar = -108.357, pines = 501.8)
  fits <- read_results("posteriordb")
  if (is.null(fits)) {
    return(truths)
  }
  fits <- fits[fits$method %in% "defaults" & is.finite(fits$log_z), ]
  c(truths, tapply(fits$log_z, fits$problem, median))
}

paper_kernels <- list(lmc = kernel_lmc(), klmc = kernel_klmc())

# tables that grow ---------------------------------------------------------------

results_file <- function(name) file.path("bench", "results", paste0(name, ".csv"))

# NULL where there is none yet.
read_results <- function(name) {
  if (file.exists(results_file(name))) utils::read.csv(results_file(name))
}

# Adds rows, with the commit of the checkout and the date.
append_results <- function(rows, name) {
  double <- vapply(rows, is.double, TRUE)
  rows[double] <- lapply(rows[double], signif, 6)
  commit <- system2("git", c("rev-parse", "--short", "HEAD"), stdout = TRUE)
  rows <- cbind(rows, commit = commit, date = format(Sys.Date()))
  file <- results_file(name)
  is_new <- !file.exists(file)
  utils::write.table(
    rows, file,
    append = !is_new, col.names = is_new, row.names = FALSE, sep = ",", qmethod = "double"
  )
}

# The jobs (a data frame, a row a job) whose rows are not in the table: a row of the
# table belongs to the job with which it agrees in all columns of `jobs`.
jobs_to_do <- function(jobs, name) {
  done <- read_results(name)
  key <- function(rows) do.call(paste, c(lapply(rows[names(jobs)], plain), sep = "|"))
  if (is.null(done)) jobs else jobs[!key(jobs) %in% key(done), , drop = FALSE]
}

# Numbers as the table has them.
plain <- function(x) if (is.numeric(x)) formatC(x, digits = 6, format = "g") else x

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
