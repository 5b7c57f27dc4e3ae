data {
  int<lower=0> N;
  int<lower=1> K;
  int<lower=1> J;
  int<lower=1,upper=J> jj[N]; // group of an individual
  row_vector[K] x[N];
  real y[N];
}
parameters {
  corr_matrix[K] Omega;
  vector<lower=0>[K] tau;
  vector[K] beta[J];
  real<lower=0> sigma;
}
model {
  tau ~ cauchy(0, 2.5);
  Omega ~ lkj_corr(2);
  {
    matrix[K, K] Sigma_beta;
    Sigma_beta <- quad_form_diag(Omega, tau);
    for (j in 1:J)
      beta[j] ~ multi_normal(rep_vector(0, K), Sigma_beta);
  }
  for (n in 1:N)
    y[n] ~ normal(x[n] * beta[jj[n]], sigma);
}
