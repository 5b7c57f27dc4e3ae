# Libraries of BridgeStan, by a stand-in with the same C interface, which is
# native/bridgestan_test.c.

bridgestan_library <- local({
  path <- NULL
  function() {
    if (is.null(path)) {
      built <- compile_library(test_path("native", "bridgestan_test.c"))
      if (is.character(built)) skip(built)
      path <<- built[["path"]]
    }
    path
  }
})

n_alive <- function() .Call(getNativeSymbolInfo("bs_test_alive", "bridgestan_test"))

test_that("a library's density has all constants and the Jacobian", {
  target <- target_bridgestan(bridgestan_library(), '{"y": 2}')
  expect_identical(target$names, c("mu", "sigma"))
  x <- rbind(c(0.5, -1), c(2, 0.3), c(103, 0))
  found <- evaluate_target(target, x)
  expect_equal(found$log_density, c(
    dnorm(x[1:2, 1], 2, log = TRUE) + dexp(exp(x[1:2, 2]), log = TRUE) + x[1:2, 2], -Inf
  ))
  expect_equal(found$gradient, rbind(cbind(2 - x[1:2, 1], 1 - exp(x[1:2, 2])), 0))
  expect_identical(
    evaluate_target(target, x, gradient = FALSE)$log_density, found$log_density
  )
  expect_identical(n_alive(), 0L)
})

test_that("the limit of time is looked at between points", {
  target <- target_bridgestan(bridgestan_library(), '{"y": 2}')
  limited <- function(n) {
    on.exit(setTimeLimit())
    setTimeLimit(elapsed = 0.3, transient = TRUE)
    evaluate_target(target, cbind(rep(-50, n), 0))
  }
  calls <- function() .Call(getNativeSymbolInfo("bs_test_calls", "bridgestan_test"))
  before <- calls()
  expect_match(conditionMessage(catch(limited(1e5))), "elapsed time limit")
  expect_lt(calls() - before, 1e5)
  expect_identical(n_alive(), 0L)
})

test_that("libraries that are not needed make room for others", {
  expect_room(bridgestan_library(), "target_bridgestan", '{"y": 2}')
})

test_that("smc() has the evidence and the draws that were declared", {
  file <- tempfile(fileext = ".json")
  on.exit(unlink(file))
  writeLines('{"y": 2}', file)
  target <- target_bridgestan(bridgestan_library(), file, include = c("mu", "twice"))
  fit <- smc(target, n_particles = 512, n_steps = 8, seed = 1)
  expect_log_z(fit, 0)
  expect_identical(colnames(fit$particles), c("mu", "twice[1]", "twice[2]"))
  expect_identical(fit$particles[, "twice[1]"], 2 * fit$particles[, "mu"])
  expect_output(print(target), "BridgeStan's library `bridgestan_test`")
  expect_identical(n_alive(), 0L)
})

test_that("where quantities throw they are NaN, with a warning", {
  target <- target_bridgestan(bridgestan_library(), '{"y": 2}', seed = 7)
  x <- cbind(c(1, -1, 2), 0)
  expect_warning(
    out <- target$outputs(x), "failed at 1 of 3.*no z for a negative mu",
    class = "autosmc_warning_outputs"
  )
  expect_identical(unname(out[, "z"]), c(7, NaN, 8))
  expect_identical(
    colnames(out), c("mu", "sigma", "twice[1]", "twice[2]", "z")
  )
  expect_identical(n_alive(), 0L)
})

test_that("a library's reasons are there when all particles are dead", {
  target <- target_bridgestan(bridgestan_library(), '{"y": -200}') # rejects mu > -100
  expect_match(
    message_of(catch(quick_smc(target))), "-Inf at 16 of 16 .* The target says: mu is too large"
  )
  expect_null(target$why(rbind(c(-200, 0))))
  expect_identical(n_alive(), 0L)
})

test_that("a target of BridgeStan survives being saved", {
  target <- target_bridgestan(bridgestan_library(), '{"y": 2}')
  again <- unserialize(serialize(target, NULL))
  x <- rbind(c(0.5, -1))
  expect_identical(evaluate_target(again, x), evaluate_target(target, x))
  expect_identical(again$outputs(abs(x)), target$outputs(abs(x)))
})

# The program with y + 1000 for y, under the same name.
shifted_library <- function() {
  source <- file.path(tempfile("autosmc-shifted-"), "bridgestan_test.c")
  dir.create(dirname(source))
  code <- readLines(test_path("native", "bridgestan_test.c"))
  writeLines(sub("atof(y + 4)", "atof(y + 4) + 1000", code, fixed = TRUE), source)
  compile_library(source)[["path"]]
}

test_that("libraries of the same name are told apart, and one that was built anew", {
  first <- target_bridgestan(bridgestan_library(), '{"y": 2}')
  path <- shifted_library()
  on.exit(dyn.unload(path))
  second <- target_bridgestan(path, '{"y": 2}')
  here <- function(target) evaluate_target(target, rbind(c(0, 0)))$gradient[1]
  expect_identical(c(here(first), here(second)), c(2, 1002))
  saved <- serialize(second, NULL)
  copy <- tempfile()
  file.copy(bridgestan_library(), copy)
  file.rename(copy, path)
  expect_error(here(second), "has changed since", class = "autosmc_error_mismatch")
  expect_error(second$outputs(rbind(c(0, 0))), "has changed since", class = "autosmc_error_mismatch")
  expect_error(here(unserialize(saved)), "has changed since", class = "autosmc_error_mismatch")
  expect_identical(here(first), 2)
})

test_that("what is wrong is named", {
  expect_bad(target_bridgestan("no_such_file.so"), "library")
  expect_bad(target_bridgestan(bridgestan_library(), "no_such_file.json"), "data")
  expect_error(
    target_bridgestan(bridgestan_library(), "{}"), "variable y not found",
    class = "autosmc_error_input"
  )
  expect_bad(target_bridgestan(bridgestan_library(), '{"y": 1}', include = "q"), "include")
  file <- tempfile(fileext = .Platform$dynlib.ext)
  on.exit(unlink(file))
  writeLines("no library", file)
  expect_error(target_bridgestan(file), "cannot be loaded", class = "autosmc_error_input")
  native_library()
  other <- getLoadedDLLs()[["autosmc_test"]][["path"]]
  expect_error(target_bridgestan(other), "bs_model_construct", class = "autosmc_error_input")
  expect_identical(n_alive(), 0L)
})
