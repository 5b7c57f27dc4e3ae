# The main job, on real data: Bayesian logistic regression on the 208 x 60 Sonar
# data. Run it with `make demo`.
library(autosmc)
set.seed(1)
fit <- smc(target_sonar())
print(fit)
