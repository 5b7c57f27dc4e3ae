data {
  int<lower=1> N;
  int<lower=1> M;
  array[M] int<lower=1, upper=N> seen;
  vector[M] y;
}
parameters {
  vector[N] x;
  real<lower=0> a;
  real<lower=0> b;
}
model {
  a ~ lognormal(0, 2);
  b ~ lognormal(0, 2);
  x[1] ~ normal(0, a);
  x[2:N] ~ normal(x[1:(N - 1)], a);
  y ~ normal(x[seen], b);
}
