// A normal mean and a probability, both conjugate, in K copies; constrained parameters of
// other kinds in S copies; a level between bounds that cut off its density, in B copies; and what
// a program may do. All tests share this program and
// kinds.stan, and most densities are written out: each further program, and each distribution
// of Stan's, takes the compiler many seconds.
data {
  int<lower=0> K;
  int<lower=0> S;
  int<lower=0> B;
  int<lower=0> N;
  vector[N] y;
  array[2] matrix[2, 3] X;
  array[N] int whole;
  array[2] complex z;
  int increment; // write the model with `target +=`
  int task;
  int prior_only; // without the normal likelihood, as what is generated with brms can be
}
transformed data {
  if (task == 1) {
    print("in the data");
  }
}
parameters {
  vector[K] mu;
  vector<lower=0, upper=1>[K] p;
  array[S] simplex[3] share;
  array[S] cholesky_factor_corr[3] L;
  array[S] ordered[3] cut;
  array[S] real<lower=0> scale;
  array[B] vector<lower=-1, upper=1>[2] level;
  array[B] real<lower=0> rate;
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
      y ~ normal(0, 1 - mu[k]);
    } else if (task == 5) {
      real beyond = y[N + 1];
    } else if (task == 6) {
      fatal_error("this is the end");
    } else if (task == 9) {
      reject("nothing is {possible} here");
    } else if (task == 10) {
      real sum = 0;
      while (sum >= 0) {
        sum += 1;
      }
    } else if (task == 11) {
      for (i in 1:100000) {
        target += 0;
      }
    }
    // a Beta(2, 3) prior, and 7 successes of 10
    target += log(12) + log(p[k]) + 2 * log1m(p[k]);
    target += log(120) + 7 * log(p[k]) + 3 * log1m(p[k]);
  }
  if (task == 8) {
    // mu has a flat prior
  } else if (increment) {
    target += normal_lpdf(mu | 0, 2);
  } else {
    mu ~ normal(0, 2);
  }
  for (k in 1:K) {
    if (prior_only) {
      continue;
    } else if (increment) {
      target += normal_lupdf(y | mu[k], 1);
    } else {
      y ~ normal(mu[k], 1);
    }
  }
  // Their evidence is one, but for the ordering, which is one of 3! = 6, each as probable.
  for (s in 1:S) {
    // Dirichlet(4, 5, 6)
    target += lgamma(15) - lgamma(4) - lgamma(5) - lgamma(6);
    target += 3 * log(share[s][1]) + 4 * log(share[s][2]) + 5 * log(share[s][3]);
    // LKJ(4): in rows 2 and 3 powers of 1 - |l|^2, on an interval and on a disc
    target += 7 * log(L[s][2, 2]) + 6 * log(L[s][3, 3]);
    target += lgamma(5) - lgamma(0.5) - lgamma(4.5) - log(pi() / 4);
    cut[s] ~ normal(0, 1);
    // Gamma(3, 2)
    target += 3 * log(2) - lgamma(3) + 2 * log(scale[s]) - 2 * scale[s];
  }
  for (b in 1:B) {
    if (task == 12) {
      // two angles, of which the sum is known
      target += 500 * (cos(pi() * (level[b][1] + level[b][2]) - 1) - 1) - rate[b];
      continue;
    }
    // two steps of standard deviations 1.5 and 0.1, and an exponential variable
    target += -log(2 * pi()) - log(1.5) - log(0.1);
    target += -0.5 * square(level[b][1] / 1.5) - 0.5 * square((level[b][2] - level[b][1]) / 0.1);
    target += -rate[b];
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
