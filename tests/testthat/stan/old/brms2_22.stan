// generated with brms 2.22.0
data {
  int<lower=1> N;
  vector[N] Y;
  int<lower=0> Nmi;
  array[Nmi] int<lower=1> Jmi;
  vector[N] x;
}
parameters {
  vector[Nmi] Ymi;
  real b;
  real<lower=0> sigma;
}
model {
  vector[N] Yl = Y;
  Yl[Jmi] = Ymi;
  target += normal_lpdf(Yl | x * b, sigma);
  target += normal_lpdf(b | 0, 1);
  target += exponential_lpdf(sigma | 2);
}
