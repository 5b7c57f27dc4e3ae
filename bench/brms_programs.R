# Which programs that brms writes are understood: as they are, and brought up to date. A row a family or term; nothing
# is compiled to machine code, and nothing is fitted.
#
#   Rscript bench/brms_programs.R [OUT.csv]
#
# The default file is bench/results/brms_programs.csv, with the version of brms.
library(brms)

set.seed(1)
n <- 40
d <- data.frame(
  y = rnorm(n), x = rnorm(n), z = rnorm(n), g = factor(rep(1:8, 5)), by = factor(rep(rep(1:2, each = 4), 5)),
  count = rpois(n, 3), yes = rbinom(n, 1, 0.5), trials = 10L, positive = rexp(n) + 0.1, share = runif(n, 0.1, 0.9),
  level = factor(sample(1:4, n, TRUE), ordered = TRUE), kind = factor(sample(letters[1:3], n, TRUE)),
  ends = sample(c("none", "right"), n, TRUE), error = 0.2, time = rep(1:5, each = 8), weight = runif(n)
)
between <- diag(n)
normal_prior <- function(...) do.call(c, lapply(c(...), function(name) set_prior("normal(0, 1)", nlpar = name)))

models <- list(
  gaussian = list(y ~ x), groups = list(y ~ x + (x | g)), uncorrelated_groups = list(y ~ x + (x || g)),
  groups_by = list(y ~ x + (1 | gr(g, by = by))), student = list(y ~ x, family = student()),
  lognormal = list(positive ~ x, family = lognormal()), skew_normal = list(y ~ x, family = skew_normal()),
  gamma = list(positive ~ x, family = Gamma("log")), beta = list(share ~ x, family = Beta()),
  poisson = list(count ~ x + (1 | g), family = poisson()), negbinomial = list(count ~ x, family = negbinomial()),
  geometric = list(count ~ x, family = geometric()), com_poisson = list(count ~ x, family = brmsfamily("com_poisson")),
  binomial = list(count | trials(trials) ~ x, family = binomial()), bernoulli = list(yes ~ x, family = bernoulli()),
  zero_inflated = list(count ~ x, family = zero_inflated_poisson()), hurdle = list(count ~ x, family = hurdle_poisson()),
  hurdle_gamma = list(positive ~ x, family = hurdle_gamma()), cumulative = list(level ~ x, family = cumulative()),
  sratio = list(level ~ cs(x), family = sratio()), categorical = list(kind ~ x, family = categorical()),
  weibull_censored = list(positive | cens(ends) ~ x, family = weibull()), cox = list(positive ~ x, family = brmsfamily("cox")),
  exgaussian = list(y ~ x, family = exgaussian()), asym_laplace = list(y ~ x, family = asym_laplace()),
  von_mises = list(y ~ x, family = von_mises()), truncated = list(y | trunc(lb = -5) ~ x),
  multivariate = list(mvbind(y, z) ~ x + (1 | p | g)), mixture = list(y ~ x, family = mixture(gaussian, gaussian)),
  distributional = list(bf(y ~ x, sigma ~ z)),
  nonlinear = list(bf(y ~ a * exp(b * x), a + b ~ 1, nl = TRUE), prior = normal_prior("a", "b")),
  smooth = list(y ~ s(x)), gaussian_process = list(y ~ gp(x)), monotonic = list(y ~ mo(level)),
  measurement_error = list(y ~ me(x, error)), missing = list(bf(y ~ mi(x)) + bf(x | mi() ~ 1) + set_rescor(FALSE)),
  autoregression = list(y ~ x + ar(time = time, gr = g)),
  arma_covariance = list(y ~ x + arma(time = time, gr = g, cov = TRUE)),
  weights = list(y | weights(weight) ~ x), standard_errors = list(y | se(error, sigma = TRUE) ~ x),
  offset = list(count ~ x + offset(z), family = poisson()), fixed_covariance = list(y ~ x + fcor(M), data2 = list(M = between)),
  horseshoe = list(y ~ x + z, prior = set_prior("horseshoe(1)")), r2d2 = list(y ~ x + z, prior = set_prior("R2D2(0.5)")),
  threads = list(count ~ x + (1 | g), family = poisson(), threads = threading(2))
)

rows <- lapply(names(models), function(name) {
  code <- do.call(make_stancode, c(models[[name]][1], list(data = d), models[[name]][-1]))
  program <- autosmc:::read_stan_program(as.character(code))
  as_it_is <- !is.null(autosmc:::ask_stanc(program)$result)
  changes <- if (as_it_is) character() else autosmc:::update_stan(program)$changes
  updated <- as_it_is || !is.null(suppressMessages(tryCatch(autosmc:::translate_stan(program), error = function(e) NULL)))
  data.frame(
    model = name, brms = format(packageVersion("brms")), stan = format(packageVersion("StanHeaders")),
    as_it_is = as_it_is, updated = updated, changes = toString(changes)
  )
})
out <- c(commandArgs(TRUE), file.path("bench", "results", "brms_programs.csv"))[1]
write.csv(do.call(rbind, rows), out, row.names = FALSE)
