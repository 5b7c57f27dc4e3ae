# How the R code is built: what a newcomer can rely on when reading it.

package_functions <- function() {
  namespace <- asNamespace("autosmc")
  Filter(is.function, mget(ls(namespace, all.names = TRUE), namespace))
}

# The verbs, and what declares a target.
with_many <- c(
  "smc", "smc_adapt", "smc_run", "as_target.function", "target_function", "target_native", "target_posterior", "target_rtmb"
)

test_that("no function but these takes more than eight arguments", {
  n_arguments <- lengths(lapply(package_functions(), formals))
  expect_gt(length(n_arguments), 100)
  expect_setequal(names(n_arguments)[n_arguments > 8], with_many)
})

test_that("between smc_run() and the compiled loop are four functions at most", {
  frames <- NULL
  density <- function(x) {
    frames <<- sys.frames()
    functions <<- lapply(seq_along(frames), function(i) sys.function(i))
    -sum(x^2) / 2
  }
  functions <- NULL
  quick <- target_function(density, 1, gradient = function(x) -x)
  calmly(smc_run(quick, data.frame(lambda = 1, step_size = 0.5), n_particles = 4, seed = 1))
  # the compiled code calls the evaluator
  begin <- which(vapply(functions, identical, NA, smc_run))
  end <- which(vapply(functions, function(f) identical(names(formals(f)), c("x", "gradient")), NA))
  expect_length(begin, 1)
  between <- functions[seq(begin, min(end) - 1)]
  is_ours <- vapply(between, function(f) {
    !is.primitive(f) && identical(topenv(environment(f)), asNamespace("autosmc"))
  }, NA)
  expect_lte(sum(is_ours), 5)
})

test_that("each rule has a name of its own", {
  rules <- get("rules", asNamespace("autosmc"))
  expect_lte(length(rules), 83)
  expect_identical(names(rules)[duplicated(names(rules))], character(0))
  # and there is none that is not there
  read <- unique(unlist(lapply(package_functions(), function(f) {
    code <- deparse(f)
    calls <- unlist(regmatches(code, gregexpr("rules\\$[a-z_]+", code)))
    sub("rules$", "", calls, fixed = TRUE)
  })))
  expect_identical(setdiff(read, names(rules)), character(0))
})
