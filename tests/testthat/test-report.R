# A fit in words, and as a page.

fit <- calmly(smc(target_gaussian(2, mean = 1),
  n_particles = 64, n_steps = 6, kernel = "klmc", rounds = 1, islands = 4, seed = 7
))
fit$diagnostics$passed <- TRUE
# with an error that takes three decimals
fit[c("log_z", "std_error", "sampling_error", "conf_low", "conf_high")] <- list(-3.25, 0.02, 0.02, -3.29, -3.21)

test_that("the text has the numbers of the fit", {
  text <- report(fit)
  expect_s3_class(text, "smc_report")
  expect_length(text, 1)
  last <- fit$runs[nrow(fit$runs), ]
  expected <- c(
    "posterior distribution of 2 parameters", "self-tuning", "Kim et al., 2025",
    paste("R package autosmc", packageVersion("autosmc")),
    "64 particles", sprintf("in %d step%s of the kinetic Langevin kernel", last$n_steps, if (last$n_steps > 1) "s" else ""),
    sprintf("4 independent runs, the log evidence is estimated as %.3f", fit$log_z),
    sprintf("standard error %.3f; 95%% interval %.3f to %.3f", fit$std_error, fit$conf_low,
      fit$conf_high),
    "256 weighted draws", "All diagnostics passed (", "the seed was 7",
    paste("evaluated", format(sum(fit$runs$n_target_evals), big.mark = ",")),
    "Tuning sequential Monte Carlo samplers via greedy incremental"
  )
  for (words in expected) expect_match(unclass(text), words, fixed = TRUE)
  printed <- capture.output(shown <- withVisible(print(text)))
  expect_lte(max(nchar(printed)), 80)
  expect_false(shown$visible)
})

test_that("one step is one step", {
  fit$runs$n_steps <- 1L
  expect_match(unclass(report(fit)), "in 1 step of the kinetic Langevin kernel", fixed = TRUE)
  expect_output(print(fit), "64 particles, 1 step, 4 islands", fixed = TRUE)
})

test_that("it names the method of the estimate, and gives its source", {
  fit$reference$fitted_to <- NULL # not known to be the target itself
  fit$estimates$std_error <- c(smc = 1, bridge = 0.5)
  by_bridge <- report(fit)
  expect_match(by_bridge, "by bridge sampling (Meng and Wong, 1996)", fixed = TRUE)
  expect_match(by_bridge, "Meng, X.-L. and Wong, W. H. (1996)", fixed = TRUE)
  by_smc <- sprintf("%.3f (standard error 1.000)", fit$estimates$log_z[1])
  expect_match(by_bridge, by_smc, fixed = TRUE)
  expect_output(print(fit), "log Z: .* \\(bridge\\)\ninterval: ")

  fit$estimates$std_error <- c(smc = 0.5, bridge = 1)
  by_smc <- report(fit)
  expect_match(by_smc, "by the mean of the unbiased estimates of the runs", fixed = TRUE)
  expect_no_match(by_smc, "Meng", fixed = TRUE)
  expect_output(print(fit), "log Z: [^()\n]*\ninterval: [-0-9.]+ to [-0-9.]+ ")
})

test_that("it says what is wrong, or not known", {
  doubtful <- fit
  doubtful$diagnostics$passed[2] <- FALSE
  doubtful$diagnostics$says[2] <- "One of the islands is alone."
  expect_match(report(doubtful), "1 failed: One of the islands is alone.", fixed = TRUE)
  adapted <- smc_adapt(target_gaussian(1), n_particles = 16, n_steps = 2, seed = 1)
  expect_match(report(adapted), "distribution of one parameter .* is biased")
  expect_match(report(adapted), "No diagnostics were computed", fixed = TRUE)
  alone <- smc_run(target_gaussian(2), data.frame(lambda = 1, step_size = 0.5),
    kernel = "mala", n_particles = 16
  )
  expect_match(report(alone), "from one run, .* its error is not known")
  expect_match(report(alone), "obtained by annealed .* the Metropolis-adjusted Langevin kernel")
  expect_bad(report(3), "fit")
})

test_that("a page has the text, the tables and the pictures", {
  expect_bad(smc_report(fit), "file")
  expect_bad(smc_report(fit, 3), "file")
  expect_bad(smc_report(3, "a.html"), "fit")
  expect_bad(smc_report(fit, file.path(tempfile("no"), "a.html")), "file")
  skip_if_not_installed("rmarkdown")
  skip_if_not(rmarkdown::pandoc_available(), "pandoc")
  file <- tempfile(fileext = ".html")
  on.exit(unlink(file))
  written <- withVisible(smc_report(fit, file))
  expect_identical(written$value, file)
  expect_false(written$visible)
  page <- paste(readLines(file, warn = FALSE), collapse = " ")
  # the answer first
  words <- c("Fit of Gaussian", "the log evidence is estimated", "<img", ">mcse<", "id=\"diagnostics\"", "smc(target")
  at <- vapply(words, function(word) regexpr(word, sub(".*<body>", "", page), fixed = TRUE), 0L)
  expect_false(is.unsorted(at, strictly = TRUE))
  expect_gt(at[1], 0)
  expect_length(gregexpr("<img src=\"data:image/png", page)[[1]], 1)
  expect_no_match(page, ">-?0.000<")
})

test_that("a page has some of very many variables", {
  fit$particles <- cbind(fit$particles, matrix(fit$particles[, 1], nrow(fit$particles), 30))
  colnames(fit$particles) <- paste0("x", 1:32)
  tables <- internal("report_tables")(fit)
  expect_identical(tables$variables$variable, paste0("x", 1:20))
  expect_match(tables$more, "12 more: `summary(fit)$variables` has all", fixed = TRUE)
  expect_output(print(fit), "and 26 more: summary(fit)$variables has all", fixed = TRUE)
  expect_output(print(summary(fit)), "and 12 more: summary(fit)$variables has all", fixed = TRUE)
  expect_identical(nrow(summary(fit)$variables), 32L)
})

test_that("digits are those of errors", {
  expect_output(print(fit), "log Z: +-3.250, standard error 0.020 ")
  expect_output(print(fit, digits = 1), "log Z: +-3.25, standard error 0.02 ")
  expect_output(print(summary(fit), digits = 3), "log Z: +-3.2500, standard error 0.0200 ")
  expect_bad(print(fit, digits = 0), "digits")
})

test_that("a comparison is a paragraph, and a table of knitr", {
  compared <- compare_evidence(
    one = c(log_z = -3.25, std_error = 0.02), other = c(log_z = -5.5, std_error = 0.03),
    third = c(log_z = -4, std_error = 0)
  )
  text <- report(compared)
  expect_s3_class(text, "smc_report")
  for (words in c(
    "3 models were compared", "one -3.250 (0.020), other -5.500 (0.030), third -4.000 (0)",
    "one over other is 2.250 (0.036), of one over third is 0.750 (0.020)", "With equal prior probabilities",
    "of one is 0.63"
  )) {
    expect_match(text, words, fixed = TRUE)
  }
  expect_output(print(compared, digits = 1), "-3.25 ", fixed = TRUE)
  known <- lapply(c(a = 0, b = 1), function(log_z) c(log_z = log_z, std_error = 0.1))
  expect_match(report(compare_evidence(known, prior_prob = c(0.2, 0.8))), "prior probabilities 0.2, 0.8", fixed = TRUE)
  skip_if_not_installed("knitr")
  table <- knitr::kable(format(compared))
  expect_match(paste(table, collapse = "\n"), "|one ", fixed = TRUE)
  expect_identical(ncol(format(compared)), 7L)
  expect_match(paste(knitr::knit_print(compared), collapse = "\n"), "|one ", fixed = TRUE)
})
