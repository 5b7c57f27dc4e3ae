// Exponential decay, as if its solution were not known.
functions {
  vector decay(real t, vector state, real rate) {
    return -rate * state;
  }
}
data {
  int<lower=1> N;
  array[N] real<lower=0> t;
  vector[N] y;
}
parameters {
  real<lower=0> rate;
  real<lower=0> sigma;
}
model {
  array[N] vector[1] state = ode_bdf_tol(decay, [10]', 0, t, 1e-5, 1e-5, 500, rate);
  rate ~ lognormal(-1, 1);
  sigma ~ lognormal(-1, 1);
  for (n in 1:N) {
    y[n] ~ normal(state[n, 1], sigma);
  }
}
