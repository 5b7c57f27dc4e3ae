/* features.c: see features.h. */
#include "features.h"

static bool has_value(const smc_values *values, double x) {
  for (size_t i = 0; i < values->size; i++)
    if (values->x[i] == x)
      return true;
  return false;
}

static bool is_valid(int d, const smc_factor *of, const smc_values *order) {
  if (of->variable == 0.0)
    return true;
  return of->variable >= 1.0 && of->variable <= d &&
         of->variable == floor(of->variable) &&
         !has_value(order, of->variable) && of->kind >= SMC_LINEAR &&
         of->kind <= SMC_SOFTPLUS && of->kind == floor(of->kind) &&
         isfinite(of->rate) && isfinite(of->centre);
}

bool smc_features_are_valid(int d, const smc_values *features,
                            const smc_values *order) {
  if (!features->x || features->size == 0 ||
      features->size % SMC_FEATURE_SIZE != 0)
    return false;
  const smc_feature *of = (const smc_feature *)features->x;
  for (size_t k = 0; k < features->size / SMC_FEATURE_SIZE; k++)
    if (!is_valid(d, &of[k].factor[0], order) ||
        !is_valid(d, &of[k].factor[1], order))
      return false;
  return true;
}
