data {
int N;
int K;
vector[N] y;
}
parameters {
simplex[K] theta;
ordered[K] mu;
real<lower=0> sigma[K];
}
model {
real ps[K];
for (n in 1:N) {
for (k in 1:K) ps[k] <- log(theta[k]) + normal_log(y[n], mu[k], sigma[k]);
increment_log_prob(log_sum_exp(ps));
}
}
