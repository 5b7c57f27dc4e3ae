data {
int N;
int K;
int y[N];
vector[N] x;
}
parameters {
real b;
ordered[K-1] c;
}
model {
vector[K] theta;
for (n in 1:N) {
real eta;
eta <- x[n] * b;
theta[1] <- 1 - Phi(eta - c[1]);
for (k in 2:(K-1)) theta[k] <- Phi(eta - c[k-1]) - Phi(eta - c[k]);
theta[K] <- Phi(eta - c[K-1]);
y[n] ~ categorical(theta);
}
}
