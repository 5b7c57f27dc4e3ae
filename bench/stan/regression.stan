data {
  int<lower=0> N;
  vector[N] x;
  vector[N] y;
}
parameters {
  real a;
  real b;
  real<lower=0> tau;
}
model {
  tau ~ gamma(2, 200);
  a ~ normal(40, 2 / sqrt(tau));
  b ~ normal(0, 1 / sqrt(tau));
  y ~ normal(a + b * x, 1 / sqrt(tau));
}
