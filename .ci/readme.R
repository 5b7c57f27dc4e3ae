# Rscript .ci/readme.R [write]
#
# Holds README.md against what is computed: the output of its examples against what they print now, its
# picture against the fit that it shows, its table, bench/README.md and what it says of the suites against
# bench/results/. With `write`, output, picture and tables are made anew; what the text says remains to be
# changed by hand.

write <- identical(commandArgs(TRUE), "write")
readme <- readLines("README.md")
wrong <- character()
complain <- function(...) wrong <<- c(wrong, paste0(...))

# Replaces the lines from `first` to `last`.
replace_lines <- function(lines, first, last, new) {
  c(lines[seq_len(first - 1)], new, lines[-seq_len(last)])
}

# examples --------------------------------------------------------------------
# An R block that another block follows, its output.

fences <- grep("^```", readme)
blocks <- data.frame(
  from = fences[c(TRUE, FALSE)] + 1, to = fences[c(FALSE, TRUE)] - 1,
  language = sub("^```", "", readme[fences[c(TRUE, FALSE)]])
)
has_output <- which(
  blocks$language == "r" & c(blocks$language[-1] == "", FALSE) &
    c(blocks$from[-1] - blocks$to[-nrow(blocks)] == 4, FALSE)
)

run_block <- function(lines, env) {
  utils::capture.output(for (code in parse(text = lines)) {
    value <- withVisible(eval(code, env))
    if (value$visible) print(value$value)
  })
}

tokens <- function(line) strsplit(trimws(gsub("[(),]", " ", gsub("([0-9]),([0-9])", "\\1\\2", line))), "\\s+")[[1]]
numbers <- function(line) suppressWarnings(as.numeric(tokens(line)))
skeleton <- function(line) {
  words <- tokens(line)
  paste(ifelse(is.na(suppressWarnings(as.numeric(words))), words, "#"), collapse = " ")
}

# Whether the numbers of two lines are the same but for Monte Carlo error. An estimate that
# its standard error follows may be off by ten of them; a row of the table of variables
# (mean, sd, quantiles) by a quarter of the sd; counts and seconds by a factor.
agree <- function(ours, theirs) {
  a <- numbers(ours)
  b <- numbers(theirs)
  a <- a[!is.na(a)]
  b <- b[!is.na(b)]
  factor <- function(a, b, most) all(a == b | abs(log(a / b)) < log(most))
  if (grepl("^log Z", ours)) {
    all(abs(a - b) <= 10 * max(a[2], b[2]))
  } else if (grepl("^interval", ours)) { # four standard errors wide
    all(abs(a - b) <= 10 / 4 * max(a[2] - a[1], b[2] - b[1]))
  } else if (grepl("^(sampler|cost|draws|verdict):", ours)) {
    counted <- if (grepl("^cost", ours)) -2 else TRUE # but for the seconds
    factor(a[counted], b[counted], 2)
  } else if (length(a) == 6) {
    value <- c(1, 3, 5)
    limit <- 10 * pmax(a[value + 1], b[value + 1]) + 1e-3
    all(abs(a - b)[value] <= limit) && factor(a[value + 1] + 1e-5, b[value + 1] + 1e-5, 3)
  } else if (length(a) == 5) {
    all(abs(a - b) <= b[2] / 4)
  } else {
    identical(a, b)
  }
}

env <- new.env(parent = globalenv())
n_compared <- 0
if (requireNamespace("RTMB", quietly = TRUE)) {
  shift <- 0 # lines that writing has added
  for (i in has_output) {
    block <- blocks[i, ] # of the code; the next one is its output
    at <- c(blocks$from[i + 1], blocks$to[i + 1]) + shift
    shown <- readme[at[1]:at[2]]
    now <- run_block(readme[(block$from:block$to) + shift], env)
    if (write) {
      readme <- replace_lines(readme, at[1], at[2], now)
      shift <- shift + length(now) - length(shown)
    } else if (!identical(vapply(now, skeleton, "", USE.NAMES = FALSE), vapply(shown, skeleton, "", USE.NAMES = FALSE))) {
      complain("the output of an example has another form now:\n", paste(now, collapse = "\n"))
    } else {
      for (line in which(!mapply(agree, shown, now))) {
        complain("\"", shown[line], "\" is \"", now[line], "\" now")
      }
    }
    n_compared <- n_compared + length(now)
  }

  # The text of the picture names what is in it, so that it is drawn anew when that changes.
  fit <- env$both
  alt <- sprintf(
    "The estimates of %d islands with that of the fit and its interval, %d diagnostics as fractions of their limits, and histograms of %s.",
    nrow(fit$islands), nrow(fit$diagnostics), paste(fit$target$names, collapse = ", ")
  )
  picture <- "man/figures/mtcars.png"
  at <- grep(sprintf("](%s)", picture), readme, fixed = TRUE)
  grDevices::png(if (write) picture else tempfile(fileext = ".png"), width = 1000, height = 620, res = 110)
  plot(fit)
  invisible(grDevices::dev.off())
  shown <- sprintf("![%s](%s)", alt, picture)
  if (write) readme[at] <- shown else if (!identical(readme[at], shown)) complain("the picture should show: ", alt)
} else {
  cat("the examples were not run: RTMB is not installed\n")
}

# the tables ------------------------------------------------------------------

source("bench/tables.R")
table <- peers_table()
head <- match(table[1], readme)
at <- head - 1 + seq_len(which(readme[-seq_len(head)] == "")[1])
if (write) {
  readme <- replace_lines(readme, at[1], at[length(at)], table)
} else if (!identical(readme[at], table)) {
  complain("the table of the others should be:\n", paste(table, collapse = "\n"))
}

if (write) {
  write_readme()
} else {
  bench <- tempfile()
  write_readme(bench)
  if (!identical(readLines(bench), readLines("bench/README.md"))) complain("bench/README.md: run Rscript bench/tables.R")
}

# what the text says -----------------------------------------------------------

text <- gsub("\\s+", " ", paste(readme, collapse = " "))
says <- function(format, ...) {
  phrase <- sprintf(format, ...)
  n_compared <<- n_compared + 1
  if (!grepl(phrase, text, fixed = TRUE)) complain("README.md should say \"", phrase, "\"")
}

peers <- results_of("peers")
of_peers <- function(method, column) {
  rows <- peers[peers$method == method, ]
  stats::setNames(rows[[column]], rows$model)[names(peers_names)]
}
dearer <- of_peers("smc", "seconds") / of_peers("bridge warp3", "seconds")
says("between %.1f and %.1f times the seconds", min(dearer), max(dearer))
sampled <- setdiff(names(peers_methods), "Laplace")
errors <- vapply(sampled, of_peers, numeric(length(peers_names)), column = "rmse")
is_smallest <- apply(errors, 1, which.min) == match("smc", sampled)
says("smallest error on %d of the %d", sum(is_smallest), length(is_smallest))

shapes <- results_of("suite_shapes")
analyses <- results_of("suite_analyses")
fits <- rbind(shapes, analyses)
says("have %d models", length(unique(shapes$model)))
says("%d analyses of R's own data", length(unique(analyses$model)))
says("Of %d fits with %d seeds each, %d were wrong", nrow(fits), length(unique(fits$seed)), sum(fits$wrong))
says("%d of them without a warning; %d warned and were right", sum(fits$silent), sum(fits$warned & !fits$wrong))
says("the truth in %.0f %% of the fits", 100 * mean(fits$covered))
says(
  "the median cost was %s evaluations",
  format(signif(stats::median(fits$n_target_evals), 3), big.mark = ",")
)

draws <- results_of("reference_draws")
draws <- draws[is.finite(draws$mean_error), ]
agrees <- tapply(draws$mean_error < 0.1 & draws$sd_error < 0.1, draws$problem, all)
says("the reference draws of %d posteriors", length(agrees))
says("within 10 %%, for %d.", sum(agrees))

if (write) writeLines(readme, "README.md")
if (length(wrong) > 0) {
  cat(wrong, sep = "\n")
  quit(status = 1)
}
cat("ok:", n_compared, "lines and phrases,", length(table) - 2, "rows\n")
