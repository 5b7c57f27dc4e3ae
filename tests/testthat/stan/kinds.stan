// Parameters of the kinds that tasks.stan does not have, tuples, and a file that is included.
// Densities are written out, as in tasks.stan; they are normalised but for the last one.
#include log_exponential.stan
data {
  tuple(real, vector[2]) place;
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
}
generated quantities {
  tuple(real, vector[3]) made = (effect[1], direction);
}
