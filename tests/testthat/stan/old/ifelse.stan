data {
int N;
real y[N];
int k[N];
}
parameters {
real a;
}
transformed parameters {
real m[N];
for (n in 1:N) m[n] <- if_else(k[n] > 1 && y[n] > 0, if_else(k[n] > 2, a, 2 * a), 0);
}
model {
y ~ normal(m, 1);
a ~ normal(0, 1);
increment_log_prob(binomial_coefficient_log(5, 2) + normal_cdf_log(1, a, 2));
}
