data {
  int<lower=0> N;
  array[N] vector[2] y;
}
parameters {
  vector<lower=0>[2] tau;
  cholesky_factor_corr[2] L;
}
model {
  tau ~ lognormal(0, 1);
  L ~ lkj_corr_cholesky(2);
  y ~ multi_normal_cholesky([0, 0]', diag_pre_multiply(tau, L));
}
generated quantities {
  matrix[2, 2] Omega = multiply_lower_tri_self_transpose(L);
}
