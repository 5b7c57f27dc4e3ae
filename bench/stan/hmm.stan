// Two states with normal observations of known variance, by the forward algorithm.
data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  array[2] simplex[2] P;
  ordered[2] mu;
}
model {
  matrix[2, 2] transition;
  matrix[2, N] log_omega;
  for (k in 1:2) {
    P[k] ~ dirichlet([2, 2]');
    transition[k] = P[k]';
    for (n in 1:N) {
      log_omega[k, n] = normal_lpdf(y[n] | mu[k], 1);
    }
  }
  mu ~ normal(0, 3);
  target += hmm_marginal(log_omega, transition, [0.5, 0.5]');
}
