// generated with brms 2.18.0
data {
  int<lower=1> N;
  vector[N] Y;
  int<lower=-1,upper=2> cens[N];  // indicates censoring
}
parameters {
  real Intercept;
  real<lower=0> shape;
}
transformed parameters {
  real lprior = 0;
  lprior += student_t_lpdf(Intercept | 3, 0.5, 2.5);
  lprior += gamma_lpdf(shape | 0.01, 0.01);
}
model {
  vector[N] mu = rep_vector(0.0, N);
  mu += Intercept;
  mu = exp(mu);
  for (n in 1:N) {
    mu[n] = mu[n] / tgamma(1 + 1 / shape);
  }
  for (n in 1:N) {
    // special treatment of censored data
    if (cens[n] == 0) {
      target += weibull_lpdf(Y[n] | shape, mu[n]);
    } else if (cens[n] == 1) {
      target += weibull_lccdf(Y[n] | shape, mu[n]);
    } else if (cens[n] == -1) {
      target += weibull_lcdf(Y[n] | shape, mu[n]);
    }
  }
  target += lprior;
}
