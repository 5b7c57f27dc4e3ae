run <- function(target) {
  calmly(smc_plain(
    target,
    n_particles = 64, n_steps = 6, kernel = kernel_lmc(0.3), seed = 1
  ))
}

mean_of_three <- c(1, -2, 0.5)
normal_at <- function(dll, log_density = "normal", ...) {
  target_native(
    log_density, dll,
    dim = 3, init = "normal_init", data = mean_of_three, ...
  )
}

# from source to estimate -----------------------------------------------------

test_that("a compiled target is the same as its R function", {
  native_library()
  in_r <- target_function(
    function(x) -colSums((t(x) - mean_of_three)^2) / 2,
    dim = 3,
    gradient = function(x) -t(t(x) - mean_of_three),
    vectorized = TRUE
  )
  compiled <- run(normal_at("autosmc_test"))
  expect_equal(compiled$log_z, run(in_r)$log_z, tolerance = 1e-10)
  expect_equal(compiled$particles, run(in_r)$particles, tolerance = 1e-10)
})

test_that("a compiled target gets the right estimate", {
  native_library()
  fit <- smc_plain(normal_at("autosmc_test"), kernel = kernel_lmc(), seed = 1)
  islands <- calmly(smc_run(
    normal_at("autosmc_test"), fit$schedule,
    kernel = kernel_lmc(), islands = 60, seed = 1
  ))$islands
  expect_mean(exp(islands$log_z - 1.5 * log(2 * pi)), 1, resolution = 0.1)
})

test_that("the C file on the help page compiles, and runs", {
  native_library()
  page <- utils:::.getHelpFile(help("target_native", package = "autosmc"))
  text <- capture.output(tools::Rd2txt(page, options = list(width = 200)))
  text <- sub("^ {1,5}", "", text)
  first <- grep("#include <Rinternals.h>", text, fixed = TRUE)[1]
  expect_false(is.na(first))
  ends <- grep("^ *}", text)
  last <- ends[ends > grep("return 0;", text, fixed = TRUE)[1]][1]
  source <- file.path(tempdir(), "help_page.c")
  writeLines(text[first:last], source)
  library <- compile_library(source)
  path <- library[["path"]]
  on.exit({
    dyn.unload(path)
    unlink(c(source, dirname(path)), recursive = TRUE)
  })
  expect_identical(
    run(normal_at(library))$particles,
    run(normal_at("autosmc_test"))$particles
  )
})

# ways to name a routine ------------------------------------------------------

test_that("a library is named by a string or by its DLLInfo", {
  library <- native_library()
  expect_identical(
    run(normal_at(library))$particles,
    run(normal_at("autosmc_test"))$particles
  )
})

test_that("a routine of a package is found by the package's name", {
  named <- target_native("target_funnel", "autosmc", dim = 10)
  expect_identical(run(named)$log_z, run(target_funnel())$log_z)
})

test_that("a NativeSymbolInfo object names routine and library", {
  symbol <- getNativeSymbolInfo("standard", native_library())
  by_object <- target_native(symbol, dim = 2)
  by_name <- target_native("standard", "autosmc_test", dim = 2)
  expect_identical(run(by_object)$particles, run(by_name)$particles)
})

test_that("a registered routine is found, though it is static", {
  library <- native_library()
  by_name <- target_native("registered", "autosmc_test", dim = 2)
  plain <- target_native("standard", "autosmc_test", dim = 2)
  expect_identical(run(by_name)$particles, run(plain)$particles)
  symbol <- getNativeSymbolInfo("registered", library)
  expect_s3_class(symbol, "CRoutine")
  by_object <- target_native(symbol, dim = 2)
  expect_identical(run(by_object)$particles, run(plain)$particles)
  registered <- getDLLRegisteredRoutines(library)$.C$registered
  by_record <- target_native(registered, dim = 2)
  expect_identical(run(by_record)$particles, run(plain)$particles)
})

test_that("a routine of a library that the library is linked to is an error", {
  skip_on_os("windows")
  expect_bad(target_native("printf", native_library(), dim = 2), "log_density")
})

test_that("a library that is garbage by now is an error of a class", {
  skip_on_os("windows")
  copy <- file.path(tempdir(), paste0("garbage", .Platform$dynlib.ext))
  on.exit(unlink(copy))
  file.copy(native_library()[["path"]], copy)
  dyn.load(copy)
  target <- target_native("standard", "garbage", dim = 2)
  dyn.unload(copy)
  unlink(copy)
  writeLines("garbage", copy)
  expect_error(run(target), "has changed since", class = "autosmc_error_mismatch")
})

test_that("variables can be named", {
  native_library()
  fit <- run(normal_at("autosmc_test", names = c("a", "b", "c")))
  expect_identical(colnames(fit$particles), c("a", "b", "c"))
})

test_that("a compiled target survives being saved", {
  native_library()
  target <- normal_at("autosmc_test")
  file <- tempfile(fileext = ".rds")
  on.exit(unlink(file))
  saveRDS(target, file)
  expect_identical(run(readRDS(file))$particles, run(target)$particles)
  saveRDS(run(target), file)
  again <- readRDS(file)
  expect_identical(run(again$target)$particles, again$particles)
})

# contexts --------------------------------------------------------------------

test_that("every run makes a context and releases it", {
  target <- counted_target()
  counted_totals()
  fit <- quick_smc(target)
  # a run that tunes, an island, and a search for edges
  expect_identical(counted_totals()$made, 3)
  smc_run(
    target, fit$schedule,
    n_particles = 16, kernel = kernel_lmc(), seed = 1
  )
  totals <- counted_totals()
  expect_identical(totals$made, 1)
  expect_identical(totals$live, 0)
})

test_that("an error in the init routine is passed on, and releases nothing", {
  target <- target_native(
    "counted", native_library(), 2,
    init = c("counted_init", "counted_release"), data = 1
  )
  counted_totals()
  error <- catch(quick_smc(target))
  expect_s3_class(error, "autosmc_error_target")
  expect_match(message_of(error$parent), "data of a wrong length")
  totals <- counted_totals()
  expect_identical(totals$made, 0)
  expect_identical(totals$live, 0)
})

test_that("the data of a target outlive a garbage collection", {
  native_library()
  target <- target_native(
    "normal", "autosmc_test", 3,
    init = "normal_init", data = mean_of_three + 0
  )
  gctorture2(250)
  on.exit(gctorture2(0))
  fit <- quick_run(target)
  gctorture2(0)
  expect_identical(fit$particles, quick_run(target)$particles)
})

# faults ----------------------------------------------------------------------

test_that("an unknown library or routine is rejected at once", {
  library <- native_library()
  expect_error(
    target_native("normal", "no_such_library", 2),
    "`dll`.*no library \"no_such_library\"",
    class = "autosmc_error_input"
  )
  expect_error(
    target_native("no_such_routine", library, 2),
    "no routine \"no_such_routine\" in the library \"autosmc_test\"",
    class = "autosmc_error_input"
  )
  expect_error(
    target_native("normal", library, 2, init = "no_such_init", data = 1),
    "no_such_init",
    class = "autosmc_error_input"
  )
  expect_error(
    target_native(
      "counted", library, 2,
      init = c("counted_init", "no_such_release"), data = c(0, 0)
    ),
    "no_such_release",
    class = "autosmc_error_input"
  )
  # static in the source, and not registered under this name
  expect_error(
    target_native("hidden", library, 2),
    "hidden",
    class = "autosmc_error_input"
  )
})

test_that("wrong arguments are named", {
  library <- native_library()
  input <- function(code, regexp) {
    expect_error(code, regexp, class = "autosmc_error_input")
  }
  input(target_native("normal", dim = 2), "`dll` is missing")
  input(target_native(), "`log_density` is missing")
  input(target_native("normal", library), "`dim` is missing")
  input(target_native("normal", library, dim = -1), "`dim` .* not -1")
  input(target_native("normal", library, dim = "2"), "`dim` .* not \"2\"")
  input(target_native(7, library, dim = 2), "`log_density` .* not 7")
  input(target_native("normal", 7, dim = 2), "`dll` .* not 7")
  input(target_native("normal", library, 2, data = 1), "`data`.*`init`")
  input(target_native("normal", library, 2, init = c("a", "b", "c")), "`init` .* two")
  input(target_native("normal", library, 2, init = c("a", "")), "`init` .* a string")
  input(
    target_native("normal", library, 2, names = "a"),
    "`names` .* length 2"
  )
})

test_that("a routine of an unloaded library is missed before the run", {
  source <- file.path(tempdir(), "autosmc_unloaded.c")
  on.exit(unlink(source))
  native_library() # skips where there is no compiler
  writeLines("int gone(void *c, int d, int n, const double *x, double *l,
    double *g) { return 0; }", source)
  library <- compile_library(source)
  target <- target_native("gone", library, 2)
  dyn.unload(library[["path"]])
  unlink(dirname(library[["path"]]), recursive = TRUE)
  expect_error(
    quick_smc(target),
    "autosmc_unloaded",
    class = "autosmc_error_input"
  )
})

# A library "mine", loaded, in a folder of its own, with a routine that has this value everywhere.
mine <- function(value) {
  native_library() # skips where there is no compiler
  source <- file.path(tempfile("autosmc-mine-"), "mine.c")
  dir.create(dirname(source))
  writeLines(c(
    "int flat(void *c, int d, int n, const double *x, double *l, double *g) {",
    sprintf("  for (int k = 0; k < n; k++) l[k] = %s;", value),
    "  return 0;", "}"
  ), source)
  compile_library(source)
}

value_of <- function(target) evaluate_target(target, cbind(0), gradient = FALSE)$log_density

test_that("libraries of the same name are told apart", {
  libraries <- list(mine(1), mine(2))
  paths <- vapply(libraries, `[[`, "", "path")
  on.exit(lapply(paths, dyn.unload))
  targets <- lapply(libraries, function(library) target_native("flat", library, 1))
  expect_identical(lapply(targets, value_of), list(1, 2))
  expect_identical(lapply(unserialize(serialize(targets, NULL)), value_of), list(1, 2))
  expect_error(
    target_native("flat", "mine", 1), "several libraries are loaded as \"mine\"",
    class = "autosmc_error_input"
  )
  dyn.unload(paths[1])
  expect_identical(value_of(target_native("flat", "mine", 1)), 2)
  expect_identical(value_of(targets[[1]]), 1) # which loads it again
})

test_that("a library that was built anew is not taken for the one before", {
  path <- mine(1)[["path"]]
  other <- mine(2)[["path"]]
  dyn.unload(other)
  target <- target_native("flat", "mine", 1)
  saved <- serialize(target, NULL)
  file.rename(other, path)
  expect_error(value_of(target), "has changed since", class = "autosmc_error_mismatch")
  if (file.exists("/proc/self/maps")) { # of which system it can be told
    expect_error(
      target_native("flat", "mine", 1), "was built again, but the previous version is still loaded",
      class = "autosmc_error_mismatch"
    )
  }
  dyn.unload(path)
  expect_error(
    value_of(unserialize(saved)), "has changed since",
    class = "autosmc_error_mismatch"
  )
  library <- dyn.load(path)
  on.exit(dyn.unload(path))
  expect_identical(value_of(target_native("flat", library, 1)), 2)
})

test_that("a library of a package that was installed anew is not taken for the one before", {
  record <- internal("library_record")(getLoadedDLLs()[["stats"]])
  open <- internal("open_library")
  expect_identical(open(record)[["name"]], "stats")
  record$sum <- "another"
  expect_error(open(record), "has changed since", class = "autosmc_error_mismatch")
})

test_that("a code other than 0 stops the run, with code, step and run", {
  error <- catch(quick_run(counted_target(mode = "return_code", at = 3)))
  expect_s3_class(error, "autosmc_error_target")
  expect_s3_class(error, "autosmc_error")
  expect_match(message_of(error), "code 42 at step 2 of the final run")
  expect_identical(error$step, 2L)
  expect_identical(error$run, "final")
  expect_identical(counted_totals()$live, 0)
  expect_usable_session()
})
