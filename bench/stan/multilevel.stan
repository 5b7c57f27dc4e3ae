// Random intercepts, in standardised form.
data {
  int<lower=0> N;
  int<lower=1> J;
  array[N] int<lower=1, upper=J> group;
  vector[N] x;
  vector[N] y;
}
parameters {
  real a;
  real b;
  real<lower=0> tau;
  real<lower=0> sigma;
  vector[J] z;
}
model {
  a ~ normal(24, 5);
  b ~ normal(0, 2);
  tau ~ exponential(0.5);
  sigma ~ exponential(0.5);
  z ~ std_normal();
  y ~ normal(a + b * x + tau * z[group], sigma);
}
