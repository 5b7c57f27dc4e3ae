// generated with brms 2.17.0
functions {
  /* monotonic effects */
  real mo(vector scale, int i) {
    if (i == 0) {
      return 0;
    }
    return rows(scale) * sum(scale[1:i]);
  }
}
data {
  int<lower=1> N;
  vector[N] Y;
  int<lower=1> Imo;
  int<lower=1> Jmo[Imo];
  int Xmo_1[N];
  vector[Jmo[1]] con_simo_1;
}
parameters {
  real Intercept;
  simplex[Jmo[1]] simo_1;
  real bsp;
  real<lower=0> sigma;
}
transformed parameters {
  real lprior = 0;
  lprior += normal_lpdf(bsp | 0, 1);
  lprior += dirichlet_lpdf(simo_1 | con_simo_1);
  lprior += student_t_lpdf(Intercept | 3, 0, 2.5);
  lprior += student_t_lpdf(sigma | 3, 0, 2.5)
    - 1 * student_t_lccdf(0 | 3, 0, 2.5);
}
model {
  vector[N] mu = rep_vector(0.0, N);
  for (n in 1:N) {
    mu[n] += Intercept + bsp * mo(simo_1, Xmo_1[n]);
  }
  target += normal_lpdf(Y | mu, sigma);
  target += lprior;
}
