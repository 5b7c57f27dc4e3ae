data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  simplex[2] share;
  ordered[2] mu;
}
model {
  share ~ dirichlet([2, 2]');
  mu ~ normal(0, 3);
  for (n in 1:N) {
    target += log_mix(share[1], normal_lpdf(y[n] | mu[1], 1),
                      normal_lpdf(y[n] | mu[2], 1));
  }
}
