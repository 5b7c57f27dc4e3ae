data {
int<lower=1> N;
real x[N];
vector[N] y;
}
transformed data {
vector[N] mu = rep_vector(0, N);
}
parameters {
real<lower=0> rho;
}
model {
matrix[N, N] K = cov_exp_quad(x, 1.0, rho);
for (n in 1:N) K[n, n] = K[n, n] + 0.1;
y ~ multi_normal(mu, K);
}
