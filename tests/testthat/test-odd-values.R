# Arguments of values that they were not made for: each call returns, or ends in an error of the package's own.

small <- target_gaussian(2, mean = 1)
quick <- list(n_particles = 16, seed = 1)
scarce <- c(quick, list(n_steps = 3, rounds = 0, whiten = FALSE, scout = FALSE))
fit <- calmly(do.call(smc, c(list(small, islands = 2), scarce)))
curve <- calmly(do.call(evidence_curve, c(list(function(sd) target_gaussian(2, sd = sd), 1:2), scarce)))
log_density <- function(x) -sum(x^2) / 2

odd_values <- list(
  null = NULL, na = NA, not_a_number = NaN, na_string = NA_character_, infinite = Inf, minus_infinite = -Inf,
  negative = -1, zero = 0, tiny = 5e-324, half = 0.5, above_integers = 2^31, huge = 1e308, true = TRUE,
  flags = c(TRUE, NA), empty_string = "", string = "odd", template = "{stop('run')}", not_utf8 = "n\xff\xfe",
  strings = c(a = "a", "b"), no_numbers = numeric(), no_strings = character(), numbers = c(3, NA, -Inf),
  same_names = c(x1 = 1, x1 = 2), integers = 1:3, complex = 1i, bytes = as.raw(1), matrix = matrix(0.5, 2, 2),
  array = array(1, c(1, 2, 2)), list = list(), nested = list(a = list(1, "b"), NULL),
  settings = list(lambda = 1, step_size = "a"), table = data.frame(),
  columns = data.frame(lambda = c(0.5, 1), step_size = c(NA, -1)), factor = factor("a"),
  date = as.Date("2020-01-01"), version = numeric_version("1.2"), symbol = quote(a), call = quote(f(x)),
  formula = y ~ x, environment = new.env(), identity = function(x) x, constant = function(...) 1,
  text = function(...) "a", nothing = function() NULL, fails = function(...) stop("no"), primitive = sum,
  classed = structure(1, class = "odd"), target = small, fit = fit, reference = reference_gaussian(),
  kernel = kernel_rwmh()
)

# Calls that return soon. Each of their arguments is left out, and made odd, in turn.
of_targets <- list(gradient = NULL, vectorized = FALSE, names = NULL, lower = -Inf, upper = Inf)
of_runs <- list(
  kernel = NULL, reference = reference_gaussian(), resampling = "ssp", ess_threshold = 0.5, checkpoint = NULL,
  progress = FALSE
)
of_islands <- list(islands = 2, precision = NULL, max_islands = 4, keep = "draws")
adapting <- list(max_steps = 64, schedule = schedule_power(3), tuner = tuner_kl())
given <- data.frame(lambda = c(0.5, 1), step_size = 0.5, refresh_rate = 0.5)
calls <- list(
  smc = c(
    list(target = small), scarce, of_runs, of_islands, adapting,
    list(step_fraction = 0.75, max_evals = Inf, draws = NULL)
  ),
  smc_adapt = c(list(target = small), scarce, of_runs, adapting),
  smc_run = c(list(target = small, schedule = given), quick, of_runs, of_islands),
  smc_extend = list(
    fit = fit, islands = 3, precision = NULL, max_islands = 4, keep = NULL, checkpoint = NULL, progress = FALSE
  ),
  smc_islands = list(fit = fit, which = 3, progress = FALSE),
  smc_combine = list(fit = fit, islands = smc_islands(fit, 3)),
  smc_replicate = list(fit = fit, n = 2, seed = 1),
  smc_all = c(list(targets = list(small, small), checkpoint = NULL, progress = FALSE), scarce),
  smc_scout = list(target = small, n_starts = 2, seed = 1),
  check_gradient = list(target = small, x = c(0, 1), seed = 1),
  constrain = list(target = small, u = c(0, 1)),
  unconstrain = list(target = small, x = c(0, 1)),
  as_target = c(list(x = log_density, dim = 2), of_targets),
  target_function = c(list(log_density = log_density, dim = 2), of_targets),
  target_posterior = c(list(log_likelihood = log_density, log_prior = log_density, dim = 2), of_targets),
  target_rtmb = list(
    log_density = function(p) -sum(p$x^2) / 2, parameters = list(x = c(0, 1)), lower = -Inf, upper = Inf, data = NULL
  ),
  target_native = list(
    log_density = "none", dll = "none", dim = 2, init = NULL, data = NULL, names = NULL, lower = 0, upper = 1,
    thread_safe = FALSE
  ),
  target_bridgestan = list(library = "none", data = "{}", include = NULL, seed = 1),
  target_gaussian = list(dim = 2, mean = 0, sd = 1),
  target_funnel = list(dim = 3),
  target_pines = list(side = 2),
  kernel_klmc = list(step_size = NULL, refresh_rate = NULL, refresh_grid = c(0.1, 0.9)),
  kernel_lmc = list(step_size = NULL, backward = "forward", first_backward = "reference"),
  kernel_mala = list(step_size = NULL, objective = "esjd", target_acceptance = 0.5, n_moves = 1),
  kernel_rwmh = list(step_size = NULL, objective = "esjd", target_acceptance = 0.2, n_moves = 1),
  kernel_pcn = list(step_size = NULL, objective = "esjd", target_acceptance = 0.2, n_moves = 1),
  kernel_hmc = list(step_size = NULL, refresh_rate = 0.5, objective = "esjd", target_acceptance = 0.2, n_moves = 1),
  tuner_kl = list(
    n_subsample = 8, search = "golden", regularization = NULL, tolerance = NULL, bracket = NULL, backoff = NULL,
    step_size_guess = NULL, step_size_anchor = NULL
  ),
  schedule_power = list(n_steps = 3, power = 2),
  schedule_adaptive = list(ess = 0.5, max_steps = 10),
  schedule_barrier = list(fit = fit, n_steps = NULL, max_steps = 64),
  reference_gaussian = list(mean = 0, sd = NULL, cov = diag(2), chol = NULL),
  reference_student = list(df = 3, mean = 0, sd = 1, cov = NULL),
  reference_laplace = list(target = small, start = c(0, 1), inflate = 1.5),
  reference_function = list(
    sample = function(n) matrix(0, n, 2), log_density = log_density, gradient = NULL, vectorized = FALSE
  ),
  compare_evidence = list(a = fit, b = fit, prior_prob = c(0.5, 0.5), model_names = c("a", "b")),
  check_evidence = list(
    models = rep(list(list(simulate = function() 1, target = function(y) c(log_z = y, std_error = 0))), 2),
    prior_prob = NULL, n = 2, seed = 1, checkpoint = NULL, progress = FALSE
  ),
  inclusion = list(
    comparison = compare_evidence(a = c(log_z = 0, std_error = 0), b = c(log_z = 1, std_error = 0)),
    terms = list(y ~ x, y ~ 1)
  ),
  average_draws = list(fits = list(a = fit, b = fit), variables = NULL, prior_prob = c(0.5, 0.5), n_draws = 10),
  log_evidence = list(object = fit),
  restrict = list(fit = fit, rep(c(TRUE, FALSE), 16), prior = 0.5),
  savage_dickey = list(fit = fit, x1 = 0, prior_density = 1, seed = 1, progress = FALSE),
  evidence_curve = c(
    list(target = function(sd) target_gaussian(2, sd = sd), values = 1:2, against = -1, used = 1), scarce
  ),
  refine_curve = list(curve = curve, n = 1, values = 3),
  smc_append = c(list(fit = fit, target = small), replace(scarce, "seed", 2)),
  report = list(fit = fit),
  as_brmsfit = list(fit = fit)
)

# The same of methods, which come after a fit.
methods <- list(
  tidy = list(what = "parameters", conf.int = TRUE, conf.level = 0.9),
  glance = list(odd = 1),
  augment = list(odd = 1),
  summary = list(odd = 1),
  print = list(schedule = FALSE),
  predict = list(newdata = 1, fun = function(draw, data) draw[1], summary = TRUE, conf.level = 0.9),
  plot = list(what = "run", variables = NULL),
  pairs = list(variables = NULL),
  coef = list(odd = 1),
  confint = list(parm = 1, level = 0.9),
  as.data.frame = list(row.names = NULL, optional = FALSE, stringsAsFactors = FALSE),
  as.array = list(odd = 1),
  update = list(islands = 3)
)

# A table of these calls: the function, its argument, and the value of that; "left out" for none.
calls_of <- function(calls) {
  rows <- lapply(names(calls), function(name) {
    expand.grid(
      value = c("left out", names(odd_values)), arg = names(calls[[name]]), name = name, stringsAsFactors = FALSE
    )
  })
  do.call(rbind, rows)
}
odd_calls <- rbind(cbind(calls_of(calls), is_method = FALSE), cbind(calls_of(methods), is_method = TRUE))

call_oddly <- function(name, arg, value, is_method) {
  arguments <- if (is_method) c(list(fit), methods[[name]]) else calls[[name]]
  arguments[arg] <- odd_values[value] # NULL, where it is left out
  if (value == "left out") arguments[[arg]] <- NULL
  catch(utils::capture.output(suppressWarnings(suppressMessages(
    do.call(get(name), arguments, quote = TRUE)
  ))))
}

# Every nineteenth of all, which are thousands: of each argument other values, since nineteen has no common divisor
# with their number.
odd_calls <- odd_calls[seq(1, nrow(odd_calls), by = 19), ]

test_that("each exported function is called", {
  exported <- mget(getNamespaceExports("autosmc"), asNamespace("autosmc"), inherits = TRUE)
  takes_arguments <- vapply(exported, function(f) length(formals(f)) > 0, NA)
  # these compile, write a page, and delete files
  slow <- c("target_stan", "smc_report", "stan_cache")
  expect_setequal(names(exported)[takes_arguments], c(names(calls), "tidy", "glance", "augment", slow))
})

test_that("500 calls with odd values end in a value, or in an error of the package", {
  folder <- tempfile("odd-")
  dir.create(folder)
  here <- setwd(folder)
  pdf(NULL)
  on.exit({
    dev.off()
    setwd(here)
    unlink(folder, recursive = TRUE)
  })
  ended <- do.call(Map, c(call_oddly, odd_calls))
  expect_gte(length(ended), 500)
  is_wrong <- vapply(ended, function(x) inherits(x, "error") && !inherits(x, "autosmc_error"), NA)
  titles <- with(odd_calls, sprintf("%s(%s = %s)", name, arg, value))
  said <- vapply(ended[is_wrong], conditionMessage, "")
  expect_identical(paste(titles[is_wrong], said, sep = ": "), character())
})
