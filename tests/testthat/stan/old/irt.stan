data {
int J;
int K;
int N;
int jj[N];
int kk[N];
int<lower=0,upper=1> y[N];
}
parameters {
real alpha[J];
real beta[K];
real<lower=0> gamma[K];
}
model {
for (n in 1:N) y[n] ~ bernoulli_logit(gamma[kk[n]] * (alpha[jj[n]] - beta[kk[n]]));
}
generated quantities {
int yrep[N];
real ll;
ll <- 0;
for (n in 1:N) {
yrep[n] <- bernoulli_rng(inv_logit(alpha[jj[n]]));
ll <- ll + bernoulli_logit_log(y[n], alpha[jj[n]]);
}
}
