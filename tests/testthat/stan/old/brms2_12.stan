// generated with brms 2.12.0
functions {
  real zero_inflated_poisson_log_lpmf(int y, real eta, real zi) {
    if (y == 0) {
      return log_sum_exp(bernoulli_lpmf(1 | zi), bernoulli_lpmf(0 | zi) + poisson_log_lpmf(0 | eta));
    }
    return bernoulli_lpmf(0 | zi) + poisson_log_lpmf(y | eta);
  }
}
data {
  int<lower=1> N;  // number of observations
  int Y[N];  // response variable
  int<lower=1> K;  // number of population-level effects
  matrix[N, K] X;  // population-level design matrix
  int prior_only;  // should the likelihood be ignored?
}
parameters {
  vector[K] b;
  real<lower=0,upper=1> zi;
}
model {
  vector[N] mu = X * b;
  target += student_t_lpdf(b | 3, 0, 2.5);
  target += beta_lpdf(zi | 1, 3);
  if (!prior_only) {
    for (n in 1:N) {
      target += zero_inflated_poisson_log_lpmf(Y[n] | mu[n], zi);
    }
  }
}
