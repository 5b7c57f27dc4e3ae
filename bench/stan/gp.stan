data {
  int<lower=1> N;
  array[N] real x;
  vector[N] y;
}
parameters {
  real<lower=0> rho;
  real<lower=0> alpha;
  real<lower=0> sigma;
}
model {
  matrix[N, N] K = add_diag(gp_exp_quad_cov(x, alpha, rho), square(sigma));
  rho ~ lognormal(0, 0.5);
  alpha ~ lognormal(0, 0.5);
  sigma ~ lognormal(-1, 0.5);
  y ~ multi_normal_cholesky(rep_vector(0, N), cholesky_decompose(K));
}
