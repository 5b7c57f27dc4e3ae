# Draws in the form that brms expects, and brms's names of variables, for as_brmsfit() and as_target() of a brmsfit.

# The brmsfit x with the given draws: an array of iterations, chains and variables, named as in the program.
with_brms_draws <- function(x, draws) {
  x$fit <- as_stanfit(draws, excluded = unsaved_by_brms(x))
  getExportedValue("brms", "rename_pars")(x)
}

# The names that brms gives to the variables of its program, in the order of brms: c("b[1]" = "b_Days"). brms renames
# one draw in which the value of each variable is its index. Empty if brms fails.
names_by_brms <- function(x, names) {
  draw <- array(seq_along(names), c(1, 1, length(names)), list(NULL, NULL, names))
  by_brms <- tryCatch(with_brms_draws(x, draw)$fit@sim$samples[[1]], error = function(e) list())
  place <- vapply(by_brms, `[`, 0, 1)
  is_variable <- place %in% seq_along(names)
  stats::setNames(names(by_brms)[is_variable], names[place[is_variable]])
}

# The variables that brms omits from the draws of its own fits, such as standardised effects: names without indices.
unsaved_by_brms <- function(x) {
  exclude_pars <- get0("exclude_pars", asNamespace("brms"))
  if (is.function(exclude_pars)) exclude_pars(x)
}

# A stanfit of rstan with these draws: an array of iterations, chains and variables.
as_stanfit <- function(draws, excluded) {
  draws <- draws[, , !base_names(dimnames(draws)[[3]]) %in% excluded, drop = FALSE]
  names <- c(dimnames(draws)[[3]], "lp__")
  pars <- unique(base_names(names))
  samples <- lapply(seq_len(dim(draws)[2]), function(chain) {
    of_chain <- matrix(draws[, chain, ], dim(draws)[1])
    columns <- lapply(seq_len(ncol(of_chain)), function(j) of_chain[, j])
    zero <- numeric(nrow(of_chain))
    structure(
      stats::setNames(c(columns, list(zero)), names),
      mean_pars = colMeans(of_chain), mean_lp__ = 0,
      sampler_params = list(divergent__ = zero, treedepth__ = zero), adaptation_info = "",
      elapsed_time = c(warmup = 0, sample = 0),
      args = list(method = "autosmc", algorithm = "SMC", chain_id = chain)
    )
  })
  n <- dim(draws)[1]
  dims <- lapply(stats::setNames(pars, pars), function(par) dims_of(names[base_names(names) == par]))
  sim <- list(
    samples = samples, iter = n, thin = 1, warmup = 0, chains = length(samples), n_save = rep(n, length(samples)),
    warmup2 = rep(0, length(samples)), permutation = rep(list(seq_len(n)), length(samples)),
    pars_oi = pars, dims_oi = dims, fnames_oi = names, n_flatnames = length(names)
  )
  methods::new(
    methods::getClass("stanfit", where = asNamespace("rstan")),
    model_name = "autosmc", model_pars = pars, par_dims = dims, mode = 0L, sim = sim, inits = list(),
    stan_args = lapply(samples, attr, "args"), stanmodel = empty_stanmodel(), date = date(),
    .MISC = new.env(parent = emptyenv())
  )
}

empty_stanmodel <- function() {
  of_rstan <- function(class, ...) methods::new(methods::getClass(class, where = asNamespace("rstan")), ...)
  of_rstan(
    "stanmodel",
    model_name = "autosmc", model_code = character(0), model_cpp = list(), dso = of_rstan(
      "cxxdso",
      sig = list(character(0)), dso_saved = FALSE, dso_filename = character(0), modulename = character(0),
      system = R.version$system, cxxflags = character(0), .CXXDSOMISC = new.env(parent = emptyenv())
    )
  )
}

# The dimensions of the variable whose elements have these names, such as x[1,1], x[2,1]; empty for a number.
dims_of <- function(names) {
  index <- sub("^[^[]*\\[?", "", sub("\\]$", "", names))
  if (identical(index, "")) {
    return(numeric(0))
  }
  as.numeric(apply(do.call(rbind, lapply(strsplit(index, ","), as.integer)), 2, max))
}
