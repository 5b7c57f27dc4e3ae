// Constrained parameters with normalised priors: the evidence is one, but for the
// ordering, which is one of 3! = 6, each as probable.
parameters {
  simplex[3] share;
  cholesky_factor_corr[3] L;
  ordered[3] cut;
  corr_matrix[2] R;
  cov_matrix[2] Sigma;
  real<lower=0> scale;
}
model {
  share ~ dirichlet([4, 5, 6]');
  L ~ lkj_corr_cholesky(4);
  cut ~ normal(0, 1);
  R ~ lkj_corr(3);
  Sigma ~ inv_wishart(10, [[1, 0.3], [0.3, 1]]);
  scale ~ gamma(3, 2);
}
