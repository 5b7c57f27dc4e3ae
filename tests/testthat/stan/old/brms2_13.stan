// generated with brms 2.13.0
functions {
  vector gp(vector[] x, real sdgp, vector lscale, vector zgp) {
    matrix[size(x), size(x)] cov = cov_exp_quad(x, sdgp, lscale[1]);
    for (n in 1:size(x)) {
      cov[n, n] += 1e-12;
    }
    return cholesky_decompose(cov) * zgp;
  }
}
data {
  int<lower=1> N;
  vector[N] Y;
  int<lower=1> Dgp_1;
  int<lower=1> Kgp_1;
  int<lower=1> Nsubgp_1;
  int<lower=1> Jgp_1[N];  // which location an observation is of
  vector[Dgp_1] Xgp_1[Nsubgp_1];
}
parameters {
  real Intercept;
  vector<lower=0>[Kgp_1] sdgp_1;
  vector<lower=0>[1] lscale_1[Kgp_1];
  vector[Nsubgp_1] zgp_1;
  real<lower=0> sigma;
}
model {
  vector[Nsubgp_1] gp_pred_1 = gp(Xgp_1, sdgp_1[1], lscale_1[1], zgp_1);
  vector[N] mu = Intercept + rep_vector(0.0, N) + gp_pred_1[Jgp_1];
  target += student_t_lpdf(Intercept | 3, 0, 2.5);
  target += student_t_lpdf(sdgp_1 | 3, 0, 2.5)
    - 1 * student_t_lccdf(0 | 3, 0, 2.5);
  target += inv_gamma_lpdf(lscale_1[1][1] | 2.5, 0.4);
  target += std_normal_lpdf(zgp_1);
  target += student_t_lpdf(sigma | 3, 0, 2.5)
    - 1 * student_t_lccdf(0 | 3, 0, 2.5);
  target += normal_lpdf(Y | mu, sigma);
}
