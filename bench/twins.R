# The same densities in C: four of the paper's problems from posteriordb take an hour or so a fit by their
# Stan programs, nearly all of it in automatic differentiation, and some minutes by the routines of bench/twins.
# A twin is used only where it is the Stan program's density but for a constant, and its gradients are the same.

# target: of the Stan program. A list: the twin as a target, and what is to be added to its log Z.
twin_of <- function(target, folder, problem) {
  twin <- twins[[problem]](posteriordb_data(folder, posteriordb_names[[problem]]))
  set.seed(1)
  x <- matrix(stats::rnorm(20 * target$dim, sd = 0.5), 20)
  at <- lapply(list(target, twin), autosmc:::evaluate_target, x, gradient = TRUE, unconstrained = TRUE)
  constant <- at[[1]]$log_density - at[[2]]$log_density
  stopifnot(
    diff(range(constant)) < 1e-9 * max(abs(at[[1]]$log_density)),
    all.equal(at[[1]]$gradient, at[[2]]$gradient, tolerance = 1e-9)
  )
  list(target = twin, constant = mean(constant))
}

# routine: the name of a file of bench/twins, compiled when first used.
native_twin <- function(routine, dim, data) {
  if (!routine %in% names(getLoadedDLLs())) {
    load_routines(routine, file.path("bench", "twins", paste0(routine, ".c")))
  }
  target_native(paste0(routine, "_density"), routine, dim = dim, init = paste0(routine, "_init"), data = data)
}

# For each problem a function of posteriordb's data. Indices are from 0 in C.
twins <- list(
  election88 = function(data) {
    x <- with(data, cbind(1, black, female, v_prev_full, female * black))
    size <- unlist(data[c("n_age", "n_edu", "n_age_edu", "n_state", "n_region_full")])
    start <- as.integer(cumsum(c(0, size)))
    intercept <- do.call(cbind, data[c("age", "edu", "age_edu", "state", "region_full")])
    intercept <- sweep(intercept, 2, start[1:5] - 1L, "+")
    storage.mode(intercept) <- "integer"
    key <- do.call(paste, as.data.frame(cbind(x, intercept)))
    cell <- match(key, unique(key))
    one <- !duplicated(key)
    native_twin("election", start[6] + 10, list(
      start, t(intercept[one, ]), t(x[one, ]), as.double(tabulate(cell)), as.double(rowsum(data$y, cell))
    ))
  },
  three_men = function(data) {
    cells <- as.data.frame(table(data$doc, data$w))
    cells <- cells[cells$Freq > 0, ]
    cell <- rbind(as.integer(as.character(cells$Var1)) - 1L, as.integer(as.character(cells$Var2)) - 1L, cells$Freq)
    native_twin("lda", data$M + 2 * (data$V - 1), list(data$V, data$M, cell))
  },
  science = function(data) {
    n_steps <- max(data$y)
    item_response(data, rep(n_steps, data$I), seq_len(data$I), n_second = n_steps)
  },
  timss = function(data) {
    n_steps <- as.integer(tapply(data$y, data$ii, max))
    item_response(data, n_steps, cumsum(c(1L, n_steps))[seq_len(data$I)], n_second = 0L)
  }
)

# first: the first of the difficulties of each item. n_second: the difficulties of steps that items share.
item_response <- function(data, n_steps, first, n_second) {
  n_first <- if (n_second > 0) data$I else sum(n_steps)
  w <- matrix(as.double(data$W), data$J)
  w[, -1] <- apply(w[, -1, drop = FALSE], 2, function(x) (x - mean(x)) / (2 * stats::sd(x)))
  dim <- data$I + n_first - 1 + max(n_second - 1, 0) + data$J + data$K
  native_twin("irt", dim, list(
    as.integer(c(data$I, data$J, data$K, n_first, n_second)), as.integer(n_steps), as.integer(first - 1),
    as.integer(data$ii - 1), as.integer(data$jj - 1), as.integer(data$y), w
  ))
}
