// Parameters of the kinds that tasks.stan does not have, tuples, a file that is included, and the
// words of old versions of Stan, in which only data are spoken of. Densities of parameters are
// written out, as in tasks.stan; they are normalised but for the last one.
functions {
#include log_exponential.stan
  real scaled_log(real y, real s) { return normal_log(y, 0, s); } # a density
  real[] doubled(real[] x) { real out[2]; out[1] <- 2 * x[1]; out[2] <- 2 * x[2]; return out; }
}
data {
  tuple(real, vector[2]) place;
  int counts[2]; # of an old version
  real at[2];
}
parameters {
  unit_vector[3] direction;
  positive_ordered[2] rising;
  cov_matrix[2] Sigma;
  sum_to_zero_vector[3] effect;
  real<offset=place.1, multiplier=2> shifted;
  real<lower=shifted> above;
  tuple(real, row_vector<upper=0>[2]) both;
}
transformed parameters {
  real<lower=0> width = above - shifted;
  if (width > 40) {
    reject("too wide");
  }
}
model {
  // uniform on the sphere
  target += -log(4 * pi());
  // the order statistics of two exponential variables
  target += log(2) + log_exponential(rising[1]) + log_exponential(rising[2]);
  // inverse Wishart with 5 degrees of freedom and the identity
  real determinant = Sigma[1, 1] * Sigma[2, 2] - square(Sigma[2, 1]);
  target += -4 * log(determinant) - 0.5 * (Sigma[1, 1] + Sigma[2, 2]) / determinant;
  target += -5 * log(2) - 0.5 * log(pi()) - lgamma(2.5) - lgamma(2);
  // normal on the plane
  target += -log(2 * pi()) - 0.5 * (square(effect[1]) + square(effect[2]) + square(effect[3]));
  target += -0.5 * log(2 * pi()) - log(2) - 0.5 * square((shifted - place.1) / 2);
  target += log_exponential(width);
  target += -0.5 * log(2 * pi()) - 0.5 * square(both.1);
  // its evidence is exp(-sum(place.2))
  target += log_exponential(place.2[1] - both.2[1]) + log_exponential(place.2[2] - both.2[2]);
  // constants: this is what old_words() is
  matrix[2, 2] C;
  C <- cov_exp_quad(at, 1.0, 2.0);
  at[1] ~ scaled(2);
  for (n in 1:2) counts[n] ~ poisson_log(if_else(at[n] > 1, at[n], 0.5));
  increment_log_prob(exponential_log(at[1], 1) + multiply_log(2, 3) + C[1, 2]);
  increment_log_prob(sum(doubled(at)) + normal_ccdf_log(0.5, 0, 1));
}
generated quantities {
  tuple(real, vector[3]) made = (effect[1], direction);
}
