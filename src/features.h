/* features.h: functions of given coordinates, of which the conditional maps are
 * linear combinations. A feature is the product of at most two factors; each
 * depends on one coordinate t, as a function of y = rate (t - centre). One
 * without factors is the constant 1.
 */
#ifndef SMC_FEATURES_H
#define SMC_FEATURES_H

#include "map.h"
#include "vecmath.h"

enum { SMC_LINEAR = 1, SMC_SQUARE, SMC_CUBE, SMC_EXPONENTIAL, SMC_SOFTPLUS };

/* variable: the coordinate, counted from 1; 0 for no factor. */
typedef struct smc_factor {
  double variable, kind, rate, centre;
} smc_factor;

typedef struct smc_feature {
  smc_factor factor[2];
} smc_feature;

enum { SMC_FEATURE_SIZE = sizeof(smc_feature) / sizeof(double) };

/* The value of a factor, and its derivative by the coordinate. */
static inline double smc_factor_at(const smc_factor *of, const double *z,
                                   double *slope) {
  *slope = 0.0;
  if (of->variable == 0.0)
    return 1.0;
  double y = of->rate * (z[(size_t)of->variable - 1] - of->centre);
  double value = y, by_y = 1.0;
  switch ((int)of->kind) {
  case SMC_SQUARE:
    value = y * y;
    by_y = 2.0 * y;
    break;
  case SMC_CUBE:
    value = y * y * y;
    by_y = 3.0 * y * y;
    break;
  case SMC_EXPONENTIAL:
    value = by_y = exp(y);
    break;
  case SMC_SOFTPLUS:
    value = fmax(y, 0.0) + log1p(exp(-fabs(y)));
    by_y = 1.0 / (1.0 + exp(-y));
    break;
  }
  *slope = of->rate * by_y;
  return value;
}

/* The values of n features at a point z; slopes, 2 a feature: their derivatives
 * by the coordinates of their factors. */
static inline void smc_features_at(int n, const double *features,
                                   const double *z, double *values,
                                   double *slopes) {
  const smc_feature *of = (const smc_feature *)features;
  for (int k = 0; k < n; k++) {
    double a = smc_factor_at(&of[k].factor[0], z, &slopes[2 * k]);
    double b = smc_factor_at(&of[k].factor[1], z, &slopes[2 * k + 1]);
    values[k] = a * b;
    slopes[2 * k] *= b;
    slopes[2 * k + 1] *= a;
  }
}

/* The derivative `by` of something by feature k goes to those by coordinates.
 */
static inline void smc_feature_back(const double *features, int k, double by,
                                    const double *slopes, double *grad) {
  const smc_feature *of = (const smc_feature *)features + k;
  for (int i = 0; i < 2; i++)
    if (of->factor[i].variable != 0.0)
      grad[(size_t)of->factor[i].variable - 1] += by * slopes[2 * k + i];
}

/* Whether these are features of coordinates of d, none of them in `order`. */
bool smc_features_are_valid(int d, const smc_values *features,
                            const smc_values *order);

#endif
