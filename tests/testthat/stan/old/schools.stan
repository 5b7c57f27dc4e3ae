data {
int<lower=0> J;
real y[J];
real<lower=0> sigma[J];
}
parameters {
real mu;
real<lower=0> tau;
real eta[J];
}
transformed parameters {
real theta[J];
for (j in 1:J) theta[j] <- mu + tau * eta[j];
}
model {
increment_log_prob(normal_log(eta, 0, 1));
y ~ normal(theta, sigma);
}
