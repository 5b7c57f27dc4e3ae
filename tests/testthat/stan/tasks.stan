// A normal mean and a probability, both conjugate, in K copies; and what a program may
// do on the way.
data {
  int<lower=0> K;
  int<lower=0> N;
  vector[N] y;
  array[2] matrix[2, 3] X;
  array[N] int whole;
  array[2] complex z;
  int increment; // write the model with `target +=`
  int task;
}
transformed data {
  if (task == 1) {
    print("in the data");
  }
}
parameters {
  vector[K] mu;
  vector<lower=0, upper=1>[K] p;
}
transformed parameters {
  vector[K] twice = 2 * mu;
}
model {
  for (k in 1:K) {
    if (task == 1) {
      print("in the model");
    } else if (task == 2) {
      print("mu is ", mu[k]);
    } else if (task == 3 && mu[k] < 0) {
      reject("mu is negative");
    } else if (task == 4) {
      matrix[2, 2] L = cholesky_decompose([[1, mu[k]], [mu[k], 1]]);
    } else if (task == 5) {
      real beyond = y[N + 1];
    } else if (task == 6) {
      fatal_error("this is the end");
    }
  }
  if (increment) {
    target += normal_lpdf(mu | 0, 2) + beta_lpdf(p | 2, 3);
    for (k in 1:K) {
      target += normal_lupdf(y | mu[k], 1) + binomial_lpmf(7 | 10, p[k]);
    }
  } else {
    mu ~ normal(0, 2);
    p ~ beta(2, 3);
    for (k in 1:K) {
      y ~ normal(mu[k], 1);
      7 ~ binomial(10, p[k]);
    }
  }
}
generated quantities {
  vector[N] log_lik;
  array[2] matrix[2, 3] copy = X;
  array[N] int same = whole;
  array[2] complex turned = z;
  real random = normal_rng(0, 1);
  for (n in 1:N) {
    log_lik[n] = normal_lpdf(y[n] | mu[1], 1);
  }
  if (task == 7 && mu[1] < 0) {
    reject("no quantity for a negative mu");
  }
}
