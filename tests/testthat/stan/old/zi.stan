data {
int N;
int y[N];
}
parameters {
real<lower=0, upper=1> p;
real<lower=0> l;
}
model {
for (n in 1:N) if (y[n] == 0) increment_log_prob(log_sum_exp(bernoulli_log(1, p), bernoulli_log(0, p) + poisson_log(y[n], l)));
else increment_log_prob(bernoulli_log(0, p) + poisson_log(y[n], l));
}
