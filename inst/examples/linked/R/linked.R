# A target for smc(), evaluated by C: exp(-|x - mean|^2 / 2), whose log evidence is
# length(mean) / 2 * log(2 * pi). mean: numeric vector.
target_normal <- function(mean) {
  target_native(
    "target_normal",
    dll = "linked",
    dim = length(mean),
    init = "target_normal_init",
    data = as.double(mean)
  )
}

# The log evidence of that target, from C altogether. seed: whole number from 0 to
# 2^32 - 1.
log_evidence_normal <- function(mean, seed) {
  .Call(log_evidence, as.double(mean), as.double(seed))
}
