# What target_stan() does before a program is compiled.

test_that("a program and its data are checked before anything is compiled", {
  expect_bad(target_stan(), "model")
  expect_bad(target_stan(7), "model")
  expect_bad(target_stan("no_such_file.stan"), "model")
  expect_bad(target_stan(tempdir()), "model")
  expect_bad(target_stan("parameters {}", list(1)), "data")
  expect_bad(target_stan("parameters {}", 1:3), "data")
  expect_match(message_of(catch(target_stan("parameters {}", c("N", "y")))), 'mget(c("N", "y"))', fixed = TRUE)
  expect_bad(target_stan("parameters {}", "no_such_file.json"), "data")
  expect_bad(target_stan("parameters {}", tempdir()), "data")
  unnamed <- catch(target_stan("parameters {}", list(a = 1, 2)))
  expect_match(message_of(unnamed), "a name for every element.*not a list")
  expect_bad(target_stan("parameters {}", list(a = 1, a = 2)), "data")
  # data that no program of this type takes, by what it declares
  program <- "data {
      int<lower=1> N; // of y
      vector[N] y; array[N] int<lower=0, upper=1> g; int h[N];
    } transformed data { real q; } parameters {}"
  given <- list(N = 2, y = 1:2, g = 0:1)
  declared <- function(...) message_of(catch(target_stan(program, utils::modifyList(given, list(...)))))
  expect_match(declared(N = NULL), "`N` is missing; the program declares a whole number", fixed = TRUE)
  expect_match(declared(y = c("{a}", "b")), "`y` must be numbers, not a character vector", fixed = TRUE)
  expect_match(declared(g = factor(0:1)), "`g` must be numbers.*as.integer")
  expect_match(declared(h = c(1, NA)), "`h` has missing values", fixed = TRUE)
  expect_bad(target_stan("parameters {}", seed = "x"), "seed")
  expect_bad(stan_cache(clear = NA), "clear")
})

test_that("data become plain numbers, or a complaint", {
  values <- stan_values(list(
    a = 1:3, b = TRUE, c = matrix(1:6, 2), d = "x", e = c(1, NA), f = NULL,
    g = data.frame(u = 1:2, v = 3:4), h = factor("x"), i = numeric()
  ))
  expect_identical(values$a, c(1, 2, 3))
  expect_identical(values$b, 1)
  expect_identical(values$c, matrix(c(1, 2, 3, 4, 5, 6), 2))
  expect_match(values$d, "must be numbers, not \"x\"")
  expect_match(values$e, "missing values")
  expect_null(values$f)
  expect_identical(values$g, matrix(c(1, 2, 3, 4), 2))
  expect_match(values$h, "must be numbers, not an object of class factor. as.integer()", fixed = TRUE)
  expect_match(stan_value(as.difftime(2, units = "mins")), 'as.numeric(x, units = "mins")', fixed = TRUE)
  expect_identical(values$i, numeric())
  expect_identical(stan_value(factor()), numeric())
  expect_identical(stan_value(1 + 2i), array(c(1, 2), 2))
  expect_identical(stan_value(c(1 + 2i, 3i)), rbind(c(1, 2), c(0, 3)))
  expect_identical(dim(stan_value(matrix(1i, 2, 3))), c(2L, 3L, 2L))
})

# 64 bits of the package bit64 for each number, which R has as those of doubles.
as_integer64 <- function(x, dim = NULL) {
  halves <- rbind(x %% 2^32, floor(x / 2^32))
  # of -2^31 these are the bits of NA
  words <- suppressWarnings(as.integer(ifelse(halves >= 2^31, halves - 2^32, halves)))
  bits <- readBin(writeBin(words, raw(), endian = "little"), "double", length(x), endian = "little")
  structure(bits, class = "integer64", dim = dim)
}

test_that("data are what they are for rstan", {
  numbers <- c(0, 7, -1, 2^31, -2^31 + 1, 2^40 + 3, -2^53)
  expect_identical(stan_value(as_integer64(numbers)), numbers)
  expect_identical(stan_value(as_integer64(1:6, c(2, 3))), matrix(c(1, 2, 3, 4, 5, 6), 2))
  expect_match(stan_value(structure(-0, class = "integer64")), "missing values") # NA
  table <- data.frame(n = 1:2, f = factor(c("b", "a")), l = c(TRUE, FALSE))
  table$long <- as_integer64(c(5, -6))
  expect_identical(stan_value(table), cbind(c(1, 2), c(2, 1), c(1, 0), c(5, -6)))
  expect_identical(stan_value(list(as_integer64(1:2), as_integer64(3:4))), matrix(c(1, 3, 2, 4), 2))
  expect_identical(stan_values(list2env(list(N = 2L))), list(N = 2))
  where <- environment()
  setClass("nanotime", contains = "numeric", where = where)
  on.exit(removeClass("nanotime", where = where))
  expect_match(stan_value(methods::new("nanotime", 1)), "must be numbers")
})

test_that("a list of arrays is an array of one dimension more", {
  expect_identical(stan_value(list(1:2, 3:4)), matrix(c(1, 3, 2, 4), 2))
  expect_identical(stan_value(list(1, 2, 3)), c(1, 2, 3))
  matrices <- list(matrix(1:6, 2), matrix(7:12, 2))
  stacked <- stan_value(matrices)
  expect_identical(dim(stacked), c(2L, 2L, 3L))
  expect_equal(stacked[2, 1, 3], matrices[[2]][1, 3])
  nested <- stan_value(list(list(1:2, 3:4), list(5:6, 7:8), list(9:10, 11:12)))
  expect_identical(dim(nested), c(3L, 2L, 2L))
  expect_equal(nested[3, 1, 2], 10)
  expect_match(stan_value(list(1:2, 1:3)), "a list of equal arrays")
})

test_that("data are read from JSON", {
  skip_if_not_installed("jsonlite")
  file <- tempfile(fileext = ".json")
  on.exit(unlink(file))
  writeLines('{"N": 2, "y": [1.5, -2], "X": [[1, 2, 3], [4, 5, 6]]}', file)
  values <- stan_values(file)
  expect_identical(values$N, 2)
  expect_identical(values$y, c(1.5, -2))
  expect_identical(values$X, matrix(c(1, 4, 2, 5, 3, 6), 2))
  writeLines("{", file)
  expect_bad(stan_values(file), "data")
})

test_that("data are read from JSON as CmdStan writes it", {
  skip_if_not_installed("jsonlite")
  file <- tempfile(fileext = ".json")
  on.exit(unlink(file))
  writeLines('{"a": [0.12345678901234567, "NaN", "-Inf"], "b": "+Infinity", "c": [[1, Infinity], [3, 4]], "d": ["x"],
    "t": {"1": 3, "2": {"1": [0.5, 1], "2": 2}}, "u": [{"1": 1, "2": [1, 2]}, {"1": 2, "2": [3, 4]}]}', file)
  values <- stan_values(file)
  expect_identical(values$a, c(0.12345678901234567, NaN, -Inf))
  expect_identical(values$b, Inf)
  expect_identical(values$c, matrix(c(1, 3, Inf, 4), 2))
  expect_match(values$d, "must be numbers")
  expect_identical(values[c("t.1", "t.2.1", "t.2.2")], list(t.1 = 3, t.2.1 = c(0.5, 1), t.2.2 = 2))
  expect_identical(values[c("u.1", "u.2")], list(u.1 = c(1, 2), u.2 = matrix(c(1, 3, 2, 4), 2)))
  for (json in c("[1, 2]", "3")) {
    writeLines(json, file)
    expect_bad(stan_values(file), "data")
  }
})

test_that("texts are read whole, and a path may have a brace", {
  folder <- file.path(tempfile(), "{models}")
  dir.create(folder, recursive = TRUE)
  on.exit(unlink(dirname(folder), recursive = TRUE))
  file <- file.path(folder, "a.stan")
  text <- "parameters {\n  real x; // \u00e9\n}"
  written <- charToRaw(paste0("\ufeff", gsub("\n", "\r\n", text), "\r\n"))
  writeBin(written, file)
  program <- read_stan_program(file)
  expect_identical(program$code, text)
  expect_identical(program$name, "a")
  expect_identical(read_stan_program(paste0("\ufeff", text))$code, text)
  expect_bad(read_stan_program(file.path(folder, "b.stan")), "model")
  writeBin(c(written, as.raw(0), charToRaw("model { }")), file)
  expect_error(read_stan_program(file), "a.stan.* contains NUL characters", class = "autosmc_error_input")
  dir.create(file.path(folder, "c.stan"))
  writeLines(c("#include c.stan", text), file)
  expect_identical(read_stan_program(file)$includes, list())
  long <- paste0("parameters { ", strrep("real x; ", 10000), "}")
  expect_identical(read_stan_program(long)$code, long)
})

test_that("included files are found, also those that they include", {
  folder <- tempfile()
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  write <- function(name, ...) writeLines(c(...), file.path(folder, name))
  write("a.stan", "#include b.stan", "  #include <c.stan> // why", "#include not_there.stan")
  write("b.stan", "b")
  write("c.stan", "c", "#include \"b.stan\"")
  program <- read_stan_program(file.path(folder, "a.stan"))
  expect_identical(program$name, "a")
  expect_identical(program$includes, list(b.stan = "b", c.stan = "c\n#include \"b.stan\""))
})

test_that("names of outputs are R's", {
  expect_identical(
    bracketed(c("mu", "beta.1", "Sigma.2.1")),
    c("mu", "beta[1]", "Sigma[2,1]")
  )
})

test_that("`include` selects columns, and the blocks that they take", {
  described <- list(
    outputs = c("a", "b.1", "b.2", "t", "g.1", "g.2"),
    n_parameters = 3, n_transformed = 1
  )
  asked <- function(include) {
    columns <- select_columns(described, include)
    c(list(names = columns$names[columns$which]), blocks_wanted(columns, columns$which))
  }
  all <- asked(NULL)
  expect_identical(all$names, c("a", "b[1]", "b[2]", "t", "g[1]", "g[2]"))
  expect_identical(all$blocks, c(TRUE, TRUE))
  expect_identical(asked("b")$which, 2:3)
  expect_identical(asked("b")$blocks, c(FALSE, FALSE))
  generated <- asked(c("g", "a"))
  expect_identical(generated$names, c("a", "g[1]", "g[2]"))
  expect_identical(generated$which, c(1L, 4L, 5L))
  expect_identical(generated$blocks, c(FALSE, TRUE))
  expect_bad(select_columns(described, "c"), "include")
  expect_bad(select_columns(described, 1), "include")
})

# As the library of a program with two parameters would answer: `twice` is a transformed parameter, and all elements of
# what is generated are `mu`.
program_with_late <- function(include = NULL, n = 150) {
  described <- list(
    outputs = c("mu", "sigma", "twice", "early.1", "early.2", paste0("late.", 1:n), paste0("log_lik.", 1:n)),
    n_parameters = 2, n_transformed = 1
  )
  columns <- select_columns(described, include)
  target <- normal_target(2)
  target$outputs <- stan_outputs("late", columns, function(x, wanted) {
    all <- cbind(x, if (wanted$blocks[1]) 2 * x[, 1], if (wanted$blocks[2]) x[, rep(1, 2 + 2 * n)])
    list(values = all[, wanted$which, drop = FALSE], failed = 0)
  })
  target[c("at_once", "later")] <- columns[c("at_once", "later")]
  target
}

test_that("long generated quantities are made when they are asked for", {
  fit <- smc(program_with_late(), n_particles = 64, islands = 3, seed = 1)
  expect_identical(colnames(fit$particles), c("mu", "sigma", "twice", "early[1]", "early[2]"))
  expect_output(print(fit), "and on demand late, log_lik: as_draws(fit, generated = TRUE)", fixed = TRUE)
  draws <- as.matrix(fit, generated = "late")
  expect_identical(colnames(draws), c(colnames(fit$particles), paste0("late[", 1:150, "]")))
  expect_identical(draws[, "late[7]"], draws[, "mu"])
  expect_identical(ncol(as.matrix(fit, generated = TRUE)), 305L)
  expect_identical(as.matrix(fit, generated = "early"), as.matrix(fit))
  expect_identical(dim(as.array(fit, generated = "log_lik")), c(64L, 3L, 155L))
  expect_identical(nobs(fit), 150L)
  expect_bad(as.matrix(fit, generated = "other"), "generated")
  expect_bad(as.matrix(fit, generated = NA), "generated")
  expect_bad(as.matrix(quick_run(normal_target()), generated = "y_rep"), "generated")
  skip_if_not_installed("posterior")
  weighted <- posterior::as_draws_matrix(fit, weights = TRUE, generated = "late")
  expect_equal(as.vector(weighted[, "late[2]"]), unname(fit$particles[, "mu"]))
  expect_identical(posterior::nvariables(posterior::as_draws_df(fit, generated = TRUE)), 305L)
  skip_if_not_installed("loo")
  expect_identical(dim(suppressWarnings(loo::loo(fit))$pointwise)[1], 150L)
})

test_that("draws of a part of the particles, and of a saved fit, have them too", {
  fit <- smc(program_with_late(), n_particles = 64, islands = 3, keep = 20, seed = 1)
  file <- tempfile()
  saveRDS(fit, file)
  draws <- as.matrix(readRDS(file), generated = "late")
  expect_identical(draws[, "late[150]"], draws[, "mu"])
  moments <- smc(program_with_late(), n_particles = 64, islands = 3, keep = "moments", seed = 1)
  expect_error(as.matrix(moments, generated = TRUE), "has no draws", class = "autosmc_error_input")
  # of what a program makes of its variables there are variances, and no covariances
  expect_error(vcov(moments), "has no draws.*`coef\\(\\)` and `summary", class = "autosmc_error_input")
  all <- smc(program_with_late(), n_particles = 64, islands = 3, seed = 1)
  columns <- c("variable", "mean", "sd", "mcse")
  expect_equal(summary(moments)$variables[columns], summary(all)$variables[columns])
  dir <- tempfile("runs")
  on.exit(unlink(dir, recursive = TRUE))
  again <- function() {
    smc(program_with_late(), n_particles = 64, islands = 3, keep = "moments", seed = 1, checkpoint = dir)
  }
  expect_identical(coef(again()), coef(moments))
  expect_identical(coef(again()), coef(moments))
  adapted <- smc_adapt(program_with_late(), n_particles = 64, seed = 1)
  expect_error(as.matrix(adapted, generated = TRUE), "a fit with islands", class = "autosmc_error_input")
})

test_that("what `include` names is there at once, and a large size is foretold", {
  named <- program_with_late(include = c("mu", "late"))
  expect_identical(ncol(smc(named, n_particles = 64, islands = 2, seed = 1)$particles), 151L)
  expect_message(
    announce_size(8192, 4e4), "40,000 quantities.*8,192 draws take 2.6 GB.*`include`.*`generated`",
    class = "autosmc_message_size"
  )
  expect_no_message(announce_size(8192, 1000))
})

test_that("lines are shown once, and not too many of them", {
  show <- print_once(most = 3)
  expect_output(show("a\nb\na\n"), "^a\nb\n?$")
  expect_silent(show("b\na\n"))
  expect_output(show("c\nd\n"), "^c\n\\(Further output of the Stan program is not shown.\\)\n?$")
  expect_silent(show("e\n"))
})

test_that("objects that do not keep their data ask for them", {
  expect_bad(as_target(structure(list(), class = "stanmodel")), "data")
  expect_bad(as_target(structure(list(), class = "CmdStanModel")), "data")
})

# As rstan's classes are, as far as it matters here: `model` has the methods of the
# compiled model that a fit holds.
stanfit_of <- function(code, model) {
  classes <- list(
    stanmodel = list(model_name = "character", model_code = "character"),
    stanfit = list(stanmodel = "stanmodel", .MISC = "environment")
  )
  where <- new.env()
  Map(setClass, names(classes), classes, MoreArgs = list(where = where))
  on.exit(Map(removeClass, rev(names(classes)), MoreArgs = list(where = where)))
  methods::new("stanfit",
    stanmodel = methods::new("stanmodel", model_name = "two", model_code = code),
    .MISC = list2env(list(stan_fit_instance = model))
  )
}

# mu ~ N(1, 1), sigma ~ Exp(1), which throws beyond mu = 50.
compiled_model <- list(
  unconstrained_param_names = function(transformed, generated) c("mu.1", "sigma"),
  constrained_param_names = function(transformed, generated) c("mu.1", "sigma", "twice"),
  constrain_pars = function(u) c(u[1], exp(u[2]), 2 * u[1]),
  log_prob = function(u, jacobian, gradient) {
    stopifnot(jacobian, !gradient)
    if (u[1] > 50) stop(structure(class = c("std::domain_error", "error", "condition"), list()))
    dnorm(u[1], 1, log = TRUE) + u[2] - exp(u[2])
  },
  grad_log_prob = function(u, jacobian) {
    structure(c(1 - u[1], 1 - exp(u[2])), log_prob = 0)
  }
)

test_that("a stanfit without data, and a stanreg, are evaluated by the model they hold", {
  code <- "model { target += normal_lpdf(mu | 1, 1); // not ~\n /* nor ~ */ }"
  stanfit <- stanfit_of(code, compiled_model)
  stanreg <- structure(list(stanfit = stanfit), class = "stanreg")
  for (fit in list(stanfit, stanreg)) {
    told <- expect_message(target <- as_target(fit), class = "autosmc_message_rstan")
    # a stanreg cannot be given its data
    expect_identical(grepl("Give its `data`", message_of(told)), identical(fit, stanfit))
    expect_identical(target$names, c("mu[1]", "sigma"))
    at <- evaluate_target(target, rbind(c(0, 0), c(60, 0)))
    expect_identical(at$log_density, c(dnorm(0, 1, log = TRUE) - 1, -Inf))
  }
  result <- smc(target, n_particles = 128, n_steps = 8, islands = 8, rounds = 1, seed = 1)
  expect_log_z(result, 0)
  expect_identical(colnames(result$particles), c("mu[1]", "sigma", "twice"))
  expect_identical(result$particles[, "twice"], 2 * result$particles[, "mu[1]"])
  expect_bad(smc(target, reference = "draws"), "reference")
})

test_that("flat priors of a stanreg are told, by its names", {
  prior <- function(dist) list(dist = dist, location = 0)
  fit <- structure(
    list(
      stanfit = stanfit_of("model { target += normal_lpdf(mu | 1, 1); }", compiled_model),
      coefficients = c("(Intercept)" = 1, speed = 2, weight = 3),
      prior.info = list(
        prior = prior(NA), prior_intercept = prior("normal"), prior_aux = c(prior(NA), list(aux_name = "sigma"))
      )
    ),
    class = "stanreg"
  )
  warned <- expect_warning(target <- suppressMessages(as_target(fit)), "speed, weight", class = "autosmc_warning_prior")
  expect_match(message_of(warned), "begin with `prior`")
  expect_identical(target$improper, c("speed", "weight", "sigma"))
})

test_that("what rstan cannot evaluate with all constants asks for the data", {
  expect_bad(as_target(stanfit_of("model { mu ~ normal(1, 1); }", compiled_model)), "data")
  expect_bad(as_target(stanfit_of("target += normal_lupdf(mu | 1, 1);", compiled_model)), "data")
  lost <- list(unconstrained_param_names = function(...) stop("no pointer"))
  saved <- stanfit_of("target += 0;", lost)
  expect_bad(as_target(saved), "data")
  expect_error(as_target(structure(list(stanfit = saved), class = "stanreg")), "are not used")
})

test_that("the objects of CmdStanR have a program and a file of data", {
  fit <- structure(
    list(code = function() c("parameters {", "}"), data_file = function() "gone.json"),
    class = c("CmdStanMCMC", "CmdStanFit")
  )
  expect_bad(as_target(fit), "data")
})

test_that("a fit that CmdStanR read from files asks for its program and its data", {
  unavailable <- function() stop("This method is not available for objects created using as_cmdstan_fit().")
  fit <- structure(
    list(code = unavailable, data_file = unavailable),
    class = c("CmdStanMCMC_CSV", "CmdStanMCMC", "CmdStanFit", "R6")
  )
  expect_bad(as_target(fit, data = list()), "program")
  expect_bad(as_target(fit, program = "parameters { real x; } model { x ~ normal(0, 1); }"), "data")
})

test_that("outputs take the place of particles only where a target has them", {
  x <- matrix(1:4, 2)
  expect_identical(outputs_of(list(), x, c(-1, -2)), x)
  expect_identical(outputs_of(list(outputs = function(u) u + 1), x, c(-1, -2)), x + 1)
})
