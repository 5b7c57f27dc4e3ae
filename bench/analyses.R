# Ordinary analyses of data that ship with R, as a user would write them: predictors and
# responses in raw units, weakly informative priors of these units, error scales on the
# logarithmic scale or with `lower = 0`. Their coefficients lie tens or hundreds of
# posterior standard deviations from 0. About half judge, and rules may be chosen on the
# others. See models.R for the blocks and suite.R for the runner.

sampled <- "importance sampling from Student's t at the mode, standard error below 0.005"

# Linear regressions: coefficients ~ N(mean, sd^2), sigma with `prior` on its logarithm.
analysis_linear <- function(name, judge, formula, data, mean, sd, prior) {
  frame <- model.frame(formula, data)
  y <- model.response(frame)
  X <- model.matrix(formula, frame)
  p <- ncol(X)
  mean <- rep_len(mean, p)
  sd <- rep_len(sd, p)
  model(
    name, "linear", judge,
    function() regression_target(y, X, mean, sd, normal_family(prior)),
    function() regression_truth(y, X, mean, sd, prior),
    "coefficients integrated out, quadrature over log sigma", p + 1
  )
}

# Generalised linear models.
analysis_glm <- function(name, judge, formula, data, family, mean, sd) {
  frame <- model.frame(formula, data)
  y <- model.response(frame)
  X <- model.matrix(formula, frame)
  p <- ncol(X)
  mean <- rep_len(mean, p)
  sd <- rep_len(sd, p)
  analysis_sampled(
    name, "generalised linear", judge, function() regression_target(y, X, mean, sd, family)
  )
}

# Models without a shorter way: the truth by importance sampling, see truths.R.
analysis_sampled <- function(name, class, judge, target) {
  model(name, class, judge, target, function() sampled_truth(target()), sampled)
}

# Curves: y ~ N(curve, sigma^2). curve(parameters): list(value, n x N; slopes, a list of
# n x N matrices, one a parameter). Parameters ~ N(mean, sd^2); sigma ~ exponential(rate),
# as it is, with `lower = 0`, or on the logarithmic scale.
analysis_curve <- function(name, judge, y, curve, mean, sd, rate, bounded = FALSE) {
  p <- length(mean)
  prior <- independent_normal_density(mean, sd)
  scale <- exponential_log(rate)
  f <- function(x) {
    x <- unname(x)
    beta <- x[, seq_len(p), drop = FALSE]
    l <- if (bounded) log(x[, p + 1]) else x[, p + 1]
    before <- prior(beta)
    at <- curve(beta)
    r <- by_row(y, nrow(x)) - at$value
    squares <- rowSums(r^2) * exp(-2 * l)
    value <- as.double(before) - squares / 2 - length(y) * (l + log(2 * pi) / 2) +
      scale$log(l)
    slope <- vapply(at$slopes, function(s) rowSums(r * s), double(nrow(x)))
    by_l <- squares - length(y) + scale$slope(l)
    if (bounded) {
      # the density of sigma itself, without the Jacobian
      value <- value - l
      by_l <- (by_l - 1) * exp(-l)
    }
    with_gradient(
      value,
      cbind(attr(before, "gradient") + matrix(slope, nrow(x)) * exp(-2 * l), by_l)
    )
  }
  names <- c(names(mean), if (bounded) "sigma" else "log_sigma")
  lower <- c(rep(-Inf, p), if (bounded) 0 else -Inf)
  analysis_sampled(
    name, "curve", judge, function() density_target(f, p + 1, names, lower)
  )
}

linear_curve <- function(X) {
  function(b) {
    n <- nrow(b)
    list(value = tcrossprod(b, X), slopes = lapply(seq_len(ncol(X)), function(j) {
      by_row(X[, j], n)
    }))
  }
}

# vmax x / (k + x)
michaelis_menten <- function(x) {
  function(b) {
    X <- by_row(x, nrow(b))
    list(
      value = b[, 1] * X / (b[, 2] + X),
      slopes = list(X / (b[, 2] + X), -b[, 1] * X / (b[, 2] + X)^2)
    )
  }
}

# asym / (1 + exp((mid - x) / scale))
logistic_growth <- function(x) {
  function(b) {
    X <- by_row(x, nrow(b))
    z <- (X - b[, 2]) / b[, 3]
    p <- plogis(z)
    bend <- b[, 1] * p * plogis(-z) / b[, 3]
    list(value = b[, 1] * p, slopes = list(p, -bend, -bend * z))
  }
}

# time series --------------------------------------------------------------------

# y_t ~ N(c + sum_k phi_k y_{t-k}, sigma^2), given the first values.
analysis_ar <- function(name, judge, y, order, mean, sd, prior) {
  parts <- embed(y, order + 1)
  X <- cbind(1, parts[, -1, drop = FALSE])
  colnames(X) <- c("constant", paste0("phi", seq_len(order)))
  model(
    name, "time series", judge,
    function() regression_target(parts[, 1], X, mean, sd, normal_family(prior)),
    function() regression_truth(parts[, 1], X, mean, sd, prior),
    "coefficients integrated out, quadrature over log sigma", order + 2
  )
}

# Local level: y_t ~ N(a_t, exp(2 l_1)), a_t ~ N(a_{t-1}, exp(2 l_2)), a_1 ~ N(m, s^2);
# the states integrated out by Kalman's filter, with its derivatives carried along.
local_level_density <- function(y, m, s, observation, level) {
  function(x) {
    n <- nrow(x)
    h <- exp(2 * x[, 1])
    q <- exp(2 * x[, 2])
    value <- observation$log(x[, 1]) + level$log(x[, 2])
    slope <- cbind(observation$slope(x[, 1]), level$slope(x[, 2]))
    a <- rep(m, n)
    P <- rep(s^2, n)
    da <- dP <- matrix(0, n, 2)
    dh <- cbind(2 * h, 0)
    dq <- cbind(0, 2 * q)
    for (t in seq_along(y)) {
      v <- y[t] - a
      F <- P + h
      dF <- dP + dh
      value <- value - (log(2 * pi * F) + v^2 / F) / 2
      slope <- slope - (dF / F - 2 * v * da / F - v^2 / F^2 * dF) / 2
      K <- P / F
      dK <- (dP - K * dF) / F
      a <- a + K * v
      da <- da * (1 - K) + dK * v
      dP <- dP * (1 - K) - P * dK + dq
      P <- P * (1 - K) + q
    }
    with_gradient(value, slope)
  }
}

# The same with the levels as variables, as they are, or by standardised innovations:
# (log sds, levels) or (log sds, first level, innovations).
level_states_density <- function(y, m, s, observation, level, centred) {
  n <- length(y)
  first <- seq_len(n) == 1
  function(x) {
    x <- unname(x)
    states <- x[, -(1:2), drop = FALSE]
    sd_level <- exp(x[, 2])
    z <- if (centred) {
      (states[, -1, drop = FALSE] - states[, -n, drop = FALSE]) / sd_level
    } else {
      states[, -1, drop = FALSE]
    }
    levels <- if (centred) states else states[, 1] + cbind(0, sd_level * t(apply(z, 1, cumsum)))
    off <- by_row(y, nrow(x)) - levels
    by_level <- off * exp(-2 * x[, 1])
    start <- (states[, 1] - m) / s
    value <- observation$log(x[, 1]) + level$log(x[, 2]) - log(s) - n * (x[, 1] + log(2 * pi)) -
      (rowSums(off * by_level) + rowSums(z^2) + start^2) / 2 - centred * (n - 1) * x[, 2]
    by_observation <- observation$slope(x[, 1]) - n + rowSums(off * by_level)
    if (centred) {
      by_scale <- rowSums(z^2) - (n - 1)
      by_state <- by_level + (cbind(z, 0) - cbind(0, z)) / sd_level
    } else {
      by_scale <- rowSums(by_level * (levels - states[, 1]))
      later <- t(apply(by_level[, n:1, drop = FALSE], 1, cumsum))[, n:1, drop = FALSE]
      by_state <- later * ifelse(rep(first, each = nrow(x)), 1, sd_level) - cbind(0, z)
    }
    by_state[, 1] <- by_state[, 1] - start / s
    with_gradient(value, cbind(by_observation, level$slope(x[, 2]) + by_scale, by_state))
  }
}

analysis_states <- function(name, judge, y, m, s, prior, centred) {
  model(
    paste0(name, if (centred) "_centred" else "_non_centred"), "time series", judge,
    function() {
      f <- level_states_density(y, m, s, prior$observation, prior$level, centred)
      states <- if (centred) paste0("level", seq_along(y)) else c("level1", paste0("z", seq_along(y)[-1]))
      density_target(f, length(y) + 2, c("log_sd_observation", "log_sd_level", states))
    },
    function() {
      f <- local_level_density(y, m, s, prior$observation, prior$level)
      log_integral_2(function(a, b) as.double(f(cbind(a, b))), c(3, -4), c(6.5, 8))
    },
    "levels integrated out by the Kalman filter, quadrature over the log sds",
    length(y) + 2
  )
}

# others -------------------------------------------------------------------------

# Faithful: waiting ~ w N(m_1, s_1^2) + (1 - w) N(m_2, s_2^2), logit w and log s.
# The two means have priors of their own, so that labels are not exchangeable, but both
# labellings are possible: both are in the truth.
two_normals_density <- function(y, mean, sd, prior) {
  function(x) {
    n <- nrow(x)
    x <- unname(x)
    Y <- by_row(y, n)
    z1 <- (Y - x[, 2]) * exp(-x[, 4])
    z2 <- (Y - x[, 3]) * exp(-x[, 5])
    # uniform weight: the density of its logit
    a <- -softplus(-x[, 1]) - x[, 4] - z1^2 / 2
    b <- -softplus(x[, 1]) - x[, 5] - z2^2 / 2
    both <- pmax(a, b) + log1p(exp(-abs(a - b)))
    p <- exp(a - both)
    value <- rowSums(both) - length(y) / 2 * log(2 * pi) + dlogis(x[, 1], log = TRUE) +
      dnorm(x[, 2], mean[1], sd, log = TRUE) + dnorm(x[, 3], mean[2], sd, log = TRUE) +
      prior$log(x[, 4]) + prior$log(x[, 5])
    w <- plogis(x[, 1])
    slope <- cbind(
      rowSums(p) - length(y) * w + 1 - 2 * w,
      rowSums(p * z1) * exp(-x[, 4]) - (x[, 2] - mean[1]) / sd^2,
      rowSums((1 - p) * z2) * exp(-x[, 5]) - (x[, 3] - mean[2]) / sd^2,
      rowSums(p * (z1^2 - 1)) + prior$slope(x[, 4]),
      rowSums((1 - p) * (z2^2 - 1)) + prior$slope(x[, 5])
    )
    with_gradient(value, slope)
  }
}

# y ~ Weibull(shape = exp(x_1), scale = exp(x_2))
weibull_density <- function(y, mean, sd) {
  prior <- independent_normal_density(mean, sd)
  function(x) {
    x <- unname(x)
    n <- nrow(x)
    k <- exp(x[, 1])
    z <- by_row(log(y), n) - x[, 2]
    power <- exp(k * z)
    before <- prior(x)
    value <- as.double(before) + rowSums(x[, 1] - x[, 2] + (k - 1) * z - power)
    with_gradient(value, attr(before, "gradient") + cbind(
      rowSums(1 + k * z * (1 - power)), rowSums(k * (power - 1))
    ))
  }
}

# y ~ gamma(shape a, rate b), both positive and bounded by 0, with exponential priors.
gamma_density <- function(y, rates) {
  n <- length(y)
  function(x) {
    x <- unname(x)
    a <- x[, 1]
    b <- x[, 2]
    value <- n * (a * log(b) - lgamma(a)) + (a - 1) * sum(log(y)) - b * sum(y) -
      a * rates[1] - b * rates[2] + sum(log(rates))
    with_gradient(value, cbind(
      n * (log(b) - digamma(a)) + sum(log(y)) - rates[1],
      n * a / b - sum(y) - rates[2]
    ))
  }
}

analysis_hierarchy <- function(
  name, judge, data, mean, sd, tau, sigma, centred, lower, upper
) {
  model(
    paste0(name, if (centred) "_centred" else "_non_centred"), "hierarchy", judge,
    function() hierarchy_target(data, mean, sd, tau, sigma, centred),
    function() hierarchy_truth(data, mean, sd, tau, sigma, lower, upper),
    "effects and mu integrated out, quadrature over log tau and log sigma",
    length(data$ybar) + 3
  )
}

chick <- subset(as.data.frame(datasets::ChickWeight), Chick == 6)
orange <- subset(as.data.frame(datasets::Orange), Tree == 3)
puromycin <- subset(datasets::Puromycin, state == "treated")
two_irises <- subset(datasets::iris, Species != "setosa")
infert_model <- case ~ spontaneous + induced + age
esoph_trend <- transform(
  datasets::esoph,
  age = unclass(agegp), alcohol = unclass(alcgp), tobacco = unclass(tobgp)
)
plants <- grouped(datasets::PlantGrowth$weight, datasets::PlantGrowth$group)
sprays <- grouped(sqrt(datasets::InsectSprays$count), datasets::InsectSprays$spray)
chicks <- with(datasets::ChickWeight, grouped(weight[Time == 10], as.character(Diet[Time == 10])))

# Growth curves with correlated effects of their groups. priors: the arguments of growth_target()
# between data and centred.
analysis_growth <- function(name, judge, data, priors, centred) {
  model(
    paste0(name, if (centred) "_centred" else "_non_centred"), "hierarchy", judge,
    function() do.call(growth_target, c(list(data), priors, centred)),
    function() {
      result <- fitted_importance(do.call(growth_marginal, c(list(data), priors)), 4, 1e5)
      stopifnot(result$se < 0.005)
      result$log_z
    },
    paste("coefficients and effects integrated out,", sampled)
  )
}

growth_data <- function(y, x, group) {
  list(y = as.double(y), x = x - mean(x), group = as.integer(factor(as.character(group))))
}

orthodont <- with(as.data.frame(nlme::Orthodont), growth_data(distance, age, Subject))
orthodont_priors <- list(
  c(20, 0), c(10, 5), list(half_cauchy_log(2.5), half_cauchy_log(1)), exponential_log(1)
)
loblolly <- with(as.data.frame(datasets::Loblolly), growth_data(height, sqrt(age), Seed))
loblolly_priors <- list(
  c(30, 10), c(30, 10), list(half_cauchy_log(3), half_cauchy_log(1)), exponential_log(1)
)
growing <- with(as.data.frame(datasets::ChickWeight), growth_data(log(weight), Time, Chick))
growing_priors <- list(
  c(4, 0), c(2, 0.2), list(half_cauchy_log(0.5), half_cauchy_log(0.1)), exponential_log(1)
)
level_prior <- list(observation = normal_log(4, 2), level = normal_log(3, 2))

analyses <- list(
  analysis_linear(
    "mtcars_linear", choose, mpg ~ wt + hp + qsec, datasets::mtcars,
    c(20, 0, 0, 0), c(50, 10, 1, 5), exponential_log(0.2)
  ),
  analysis_linear(
    "women", judge, weight ~ height, datasets::women,
    0, c(100, 10), exponential_log(0.1)
  ),
  analysis_linear(
    "cars", choose, dist ~ speed, datasets::cars, 0, c(100, 10), half_cauchy_log(10)
  ),
  analysis_linear(
    "trees_raw", judge, Volume ~ Girth + Height, datasets::trees,
    0, c(100, 10, 10), exponential_log(0.1)
  ),
  analysis_linear(
    "trees_log", choose, log(Volume) ~ log(Girth) + log(Height), datasets::trees,
    0, c(10, 5, 5), exponential_log(1)
  ),
  analysis_linear(
    "airquality", judge, Ozone ~ Solar.R + Wind + Temp, datasets::airquality,
    0, c(200, 1, 10, 10), exponential_log(0.05)
  ),
  analysis_linear(
    "stackloss", choose, stack.loss ~ ., datasets::stackloss, 0, c(100, 5, 5, 5),
    half_cauchy_log(5)
  ),
  analysis_linear(
    "swiss", judge, Fertility ~ ., datasets::swiss, 0, c(100, 2, 2, 2, 2, 5),
    exponential_log(0.1)
  ),
  analysis_linear(
    "longley", choose, Employed ~ GNP + Unemployed + Armed.Forces + Year,
    datasets::longley, 0, c(5000, 1, 1, 1, 10), exponential_log(1)
  ),
  analysis_linear(
    "sleep", judge, extra ~ group + ID, datasets::sleep, 0, c(5, rep(5, 10)),
    exponential_log(1)
  ),
  analysis_linear(
    "tooth_growth", choose, len ~ supp * dose, datasets::ToothGrowth, 0, c(50, 20, 20, 20),
    exponential_log(0.2)
  ),
  analysis_linear(
    "iris_linear", judge, Petal.Length ~ Sepal.Length + Sepal.Width + Petal.Width,
    datasets::iris, 0, 10, half_cauchy_log(1)
  ),
  analysis_glm(
    "mtcars_logistic", choose, am ~ wt, datasets::mtcars, binomial_family(), 0, c(20, 10)
  ),
  analysis_glm(
    "warpbreaks_poisson", judge, breaks ~ wool + tension, datasets::warpbreaks,
    poisson_family(), 0, c(10, 2, 2, 2)
  ),
  analysis_glm(
    "warpbreaks_interaction", choose, breaks ~ wool * tension, datasets::warpbreaks,
    poisson_family(), 0, c(10, rep(2, 5))
  ),
  analysis_glm(
    "sprays_poisson", judge, count ~ spray, datasets::InsectSprays, poisson_family(), 0, 5
  ),
  analysis_glm(
    "discoveries", choose, as.numeric(discoveries) ~ as.numeric(time(discoveries)),
    NULL, poisson_family(), 0, c(50, 0.05)
  ),
  analysis_glm(
    "infert", judge, infert_model, datasets::infert, binomial_family(), 0,
    c(10, 2.5, 2.5, 0.5)
  ),
  analysis_glm(
    "esoph", choose, ncases ~ age + alcohol + tobacco, esoph_trend,
    binomial_family(esoph_trend$ncases + esoph_trend$ncontrols), 0, c(20, 3, 3, 3)
  ),
  analysis_glm(
    "iris_logistic", judge, (Species == "virginica") + 0 ~ Petal.Length + Petal.Width,
    two_irises, binomial_family(), 0, c(50, 10, 10)
  ),
  analysis_sampled("warpbreaks_negative_binomial", "generalised linear", choose, function() {
    X <- model.matrix(~ wool + tension, datasets::warpbreaks)
    regression_target(
      datasets::warpbreaks$breaks, X, rep(0, 4), c(10, 2, 2, 2),
      negative_binomial_family(normal_log(2, 1.5))
    )
  }),
  analysis_curve(
    "puromycin", judge, puromycin$rate, michaelis_menten(puromycin$conc),
    c(vmax = 200, k = 0.1), c(100, 0.1), 0.05
  ),
  analysis_curve(
    "chick_growth", choose, chick$weight, logistic_growth(chick$Time),
    c(asymptote = 200, middle = 15, scale = 5), c(100, 10, 5), 0.1
  ),
  analysis_curve(
    "orange_growth", judge, orange$circumference, logistic_growth(orange$age),
    c(asymptote = 150, middle = 700, scale = 300), c(50, 200, 100), 0.1
  ),
  analysis_curve(
    "women_bounded", choose, datasets::women$weight,
    linear_curve(cbind(1, datasets::women$height)), c(intercept = 0, slope = 0), c(100, 10),
    0.1, TRUE
  ),
  analysis_curve(
    "cars_bounded", judge, datasets::cars$dist,
    linear_curve(cbind(1, datasets::cars$speed)), c(intercept = 0, slope = 0), c(50, 10),
    0.05, TRUE
  ),
  analysis_sampled("nile_level", "time series", choose, function() {
    f <- local_level_density(
      as.numeric(datasets::Nile), 1000, 500, level_prior$observation, level_prior$level
    )
    density_target(f, 2, c("log_sd_observation", "log_sd_level"))
  }),
  analysis_states(
    "nile_states", choose, as.numeric(datasets::Nile), 1000, 500, level_prior, TRUE
  ),
  analysis_states(
    "nile_states", choose, as.numeric(datasets::Nile), 1000, 500, level_prior, FALSE
  ),
  analysis_ar(
    "lynx_ar2", judge, as.numeric(log(datasets::lynx)), 2, c(0, 0, 0), c(10, 1, 1),
    exponential_log(1)
  ),
  analysis_ar(
    "lake_huron_ar1", choose, as.numeric(datasets::LakeHuron), 1, c(0, 0), c(500, 1),
    exponential_log(1)
  ),
  analysis_ar(
    "sunspots_ar2", judge, as.numeric(datasets::sunspot.year), 2, c(0, 0, 0), c(100, 1, 1),
    half_cauchy_log(20)
  ),
  {
    f <- two_normals_density(datasets::faithful$waiting, c(55, 80), 10, normal_log(1.7, 0.5))
    names <- c("logit_weight", "mean1", "mean2", "log_sd1", "log_sd2")
    target <- local({
      f <- f
      names <- names
      function() density_target(f, 5, names)
    })
    model(
      "faithful", "mixture", judge, target,
      function() two_labellings_truth(target(), c(0, 55, 80, 1.7, 1.7)),
      paste0(sampled, ", from each labelling's mode, the two added")
    )
  },
  analysis_sampled("rivers_weibull", "survival", choose, function() {
    density_target(
      weibull_density(datasets::rivers, c(0, 6), c(1, 3)), 2, c("log_shape", "log_scale")
    )
  }),
  analysis_sampled("precip_weibull", "survival", judge, function() {
    density_target(
      weibull_density(as.numeric(datasets::precip), c(0, 0), c(2, 10)), 2,
      c("log_shape", "log_scale")
    )
  }),
  analysis_sampled("rivers_gamma_bounded", "survival", judge, function() {
    density_target(
      gamma_density(datasets::rivers, c(0.1, 1)), 2, c("shape", "rate"), lower = 0
    )
  }),
  analysis_hierarchy(
    "plants", choose, plants, 0, 10, half_cauchy_log(1), exponential_log(1),
    TRUE, c(-25, -3), c(14, 2)
  ),
  analysis_hierarchy(
    "plants", judge, plants, 5, 5, normal_log(-1, 1), exponential_log(1),
    FALSE, c(-11, -3), c(9, 2)
  ),
  analysis_hierarchy(
    "sprays", judge, sprays, 0, 10, exponential_log(1), half_cauchy_log(1),
    TRUE, c(-20, -2), c(6, 2)
  ),
  analysis_hierarchy(
    "sprays", choose, sprays, 2, 3, half_cauchy_log(2), exponential_log(0.5),
    FALSE, c(-20, -2), c(14, 2)
  ),
  analysis_hierarchy(
    "chicks", choose, chicks, 100, 50, half_cauchy_log(20), exponential_log(0.05),
    FALSE, c(-15, 1), c(18, 6)
  ),
  analysis_growth("orthodont", choose, orthodont, orthodont_priors, centred = FALSE),
  analysis_growth("orthodont", choose, orthodont, orthodont_priors, centred = TRUE),
  analysis_growth("loblolly", judge, loblolly, loblolly_priors, centred = FALSE),
  analysis_growth("loblolly", judge, loblolly, loblolly_priors, centred = TRUE),
  analysis_growth("growing_chicks", judge, growing, growing_priors, centred = FALSE),
  analysis_growth("growing_chicks", judge, growing, growing_priors, centred = TRUE)
)
