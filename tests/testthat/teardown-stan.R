leave_stan_cache()
