# The models of brms_programs.R: a family or a term each, of small data.

set.seed(1)
n <- 40
d <- data.frame(
  x = rnorm(n), z = rnorm(n), g = factor(rep(1:8, 5)), half = factor(rep(rep(1:2, each = 4), 5)),
  trials = 10L, ends = sample(c("none", "right"), n, TRUE, c(0.8, 0.2)), error = 0.2, time = rep(1:5, each = 8),
  weight = runif(n, 0.5, 1.5)
)
d <- within(d, {
  mean <- 0.5 + 0.7 * x + rnorm(8)[g] / 2
  y <- mean + rnorm(n) / 2
  y2 <- 0.5 * y + rnorm(n) / 2
  count <- rpois(n, exp(mean))
  zeros <- count * rbinom(n, 1, 0.7)
  yes <- rbinom(n, 1, plogis(mean))
  successes <- rbinom(n, 10, plogis(mean))
  positive <- rgamma(n, 3, 3 / exp(mean))
  dry <- positive * rbinom(n, 1, 0.8)
  share <- rbeta(n, 5 * plogis(mean), 5 * plogis(-mean))
  share01 <- ifelse(runif(n) < 0.1, round(share), share)
  level <- factor(findInterval(y, c(-0.5, 0.5, 1.5)) + 1, ordered = TRUE)
  kind <- factor(sample(letters[1:3], n, TRUE))
  angle <- atan2(sin(mean), cos(mean))
  above <- pmax(y, -0.5) + 0.01
  skewed <- mean + rexp(n)
  holes <- replace(x, c(3, 17), NA)
  grade <- factor(sample(1:4, n, TRUE), ordered = TRUE)
})
neighbours <- 1 * (abs(outer(1:8, 1:8, `-`)) == 1)
dimnames(neighbours) <- list(1:8, 1:8)
covariance <- 0.25 * diag(n)

# The arguments of brm() but for `data`.
models <- list(
  gaussian = list(y ~ x),
  student = list(y ~ x, family = student()),
  lognormal = list(positive ~ x, family = lognormal()),
  skew_normal = list(skewed ~ x, family = skew_normal()),
  gamma = list(positive ~ x, family = Gamma("log")),
  beta = list(share ~ x, family = Beta()),
  poisson = list(count ~ x, family = poisson()),
  negbinomial = list(count ~ x, family = negbinomial()),
  binomial = list(successes | trials(trials) ~ x, family = binomial()),
  bernoulli = list(yes ~ x, family = bernoulli()),
  zero_inflated_poisson = list(zeros ~ x, family = zero_inflated_poisson()),
  zero_inflated_negbinomial = list(zeros ~ x, family = zero_inflated_negbinomial()),
  hurdle_poisson = list(zeros ~ x, family = hurdle_poisson()),
  hurdle_gamma = list(dry ~ x, family = hurdle_gamma()),
  cumulative = list(level ~ x, family = cumulative()),
  sratio = list(level ~ cs(x), family = sratio()),
  categorical = list(kind ~ x, family = categorical()),
  weibull_censored = list(positive | cens(ends) ~ x, family = weibull()),
  truncated = list(above | trunc(lb = -0.5) ~ x),
  multivariate = list(bf(mvbind(y, y2) ~ x) + set_rescor(TRUE)),
  mixture = list(y ~ x, family = mixture(gaussian, gaussian)),
  distributional = list(bf(y ~ x, sigma ~ z)),
  nonlinear = list(bf(y ~ a + exp(b * x), a + b ~ 1, nl = TRUE)),
  smooth = list(y ~ s(x, k = 5)),
  gaussian_process = list(y ~ gp(x)),
  monotonic = list(y ~ mo(grade)),
  measurement_error = list(y ~ me(x, error)),
  missing_values = list(bf(y ~ mi(holes)) + bf(holes | mi() ~ 1) + set_rescor(FALSE)),
  autoregression = list(y ~ x + ar(time = time, gr = g)),
  conditional_autoregression = list(
    count ~ x + car(neighbours, gr = g),
    family = poisson(), data2 = list(neighbours = neighbours)
  ),
  fixed_covariance = list(y ~ x + fcor(covariance), data2 = list(covariance = covariance)),
  weights = list(y | weights(weight) ~ x),
  offset = list(count ~ x + offset(z), family = poisson()),
  groups = list(y ~ x + (1 | g)),
  correlated_groups = list(y ~ x + (x | g)),
  uncorrelated_groups = list(y ~ x + (x || g)),
  groups_by = list(y ~ x + (1 | gr(g, by = half))),
  horseshoe = list(y ~ x + z, prior = set_prior("horseshoe(1)")),
  r2d2 = list(y ~ x + z, prior = set_prior("R2D2(0.5)")),
  multivariate_groups = list(bf(mvbind(y, y2) ~ x + (1 | p | g)) + set_rescor(FALSE)),
  standard_errors = list(y | se(error, sigma = TRUE) ~ x),
  arma_covariance = list(y ~ x + arma(time = time, gr = g, cov = TRUE)),
  geometric = list(count ~ x, family = geometric()),
  exgaussian = list(skewed ~ x, family = exgaussian()),
  asym_laplace = list(y ~ x, family = asym_laplace()),
  von_mises = list(angle ~ x, family = von_mises()),
  cox = list(positive | cens(ends) ~ x, family = brmsfamily("cox")),
  zero_one_inflated_beta = list(share01 ~ x, family = zero_one_inflated_beta()),
  threads = list(count ~ x, family = poisson(), threads = threading(2))
)

# brm() of a model. What has a flat prior, of which there is no evidence, is given a normal one.
brm_of <- function(name, ...) {
  model <- models[[name]]
  names(model)[1] <- "formula"
  if (is.null(model$prior)) {
    used <- c("formula", "family", "data2")
    priors <- do.call(get_prior, c(model[names(model) %in% used], list(data = d)))
    is_flat <- priors$prior == "" & priors$coef == "" & priors$group == "" &
      priors$class %in% c("b", "ar", "ma", "meanme", "sdme", "Intercept")
    flat <- priors[is_flat, ]
    flat$prior <- ifelse(flat$class %in% c("ar", "ma"), "normal(0, 0.5)", "normal(0, 1)")
    if (nrow(flat) > 0) model$prior <- flat
  }
  do.call(brm, c(model, list(data = d, ...)))
}
