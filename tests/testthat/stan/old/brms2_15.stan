// generated with brms 2.15.0
functions {
  int[] sequence(int start, int end) {
    int seq[end - start + 1];
    for (n in 1:num_elements(seq)) {
      seq[n] = n + start - 1;
    }
    return seq;
  }
  real partial_log_lik_lpmf(int[] seq, int start, int end, data int[] Y, data matrix Xc, vector b, real Intercept) {
    int N = end - start + 1;
    vector[N] mu = Intercept + Xc[start:end] * b;
    return poisson_log_lpmf(Y[start:end] | mu);
  }
}
data {
  int<lower=1> N;
  int Y[N];
  int<lower=1> K;
  matrix[N, K] X;
  int grainsize;
}
transformed data {
  int seq[N] = sequence(1, N);
}
parameters {
  vector[K] b;
  real Intercept;
}
model {
  target += reduce_sum(partial_log_lik_lpmf, seq, grainsize, Y, X, b, Intercept);
  target += normal_lpdf(b | 0, 1);
  target += student_t_lpdf(Intercept | 3, 1.1, 2.5);
}
