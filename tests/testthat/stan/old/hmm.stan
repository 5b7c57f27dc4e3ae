data {
int<lower=1> K;
int<lower=1> V;
int T;
int<lower=1,upper=V> w[T];
int<lower=1,upper=K> z[T];
vector<lower=0>[K] alpha;
vector<lower=0>[V] beta;
}
parameters {
simplex[K] theta[K];
simplex[V] phi[K];
}
model {
for (k in 1:K) theta[k] ~ dirichlet(alpha);
for (k in 1:K) phi[k] ~ dirichlet(beta);
for (t in 1:T) w[t] ~ categorical(phi[z[t]]);
for (t in 2:T) z[t] ~ categorical(theta[z[t - 1]]);
}
