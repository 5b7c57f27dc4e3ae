# The draws of smc() by its defaults against the reference draws of posteriordb: for all of its
# posteriors that have some, and whose programs compile. A row of results/reference_draws.csv
# is a fit; over the variables with reference draws it has the largest
#
#   mean_error   difference of the means, in standard deviations of the reference draws
#   sd_error     difference of the standard deviations, as a share of the reference's
#   monte_carlo  Monte Carlo error that the fit claims for a mean, in the same unit as
#                mean_error
#
# `mean_of` and `sd_of` name the variables where the first two are largest, and `heavy_tails` those whose moments are
# not to be trusted, as the fit warns. Reference draws are 10,000 of each posterior, almost independent: their own errors are about 0.01 and 0.007. Where tails
# are heavy the second is larger, or the posterior has no standard deviation: `reference_error` is
# that of the standard deviation of `sd_of`, from those of the ten chains.
#
#   Rscript bench/reference_draws.R DIR [--only REGEX] [--seeds 1:2]
source("bench/paper_jobs.R")

largest_d <- 200

# The posteriors with reference draws, and the names of these.
with_reference_draws <- function(folder) {
  files <- list.files(file.path(folder, "posterior_database", "posteriors"), full.names = TRUE)
  about <- lapply(files, jsonlite::fromJSON)
  names(about) <- vapply(about, `[[`, "", "name")
  unlist(lapply(about, `[[`, "reference_posterior_name"))
}

# The chains, for each a matrix with a row a draw.
reference_draws <- function(folder, name) {
  file <- posteriordb_file(
    folder, "reference_posteriors", "draws", "draws", paste0(name, ".json.zip")
  )
  chains <- jsonlite::fromJSON(utils::unzip(file, exdir = tempfile()), simplifyDataFrame = FALSE)
  lapply(chains, function(chain) do.call(cbind, chain))
}

errors_of <- function(fit, chains) {
  reference <- do.call(rbind, chains)
  ours <- summary(fit)$variables
  ours <- ours[match(colnames(reference), ours$variable), ]
  if (anyNA(ours$variable)) stop("The fit lacks variables of the reference draws.")
  sd <- apply(reference, 2, stats::sd)
  of_mean <- abs(ours$mean - colMeans(reference)) / sd
  of_sd <- abs(ours$sd / sd - 1)
  worst <- which.max(of_sd)
  sd_by_chains <- vapply(chains, function(chain) stats::sd(chain[, worst]), 0)
  data.frame(
    heavy_tails = paste(fit$heavy_tails$variable, collapse = " "),
    mean_error = max(of_mean), mean_of = ours$variable[which.max(of_mean)],
    sd_error = max(of_sd), sd_of = ours$variable[worst],
    reference_error = stats::sd(sd_by_chains) / sqrt(length(chains)) / sd[[worst]],
    monte_carlo = max(ours$mcse / sd)
  )
}

reference_row <- function(target, chains, job) {
  tried <- try_fit(target, function() smc(target, seed = job$seed))
  errors <- data.frame(
    heavy_tails = "", mean_error = NA_real_, mean_of = "", sd_error = NA_real_, sd_of = "",
    reference_error = NA_real_, monte_carlo = NA_real_
  )
  if (!is.null(tried$fit)) errors <- errors_of(tried$fit, chains)
  cbind(job, tried$row, errors)
}

folder <- commandArgs(TRUE)[1]
options <- paper_options(seeds = "1:2")
references <- with_reference_draws(folder)
references <- references[grepl(options$only, names(references))]
for (problem in names(references)) {
  jobs <- expand.grid(problem = problem, seed = options$seeds, stringsAsFactors = FALSE)
  if (nrow(jobs_to_do(jobs, "reference_draws")) == 0) next
  target <- tryCatch(
    {
      chains <- reference_draws(folder, references[[problem]])
      posteriordb_target(folder, problem)
    },
    error = identity
  )
  if (!inherits(target, "error") && target$dim > largest_d) next
  run_jobs(jobs, "reference_draws", function(job) reference_row(target, chains, job))
}
