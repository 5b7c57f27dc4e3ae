# What each picture shows, call by call and layer by layer, of numbers that are made up. A person has looked at the
# pictures from which the snapshots were taken: after a change look again, at each.

made_fit <- function() {
  fit <- calmly(smc(target_gaussian(2, mean = 2), n_particles = 16, n_steps = 2, rounds = 1, islands = 3, seed = 1))
  fit$islands$log_z <- c(-1.25, -1, -0.75)
  fit$log_z <- -1.0625
  fit$estimates <- data.frame(
    method = c("smc", "bridge"), log_z = c(-1, -1.0625), std_error = c(0.125, 0.0625), conf_low = c(-1.25, -1.1875),
    conf_high = c(-0.75, -0.9375)
  )
  fit$diagnostics <- data.frame(
    name = c("scatter", "dead_islands", "proper", "ancestor_ess"), value = c(0.5, 0, 12, 0.06),
    limit = c(1, 0, 8, 0.12), passed = c(TRUE, TRUE, FALSE, FALSE), shift = 0, says = "This."
  )
  fit$runs <- data.frame(run = rep(c("adapt", "final"), 2:3), round = c(0, 1, NA, NA, NA), used = 1:5 > 1)
  run <- rep(1:5, each = 2)
  fit$steps <- data.frame(
    run = fit$runs$run[run], round = fit$runs$round[run], island = c(NA, NA, 1:3)[run], step = 1:2, lambda = c(0.5, 1),
    step_size = 10^-run, refresh_rate = NA, acceptance = 0.5 + run / 16, ess = 8 + run, barrier = run * 1:2 / 4,
    log_z = -run * 1:2 / 8
  )
  fit$particles <- cbind(x1 = c(rep(0:3, 1:4)), x2 = 1:10 / 4)
  fit$log_weights <- rep(-log(10), 10)
  fit
}

made_comparison <- function() {
  compare_evidence(
    b = c(log_z = -2, std_error = 0.25), a = c(log_z = -1, std_error = 0.125), c = c(log_z = -4, std_error = 0)
  )
}

made_calibration <- function() {
  shares <- data.frame(mean_prob = c(0.25, 0.75), share_true = c(0.3, 0.7), low = c(0.125, 0.5), high = c(0.5, 0.875))
  factors <- data.frame(name = c("null", "effect"), at = -(1:2), low = c(0, -1), middle = c(0.5, 1.5), high = c(1, 4))
  list(shares = shares, factors = factors)
}

made_curve <- function() {
  rows <- expand.grid(scale = c(1, 10, 100), location = 0:1)
  curve <- cbind(rows, log_bf = c(0, -1, -2, 0.5, -0.5, -1.5), log_bf_error = 0.125, from = c("", "reweighted", ""))
  structure(curve, state = list(used = list(10)), class = c("evidence_curve", "data.frame"))
}

made_maps <- function() {
  panels <- c("as they are", "in the coordinates of the reference")
  data.frame(
    panel = factor(rep(panels, each = 2), panels), x = c(0, 1, -1, 1), y = c(10, 20, -2, 1),
    x_name = rep(c("log(tau)", "coordinate of log(tau)"), each = 2),
    y_name = rep(c("theta", "coordinate of theta"), each = 2), reach = c(NA, NA, 2, 2)
  )
}

# R's graphics: the calls of the graphics engine, and which of their arguments say what is seen.
seen_of <- list(
  C_plot_window = 2:3, C_plotXY = 2:3, C_rect = 2:6, C_segments = 2:6, C_abline = 4:6, C_polygon = 2:4, C_text = 2:3,
  C_mtext = 2:3, C_title = 2:5, C_axis = 2:4
)

in_words <- function(x) {
  x <- unlist(x)
  x <- x[!is.na(x)]
  paste(if (is.numeric(x)) signif(x, 3) else x, collapse = " ")
}

drawing_in_words <- function(code) {
  pdf(NULL, 7, 5)
  on.exit(dev.off())
  dev.control("enable")
  force(code)
  calls <- lapply(recordPlot()[[1]], function(entry) as.list(entry[[2]]))
  lines <- lapply(calls, function(call) {
    seen <- call[intersect(seen_of[[call[[1]]$name]], seq_along(call))]
    if (length(seen) > 0) {
      paste(sub("C_", "", call[[1]]$name), paste(Filter(nzchar, lapply(seen, in_words)), collapse = " | "))
    }
  })
  unlist(lines)
}

# ggplot2: the layers, with what is drawn of them, and the panels with the ends of their axes.
columns_seen <- c(
  "x", "y", "xmin", "xmax", "ymin", "ymax", "xend", "yend", "xintercept", "yintercept", "slope", "intercept", "label",
  "hjust", "colour", "fill"
)

ggplot_in_words <- function(p) {
  built <- ggplot2::ggplot_build(p)
  layers <- Map(function(layer, data) {
    columns <- lapply(data[intersect(columns_seen, names(data))], as.vector)
    c(
      sub("Geom", "", class(layer$geom)[1]), if (nrow(data) > 0) paste("  panel", in_words(as.integer(data$PANEL))),
      if (nrow(data) > 0) sprintf("  %s %s", names(columns), vapply(columns, in_words, ""))
    )
  }, built$plot$layers, built$data)
  layout <- built$layout$layout
  named <- intersect(c("panel", "variable"), names(layout))
  ends <- vapply(built$layout$panel_params, function(panel) in_words(c(panel$x.range, panel$y.range)), "")
  panels <- sprintf("panel %s: %s", if (length(named) > 0) layout[[named]] else "", ends)
  c(unlist(layers, use.names = FALSE), panels)
}

pictures <- c(
  lapply(views()[setdiff(names(views()), "maps")], function(view) {
    function() {
      fit <- made_fit()
      if ("variables" %in% names(formals(view$data))) view$data(fit, NULL) else view$data(fit)
    }
  }),
  list(maps = made_maps, evidence = function() evidence_data(made_comparison()), calibration = made_calibration)
)
draws <- c(views(), list(
  evidence = list(base = base_evidence, gg = gg_evidence),
  calibration = list(base = base_calibration, gg = gg_calibration)
))

test_that("R's graphics draw what they did when somebody looked", {
  for (name in names(pictures)) {
    lines <- c(name, drawing_in_words(draws[[name]]$base(pictures[[name]](), main = paste("the", name))))
    expect_snapshot(writeLines(lines))
  }
  lines <- c("curve", drawing_in_words(plot(made_curve(), main = "the curve")))
  expect_snapshot(writeLines(lines))
})

test_that("ggplot2 draws what it did when somebody looked", {
  skip_if_not_installed("ggplot2")
  for (name in names(pictures)) {
    lines <- c(name, ggplot_in_words(draws[[name]]$gg(pictures[[name]]())))
    expect_snapshot(writeLines(lines))
  }
  lines <- c("curve", ggplot_in_words(ggplot2::autoplot(made_curve())))
  expect_snapshot(writeLines(lines))
})
