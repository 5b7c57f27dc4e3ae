# Many models: their fits, terms of theirs, and draws over all of them.

quick <- list(n_particles = 64, n_steps = 4, rounds = 0)
all_quick <- function(targets, ..., seed = 1) {
  calmly(do.call(smc_all, c(list(targets), quick, list(..., seed = seed))))
}
targets <- list(
  near = normal_target(2, names = c("a", "b")),
  fails = target_function(function(x) stop("no {way}"), 2, gradient = normal_gradient),
  far = target_function(function(x) -sum((x - 1)^2) / 2, 3, gradient = function(x) 1 - x, names = c("b", "c", "d")),
  odd = 3
)
numbers_of <- function(fits) lapply(Filter(is.list, fits[c("near", "far")]), `[`, c("log_z", "particles", "seed"))

test_that("each model has a seed of its own, and what fails stays in its place", {
  fits <- all_quick(targets)
  expect_s3_class(fits, "smc_fits")
  expect_named(fits, names(targets))
  expect_s3_class(fits$fails, "autosmc_error_target")
  expect_s3_class(fits$odd, "autosmc_error_input")
  alone <- calmly(do.call(smc, c(list(targets$far), quick, seed = fits$far$seed)))
  expect_identical(without_time(fits$far), without_time(alone))
  expect_false(fits$near$seed == fits$far$seed)
  # the call of each is one that gives the same fit
  expect_identical(numbers_of(list(far = calmly(eval(fits$far$call))))$far, numbers_of(fits)$far)
  # models at the end change nothing, and a seed of R's generator governs
  expect_identical(numbers_of(all_quick(targets[1])), numbers_of(fits)["near"])
  set.seed(3)
  one <- all_quick(targets, seed = NULL)
  set.seed(3)
  expect_identical(numbers_of(all_quick(targets, seed = NULL)), numbers_of(one))
  expect_output(print(fits), "4 models, 2 failed.*near.*far.*fails: <autosmc_error_target>.*odd: <autosmc_error_input>")
  # arguments of as_target(), and names of what has none
  f <- function(x) -sum(x^2) / 2
  listed <- suppressMessages(smc_all(
    list(f, function(x) -sum(x^2)),
    dim = 2, n_particles = 64, n_steps = 4, rounds = 0, seed = 1
  ))
  expect_named(listed, c("f", "function(x) -sum(x^2)"))
})

test_that("nothing but models may fail", {
  error <- expect_error(all_quick(targets[c("odd", "fails")]), "All models", class = "autosmc_error_target")
  expect_s3_class(error$parent, "autosmc_error")
  expect_bad(smc_all(targets$near), "targets")
  expect_bad(smc_all(list()), "targets")
  expect_error(all_quick(targets, n_particels = 3), class = "autosmc_error_target")
  expect_error(all_quick(targets, 3), class = "autosmc_error_target")
  expect_bad(smc_all(targets, seed = -1), "seed")
})

test_that("workers give the same fits", {
  skip_if_not_installed("future")
  here <- numbers_of(all_quick(targets))
  shift <- 1
  f <- function(x) -sum((x - shift)^2) / 2
  environment(f) <- globalenv() # its variable is sent
  assign("shift", shift, globalenv())
  on.exit(rm("shift", envir = globalenv()))
  old <- future::plan(future::multisession, workers = 2)
  on.exit(future::plan(old), add = TRUE)
  there <- all_quick(c(targets, list(f = target_function(f, 1, gradient = function(x) 1 - x))))
  expect_identical(numbers_of(there), here)
  expect_s3_class(there$f, "smc_fit")
  expect_s3_class(there$fails, "autosmc_error_target")
})

test_that("a call that was cut off goes on", {
  dir <- tempfile("many")
  on.exit(unlink(dir, recursive = TRUE))
  count <- 0
  counted <- c(targets, list(last = target_function(
    function(x) {
      count <<- count + 1
      if (count == 200) stop(structure(class = c("interrupt", "condition"), list(message = "", call = NULL)))
      -sum(x^2) / 2
    }, 2,
    gradient = normal_gradient
  )))
  caught <- tryCatch(all_quick(counted, seed = NULL, checkpoint = dir), interrupt = identity)
  expect_s3_class(caught, "interrupt")
  all <- all_quick(counted, seed = NULL, checkpoint = dir)
  expect_identical(numbers_of(all_quick(counted, seed = NULL, checkpoint = dir)), numbers_of(all))
  unlink(file.path(dir, "model-3", "final-1.smc"))
  expect_identical(numbers_of(all_quick(counted, seed = NULL, checkpoint = dir)), numbers_of(all))
  expect_s3_class(all$last, "smc_fit")
  # another run there is no failure of a model
  expect_error(all_quick(counted, seed = 5, checkpoint = dir), class = "autosmc_error_mismatch")
})

# comparison of many -----------------------------------------------------------

known <- list(
  none = c(log_z = -12.1, std_error = 0.02), age = c(log_z = -9.8, std_error = 0.3),
  sex = c(log_z = -12.9, std_error = 0.02), both = c(log_z = -10.3, std_error = 0.2)
)
formulas <- list(none = y ~ 1, age = y ~ age, sex = y ~ sex, both = log(y) ~ sex * age)

test_that("failed models are left out with a warning, and the others keep the ratios of their prior probabilities", {
  models <- c(known, failed = list(simpleError("no")))
  prior <- c(failed = 0.5, both = 0.1, sex = 0.1, age = 0.2, none = 0.1)
  expect_warning(table <- compare_evidence(models, prior_prob = prior), "failed", class = "autosmc_warning_comparison")
  expect_identical(table$model, names(known))
  expect_equal(table$prior_prob, c(1, 2, 1, 1) / 5)
  expect_equal(table, compare_evidence(known, prior_prob = function(names) ifelse(names == "age", 2, 1)))
  expect_error(suppressWarnings(compare_evidence(models[4:5])), "not 1", class = "autosmc_error_input")
  for (bad in list(
    stats::setNames(prior, letters[1:5]), function(names) stop("no"), function(names) -1, function(names) names,
    function(names) 0 * nchar(names), c(failed = 1, both = 0, sex = 0, age = 0, none = 0)
  )) {
    expect_bad(suppressWarnings(compare_evidence(models, prior_prob = bad)), "prior_prob")
  }
})

test_that("of many models the most probable are shown, and the rest is summed up", {
  many <- lapply(stats::setNames(1:30, paste0("m", 1:30)), function(i) c(log_z = -i / 4, std_error = 0.01))
  table <- compare_evidence(rev(many))
  data <- evidence_data(table)
  shown <- data[data$panel == "posterior probability", ]
  expect_identical(shown$model, c(paste0("m", 1:20), "10 others"))
  expect_equal(sum(shown$value), 1)
  expect_equal(order(shown$at), 21:1)
  expect_output(print(table), "m20.*and 10 more models, of posterior probability 0.006 together")
  expect_no_match(printed_text(table), "m21")
  expect_match(report(table), "for 5 of them: m1 -0.250 (0.010)", fixed = TRUE)
  expect_match(report(table), "the other 25 models is 0.286 together, and 0.063 at most", fixed = TRUE)
  # the Bayes factors are those over the first, whatever the prior probabilities
  turned <- compare_evidence(many, prior_prob = function(names) exp(seq_along(names)))
  expect_match(report(turned), "Bayes factor of m1 over m30 is 7.250", fixed = TRUE)
  pdf(NULL)
  on.exit(dev.off())
  expect_no_error(plot(table))
  skip_if_not_installed("ggplot2")
  expect_no_warning(print(ggplot2::autoplot(table)))
})

# terms ------------------------------------------------------------------------

test_that("probabilities of terms are those of their models, with the errors of numerical differentiation", {
  prior <- c(0.4, 0.3, 0.2, 0.1)
  of <- function(log_z) {
    changed <- Map(function(x, value) replace(x, 1, value), known, log_z)
    inclusion(compare_evidence(changed, prior_prob = prior), formulas)
  }
  log_z <- vapply(known, `[[`, 0, 1)
  errors <- vapply(known, `[[`, 0, 2)
  table <- of(log_z)
  expect_identical(table$term, c("age", "sex", "age:sex"))
  expect_identical(table$n_models, c(2L, 2L, 1L))
  p <- prior * exp(log_z) / sum(prior * exp(log_z))
  has <- rbind(age = c(0, 1, 0, 1), sex = c(0, 0, 1, 1), both = c(0, 0, 0, 1))
  expect_equal(table$prior_prob, c(0.4, 0.3, 0.1))
  expect_equal(table$post_prob, as.vector(has %*% p))
  expect_equal(table$log_bf, qlogis(table$post_prob) - qlogis(table$prior_prob))
  expect_equal(table$bf, exp(table$log_bf))
  for (column in c("post_prob", "log_bf")) {
    slopes <- vapply(1:4, function(j) {
      h <- 1e-5 * (1:4 == j)
      (of(log_z + h)[[column]] - of(log_z - h)[[column]]) / 2e-5
    }, numeric(3))
    expect_equal(table[[paste0(column, "_error")]], as.vector(sqrt(slopes^2 %*% errors^2)), tolerance = 1e-7)
  }
})

test_that("terms are told by matrices, formulas and fits of brms", {
  table <- compare_evidence(known)
  has <- cbind(age = c(FALSE, TRUE, FALSE, TRUE), sex = c(FALSE, FALSE, TRUE, TRUE))
  rownames(has) <- names(known)
  expected <- inclusion(table, has)
  expect_equal(inclusion(table, formulas)[1:2, ], expected)
  expect_equal(inclusion(table, as.data.frame(has)[4:1, ]), expected)
  expect_equal(inclusion(table, unname(formulas)), inclusion(table, formulas))
  expect_equal(inclusion(table, rev(c(formulas, list(another = 3)))), inclusion(table, formulas))
  brms <- lapply(formulas, function(f) {
    structure(list(formula = structure(list(formula = f), class = "brmsformula")), class = "brmsfit")
  })
  brms$both$formula$pforms <- list(sigma = sigma ~ age)
  expect_identical(inclusion(table, brms)$term, c("age", "sex", "age:sex", "sigma: age"))
  # what all have, or none
  certain <- inclusion(table, cbind(all = rep(TRUE, 4), none = FALSE))
  expect_identical(certain$post_prob, c(1, 0))
  expect_identical(certain$post_prob_error, c(0, 0))
  expect_identical(certain$bf, c(NA_real_, NA_real_))
  # evidences whose ratio no double holds
  apart <- compare_evidence(a = c(log_z = 0, std_error = 0), b = c(log_z = -5000, std_error = 0.1))
  expect_equal(inclusion(apart, cbind(x = c(FALSE, TRUE)))$log_bf, -5000)
  for (bad in list(3, has[1:2, ], unname(has), has + 0, formulas[1:3], list(1, 2, 3, 4), list())) {
    expect_bad(inclusion(table, bad), "terms")
  }
  expect_bad(inclusion(table), "terms")
  expect_bad(inclusion(known, has), "comparison")
})

# draws ------------------------------------------------------------------------

test_that("draws over models have their means and a point mass", {
  fits <- all_quick(targets)
  draws <- suppressWarnings(average_draws(fits, c("a", "b", "c"), n_draws = 10000))
  table <- suppressWarnings(compare_evidence(fits))
  expect_named(draws, c(".model", "a", "b", "c"))
  p <- stats::setNames(table$post_prob, table$model)
  expect_equal(mean(draws$.model == "near"), p[["near"]], tolerance = 1e-3)
  expect_identical(draws$a == 0, draws$.model == "far")
  expect_identical(draws$c == 0, draws$.model == "near")
  # as the fits' own weighted means
  means <- lapply(fits[c("near", "far")], coef)
  expected <- c(
    p[["near"]] * means$near[["a"]], p[["near"]] * means$near[["b"]] + p[["far"]] * means$far[["b"]],
    p[["far"]] * means$far[["c"]]
  )
  expect_equal(unname(colMeans(draws[-1])), expected, tolerance = 0.01)
  expect_identical(names(suppressWarnings(average_draws(fits))), c(".model", "b"))
  expect_identical(nrow(suppressWarnings(average_draws(fits, n_draws = 7))), 7L)
  # a prior probability of 0 leaves out a model
  only <- suppressWarnings(average_draws(fits, prior_prob = c(near = 1, far = 0, fails = 0, odd = 0)))
  expect_identical(unique(only$.model), "near")
  expect_bad(suppressWarnings(average_draws(fits, "e")), "variables")
  expect_bad(average_draws(3), "fits")
  expect_bad(average_draws(known), "fits")
  expect_bad(average_draws(fits, n_draws = 0), "n_draws")
})
