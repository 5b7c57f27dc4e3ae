# The tables of bench/README.md, of README.md and of vignettes/articles/measured.Rmd, from the files in
# bench/results/. Each function returns the lines of one table in Markdown.

results_of <- function(name, folder = results_folder) {
  utils::read.csv(file.path(folder, paste0(name, ".csv")), row.names = NULL)
}
results_folder <- normalizePath(Find(dir.exists, c("bench/results", "results", "../../bench/results")))

# A table of columns, by their names. Those that begin with a number are right-aligned.
markdown <- function(...) {
  columns <- lapply(list(...), function(x) ifelse(is.na(x), "", trimws(as.character(x))))
  align <- ifelse(grepl("^[-0-9.<]", vapply(columns, `[`, "", 1)), "--:", ":--")
  row <- function(cells) paste0("| ", paste(cells, collapse = " | "), " |")
  cells <- matrix(unlist(columns), ncol = length(columns))
  c(row(names(columns)), paste0("|", paste(align, collapse = "|"), "|"), apply(cells, 1, row))
}
digits <- function(x, n = 3) ifelse(is.na(x), NA, sprintf("%.*f", n, x))
significant <- function(x, n = 2) ifelse(is.na(x), NA, format_each(signif(x, n)))
format_each <- function(x) vapply(x, function(one) format(one, big.mark = ",", scientific = abs(one) < 1e-4), "")
counted <- function(x) format_each(signif(x, 3))
percent <- function(x) sprintf("%.0f %%", 100 * x)
rms <- function(x) sqrt(mean(x^2, na.rm = TRUE))

# A row for each group of rows of a table, in the order in which the groups come.
by_group <- function(table, group, f) {
  groups <- split(table, factor(group, unique(group)))
  do.call(rbind, lapply(groups, function(rows) as.data.frame(f(rows))))
}

# suites ------------------------------------------------------------------------

suite_fits <- function() {
  analyses <- results_of("suite_analyses")
  analyses$class <- paste("analyses:", analyses$class)
  rbind(results_of("suite_shapes"), analyses)
}

suites_table <- function() {
  fits <- suite_fits()
  summary <- function(rows) {
    list(
      fits = nrow(rows), wrong = sum(rows$wrong), silent = sum(rows$silent), warned = sum(rows$warned & !rows$wrong),
      covered = mean(rows$covered), z = rms(rows$error / rows$std_error),
      error = stats::median(abs(rows$error), na.rm = TRUE), evaluations = stats::median(rows$n_target_evals)
    )
  }
  by_class <- by_group(rbind(fits, transform(fits, class = "all")), c(fits$class, rep("all", nrow(fits))), summary)
  with(by_class, markdown(
    class = row.names(by_class), fits = format_each(fits), wrong = wrong, "of these silent" = silent,
    "warned and right" = warned, "interval holds" = percent(covered), "RMS error / claimed" = digits(z, 2),
    "median error" = significant(error), "median evaluations" = counted(evaluations)
  ))
}

# A row a model.
several_table <- function() {
  fits <- results_of("suite_several")
  by_model <- by_group(fits, fits$model, function(rows) {
    list(
      d = rows$d[1], fits = nrow(rows), wrong = sum(rows$wrong), warned = sum(rows$warned),
      error = stats::median(abs(rows$error)), claimed = stats::median(rows$std_error),
      evaluations = stats::median(rows$n_target_evals)
    )
  })
  with(by_model, markdown(
    model = sprintf("`%s`", row.names(by_model)), dimension = d, fits = fits, wrong = wrong, warned = warned,
    "median error" = significant(error), claimed = significant(claimed), "median evaluations" = counted(evaluations)
  ))
}

# The fits that are wrong, a row each.
wrong_table <- function() {
  fits <- suite_fits()
  fits <- fits[fits$wrong | fits$warned, ]
  with(fits, markdown(
    model = sprintf("`%s`", model), seed = seed, error = digits(error, 2), claimed = digits(std_error, 3),
    wrong = ifelse(wrong, "yes", "no"), warned = ifelse(warned, "yes", "no")
  ))
}

truths_table <- function() {
  truths <- results_of("truths")
  truths$off <- abs(truths$truth - truths$second)
  by_way <- by_group(truths, truths$how, function(rows) {
    list(models = nrow(rows), second = sum(!is.na(rows$second)), off = stats::median(rows$off, na.rm = TRUE))
  })
  with(by_way, markdown(
    "how the evidence is known" = row.names(by_way), models = models, "also by a second way" = second,
    "median difference" = significant(off)
  ))
}

# A row for each rule whose other values have changed an estimate or the evaluations; its attribute has the others.
rules_table <- function() {
  rules <- results_of("rules")
  now <- rules[rules$rule == "none", ]
  rules <- rules[rules$rule != "none", ]
  rules$change <- rules$n_target_evals / now$n_target_evals[match(rules$model, now$model)]
  rules$apart <- abs(rules$error - now$error[match(rules$model, now$model)]) /
    sqrt(rules$std_error^2 + now$std_error[match(rules$model, now$model)]^2)
  by_rule <- by_group(rules, rules$rule, function(rows) {
    list(
      rule = sprintf("`%s`", rows$rule[1]), values = paste(shortened(unique(rows$value)), collapse = "; "),
      fits = nrow(rows), wrong = sum(rows$wrong), warned = sum(rows$warned),
      apart = max(rows$apart), least = min(rows$change), most = max(rows$change)
    )
  })
  has_say <- by_rule$apart > 0.05 | by_rule$least < 0.995 | by_rule$most > 1.005
  structure(with(by_rule[has_say, ], markdown(
    rule = rule, "other values" = values, fits = fits, wrong = wrong, warned = warned,
    "largest change, in errors" = digits(apart, 1),
    "evaluations, ratio" = sprintf("%.2f to %.2f", least, most)
  )), unchanged = toString(by_rule$rule[!has_say]))
}

shortened <- function(x) ifelse(nchar(x) > 20, paste0(substr(x, 1, 16), " ..."), x)

# estimates ---------------------------------------------------------------------

defaults_table <- function() {
  defaults <- results_of("defaults")
  row <- function(rows) {
    error <- stats::median(rows$std_error)
    decimals <- if (error < 0.001) 4 else 3
    log_z <- sub("^-(0[.]0+)$", "\\1", sprintf("%.*f", decimals, sort(rows$log_z)))
    name <- sub(" d = .*", "", rows$target[1])
    list(
      target = if (name == "cars") "regression of `cars`, by RTMB" else sub("3 ", "3, ", name),
      d = rows$d[1], truth = format(round(rows$truth[1], 3)), log_z = toString(log_z),
      error = if (error < 5e-5) format(error, digits = 1) else sprintf("%.*f", if (error < 0.01) 4 else 3, error),
      evals = format(round(stats::median(rows$n_target_evals)), big.mark = ","),
      smc = digits(stats::median(rows$smc_std_error))
    )
  }
  with(by_group(defaults, defaults$target, row), markdown(
    target = target, dimension = d, truth = truth, "log Z" = log_z, "standard error, median" = error,
    "evaluations, median" = evals, "SMC alone" = smc
  ))
}

effects_table <- function() {
  with(results_of("effects"), markdown(
    model = model, effects = format_each(effects), truth = digits(truth), "its error" = digits(truth_error),
    "log Z" = digits(log_z), "standard error" = digits(std_error), "Laplace" = digits(laplace, 2),
    "its standard error" = digits(laplace_error, 2), evaluations = counted(n_target_evals),
    gradients = counted(n_joint_gradients), seconds = digits(seconds, 0)
  ))
}

coverage_table <- function() {
  with(results_of("coverage"), markdown(
    target = gsub("_", " ", target), fits = fits, "mean error" = significant(mean_error),
    "RMS error" = significant(rms_error), "RMS claimed" = significant(rms_claimed),
    "largest error" = significant(largest_error), "interval holds" = percent(covered), warned = percent(warned),
    evaluations = counted(evaluations)
  ))
}

stopped_table <- function() {
  with(results_of("stopped"), markdown(
    model = gsub("_", " ", model), precision = format_each(precision), fits = fits,
    "RMS error" = significant(rms_error), "RMS claimed" = significant(rms_claimed), reached = percent(reached),
    "interval holds" = percent(covered), islands = digits(islands, 0), evaluations = counted(evaluations)
  ))
}

# How often errors hold, with the interval of this share.
held <- function(share, low, high) sprintf("%s (%s to %s)", percent(share), percent(low), percent(high))

neighbours_table <- function() {
  rows <- results_of("neighbours")
  kind <- with(rows, ifelse(grepl("curve", case), from, ifelse(setting %in% c(0.1, 50), "warm, far", from)))
  rows$kind <- paste0(rows$case, ifelse(nzchar(kind), paste0(": ", kind), ""))
  rows <- rbind(rows, transform(rows[grepl("curve", rows$case), ], kind = paste0(case, ": all")))
  by_kind <- by_group(rows, rows$kind, function(x) {
    inside <- sum(abs(x$log_z - x$exact) <= 2 * x$std_error)
    interval <- stats::binom.test(inside, nrow(x))$conf.int
    of_seeds <- tapply(x$evals, x$seed, sum) / tapply(x$cold, x$seed, max)
    if (!grepl("curve", x$case[1])) of_seeds <- x$evals / x$cold
    list(
      n = nrow(x), held = held(inside / nrow(x), interval[1], interval[2]),
      z = rms((x$log_z - x$exact) / x$std_error), cost = mean(of_seeds), most = max(of_seeds)
    )
  })
  with(by_kind, markdown(
    case = row.names(by_kind), n = n, "two errors hold" = held, "RMS error / claimed" = digits(z, 2),
    "evaluations / cold fit" = digits(cost, 2), most = digits(most, 2)
  ))
}

points_table <- function() {
  with(results_of("points"), markdown(
    case = gsub("_", " ", case), fits = seeds, "by a fit" = percent(by_fit), "RMS error" = significant(rms_error),
    "RMS claimed" = significant(rms_claimed), "interval holds" = held(covered, covered_low, covered_high)
  ))
}

many_table <- function() {
  with(results_of("many"), markdown(
    quantity = quantity, of = term, n = fits, "RMS error" = significant(rms_error),
    "RMS claimed" = significant(rms_claimed), holds = held(covered, low, high)
  ))
}

stan_table <- function() {
  with(results_of("stan"), markdown(
    program = gsub("_", " ", program), d = dim, "exact log Z" = digits(exact), median = digits(log_z),
    "largest error" = digits(error, 4), claimed = digits(claimed, 4), seconds = digits(seconds, 1),
    "gradient, µs" = gradient_us, "compiling, s" = digits(compile_s, 0),
    "means differ" = sprintf("%.3f (%.1f)", mean_off, mean_z), "sds differ" = sprintf("%.3f (%.1f)", sd_off, sd_z)
  ))
}

# A row a model of brms: the fits with the oldest and the newest brms, what bridge sampling has, and the prior alone.
brms_table <- function() {
  fits <- results_of("brms_programs")
  bridge <- results_of("brms_bridge")
  models <- unique(c(fits$model, bridge$model))
  of_models <- function(rows) rows[match(models, rows$model), ]
  versions <- as.character(sort(unique(numeric_version(fits$brms))))
  by_version <- lapply(versions, function(version) of_models(fits[fits$brms == version, ]))
  bridge <- of_models(bridge)
  columns <- list(model = gsub("_", " ", models), d = of_models(fits)$d)
  for (k in seq_along(versions)) {
    columns[[paste0("log Z, brms ", versions[k])]] <- with(by_version[[k]], with_error(log_z, std_error))
    columns[[paste0("seconds, ", versions[k])]] <- digits(by_version[[k]]$seconds, 1)
  }
  columns[["bridge sampling"]] <- with_error(bridge$log_z, bridge$std_error)
  columns[["seconds, bridge"]] <- digits(bridge$seconds, 1)
  columns[["prior alone"]] <- with(by_version[[1]], with_error(prior_log_z, prior_error))
  for (k in seq_len(nrow(brms_lacking))) {
    lacking <- brms_lacking[k, ]
    for (column in names(columns)[startsWith(names(columns), lacking$column)]) {
      columns[[column]][models == lacking$model] <- lacking$why
    }
  }
  do.call(markdown, columns)
}

# What there is not, and why.
brms_lacking <- data.frame(
  model = c("gaussian_process", "conditional_autoregression", "threads"),
  column = c("log Z, brms 2.23", "prior alone", "bridge"),
  why = c("not run", "improper in brms", "no threads in rstan 2.21")
)

old_stan_table <- function() {
  with(results_of("old_stan"), markdown(
    program = program, "log density" = digits(log_density, 4),
    "largest difference" = sprintf("%.0e", largest_difference), "brought up to date" = changes,
    "by rstan's converter" = by_rstan
  ))
}

with_error <- function(x, error) ifelse(is.na(x), NA, sprintf("%.3f (%.3f)", round(x, 3) + 0, error))

# draws -------------------------------------------------------------------------

posterior_table <- function() {
  posterior <- results_of("posterior")
  shown <- c(
    rhat = "largest rhat", error = "largest error of a mean, in sds", z = "RMS error of the means over `mcse`",
    ess = "median effective sample size, by islands", kish = "effective sample size, by weights alone"
  )
  of <- function(f) significant_rhat(vapply(posterior[names(shown)], f, 0))
  markdown("of 32 fits" = unname(shown), least = of(min), median = of(stats::median), most = of(max))
}
significant_rhat <- function(x) format_each(signif(x, ifelse(x > 1 & x < 1.1, 4, 2)))

reference_table <- function() {
  draws <- results_of("reference_draws")
  draws <- draws[is.finite(draws$mean_error), ]
  draws$heavy <- nzchar(ifelse(is.na(draws$heavy_tails), "", draws$heavy_tails))
  off <- draws$mean_error >= 0.1 | draws$sd_error >= 0.1
  row <- function(rows) {
    list(
      fits = nrow(rows), mean = stats::median(rows$mean_error), most_mean = max(rows$mean_error),
      sd = stats::median(rows$sd_error), most_sd = max(rows$sd_error), heavy = sum(rows$heavy)
    )
  }
  by_off <- by_group(draws, ifelse(off, "other fits", "fits with all means within 0.1 sd, all sds within 10 %"), row)
  with(by_off, markdown(
    " " = row.names(by_off), fits = fits, "largest error of a mean, median fit" = digits(mean),
    "worst fit" = digits(most_mean, 2), "of an sd, median fit" = digits(sd), "worst fit " = digits(most_sd, 2),
    "warned of heavy tails" = heavy
  ))
}

# others ------------------------------------------------------------------------

peers_names <- c(
  regression = "regression of `cars`, 3", eight_schools = "eight schools, 10",
  normal = "N(3, I), 10", brownian = "Brownian, 32", sonar = "Sonar, 61",
  gp = "Gaussian process, 3", multilevel = "multilevel regression, 31",
  ode = "differential equation, 2"
)
peers_methods <- c(
  smc = "`smc()`", "bridge normal" = "Stan and bridgesampling", "bridge warp3" = "the same, `\"warp3\"`",
  BayesianTools = "BayesianTools, SMC", ernest = "ernest, nested sampling", Laplace = "RTMB, Laplace"
)

peers_table <- function() {
  peers <- results_of("peers")
  size <- function(x) if (x < 5e-4) "<0.001" else sprintf(if (x < 1) "%.3f" else "%.1f", x)
  cell <- function(model, method) {
    row <- peers[peers$model == model & peers$method == method, ]
    if (nrow(row) == 0 || is.na(row$rmse)) {
      return(if (nrow(row) == 0) "" else "failed")
    }
    seconds <- if (row$seconds < 0.1) "<0.1" else sprintf(if (row$seconds < 10) "%.1f" else "%.0f", row$seconds)
    paste0(
      size(row$rmse), if (!is.na(row$claimed)) sprintf(" (%s)", size(row$claimed)), ", ", seconds, " s",
      if (row$failed > 0) sprintf("; %d failed", row$failed)
    )
  }
  columns <- lapply(names(peers_methods), function(method) {
    vapply(names(peers_names), cell, "", method = method, USE.NAMES = FALSE)
  })
  do.call(markdown, c(
    list("model, dimension" = unname(peers_names)), stats::setNames(columns, peers_methods)
  ))
}

# The square of an error times the evaluations, which more of these leave as it is.
efficiency_table <- function() {
  peers <- results_of("peers")
  of <- function(method) {
    rows <- peers[peers$method == method, ]
    rows[match(names(peers_names), rows$model), ]
  }
  ours <- of("smc")
  theirs <- of("bridge warp3")
  cost <- function(rows) rows$rmse^2 * rows$evaluations
  markdown(
    "model, dimension" = unname(peers_names), "`smc()`: RMSE" = significant(ours$rmse),
    evaluations = counted(ours$evaluations), "RMSE² × evaluations" = significant(cost(ours)),
    "Stan and `\"warp3\"`: RMSE" = significant(theirs$rmse), "evaluations " = counted(theirs$evaluations),
    "RMSE² × evaluations " = significant(cost(theirs)),
    ratio = ifelse(cost(theirs) > 1e6 * cost(ours), "above a million", significant(cost(theirs) / cost(ours)))
  )
}

# the paper's method ------------------------------------------------------------

benchmarks_table <- function() {
  with(results_of("benchmarks"), markdown(
    target = target, kernel = kernel, "median log Z" = digits(median, 2),
    "80 % band" = sprintf("%.2f to %.2f", q10, q90), "cost of adapting" = digits(adapt_cost, 2)
  ))
}

backward_table <- function() {
  with(results_of("backward_kernels"), markdown(
    "backward kernel" = gsub("_", " ", backward), seeds = seeds, "median log Z" = digits(median, 2),
    "80 % band" = sprintf("%.2f to %.2f", q10, q90)
  ))
}

first_backward_table <- function() {
  found <- results_of("first_backward")
  of <- function(kernel) {
    with(found[found$first_backward == kernel, ], sprintf("%.2f (%.2f to %.2f)", median, q10, q90))
  }
  markdown(
    "median log Z (80 % band)" = gsub("_", " ", unique(found$target)), "the reference" = of("reference"),
    "its own Langevin kernel" = of("independent")
  )
}

tuner_table <- function() {
  search <- results_of("tuner_search")
  way <- with(search, sprintf("%s, tolerance %s, start %s, growth %s", search, tolerance, start, growth))
  row <- function(rows) {
    list(
      cases = nrow(rows), first = mean(rows$evals_first), later = mean(rows$evals_later), cost = mean(rows$adapt_cost)
    )
  }
  by_way <- by_group(search, way, row)
  with(by_way, markdown(
    search = row.names(by_way), cases = cases, "evaluations, first step" = digits(first, 1),
    "later steps" = digits(later, 1), "cost of adapting" = digits(cost, 2)
  ))
}

# cost --------------------------------------------------------------------------

cost_table <- function() {
  words <- c(
    share = "run of a target that costs nothing, over that of the target",
    floor = "run, over its evaluations and random normals alone", threads = "one thread, over two",
    cores = "one process, over two at once that share nothing", workers = "this process, over this one and a worker",
    version = "fit by the defaults, over that of an older version", "version per evaluation" = "the same, an evaluation"
  )
  by_measure <- by_group(results_of("cost"), results_of("cost")$measure, function(rows) {
    list(cases = toString(gsub("_", " ", rows$case)), ratios = toString(digits(rows$ratio, 2)))
  })
  with(by_measure, markdown(
    "ratio of seconds" = unname(words[row.names(by_measure)]), cases = cases, ratios = ratios
  ))
}

memory_table <- function() {
  words <- c(
    run_klmc = "`smc_run()`, KLMC", run_lmc = "`smc_run()`, LMC", draws = "`smc()`",
    moments = "`smc(keep = \"moments\")`", million = "`smc(rounds = 0)`"
  )
  with(results_of("memory"), markdown(
    call = unname(words[case]), particles = counted(n_particles), MB = counted(mb),
    "doubles a coordinate of a particle" = digits(doubles, 1)
  ))
}

rtmb_table <- function() {
  rtmb <- utils::read.csv(text = sub("logistic regression, d = 60", "logistic regression d = 60",
    readLines(file.path(results_folder, "rtmb.csv")), fixed = TRUE
  ))
  with(rtmb, markdown(
    model = model, form = form, value = sprintf("%s (%s)", significant(value), significant(ratio_value)),
    "value and gradient" = sprintf("%s (%s)", significant(with_gradient), significant(ratio_with_gradient))
  ))
}

# From the top of the checkout. to: another file.
write_readme <- function(to = "bench/README.md") {
  knitr::knit("bench/README.Rmd", to, quiet = TRUE, envir = new.env())
  lines <- readLines(to)
  is_double <- !nzchar(lines) & !c(FALSE, nzchar(lines)[-length(lines)])
  writeLines(lines[!is_double], to)
}

if (sys.nframe() == 0) write_readme()
