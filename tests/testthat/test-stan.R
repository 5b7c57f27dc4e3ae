# Stan programs, compiled. Where they cannot be, one skipped test says so for all.
why_not <- if (identical(Sys.getenv("NOT_CRAN"), "true")) {
  why_no_stan()
} else {
  "it takes minutes, and this is R CMD check"
}
if (is.null(why_not)) {
  test_compiled <- test_that
  use_stan_cache()
  # beside the tests that need neither of them
  compiling <- vapply(stan_file(c("tasks", "kinds")), compile_elsewhere, "")
} else {
  test_that("Stan programs are compiled", {
    skip(paste("no Stan program is compiled:", why_not))
  })
  test_compiled <- function(...) NULL
}

# compiling -------------------------------------------------------------------

# By a compiler that only writes a file: `body` is a line of a shell script, with the file in $out.
with_compiler <- function(body, cache, code) {
  compiler <- write_file(c(
    "#!/bin/sh",
    "out=/dev/null; while [ $# -gt 1 ]; do if [ \"$1\" = -o ]; then out=$2; fi; shift; done", body
  ))
  Sys.chmod(compiler)
  makevars <- file.path(tempfile("autosmc makevars "), "Make vars")
  dir.create(dirname(makevars))
  writeLines(paste("CXX17 =", compiler), makevars)
  before <- Sys.getenv(c("R_USER_CACHE_DIR", "R_MAKEVARS_USER"), NA)
  on.exit({
    Sys.unsetenv("R_MAKEVARS_USER")
    do.call(Sys.setenv, as.list(before[!is.na(before)]))
    unlink(c(compiler, dirname(makevars)), recursive = TRUE)
  })
  Sys.setenv(R_USER_CACHE_DIR = cache, R_MAKEVARS_USER = makevars)
  code
}

test_compiled("two sessions compile a program at once, and no other sees half of it", {
  skip_on_os("windows") # where scripts are no compilers
  folder <- tempfile("autosmc-cache-")
  program <- write_file("parameters { real mu; }", ".stan")
  on.exit(unlink(c(program, folder), recursive = TRUE))
  with_compiler("printf half > \"$out\"; sleep 1; printf half >> \"$out\"", folder, {
    logs <- c(compile_elsewhere(program), compile_elsewhere(program))
    sizes <- numeric()
    watch <- function() sizes <<- c(sizes, stan_cache()$megabytes)
    expect_identical(wait_for(logs[1], watch), "done")
    expect_identical(wait_for(logs[2], watch), "done")
    watch()
    expect_identical(unique(sizes), 8e-6)
    files <- list.files(stan_cache_folder(), all.files = TRUE, no.. = TRUE)
    expect_identical(length(files), 3L) # the library, its checksum and the program, nothing else
  })
})

compile <- function(code) suppressMessages(cached_library(read_stan_program(code)), "autosmc_message_compile")

test_compiled("a program that does not parse shows Stan's message, with the line", {
  error <- catch(target_stan("parameters {\n  real mu\n}\n"))
  expect_s3_class(error, "autosmc_error_input")
  expect_match(message_of(error), "'model.stan', line 3, column 0")
  expect_match(conditionMessage(error), "real mu\n", fixed = TRUE)
  unknown <- catch(target_stan("parameters { real mu; }\nmodel { mu ~ normal(0, s); }"))
  expect_match(message_of(unknown), "line 2.*\"s\" not in scope")
  file <- write_file("parameters { real mu }", ".txt")
  on.exit(unlink(file))
  named <- message_of(catch(target_stan(file)))
  expect_match(named, paste0("'", basename(file), "', line 1"), fixed = TRUE)
  elsewhere <- catch(target_stan("#include not_there.stan\nparameters { real mu; }"))
  expect_match(message_of(elsewhere), "Could not find include file 'not_there.stan'")
})

# The text of one file goes on in another, or a line moves from one to the next.
test_that("a program is known by each of its files", {
  key <- function(...) stan_key(list(...))
  program <- "parameters {\n#include pars\n}"
  keys <- c(
    key(code = program, includes = list(data = "int N;", pars = "real z;\nreal x;")),
    key(code = program, includes = list(data = "int N;\nreal z;", pars = "real x;")),
    key(code = program, includes = list(pars = "int N;", data = "real z;\nreal x;")),
    key(code = paste0(program, "data"), includes = list("int N;", pars = "real z;\nreal x;"))
  )
  expect_identical(anyDuplicated(keys), 0L)
})

# Also by what a flag means on this machine.
test_that("a program is compiled anew for another compiler, and with other flags", {
  skip_if(Sys.which("make") == "", "there is no `make`")
  before <- Sys.getenv("R_MAKEVARS_USER", NA)
  makevars <- tempfile()
  on.exit({
    if (is.na(before)) Sys.unsetenv("R_MAKEVARS_USER") else Sys.setenv(R_MAKEVARS_USER = before)
    unlink(makevars)
  })
  Sys.setenv(R_MAKEVARS_USER = makevars)
  key <- function(...) {
    writeLines(c(...), makevars)
    stan_key(list(code = "parameters { real x; }"))
  }
  keys <- c(key(""), key("CXX17FLAGS += -DOTHER"), key("CXX17 = another-compiler"), key("CXX17FLAGS += -march=native"))
  expect_identical(anyDuplicated(keys), 0L)
  expect_identical(key(""), keys[1])
  expect_match(compiler_key(list(code = "")), "__VERSION__")
})

# The user's Makevars is read, also of a path with a space.
test_compiled("a relative path of the cache is that below the working directory", {
  skip_on_os("windows") # where scripts are no compilers
  folder <- tempfile("autosmc-cache-")
  dir.create(folder)
  here <- setwd(folder)
  on.exit({
    setwd(here)
    unlink(folder, recursive = TRUE)
  })
  built <- with_compiler("echo mine > \"$out\"", "a cache", compile("parameters { real x; }"))
  expect_identical(readLines(built), "mine")
  expect_identical(dirname(built), normalizePath(file.path(folder, "a cache", "R", "autosmc", "stan")))
  expect_identical(format(file.info(dirname(built))$mode), "700")
})

test_compiled("a cache that others may write to is not used", {
  skip_on_os("windows") # which has no modes
  folder <- tempfile("autosmc-cache-")
  on.exit(unlink(folder, recursive = TRUE))
  with_compiler("echo mine > \"$out\"", folder, {
    program <- "parameters { real x; }"
    own <- compile(program)
    expect_identical(own, stan_cache()$library)
    Sys.chmod(dirname(own), "770", use_umask = FALSE)
    expect_message(other <- compile(program), class = "autosmc_message_cache")
    expect_false(dirname(other) == dirname(own))
    expect_identical(basename(other), basename(own))
    Sys.chmod(dirname(own), "700")
    Sys.chmod(dirname(dirname(own)), "702", use_umask = FALSE)
    expect_message(compile(program), class = "autosmc_message_cache")
    Sys.chmod(dirname(dirname(own)), "755")
    expect_no_message(expect_identical(compile(program), own))
    unlink(dirname(other), recursive = TRUE)
  })
})

test_compiled("the cache is tidied when a program is compiled, and cleared of its own files", {
  skip_on_os("windows") # where scripts are no compilers
  folder <- tempfile("autosmc-cache-")
  on.exit(unlink(folder, recursive = TRUE))
  with_compiler("head -c 1000000 /dev/zero > \"$out\"", folder, {
    built <- vapply(1:4, function(i) compile(sprintf("parameters { real x%d; }", i)), "")
    days <- function(library, n) Sys.setFileTime(c(library, sum_file(library)), Sys.time() - n * 86400)
    for (i in 1:4) days(built[i], c(89, 91, 20, 10)[i])
    left <- file.path(stan_cache_folder(), c("compiling-1", "compiling-2", "other"))
    lapply(left[1:2], dir.create)
    file.create(left[3])
    Sys.setFileTime(left[c(1, 3)], Sys.time() - 2 * 86400)
    new <- compile("parameters { real x5; }")
    expect_setequal(stan_cache()$library, c(built[-2], new))
    expect_identical(file.exists(left), c(FALSE, TRUE, TRUE))
    compile("parameters { real x1; }") # which makes it one that is used
    with_internals(list(stan_cache_megabytes = 3.5), last <- compile("parameters { real x6; }"))
    expect_setequal(stan_cache()$library, c(built[1], new, last))
    expect_identical(nrow(stan_cache(clear = TRUE)), 3L)
    expect_identical(list.files(stan_cache_folder()), "other")
    unlink(left[3])
    stan_cache(clear = TRUE)
    expect_false(file.exists(stan_cache_folder()))
  })
})

test_compiled("a cache that cannot be written to is named", {
  before <- Sys.getenv("R_USER_CACHE_DIR")
  on.exit(Sys.setenv(R_USER_CACHE_DIR = before))
  file <- tempfile()
  writeLines("", file)
  Sys.setenv(R_USER_CACHE_DIR = file)
  expect_error(
    suppressMessages(target_stan("parameters { real mu; }")), "cannot be written to",
    class = "autosmc_error_input"
  )
})

# By a compiler that removes the folder it works in.
test_compiled("a cache that is removed while a program is compiled is named", {
  skip_on_os("windows") # where scripts are no compilers
  folder <- tempfile("autosmc-cache-")
  on.exit(unlink(folder, recursive = TRUE))
  with_compiler("rm -rf \"$PWD\"", folder, expect_error(
    compile("parameters { real nu; }"), "was removed while",
    class = "autosmc_error_input"
  ))
})

test_compiled("what other sessions have compiled is there", {
  for (log in compiling) {
    expect_identical(wait_for(log), "done")
    expect_match(readLines(log), "Compiling the Stan program (tasks|kinds)", all = FALSE)
  }
  expect_no_message(target <- task_target())
  expect_identical(target$dim, 2L)
})

test_compiled("the cache is listed, and its libraries are models", {
  other <- file.path(stan_cache_folder(), paste0("autosmc_stan_other", .Platform$dynlib.ext))
  on.exit(unlink(other))
  file.create(other)
  Sys.setFileTime(other, Sys.time() + 60)
  listed <- stan_cache()
  expect_identical(basename(listed$library[1]), basename(other)) # the newest
  expect_identical(is.na(listed$program), c(TRUE, FALSE, FALSE))
  tasks <- listed$library[startsWith(listed$program, "// A normal mean") %in% TRUE]
  x <- cbind(c(0.1, 1), c(-1, 2))
  expect_identical(
    evaluate_target(target_stan(tasks, task_data()), x),
    evaluate_target(task_target(), x)
  )
})

# To load such a library would end R with a bus error.
test_compiled("a library that was cut off is not loaded, and is compiled again", {
  skip_on_os("windows") # where scripts are no compilers
  whole <- task_target()$program$library
  folder <- tempfile("autosmc-cache-")
  on.exit(unlink(folder, recursive = TRUE))
  with_compiler("printf whole > \"$out\"", folder, {
    program <- read_stan_program(stan_file("tasks"))
    cut <- suppressMessages(cached_library(program)) # by this compiler, in this cache
    named <- sub("autosmc_stan_", "autosmc_stan_cut", cut, fixed = TRUE)
    start <- readBin(whole, "raw", file.size(whole) / 2)
    for (library in c(cut, named)) {
      writeBin(start, library)
      file.copy(sum_file(whole), sum_file(library), overwrite = TRUE)
      expect_false(is_whole(library))
    }
    expect_error(
      target_stan(named, task_data()), "is damaged",
      class = "autosmc_error_input"
    )
    expect_message(again <- cached_library(program), class = "autosmc_message_compile")
    expect_identical(again, cut)
    expect_true(is_whole(again))
    expect_identical(readLines(again, warn = FALSE), "whole")
    unlink(sum_file(again)) # as of a session that was ended before it wrote it
    expect_message(cached_library(program), class = "autosmc_message_compile")
    expect_no_message(cached_library(program))
  })
})

test_compiled("a library of another kind is rejected", {
  native_library()
  expect_error(
    target_stan(getLoadedDLLs()[["autosmc_test"]][["path"]]),
    "autosmc_stan_interface",
    class = "autosmc_error_input"
  )
})

# A library with the routine `autosmc_stan_interface` of another version.
stale_library <- function(name) {
  source <- file.path(tempfile("autosmc-stale-"), paste0(name, ".c"))
  dir.create(dirname(source))
  writeLines(c(
    "#include <Rinternals.h>",
    "SEXP autosmc_stan_interface(void) { return Rf_ScalarInteger(0); }"
  ), source)
  compile_library(source)[["path"]]
}

test_compiled("a library of another version of the interface is rejected", {
  path <- stale_library("autosmc_stale")
  on.exit(dyn.unload(path))
  expect_error(
    target_stan(path), "compiled by another version of autosmc",
    class = "autosmc_error_input"
  )
})

test_compiled("a library that is gone, or is none, is named", {
  target <- task_target()
  target$program <- list(name = "gone", library = file.path(tempdir(), "gone.so"), sum = "")
  expect_error(
    evaluate_target(target, cbind(1, 1)), "gone.so.* no longer exists",
    class = "autosmc_error_input"
  )
  file <- tempfile(fileext = .Platform$dynlib.ext)
  on.exit(unlink(file))
  writeLines("no library", file)
  expect_error(target_stan(file), "cannot be loaded", class = "autosmc_error_input")
})

# densities -------------------------------------------------------------------

points <- function(n, d, seed) {
  set.seed(seed)
  matrix(rnorm(n * d), n)
}

test_compiled("`~` and `target +=` are the same, and have the exact evidence", {
  sampled <- task_target()
  incremented <- task_target(increment = 1)
  x <- points(50, 2, seed = 1)
  expect_equal(
    evaluate_target(sampled, x),
    evaluate_target(incremented, x),
    tolerance = 1e-13
  )
  exact <- task_posterior()$log_z + log_z_beta_binomial
  expect_equal(integrate_task(sampled), exact, tolerance = 1e-9)
})

test_compiled("gradients are those of the log density", {
  expect_gradient(task_target(), points(5, 2, seed = 2))
  constrained <- task_target(S = 1)
  expect_gradient(constrained, points(5, constrained$dim, seed = 3) / 2)
})

test_compiled("transformations bring their Jacobians: smc() has the evidence", {
  fit <- smc(task_target(S = 1),
    kernel = kernel_mala(), n_particles = 512, islands = 16, seed = 1
  )
  expect_log_z(fit, task_posterior()$log_z + log_z_beta_binomial - log(6))
  draws <- fit$particles
  share <- draws[, paste0("share[1,", 1:3, "]")]
  expect_equal(rowSums(share), rep(1, nrow(share)), tolerance = 1e-12)
  L <- matrix(draws[1, grep("^L\\[", colnames(draws))], 3)
  expect_identical(L[upper.tri(L)], c(0, 0, 0))
  expect_equal(rowSums(L^2), c(1, 1, 1), tolerance = 1e-12)
  expect_true(all(draws[, "cut[1,1]"] < draws[, "cut[1,2]"]))
  expect_true(all(draws[, "scale[1]"] > 0))
  expect_gt(glance(fit)$ess_mean, 50)
  w <- exp(fit$log_weights)
  for (k in 1:3) {
    of_islands <- tapply(w * share[, k], fit$island, sum) / tapply(w, fit$island, sum)
    expect_mean(of_islands, (3 + k) / 15, resolution = 0.15)
  }
  skip_if_not_installed("posterior")
  rvars <- posterior::as_draws_rvars(fit)
  expect_s3_class(rvars$L, "rvar")
  expect_identical(dim(rvars$L), c(1L, 3L, 3L))
})

test_compiled("a single parameter, and many copies, have the right size", {
  five <- task_target(K = 5)
  expect_identical(five$names, c(paste0("mu[", 1:5, "]"), paste0("p[", 1:5, "]")))
  x <- points(3, 10, seed = 4)
  alone <- vapply(1:5, function(k) {
    evaluate_target(task_target(), x[, c(k, k + 5)])$log_density
  }, numeric(3))
  expect_equal(evaluate_target(five, x)$log_density, rowSums(alone), tolerance = 1e-12)
})

test_compiled("a program without parameters has an evidence without error, and quantities", {
  fit <- smc(task_target(K = 0, N = 0, y = numeric(), whole = numeric(), include = "random"))
  expect_identical(c(fit$log_z, fit$std_error), c(0, 0))
  expect_identical(dimnames(fit$particles), list(NULL, "random"))
  expect_mean(fit$particles[, "random"], 0, resolution = 0.3)
})

test_compiled("rstan's and CmdStanR's objects give the same target", {
  x <- points(3, 2, seed = 11)
  same <- evaluate_target(task_target(), x)
  code <- paste(readLines(stan_file("tasks")), collapse = "\n")
  # as rstan defines them, as far as it matters here
  where <- environment()
  setClass("stanmodel", list(model_name = "character", model_code = "character"), where = where)
  setClass("stanfit", list(stanmodel = "stanmodel", sim = "list"), where = where)
  on.exit({
    removeClass("stanfit", where = where)
    removeClass("stanmodel", where = where)
  })
  model <- methods::new("stanmodel", model_name = "tasks", model_code = code)
  chain <- list("mu[1]" = c(9, 1, 2, 3), "p[1]" = c(0.9, 0.1, 0.2, 0.3), lp__ = 1:4)
  stanfit <- methods::new("stanfit",
    stanmodel = model, sim = list(samples = list(chain, chain), warmup2 = c(1, 0))
  )
  expect_identical(evaluate_target(as_target(model, data = task_data()), x), same)
  target <- as_target(stanfit, data = task_data())
  expect_identical(evaluate_target(target, x), same)
  expect_identical(target$draws[, "mu[1]"], c(1, 2, 3, 9, 1, 2, 3))
  expect_identical(colnames(target$draws), c("mu[1]", "p[1]"))
  # as rstan::read_stan_csv() makes it, without a program
  read <- stanfit
  read@stanmodel@model_code <- character(0)
  names(chain) <- c("mu.1", "p.1", "lp__")
  read@sim <- list(samples = list(chain), warmup2 = 0)
  for (lacking in list(list(data = task_data()), list(program = code))) {
    expect_bad(do.call(as_target, c(list(read), lacking)), setdiff(c("data", "program"), names(lacking)))
  }
  expect_bad(as_target(read, data = task_data(), program = "none.stan"), "program")
  read <- as_target(read, data = task_data(), program = code)
  expect_identical(evaluate_target(read, x), same)
  expect_identical(colnames(read$draws), c("mu[1]", "p[1]"))
  lines <- strsplit(code, "\n")[[1]]
  cmdstan <- structure(list(code = function() lines), class = "CmdStanModel")
  expect_identical(evaluate_target(as_target(cmdstan, data = task_data()), x), same)
  fit <- structure(
    list(
      code = function() lines,
      data_file = function() {
        file <- tempfile(fileext = ".json")
        data <- task_data()
        for (name in c("K", "N", "increment", "task")) {
          data[[name]] <- jsonlite::unbox(data[[name]])
        }
        data$z <- cbind(Re(data$z), Im(data$z))
        jsonlite::write_json(data, file)
        file
      },
      draws = function(format) cbind("mu[1]" = 1, lp__ = 0)
    ),
    class = c("CmdStanMCMC", "CmdStanFit")
  )
  target <- as_target(fit)
  expect_identical(evaluate_target(target, x), same)
  expect_bad(smc(target, reference = "draws"), "reference") # without p
})

# draws -----------------------------------------------------------------------

test_compiled("draws on the unconstrained scale are what the sampler moves", {
  constrained <- task_target(S = 1)
  x <- points(20, constrained$dim, seed = 12) / 2
  draws <- constrained$outputs(x)
  expect_null(with_draws(constrained, draws[, -1])$draws)
  known <- with_draws(constrained, cbind(lp__ = 0, draws[, sample(ncol(draws))]))
  expect_equal(unconstrained_draws(known, known$draws)$values, x, tolerance = 1e-8)
  known$draws[2:3, "scale[1]"] <- -1
  expect_equal(unconstrained_draws(known, known$draws)$values, x[-(2:3), ], tolerance = 1e-8)
  known$draws[, "scale[1]"] <- -1
  expect_error(
    smc(known, reference = "draws"), "None of the draws.*Lower bounded variable is -1",
    class = "autosmc_error_input"
  )
})

test_compiled("smc() starts from draws, and has the evidence", {
  exact <- task_posterior()
  set.seed(1)
  draws <- cbind(
    "mu[1]" = rnorm(500, exact$mean, exact$sd), "p[1]" = rbeta(500, 2 + 7, 3 + 3)
  )
  target <- with_draws(task_target(include = c("mu", "p")), draws)
  reference <- reference_of_draws(target, draws)
  expect_equal(
    reference$mean, c(mean(draws[, 1]), mean(qlogis(draws[, 2]))),
    tolerance = 1e-8
  )
  for (scout in c(TRUE, FALSE)) {
    fit <- smc(target, reference = "draws", scout = scout, n_steps = 16, seed = 1)
    runs <- fit$runs[fit$runs$run == "adapt", ]
    expect_identical(runs$label[1], "draws")
    expect_true(runs$used[1])
    expect_identical("best" %in% runs$label, scout)
    expect_log_z(fit, exact$log_z + log_z_beta_binomial)
  }
  target$draws <- draws[1:3, ]
  expect_error(
    smc(target, reference = "draws"), "3 draws are too few",
    class = "autosmc_error_input"
  )
})

test_compiled("draws of another place are left for what the scout found", {
  set.seed(2)
  wrong <- cbind("mu[1]" = rnorm(500, 40, 0.1), "p[1]" = rbeta(500, 90, 10))
  target <- with_draws(task_target(include = c("mu", "p")), wrong)
  fit <- smc(target, reference = "draws", seed = 1)
  expect_identical(fit$runs$used[fit$runs$label %in% "draws"], FALSE)
  exact <- task_posterior()$log_z + log_z_beta_binomial
  expect_log_z(fit, exact)
})

# data ------------------------------------------------------------------------

expect_bad_data <- function(regexp, ...) {
  data <- task_data()
  changed <- list(...)
  data[names(changed)] <- changed
  expect_error(
    target_stan(stan_file("tasks"), data),
    regexp,
    class = "autosmc_error_input"
  )
}

test_compiled("bad data are named, with what is wrong", {
  expect_bad_data("`y` is missing; the program declares numbers, length 4", y = NULL)
  expect_bad_data("`N` is missing; the program declares a whole number[.]", N = NULL)
  expect_bad_data("`y` has length 3; the program declares length 4", y = 1:3)
  expect_bad_data("`y` has dimensions 2 x 2; .* length 4", y = matrix(1:4, 2))
  expect_bad_data("`X` has dimensions 2 x 3 x 2; .* 2 x 2 x 3", X = array(1:12, c(2, 3, 2)))
  expect_bad_data("`N` has length 2; .* a single number", N = c(4, 4))
  expect_bad_data("`N` is declared as int, but its element 1 is 4.5", N = 4.5)
  expect_bad_data("`whole` .* element 2 is 1e\\+10", whole = c(1, 1e10, 2, 3))
  expect_bad_data("`y` has missing values", y = c(1, NA, 2, 3))
  expect_bad_data("`y` must be numbers, not a character", y = letters[1:4])
  expect_bad_data("`z` has length 2; .* 2 x 2", z = 1:2)
  expect_bad_data("^N is -1, but must be greater than or equal to 0.*line", N = -1)
})

test_compiled("data of R's many types are taken, and what is not declared is ignored", {
  x <- points(3, 2, seed = 5)
  plain <- evaluate_target(task_target(), x)
  other <- task_target(
    K = TRUE, N = 4L, y = as.list(task_data()$y), task = FALSE,
    X = list(matrix(as.double(seq(1, 11, 2)), 2), matrix(as.double(seq(2, 12, 2)), 2)),
    note = "not declared", none = NULL
  )
  expect_identical(evaluate_target(other, x), plain)
  expect_identical(other$outputs(x), task_target()$outputs(x))
})

test_compiled("nothing need be given of what has no elements", {
  data <- task_data(N = 0)
  data[c("y", "whole")] <- NULL
  target <- target_stan(stan_file("tasks"), data)
  expect_true(all(is.finite(evaluate_target(target, points(3, 2, 6))$log_density)))
  data$y <- numeric()
  expect_identical(target_stan(stan_file("tasks"), data)$dim, 2L)
})

# priors ----------------------------------------------------------------------

test_compiled("flat priors of a program as brms writes them are told of", {
  warning <- catch_warning(task_target(K = 2, task = 8))
  expect_s3_class(warning, "autosmc_warning_prior")
  expect_match(message_of(warning), "The priors of mu[1] and mu[2] are flat", fixed = TRUE)
  expect_no_warning(task_target(K = 2))
  # what is not of brms may mean anything by `prior_only`
  code <- gsub("generated with brms", "", readLines(stan_file("tasks")))
  other <- suppressWarnings(task_target(task = 8))
  expect_identical(quick_smc(other)$improper, "mu[1]")
  other$program$code <- paste(code, collapse = "\n")
  expect_identical(improper_parameters(other), character())
  # it is their statements that tell
  without <- grep("mu ~ normal|normal_lpdf\\(mu|0 \\* mu", code, value = TRUE, invert = TRUE)
  other$program$code <- paste(without, collapse = "\n")
  expect_identical(improper_parameters(other), "mu[1]")
})

test_compiled("the observations of a program are known by their names", {
  y <- task_data()$y
  observed <- task_target()$observed
  expect_identical(observed, normal_target(response = y)$observed)
  expect_identical(task_target(Y = 1:9)$observed, observed) # which is not declared
  expect_identical(target_stan(stan_file("tasks"), task_data(), nobs = 7)$observed$nobs, 7)
})

# outputs ---------------------------------------------------------------------

test_compiled("outputs are what the program declares, in R's order", {
  target <- task_target()
  x <- points(4, 2, seed = 7)
  out <- target$outputs(x)
  expect_identical(out[, "mu[1]"], x[, 1])
  expect_equal(out[, "p[1]"], plogis(x[, 2]), tolerance = 1e-14)
  expect_identical(out[, "twice[1]"], 2 * x[, 1])
  expect_equal(out[, "log_lik[3]"], dnorm(0.8, x[, 1], log = TRUE), tolerance = 1e-13)
  expect_identical(unname(out[1, paste0("same[", 1:4, "]")]), c(3, -1, 0, 7))
  expect_equal(
    out[1, c("turned[1,real]", "turned[1,imag]", "turned[2,real]", "turned[2,imag]")],
    c(1, 2, 3, -1),
    ignore_attr = TRUE
  )
  X <- task_data()$X
  expect_equal(out[[1, "copy[2,1,3]"]], X[2, 1, 3])
  expect_identical(sort(out[1, grep("copy", colnames(out))]), sort(out[2, grep("copy", colnames(out))]))
  expect_identical(out, target$outputs(x))
  expect_false(any(duplicated(out[, "random"])))
  other <- target_stan(stan_file("tasks"), task_data(), seed = 2)
  expect_false(any(other$outputs(x)[, "random"] == out[, "random"]))
})

test_compiled("`include` leaves out the rest", {
  x <- points(4, 2, seed = 8)
  all <- task_target()$outputs(x)
  for (include in list("p", "twice", c("log_lik", "mu"), "random")) {
    some <- task_target(include = include)$outputs(x)
    expect_identical(some, all[, colnames(some), drop = FALSE])
    expect_identical(unique(sub("\\[.*", "", colnames(some))), intersect(
      c("mu", "p", "twice", "log_lik", "random"), include
    ))
  }
  expect_bad(task_target(include = "q"), "include")
})

test_compiled("a fit has the draws that were declared", {
  fit <- smc(
    task_target(include = c("mu", "p", "same")),
    n_particles = 512, n_steps = 8, seed = 1
  )
  expect_identical(
    colnames(fit$particles),
    c("mu[1]", "p[1]", paste0("same[", 1:4, "]"))
  )
  exact <- task_posterior()$log_z + log_z_beta_binomial
  expect_log_z(fit, exact)
  expect_identical(range(fit$particles[, "same[2]"]), c(-1, -1))
  expect_true(all(fit$particles[, "p[1]"] > 0 & fit$particles[, "p[1]"] < 1))
  expect_output(print(fit), "Stan program `tasks`, 2 variables")
})

test_compiled("the density at a point is that of parameters as they are declared", {
  fit <- smc(task_target(), n_particles = 512, n_steps = 8, islands = 32, seed = 1)
  at <- task_posterior()
  expect_density <- function(found, truth) expect_estimate(found$log_bf, found$log_bf_error, log(truth), 0.1, 32)
  expect_density(savage_dickey(fit, mu = 0, prior_density = 1), dnorm(0, at$mean, at$sd))
  expect_density(savage_dickey(fit, p = 0.5, prior_density = 1), dbeta(0.5, 9, 6))
  # what is transformed of a single one has a density, too
  expect_density(savage_dickey(fit, twice = 0, prior_density = 1), dnorm(0, at$mean, at$sd) / 2)
  expect_match(message_of(catch(savage_dickey(fit, p = 1, prior_density = 1))), "inside its bounds")
  expect_estimate(
    restrict(fit, p[1] < 0.5, prior = 1)$posterior_prob, restrict(fit, p[1] < 0.5, prior = 1)$posterior_error,
    pbeta(0.5, 9, 6), 0.1, 32
  )
})

test_compiled("where generated quantities throw they are NaN, with a warning", {
  target <- task_target(task = 7)
  x <- cbind(c(-1, 2, -3), 0)
  expect_warning(
    out <- target$outputs(x),
    "failed at 2 of 3 points.*no quantity for a negative mu",
    class = "autosmc_warning_outputs"
  )
  expect_identical(unname(is.nan(out[, "log_lik[1]"])), c(TRUE, FALSE, TRUE))
  expect_identical(unname(out[, "twice[1]"]), 2 * x[, 1])
  expect_no_warning(task_target(task = 7, include = "mu")$outputs(x))
})

# what a program may do -------------------------------------------------------

test_compiled("a point that is rejected is impossible, and the others go on", {
  target <- task_target(task = 3)
  x <- cbind(c(-1, 0.5, -2, 1), 0.3)
  found <- evaluate_target(target, x)
  plain <- evaluate_target(task_target(), x)
  expect_identical(found$log_density[c(1, 3)], c(-Inf, -Inf))
  expect_identical(found$log_density[c(2, 4)], plain$log_density[c(2, 4)])
  expect_identical(found$gradient[c(2, 4), ], plain$gradient[c(2, 4), ])
  at <- task_posterior()
  above <- pnorm(0, at$mean, at$sd, lower.tail = FALSE, log.p = TRUE)
  fit <- calmly(smc(target, kernel = kernel_mala(), n_particles = 512, seed = 1))
  expect_log_z(fit, at$log_z + above + log_z_beta_binomial, resolution = 0.05)
  expect_true(all(fit$particles[is.finite(fit$log_weights), "mu[1]"] >= 0))
  expect_gt(fit$runs$n_impossible[nrow(fit$runs)], 0)
})

test_compiled("a program that rejects every point ends in its own words", {
  error <- catch(quick_smc(task_target(task = 9)))
  expect_s3_class(error, "autosmc_error_degenerate")
  expect_match(message_of(error), "log density is -Inf at 16 of 16 particles")
  expect_match(
    message_of(error), "The target says: nothing is {possible} here (in 'tasks",
    fixed = TRUE
  )
  expect_null(task_target()$why(points(5, 2, seed = 16)))
  expect_match(task_target(task = 3)$why(cbind(c(1, -1), 0)), "^mu is negative")
})

test_compiled("a failed check is a rejection", {
  found <- evaluate_target(task_target(task = 4), cbind(c(0.5, 2), 0))$log_density
  expect_identical(is.finite(found), c(TRUE, FALSE))
})

test_compiled("a mistake in the program stops the run, with its words and line", {
  for (task in 5:6) {
    error <- catch(quick_smc(task_target(task = task)))
    expect_s3_class(error, "autosmc_error_target")
    expect_match(
      conditionMessage(error$parent),
      c("accessing element out of range.*tasks.stan", "this is the end")[task - 4]
    )
  }
  expect_usable_session()
})

test_compiled("messages name the file of this program, not of the one that was compiled", {
  file <- file.path(tempdir(), "my {own} program.stan")
  on.exit(unlink(file))
  file.copy(stan_file("tasks"), file)
  expect_no_message(target <- target_stan(file, task_data(task = 3)))
  expect_match(target$why(cbind(-1, 0)), "(in 'my {own} program.stan', line", fixed = TRUE)
  error <- catch(target_stan(file, task_data(N = -1)))
  expect_match(message_of(error), "(in 'my {own} program.stan', line", fixed = TRUE)
})

test_compiled("an endless loop is interrupted", {
  skip_on_os("windows") # SIGINT cannot be sent to another process there
  interrupted <- function(code) {
    system(sprintf("(sleep 0.5; kill -INT %d)", Sys.getpid()), wait = FALSE)
    tryCatch(code, interrupt = identity)
  }
  target <- task_target()
  target$data$values$task <- 10
  expect_s3_class(interrupted(evaluate_target(target, cbind(0, 0))), "interrupt")
  expect_s3_class(interrupted(quick_smc(target)), "interrupt")
  # which evaluates the prior
  expect_s3_class(interrupted(task_target(task = 10)), "interrupt")
  expect_usable_session()
})

# All the points together take minutes.
test_compiled("the limit of time is looked at between points", {
  target <- task_target(task = 11)
  limited <- function() {
    on.exit(setTimeLimit())
    setTimeLimit(elapsed = 0.3, transient = TRUE)
    evaluate_target(target, matrix(0, 100000, 2))
  }
  expect_match(conditionMessage(catch(limited())), "elapsed time limit")
})

test_compiled("on several threads a program has the same values, words and errors", {
  expect_true(task_target()$thread_safe)
  x <- points(100, 2, seed = 17)
  found <- lapply(1:3, function(n) {
    with_threads(n, list(
      evaluate_target(task_target(task = 11), x), # which takes long enough for threads to be started
      quick_smc(task_target(task = 11))$particles,
      lapply(5:6, function(task) message_of(catch(evaluate_target(task_target(task = task), x)))),
      capture.output(evaluate_target(task_target(task = 1), x))
    ))
  })
  expect_identical(found[-1], found[c(1, 1)])
})

test_that("programs that start threads themselves are called from one", {
  flags <- function(code) stan_makevars(list(code = code))$PKG_CPPFLAGS
  expect_true("-DSTAN_THREADS" %in% flags("target += normal_lpdf(x | 0, 1);"))
  expect_false("-DSTAN_THREADS" %in% flags("target += reduce_sum(partial, x, 1);"))
})

test_compiled("what is printed is shown once", {
  shown <- capture.output({
    target <- task_target(task = 1)
    fit <- quick_smc(target)
    fit <- quick_smc(target)
  })
  expect_identical(shown, c("in the data", "in the model"))
  many <- capture.output(fit <- quick_smc(task_target(task = 2)))
  expect_identical(length(many), 21L)
})

test_compiled("memory is used again from point to point", {
  skip_if_not(file.exists("/proc/self/statm"), "memory is only measured on Linux")
  target <- task_target(task = 3)
  x <- points(1000, 2, seed = 10)
  used <- function() {
    for (i in 1:20) evaluate_target(target, x)
    gc()
    as.numeric(strsplit(readLines("/proc/self/statm"), " ")[[1]][2])
  }
  used()
  pages <- used()
  expect_lt(used() - pages, 250) # a megabyte; 50 bytes a point would be as much
})

# parameters of other kinds, and words of old versions, by the second program -----

kinds_points <- function(n, seed) points(n, 15, seed) / 2

test_compiled("parameters of all kinds come back as they are declared", {
  target <- kinds_target()
  x <- kinds_points(50, seed = 13)
  out <- target$outputs(x)
  expect_equal(rowSums(out[, paste0("direction[", 1:3, "]")]^2), rep(1, 50), tolerance = 1e-14)
  expect_true(all(0 < out[, "rising[1]"] & out[, "rising[1]"] < out[, "rising[2]"]))
  expect_identical(target$names[autosmc:::find_ratios(target)], "rising[2]")
  expect_identical(out[, "Sigma[1,2]"], out[, "Sigma[2,1]"])
  expect_true(all(out[, "Sigma[1,1]"] * out[, "Sigma[2,2]"] > out[, "Sigma[1,2]"]^2))
  expect_equal(rowSums(out[, paste0("effect[", 1:3, "]")]), numeric(50), tolerance = 1e-14)
  expect_equal(out[, "shifted"], 3 + 2 * x[, 11], tolerance = 1e-14)
  expect_equal(out[, "above"] - out[, "shifted"], exp(x[, 12]), tolerance = 1e-13)
  expect_identical(out[, "both:1"], x[, 13])
  expect_equal(out[, c("both:2[1]", "both:2[2]")], -exp(x[, 14:15]), ignore_attr = TRUE)
  expect_identical(out[, "made:2[3]"], out[, "direction[3]"])
  expect_identical(
    colnames(kinds_target(include = c("both", "made"))$outputs(x)),
    c("both:1", paste0("both:2[", 1:2, "]"), "made:1", paste0("made:2[", 1:3, "]"))
  )
  # and the other way round, but for the length of the unit vector
  known <- with_draws(target, out)
  again <- unconstrained_draws(known, known$draws)$values
  expect_equal(again[, 4:15], x[, 4:15], tolerance = 1e-8)
  expect_equal(target$outputs(again), out, tolerance = 1e-8)
})

# The measure of a matrix of derivatives, of no more columns than rows.
log_volume <- function(derivative) {
  sum(log(abs(diag(qr.R(qr(derivative))))))
}

test_compiled("log densities are those of the declared parameters, with the Jacobian", {
  target <- kinds_target()
  x <- kinds_points(3, seed = 14)
  out <- target$outputs(x)
  sum_of <- function(names) rowSums(out[, names])
  det <- out[, "Sigma[1,1]"] * out[, "Sigma[2,2]"] - out[, "Sigma[1,2]"]^2
  of_declared <- log(2) - sum_of(c("rising[1]", "rising[2]")) -
    4 * log(det) - sum_of(c("Sigma[1,1]", "Sigma[2,2]")) / (2 * det) -
    5 * log(2) - log(pi) / 2 - lgamma(2.5) - lgamma(2) -
    log(2 * pi) - rowSums(out[, paste0("effect[", 1:3, "]")]^2) / 2 +
    dnorm(out[, "shifted"], 3, 2, log = TRUE) - out[, "width"] +
    dnorm(out[, "both:1"], log = TRUE) - 1.5 + old_words() + sum_of(c("both:2[1]", "both:2[2]"))
  free <- setdiff(target$parameters, c("Sigma[1,2]", paste0("direction[", 1:3, "]")))
  log_jacobian <- vapply(1:3, function(i) {
    log_volume(vapply(4:15, function(j) {
      step <- 1e-5 * (1:15 == j)
      ends <- target$outputs(rbind(x[i, ] + step, x[i, ] - step))[, free]
      (ends[1, ] - ends[2, ]) / 2e-5
    }, numeric(length(free))))
  }, 0)
  of_direction <- -log(4 * pi) - rowSums(x[, 1:3]^2) / 2 # Stan's, in place of a Jacobian
  found <- evaluate_target(target, x, gradient = FALSE)$log_density
  expect_equal(found, of_declared + log_jacobian + of_direction, tolerance = 1e-7)
  expect_gradient(target, x)
})

test_compiled("smc() has the evidence of parameters of all kinds", {
  fit <- calmly(smc(kinds_target(), kernel = kernel_mala(), n_particles = 512, seed = 1))
  of_unit_vector <- log(2) / 2 + lgamma(1.5) # as the page on target_stan() says
  # it is 0.23, the least of the constants that could be missing
  expect_log_z(fit, of_unit_vector - 1.5 + old_words())
  expect_true(all(fit$particles[, "both:2[1]"] < 0))
})

test_compiled("where transformed parameters throw, a point is impossible", {
  target <- kinds_target()
  x <- kinds_points(2, seed = 15)
  x[2, 12] <- 4
  expect_identical(is.finite(evaluate_target(target, x)$log_density), c(TRUE, FALSE))
  expect_warning(
    out <- target$outputs(x),
    "failed at 1 of 2 points.*too wide",
    class = "autosmc_warning_outputs"
  )
  expect_identical(unname(is.nan(out[, "made:1"])), c(FALSE, TRUE))
  expect_identical(unname(out[, "shifted"]), 3 + 2 * x[, 11])
})

test_compiled("compiled programs of the same name are told apart, and one that was built anew", {
  copy <- function(library) {
    folder <- tempfile("autosmc-model-")
    dir.create(folder)
    path <- file.path(folder, paste0("model", .Platform$dynlib.ext))
    file.copy(library, path)
    path
  }
  first <- copy(task_target()$program$library)
  second <- copy(kinds_target()$program$library)
  targets <- list(target_stan(first, task_data()), target_stan(second, kinds_data))
  x <- list(points(2, 2, seed = 17), kinds_points(2, seed = 18))
  values <- function(targets) Map(evaluate_target, targets, x)
  same <- values(list(task_target(), kinds_target()))
  expect_identical(values(targets), same)
  expect_identical(values(unserialize(serialize(targets, NULL))), same)
  file.rename(second, first)
  expect_error(values(targets[1]), "has changed since", class = "autosmc_error_mismatch")
  expect_error(targets[[1]]$outputs(x[[1]]), "has changed since", class = "autosmc_error_mismatch")
  dyn.unload(first)
  expect_error(values(targets[1]), "has changed since", class = "autosmc_error_mismatch")
})

# edges -----------------------------------------------------------------------

# Of two steps of a level that starts anywhere: log Z by a sum over a grid.
test_compiled("bounds that cut off a normal distribution are seen by the density", {
  target <- task_target(K = 0, N = 0, y = numeric(), whole = integer(), B = 1, include = "level")
  fit <- calmly(smc(target, n_particles = 1024, seed = 1))
  expect_identical(fit$target$truncated, c(1, 1, 0))
  at <- seq(-1, 1, length.out = 20001)
  inside <- pnorm((1 - at) / 0.1) - pnorm((-1 - at) / 0.1)
  expect_log_z(fit, log(mean(dnorm(at, 0, 1.5) * inside) * 2), 0.05)
  expect_true(all(abs(fit$particles[, 1:2]) < 1))
})

test_compiled("angles between bounds are seen by the density", {
  target <- task_target(K = 0, N = 0, y = numeric(), whole = integer(), B = 1, task = 12, include = "level")
  fit <- calmly(smc(target, precision = 0.005, seed = 1))
  expect_match(fit$maps[1], "are angles that are moved together", fixed = TRUE)
  expect_log_z(fit, log(4) + log(besselI(500, 0, TRUE)), 0.05)
  sums <- rowSums(fit$particles[, 1:2])
  expect_true(all(abs((pi * sums - 1 + pi) %% (2 * pi) - pi) < 0.5))
})

# sessions --------------------------------------------------------------------

# R has room for 100 libraries there, and more are wanted.
test_compiled("libraries that are not needed make room for others", {
  expect_room(task_target()$program$library, "target_stan", task_data())
})

test_compiled("a program is resumed, with the same data and the same text", {
  folder <- tempfile("autosmc-cache-")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  from_text_elsewhere <- function() {
    file.copy(dir(stan$cache, full.names = TRUE), folder, recursive = TRUE)
    Sys.setenv(R_USER_CACHE_DIR = folder)
    on.exit(Sys.setenv(R_USER_CACHE_DIR = stan$cache))
    expect_no_message(target <- target_stan(paste(readLines(stan_file("tasks")), collapse = "\n"), task_data()))
    target
  }
  expect_resumed(
    task_target, function() task_target(y = c(0.3, 1.9, 0.8, 1.2 + 1e-13)),
    again = from_text_elsewhere
  )
  longer <- write_file(c(readLines(stan_file("tasks")), "// and no more"), ".stan")
  on.exit(unlink(longer), add = TRUE)
  expect_resumed(task_target, function() {
    target <- task_target()
    target$program$code <- read_stan_program(longer)$code
    target
  })
})

test_compiled("a target survives being saved, and its library being removed", {
  file <- tempfile(fileext = ".rds")
  on.exit(unlink(file))
  target <- task_target()
  saveRDS(target, file)
  x <- points(3, 2, seed = 9)
  expect_identical(evaluate_target(readRDS(file), x), evaluate_target(target, x))
  removed <- stan_cache(clear = TRUE)
  expect_identical(nrow(removed), 2L)
  expect_identical(nrow(stan_cache()), 0L)
  expect_true(is.finite(quick_smc(readRDS(file))$log_z)) # it is still loaded
})
