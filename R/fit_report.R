# report() and smc_report(): a fit as a paragraph of text, and as an HTML page.

#' A paragraph for a paper
#'
#' `report()` describes a fit as a methods section does: the method and the version of the package, the size of the
#' sampler, the estimate with its error and its method, the diagnostics, variables with heavy tails, the seed and the
#' references. For a comparison it states the models, their Bayes factors and probabilities. `smc_report()` writes a
#' page with the text, the islands and the estimate, the diagnostics, and the posterior.
#'
#' @param fit a fit of [smc()], [smc_adapt()] or [smc_run()]; for `report()` also a result of [compare_evidence()].
#' @param file the HTML file to write (string), which needs the package rmarkdown and pandoc.
#' @return `report()`: the text, a string of class `smc_report`, which prints in lines.
#'   `smc_report()`: the path of the file, invisibly.
#' @section Errors: `autosmc_error_input` when `fit` is not a fit, or the folder of `file` does not exist.
#'   `autosmc_error_package` when rmarkdown or pandoc is not installed.
#' @examples
#' fit <- smc(target_gaussian(2, mean = 1), n_particles = 128, n_steps = 8, seed = 1)
#' report(fit)
#' \donttest{
#' if (requireNamespace("rmarkdown", quietly = TRUE) && rmarkdown::pandoc_available()) {
#'   smc_report(fit, tempfile(fileext = ".html"))
#' }
#' }
#' @export
report <- function(fit) {
  if (!missing(fit) && inherits(fit, "smc_evidence")) {
    return(new_report(report_comparison(fit)))
  }
  check_class(fit, "fit", "smc_fit", "smc()")
  if (is_exact_fit(fit)) {
    return(new_report(sprintf("The model has no parameters. Its log evidence is %s, without error.", fixed(fit$log_z))))
  }
  sentences <- c(
    report_method(fit), report_estimate(fit), report_effects(fit), report_diagnostics(fit),
    describe_heavy(fit$heavy_tails), describe_improper(fit$improper), report_facts(fit)
  )
  paragraph <- gsub("[[:space:]]+", " ", paste(sentences, collapse = " "))
  references <- c(report_reference, if (is_bridged(fit)) bridge_reference)
  new_report(paste(c(paragraph, references), collapse = "\n\n"))
}

new_report <- function(text) structure(text, class = "smc_report")

#' @export
print.smc_report <- function(x, ...) {
  cat(strwrap(x, min(getOption("width"), 80)), sep = "\n")
  invisible(x)
}

#' @rdname report
#' @export
smc_report <- function(fit, file) {
  check_class(fit, "fit", "smc_fit", "smc()")
  check_has_runs(fit)
  file <- check_string(file, "file")
  folder <- dirname(file)
  if (!dir.exists(folder)) {
    abort("{.arg file} must be in a folder that exists; there is no {.file {folder}}.")
  }
  check_installed("rmarkdown", "to write a page")
  if (!rmarkdown::pandoc_available()) {
    abort("pandoc is needed to write a page: see {.url https://pandoc.org}.", "package")
  }
  folder <- tempfile("report")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  file.copy(system.file("report.Rmd", package = "autosmc"), folder)
  rmarkdown::render(
    file.path(folder, "report.Rmd"),
    output_file = "report.html", quiet = TRUE,
    envir = list2env(list(fit = fit, tables = report_tables(fit)), parent = globalenv())
  )
  file.copy(file.path(folder, "report.html"), file, overwrite = TRUE)
  invisible(file)
}

# The tables of the page, as text with the digits of print().
report_tables <- function(fit) {
  shown <- seq_len(min(ncol(fit$particles), most_printed))
  n_more <- ncol(fit$particles) - length(shown)
  diagnostics <- fit$diagnostics
  list(
    variables = format_variables(variables_table(fit, shown), with_mcse = TRUE),
    more = if (n_more > 0) sprintf("There are %s more: `summary(fit)$variables` has all.", count(n_more)) else "",
    diagnostics = if (NROW(diagnostics) > 0) {
      data.frame(
        diagnostic = plain_names(diagnostics$name), value = formatC(diagnostics$value, digits = 2, format = "g"),
        limit = formatC(diagnostics$limit, digits = 2, format = "g"), passed = ifelse(diagnostics$passed, "yes", "no")
      )
    }
  )
}

# the sentences ---------------------------------------------------------------

# The largest number of models that are named; of more models, the most probable ones are.
most_reported <- 5

report_comparison <- function(compared) {
  n <- nrow(compared)
  ranked <- if (n > most_reported) most_probable(compared, most_reported) else list(first = compared)
  shown <- ranked$first
  text <- format(shown)
  best <- which.max(shown$log_z)
  names(text)[c(3, 5, 7)] <- c("log_z_error", "log_bf_error", "post_prob_error")
  others <- setdiff(seq_len(nrow(text)), best)
  evidence <- sprintf("%s (%s)", text$log_z, text$log_z_error)
  log_bf <- sub("^-", "", text$log_bf)
  factors <- sprintf("%s over %s is %s (%s)", text$model[best], text$model, log_bf, text$log_bf_error)
  has_equal <- length(unique(compared$prior_prob)) == 1
  prior_prob <- signif(shown$prior_prob, 3)
  paste(c(
    sprintf(
      "%d models were compared by their log evidence, here with its standard error%s:", n,
      if (n > most_reported) sprintf(" for %d of them", most_reported) else ""
    ),
    paste0(paste(text$model, evidence, collapse = ", "), "."),
    sprintf("The log Bayes factor of %s.", paste(factors[others], collapse = ", of ")),
    sprintf(
      "With %s the posterior probability of %s.",
      if (has_equal) "equal prior probabilities" else paste("the prior probabilities", toString(prior_prob)),
      paste(text$model, "is", text$post_prob, collapse = ", that of ")
    ),
    if (n > most_reported) {
      p <- format_probability(c(sum(ranked$rest$post_prob), max(ranked$rest$post_prob)))
      others <- count_of(n - most_reported, "model")
      sprintf("That of the other %s is %s together, and %s at most for each.", others, p[1], p[2])
    },
    attr(compared, "problems")
  ), collapse = " ")
}

report_reference <- paste(
  "Kim, K., Xu, Z., Gardner, J. R. and Campbell, T. (2025). Tuning sequential Monte Carlo",
  "samplers via greedy incremental divergence minimization. Proceedings of the 42nd",
  "International Conference on Machine Learning."
)

bridge_reference <- paste(
  "Meng, X.-L. and Wong, W. H. (1996). Simulating ratios of normalizing constants via a",
  "simple identity: a theoretical exploration. Statistica Sinica 6, 831-860."
)

kernels_in_words <- c(
  klmc = "the kinetic Langevin kernel",
  lmc = "the unadjusted Langevin kernel",
  mala = "the Metropolis-adjusted Langevin kernel",
  rwmh = "the random walk Metropolis kernel",
  pcn = "the preconditioned Crank-Nicolson kernel",
  hmc = "the kernel of Hamiltonian Monte Carlo"
)

report_method <- function(fit) {
  last <- last_run(fit)
  sprintf(
    "The log evidence and the posterior distribution of %s were obtained by %s sequential Monte Carlo (Kim et al.,
      2025), as implemented in the R package autosmc %s (R %s). In each run, %s particles moved from a reference
      distribution to the posterior distribution in %s of %s.",
    if (fit$target$dim == 1) "one parameter" else sprintf("%d parameters", fit$target$dim),
    if (any(fit$runs$run == "adapt")) "self-tuning annealed" else "annealed",
    fit$session$autosmc, fit$session$r, count(last$n_particles), count_of(last$n_steps, "step"),
    kernels_in_words[[fit$kernel$name]]
  )
}

report_estimate <- function(fit) {
  last <- last_run(fit)
  decimals <- decimals_of_error(fit$std_error)
  number <- function(x) fixed(x, decimals)
  evidence <- if (is_laplace(fit)) "Laplace's approximation of the log evidence" else "the log evidence"
  if (last$biased) {
    return(sprintf("The estimate, %s, comes from a run that also tuned the sampler, and is biased.", number(fit$log_z)))
  }
  if (is.na(fit$std_error)) {
    said <- "The estimate of %s, from one run, is %s; its error is not known."
    return(sprintf(said, evidence, number(fit$log_z)))
  }
  sprintf(
    "From %d independent runs, %s is estimated as %s (standard error %s%s; 95%%
      interval %s to %s) %s. Their %s have an effective sample size of about %s.",
    last$islands, evidence, number(fit$log_z), number(fit$std_error),
    if (has_shift(fit)) {
      sprintf(", which includes a shift found by a diagnostic; Monte Carlo error %s", number(fit$sampling_error))
    } else {
      ""
    },
    number(fit$conf_low), number(fit$conf_high), report_way(fit), draws_in_words(fit), count(signif(ess_mean(fit), 2))
  )
}

# The number of draws of the fit, or of those from which its moments were computed.
draws_in_words <- function(fit) {
  if (is.null(fit$moments)) {
    paste(count(nrow(fit$particles)), "weighted draws")
  } else {
    paste(count(nrow(fit$moments$means) * last_run(fit)$n_particles), "draws, of which the moments are kept,")
  }
}

# The method of the estimate, SMC or bridge sampling.
report_way <- function(fit) {
  if (!is_bridged(fit)) {
    return("by the mean of the unbiased estimates of the runs")
  }
  by_smc <- fit$estimates[fit$estimates$method == "smc", ]
  decimals <- decimals_of_error(by_smc$std_error)
  sprintf(
    "by bridge sampling (Meng and Wong, 1996) between the draws of one half of the runs and a
      distribution fitted to the draws of the other half, and vice versa. The mean of the
      unbiased estimates of the runs gives %s (standard error %s)",
    fixed(by_smc$log_z, decimals), fixed(by_smc$std_error, decimals)
  )
}

report_effects <- function(fit) {
  if (is_laplace(fit)) {
    said <- "Random effects were integrated out by %s: the standard error and the interval do not include it."
    sprintf(said, describe_effects(fit))
  } else if (is.list(fit$laplace)) {
    sprintf("Random effects were integrated out: %s.", describe_effects(fit))
  }
}

report_diagnostics <- function(fit) {
  n <- NROW(fit$diagnostics)
  findings <- what_failed(fit$diagnostics)
  if (n == 0) {
    "No diagnostics were computed."
  } else if (length(findings) > 0) {
    paste0(sprintf("Of %d diagnostics %d failed: ", n, length(findings)), paste(findings, collapse = " "))
  } else {
    sprintf("All diagnostics passed (%s).", toString(gsub("_", " ", fit$diagnostics$name)))
  }
}

report_facts <- function(fit) {
  sprintf(
    "The log density was evaluated %s times%s%s; the seed was %s.", count(sum(fit$runs$n_target_evals)),
    toString(say_calls(fit$runs)),
    if (is.list(fit$laplace)) ", with random effects integrated out" else "", format(fit$seed, digits = 15)
  )
}
