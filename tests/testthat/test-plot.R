# What the plots show, against the fit that they are made of.

# fits ------------------------------------------------------------------------

tiny <- function(..., n_particles = 128, n_steps = 6, rounds = 2, islands = 3, seed = 1) {
  calmly(smc(target_gaussian(2, mean = 2), ...,
    n_particles = n_particles, n_steps = n_steps, rounds = rounds, islands = islands,
    seed = seed
  ))
}

klmc_fit <- tiny(kernel = kernel_klmc())
other_kernels <- list(
  lmc = tiny(kernel = kernel_lmc(), seed = 3), # no more rounds than there are colours
  mala = tiny(kernel = kernel_mala(), scout = FALSE), # or all runs would have a single step
  rwmh = tiny(kernel = kernel_rwmh(), schedule = schedule_adaptive(0.5), n_steps = 1)
)

adapted_fit <- function() {
  smc_adapt(target_gaussian(1, mean = 2),
    n_particles = 128, n_steps = 6, rounds = 1, scout = FALSE, seed = 2
  )
}

all_kinds <- c("overview", "run", "islands", "diagnostics", "barrier", "draws")

# What is drawn while `code` runs: a list of the calls of the graphics engine by this
# name, each with its arguments.
drawn <- function(code, name) {
  pdf(NULL)
  on.exit(dev.off())
  dev.control("enable")
  force(code)
  calls <- lapply(recordPlot()[[1]], function(entry) as.list(entry[[2]]))
  Filter(function(call) identical(call[[1]]$name, name), calls)
}

# ggplot2 ---------------------------------------------------------------------

picture <- function(...) {
  skip_if_not_installed("ggplot2")
  ggplot2::autoplot(...)
}

# Of a picture, which is made before ggplot2 is looked for.
build <- function(p) {
  force(p)
  ggplot2::ggplot_build(p)
}

layer <- function(p, i) build(p)$data[[i]]

# All of a layer's data, with the names of panels and series as they are read.
read_layer <- function(p, i, built = build(p)) {
  data <- built$data[[i]]
  layout <- built$layout$layout
  panel <- intersect(c("panel", "variable"), names(layout))
  data$label <- as.character(layout[[panel]])[match(data$PANEL, layout$PANEL)]
  colours <- built$plot$scales$get_scales("colour")
  if (!is.null(colours)) {
    names <- colours$get_limits()
    data$series <- names[match(data$colour, colours$map(names))]
  }
  data
}

panels <- c(
  lambda = "temperature",
  step_size = "log10 step size",
  refresh_rate = "refreshment rate",
  acceptance = "acceptance",
  ess = "ESS / particles",
  barrier = "cumulative barrier",
  log_z = "log Z"
)

expect_schedule_of <- function(fit, final) {
  built <- build(picture(fit, "run"))
  shown <- rbind(
    read_layer(built = built, i = 1)[c("x", "y", "label", "series")],
    read_layer(built = built, i = 2)[c("x", "y", "label", "series")]
  )
  steps <- fit$steps
  steps$step_size <- log10(steps$step_size)
  steps$ess <- steps$ess / fit$n_particles
  steps$series <- ifelse(steps$run == "final", final, paste("round", steps$round))
  expected <- lapply(names(panels), function(column) {
    data.frame(
      x = steps$step, y = steps[[column]], label = panels[[column]],
      series = steps$series
    )
  })
  expected <- do.call(rbind, expected)
  expected <- expected[!is.na(expected$y), ]
  sorted <- function(d) {
    d <- d[order(d$label, d$series, d$x, d$y), ]
    row.names(d) <- NULL
    d$x <- as.numeric(d$x)
    d
  }
  expect_equal(sorted(shown), sorted(expected))
}

test_that("the schedule shows every value of every step, in the panel of its kernel", {
  fits <- c(list(klmc_fit), other_kernels)
  for (fit in fits) {
    fit$runs$used <- TRUE # for rounds that are not have another name
    expect_schedule_of(fit, "final islands")
  }
  shown <- lapply(fits, function(fit) unique(read_layer(picture(fit, "run"), 2)$label))
  expect_true("refreshment rate" %in% shown[[1]])
  expect_false(any(c("refreshment rate", "acceptance") %in% shown[[2]]))
  adapted <- adapted_fit()
  adapted$runs$used <- TRUE
  expect_schedule_of(adapted, "none")
  one <- tiny(rounds = 0, islands = 1)
  expect_schedule_of(one, "final")
  expect_schedule_of(smc_run(one$target, one$schedule, seed = 1), "final")
})

test_that("the panels of fractions reach from 0 to 1", {
  p <- picture(klmc_fit, "run")
  built <- build(p)
  ranges <- lapply(built$layout$panel_scales_y, function(s) s$range$range)
  names(ranges) <- as.character(built$layout$layout$panel)
  for (name in panels[c("lambda", "refresh_rate", "ess")]) {
    expect_equal(ranges[[name]], c(0, 1))
  }
  expect_equal(ranges[["cumulative barrier"]], c(0, max(klmc_fit$steps$barrier)))
  log_z <- range(klmc_fit$steps$log_z)
  expect_equal(ranges[["log Z"]], log_z)
})

legend_of <- function(...) {
  p <- picture(...)
  built <- build(p)
  built$plot$scales$get_scales("colour")$get_limits()
}

test_that("the legend has the rounds in their order, and says which were not used", {
  fit <- klmc_fit
  fit$runs$used <- !fit$runs$round %in% 1
  # of the race of the scout's references and the given one, and of two rounds
  names <- c("round 0", "round 1 (unused)", "round 2", "round 3", "round 4", "final islands")
  expect_identical(legend_of(fit, "run"), names)
  expect_identical(legend_of(fit, "barrier"), names)
  # of runs of a single step there are points alone, and no curves
  single <- other_kernels$rwmh
  single$runs$used <- TRUE
  single$steps <- single$steps[single$steps$step == 1 | single$steps$round %in% 1, ]
  expect_identical(
    legend_of(single, "run"),
    c("round 0", "round 1", "round 2", "final islands")
  )
})

test_that("no two of thirty rounds look the same", {
  looks <- series_looks(factor(sprintf("round %d", 1:30)))
  expect_false(anyDuplicated(looks[c("colour", "type")]) > 0)
})

test_that("the barrier rises from 0 to that of each run", {
  p <- picture(klmc_fit, "barrier")
  shown <- layer(p, 1)
  ends <- do.call(rbind, lapply(split(shown, shown$group), function(d) {
    c(d$x[1], d$y[1], d$x[nrow(d)], d$y[nrow(d)])
  }))
  rounds <- klmc_fit$runs$barrier[klmc_fit$runs$run == "adapt"]
  n <- 5 + 3 # a race of three, two rounds, and the islands
  expect_equal(unname(ends[, 1:3]), cbind(rep(0, n), 0, 1))
  expect_equal(unname(ends[, 4]), c(rounds, klmc_fit$islands$barrier))
})

test_that("the islands are shown with the estimate of the fit and its interval", {
  fit <- klmc_fit
  p <- picture(fit, "islands")
  expect_equal(layer(p, 1)$xintercept, fit$log_z)
  islands <- layer(p, 2)
  expect_equal(islands$y, 1:3)
  expect_equal(islands$x, fit$islands$log_z)
  expect_identical(nrow(layer(p, 3)), 0L)
  expect_identical(islands_data(fit)$label, c("1", "2", "3", "SMC"))
  # where the fit is the bridge, SMC is beside it
  fit$estimates <- rbind(fit$estimates, transform(fit$estimates, method = "bridge", std_error = std_error / 9))
  fit$log_z <- fit$estimates$log_z[2] <- fit$log_z + 0.1
  p <- picture(fit, "islands")
  expect_equal(layer(p, 1)$xintercept, fit$log_z)
  pooled <- layer(p, 4)
  expect_equal(pooled$x, fit$estimates$log_z)
  expect_equal(pooled$xmin, fit$estimates$conf_low)
  expect_equal(pooled$xmax, fit$estimates$conf_high)
  expect_lt(max(pooled$y), 1)
  expect_gt(pooled$y[1], pooled$y[2])
  ticks <- build(p)$layout$panel_params[[1]]$y
  expect_identical(ticks$get_labels(), c("1", "2", "3", "SMC", "bridge"))
})

test_that("the diagnostics are shown as fractions of their limits", {
  fit <- klmc_fit
  fit$diagnostics <- tibble::tibble(
    name = c("half", "some_failed", "none", "below", "far", "unknown", "enough", "too_few"),
    value = c(0.9, 5, 0, -3, 60, NA, 20, 8), limit = c(1.8, 0, 0, 2, 4, 1, 10, 10),
    passed = c(TRUE, FALSE, TRUE, TRUE, FALSE, TRUE, TRUE, FALSE), says = "This."
  )
  bars <- layer(picture(fit, "diagnostics"), 1)
  expect_equal(bars$xmax, c(0.5, 2, 0, 0, 2, 0, 0.5, 1.25))
  # what has failed is beyond the line, also where it fails below its limit, and nothing else is
  expect_identical(bars$xmax <= 1, fit$diagnostics$passed)
  expect_true(all(diff(bars$ymin) < 0)) # the first on top
  expect_identical(bars$fill == bars$fill[1], fit$diagnostics$passed)
  p <- picture(fit, "diagnostics")
  expect_identical(layer(p, 3)$label[1:2], c("half", "some failed"))
  expect_lt(max(layer(p, 3)$x), 0) # beside the bars
  expect_identical(layer(p, 4)$label == "passed", fit$diagnostics$passed)
  expect_true(all(layer(p, 4)$x > 2)) # beyond the longest bar
  expect_identical(layer(picture(klmc_fit, "diagnostics"), 3)$label[1], "island scatter")
  expect_equal(drawn(plot(fit, "diagnostics"), "C_rect")[[1]][[4]], bars$xmax)
})

test_that("the overview has the islands, the diagnostics and some of the variables", {
  fit <- klmc_fit
  layers <- function(what) {
    data <- build(picture(fit, what))$data
    lapply(data, function(layer) layer[setdiff(names(layer), "PANEL")])
  }
  # what each shows by itself
  overview <- layers("overview")
  expect_equal(overview[1:4], layers("islands")[1:4], ignore_attr = TRUE)
  expect_equal(overview[7:11], layers("diagnostics")[1:5], ignore_attr = TRUE)
  expect_equal(overview[12], layers("draws")[1], ignore_attr = TRUE)
  # beside the islands and the estimates what they are, at the left edge
  expect_identical(overview[[5]]$label, paste0(" ", islands_data(fit)$label))
  expect_true(all(overview[[5]]$x == -Inf))
  expect_lt(overview[[6]]$x, min(fit$islands$log_z, fit$conf_low))
  # the axis of the diagnostics ends where their names begin
  ticks <- lapply(build(picture(fit))$layout$panel_params, function(panel) panel$x$get_breaks())
  expect_equal(as.numeric(ticks[[2]]), 0:2)
  panels_of <- function(...) {
    p <- picture(...)
    as.character(build(p)$layout$layout$panel)
  }
  first <- c("log Z of the islands", "diagnostics (limit: 1)")
  expect_identical(panels_of(fit), c(first, "x1", "x2"))
  expect_identical(panels_of(fit, variables = "x2"), c(first, "x2"))
  # what there is not is left out
  expect_identical(panels_of(adapted_fit()), "x1")
  n_panels <- function(fit) length(drawn(plot(fit), "C_plot_window"))
  expect_identical(n_panels(fit), 4L)
  expect_identical(n_panels(adapted_fit()), 1L)
})

test_that("islands in which all died are shown too", {
  fit <- fit_with_dead_islands()
  dead <- fit$islands$log_z == -Inf
  expect_true(any(dead) && !all(dead))
  p <- picture(fit, "islands")
  expect_equal(layer(p, 2)$y, which(!dead))
  expect_equal(layer(p, 3)$y, which(dead))
  expect_equal(layer(p, 3)$x, rep(-Inf, sum(dead)))
  expect_match(layer(p, 3)$label, "-Inf")
})

test_that("the histograms have the weights of the draws", {
  fit <- other_kernels$lmc
  w <- exp(fit$log_weights)
  bars <- read_layer(picture(fit, "draws"), 1)
  expect_identical(unique(bars$label), c("x1", "x2"))
  for (name in c("x1", "x2")) {
    b <- bars[bars$label == name, ]
    width <- b$xmax - b$xmin
    area <- width * b$ymax
    expect_equal(b$ymin, rep(0, nrow(b)))
    x <- fit$particles[, name]
    ends <- range(x[order(x)][cumsum(w[order(x)]) > 0.001 & rev(cumsum(rev(w[order(x)]))) > 0.001])
    shown <- w * (x >= ends[1] & x <= ends[2])
    expect_equal(sum(area), sum(shown))
    # in a bar no draw is further from its middle than half its width
    middle <- sum(area * (b$xmin + b$xmax) / 2)
    expect_lte(abs(middle - sum(shown * x)), max(width) / 2)
    below <- vapply(b$xmax, function(at) sum(shown[x < at]), 0)
    expect_equal(cumsum(area), below)
  }
})

test_that("a histogram does without draws of no weight, and with a single value", {
  x <- c(1, 2, 3, 1e6, NaN)
  bars <- weighted_histogram(x, c(0.5, 0.25, 0.25, 0, 0))
  expect_lte(max(bars$to), 4)
  expect_equal(sum(bars$density * (bars$to - bars$from)), 1)
  one <- weighted_histogram(c(3, 3), c(0.5, 0.5))
  expect_equal(sum(one$density * (one$to - one$from)), 1)
  expect_true(all(one$density[one$from > 3 | one$to < 3] == 0))
})

test_that("`variables` chooses the variables and their order", {
  fit <- calmly(smc_run(target_sonar(), data.frame(lambda = 1, step_size = 0.1),
    n_particles = 16, seed = 1
  ))
  shown <- function(...) unique(read_layer(picture(fit, "draws", ...), 1)$label)
  expect_identical(shown(), paste0("V", 1:6))
  expect_identical(shown(variables = c("intercept", "V3")), c("intercept", "V3"))
})

test_that("long names are shortened, and stay apart", {
  long <- paste0("a_very_long_name_of_a_coefficient[", 1:2, "]")
  expect_identical(
    shorten(c(long, "beta")),
    c("a_very_long...ficient[1]", "a_very_long...ficient[2]", "beta")
  )
  fit <- klmc_fit
  same <- paste0(strrep("a", 20), c("x", "y"), strrep("b", 20))
  colnames(fit$particles) <- fit$target$names <- same
  p <- picture(fit, "draws")
  built <- build(p)
  expect_identical(as.character(built$layout$layout$variable), same)
})

test_that("all plots of all fits are drawn without a word", {
  skip_if_not_installed("ggplot2")
  pdf(NULL)
  on.exit(dev.off())
  one_step <- tiny(n_steps = 1, rounds = 0)
  silent <- function(fit, kinds) {
    for (what in kinds) expect_silent(print(picture(fit, what)))
  }
  silent(klmc_fit, all_kinds)
  silent(one_step, c("run", "barrier"))
  silent(fit_with_dead_islands(), c("overview", "islands"))
  for (fit in other_kernels) silent(fit, "run") # which alone depends on the kernel
})

# R's graphics ----------------------------------------------------------------

test_that("R's graphics draw what ggplot2 draws", {
  skip_if_not_installed("ggplot2")
  lines_and_points <- function(code) {
    xy <- lapply(drawn(code, "C_plotXY"), `[[`, 2)
    xy <- data.frame(
      x = unlist(lapply(xy, `[[`, "x")),
      y = unlist(lapply(xy, `[[`, "y"))
    )
    xy <- xy[!is.na(xy$y), ] # what plot() is first called with
    xy[order(xy$x, xy$y), ]
  }
  of_layers <- function(p, layers) {
    xy <- lapply(layers, function(i) layer(p, i)[c("x", "y")])
    xy <- do.call(rbind, xy)
    xy[order(xy$x, xy$y), ]
  }
  for (fit in c(list(klmc_fit), other_kernels)) {
    expect_equal(
      lines_and_points(plot(fit, "run")), of_layers(picture(fit, "run"), 1:2),
      ignore_attr = TRUE
    )
    expect_equal(
      lines_and_points(plot(fit, "barrier")), of_layers(picture(fit, "barrier"), 1),
      ignore_attr = TRUE
    )
    expect_equal(
      lines_and_points(plot(fit, "islands")),
      of_layers(picture(fit, "islands"), c(2, 4)),
      ignore_attr = TRUE
    )
  }
  interval <- drawn(plot(klmc_fit, "islands"), "C_segments")[[1]]
  expect_equal(c(interval[[2]], interval[[4]]), with(klmc_fit, c(conf_low, conf_high)))
  bars <- drawn(plot(klmc_fit, "draws"), "C_rect")
  expect_length(bars, 2)
  shown <- layer(picture(klmc_fit, "draws"), 1)
  expect_equal(unlist(lapply(bars, `[[`, 5)), shown$ymax)
})

test_that("R's graphics show islands in which all died", {
  fit <- fit_with_dead_islands()
  texts <- drawn(plot(fit, "islands"), "C_text")
  expect_equal(
    vapply(texts, function(call) call[[2]]$y, 0),
    which(fit$islands$log_z == -Inf)
  )
})

test_that("plot() returns the fit, unseen, and leaves the device as it was", {
  pdf(NULL)
  on.exit(dev.off())
  par(cex = 1.2, mar = c(5, 4, 3, 2), tcl = -0.6, oma = c(1, 1, 1, 1))
  of_the_plot <- c("usr", "xaxp", "yaxp") # its coordinates, to add to it
  before <- par(no.readonly = TRUE)
  for (what in all_kinds) {
    seen <- withVisible(plot(klmc_fit, what))
    expect_identical(seen$value, klmc_fit)
    expect_false(seen$visible)
    after <- par(no.readonly = TRUE)
    others <- setdiff(names(before), of_the_plot)
    expect_equal(after[others], before[others])
  }
})

test_that("maps name what they transform, and have one scale", {
  skip_if_not_installed("ggplot2")
  target <- target_function(
    function(x) dexp(x[, 1], log = TRUE) + dnorm(x[, 2], 0, x[, 1], log = TRUE), 2,
    gradient = function(x) cbind(-1 - 1 / x[, 1] + x[, 2]^2 / x[, 1]^3, -x[, 2] / x[, 1]^2),
    vectorized = TRUE, names = c("scale", "effect"), lower = c(scale = 0)
  )
  fit <- calmly(smc(target, n_particles = 256, islands = 4, seed = 1))
  data <- views()$maps$data(fit)
  expect_identical(unique(data$x_name), c("log(scale)", "coordinate of log(scale)"))
  expect_identical(unique(data$y_name), c("effect", "coordinate of effect"))
  p <- picture(fit, "maps")
  expect_identical(p$theme$aspect.ratio, 1)
  ranges <- lapply(c("panel_scales_x", "panel_scales_y"), function(scale) build(p)$layout[[scale]][[2]]$range$range)
  expect_identical(ranges[[1]], ranges[[2]])
  windows <- drawn(plot(fit, "maps"), "C_plot_window")
  expect_identical(windows[[2]][[2]], windows[[2]][[3]])
})

test_that("what is constant has no histogram", {
  fit <- klmc_fit
  fit$particles <- cbind(zero = 0, fit$particles)
  expect_identical(levels(draws_data(fit, NULL)$variable), c("x1", "x2"))
  expect_identical(levels(draws_data(fit, c("zero", "x2"))$variable), "x2")
  expect_error(plot(fit, "draws", variables = "zero"), "must vary over the draws; zero does not", class = "autosmc_error_input")
})

test_that("plots of one panel go into a layout of one's own", {
  pages <- tempfile(fileext = ".pdf")
  pdf(pages, onefile = FALSE)
  on.exit(unlink(pages))
  par(mfrow = c(2, 2))
  places <- lapply(c("islands", "barrier", "islands"), function(what) {
    plot(klmc_fit, what)
    par("mfg")[1:2]
  })
  plot(klmc_fit, "draws", variables = "x1")
  expect_equal(par("mfg")[1:2], c(2, 2))
  dev.off()
  expect_equal(places, list(c(1, 1), c(1, 2), c(2, 1)))
})

# arguments -------------------------------------------------------------------

test_that("arguments are checked, by both", {
  both <- list(plot, if (requireNamespace("ggplot2", quietly = TRUE)) ggplot2::autoplot)
  for (draw in Filter(Negate(is.null), both)) {
    for (what in list("trace", "schedule", NA, 1, NULL, c("draws", "islands"))) {
      expect_bad(draw(klmc_fit, what), "what")
    }
    for (variables in list("x3", c("x1", NA), 1, character(), TRUE)) {
      expect_bad(draw(klmc_fit, "draws", variables = variables), "variables")
    }
    expect_bad(draw(klmc_fit, "barrier", variables = "x1"), "variables")
    expect_bad(draw(klmc_fit, title = "title"), "title")
    expect_bad(draw(adapted_fit(), "islands"), "islands")
    expect_error(draw(adapted_fit(), "diagnostics"), "needs a fit with diagnostics",
      class = "autosmc_error_input"
    )
    expect_bad(draw(tiny(islands = 1), "islands"), "islands")
  }
  expect_error(plot(klmc_fit, "draws", "x3"), '"x1" and "x2"')
  expect_match(
    message_of(catch(plot(klmc_fit, "trace"))),
    '"overview", "run", "islands", "diagnostics", "barrier", "draws", "maps"'
  )
  expect_error(plot(tiny(islands = 1), "islands"), "several islands; this one has 1")
})

test_that("a heavy tail leaves a histogram its shape, and a vector is named by its own name", {
  x <- c(seq(-1, 1, length.out = 1998), -1e6, 1e6)
  bars <- weighted_histogram(x, rep(5e-4, 2000))
  expect_lt(max(abs(bars$to)), 2)
  expect_gte(sum(bars$density * (bars$to - bars$from)), 0.998)
  expect_identical(check_variables("tau", c("tau[1]", "tau[2]", "taut")), c("tau[1]", "tau[2]"))
})
