functions {
real[] sho(real t, real[] y, real[] theta, real[] x_r, int[] x_i) {
real dydt[2];
dydt[1] <- y[2];
dydt[2] <- -y[1] - theta[1] * y[2];
return dydt;
}
}
data {
int T;
real t0;
real ts[T];
real y0[2];
}
transformed data {
real x_r[0];
int x_i[0];
}
parameters {
real theta[1];
}
model {
real y_hat[T, 2];
y_hat <- integrate_ode_rk45(sho, y0, t0, ts, theta, x_r, x_i);
theta[1] ~ normal(0, 1);
}
