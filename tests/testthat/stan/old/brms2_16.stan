// generated with brms 2.16.3
data {
  int<lower=1> N;
  int<lower=1> nresp;
  vector[nresp] Y[N];
  vector[N] x;
}
parameters {
  vector[nresp] Intercept;
  vector[nresp] b;
  vector<lower=0>[nresp] sigma;
  cholesky_factor_corr[nresp] Lrescor;
}
model {
  vector[nresp] Mu[N];
  matrix[nresp, nresp] LSigma = diag_pre_multiply(sigma, Lrescor);
  for (n in 1:N) {
    Mu[n] = Intercept + b * x[n];
  }
  target += multi_normal_cholesky_lpdf(Y | Mu, LSigma);
  target += normal_lpdf(b | 0, 1);
  target += student_t_lpdf(Intercept | 3, 0, 2.5);
  target += exponential_lpdf(sigma | 1);
  target += lkj_corr_cholesky_lpdf(Lrescor | 1.5);
}
