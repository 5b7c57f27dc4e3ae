# Checkpoints: a run is a pure function of its settings and its number, so its record can be stored in a file and reused
# by a later call with the same run. Called by run_sampler() and, for other expensive results, by remember().

# Tolerance for the log density at the same point: a million times the rounding of a double.
same_density <- 1e-10

# An entry is a vector of bytes, in a file or from smc_islands(): `entry_mark`, a hash of the rest, and the serialised
# list of
# * `settings`: those of settings_of_run(), the name of the `run` and the package's `version`;
# * `value`: the record;
# * `at_points`: the target at a few of its particles, which shows whether the target has changed.
# It contains data only: no functions, and nothing else that R would evaluate.
entry_mark <- charToRaw("autosmc entry\n")

# points: on the unconstrained scale, or NULL for no check of the target.
new_entry <- function(sampler, name, settings, value, points) {
  entry <- list(
    settings = settings_of_entry(name, settings),
    value = value,
    at_points = at_points(sampler, points)
  )
  bytes <- serialize(entry, NULL, xdr = FALSE)
  c(entry_mark, charToRaw(hash_of(bytes)), bytes)
}

settings_of_entry <- function(name, settings) c(list(run = name, version = own_version()), settings)

# The list in an entry; NULL where it is damaged.
read_entry <- function(bytes) {
  n_mark <- length(entry_mark)
  head <- seq_len(n_mark + 16) # a hash has 16 characters
  body <- bytes[-head]
  is_whole <- is.raw(bytes) && length(bytes) > length(head) &&
    identical(bytes[head], c(entry_mark, charToRaw(hash_of(body))))
  entry <- if (is_whole) {
    tryCatch(.Call(r_data_or_null, unserialize(body)), error = function(e) NULL)
  }
  if (is.list(entry) && is.list(entry$settings)) entry
}

# The target at points on the unconstrained scale: its log density, and its gradient unless R computes that.
at_points <- function(sampler, points) {
  if (!is.null(points)) {
    evaluate_located(
      sampler$target, points, "checkpoint",
      gradient = sampler$kernel$gradients && !gradient_needs_call(sampler$target), evaluators = sampler$evaluators
    )
  }
}

# A point next to the mode of each of the first four basins; the origin where there is none.
points_of_scout <- function(scout, sampler) {
  points <- lapply(utils::head(scout$normals, 4), function(x) x$mean + normal_sd(x))
  if (length(points) > 0) do.call(rbind, points) else matrix(0, 1, sampler$target$dim)
}

# settings ----------------------------------------------------------------------

# Everything that a run depends on, except the run's number and compiled code of the target.
settings_of_run <- function(sampler, path, run = "final") {
  c(
    settings_of_target(sampler),
    list(
      n_particles = sampler$n_particles,
      schedule = without_null(path[c(
        "lambda", "adaptive_ess", "n_steps", "step_size",
        if (sampler$kernel$refreshes) "refresh_rate"
      )]),
      kernel = sampler$kernel$options,
      reference = without_code(sampler$reference),
      tuner = if (run == "adapt") complete_tuner(sampler),
      keep = if (run == "final") sampler$keep,
      resampling = sampler$resampling,
      ess_threshold = sampler$ess_threshold
    )
  )
}

settings_of_target <- function(sampler) {
  list(
    seed = format(sampler$seed, digits = 15),
    variables = unclass(sampler$target)[intersect(names_of_variables(), names(sampler$target))],
    target = sampler$fingerprint
  )
}

names_of_variables <- function() c("names", "lower", "upper", scale_names)

# The fingerprint of the target without its variables, its label and the path of its library.
fingerprint_of_target <- function(target) {
  target <- unclass(definition_of(target))
  target$library$path <- NULL
  fingerprint(target[setdiff(names(target), c(names_of_variables(), "label"))])
}

# x with fingerprints in place of functions.
without_code <- function(x) {
  if (is.function(x)) {
    fingerprint(x, "reference")
  } else if (is.list(x)) {
    lapply(unclass(x), without_code)
  } else {
    x
  }
}

# Whether two settings are the same; real numbers may differ in their last digits, as between machines, but not
# integers.
is_same_setting <- function(a, b) {
  is_rounded <- is.double(unlist(a)) && is.double(unlist(b))
  identical(a, b) ||
    is_rounded && isTRUE(all.equal(a, b, tolerance = same_setting))
}

# The value in an entry; NULL where it is damaged, and an error where it belongs to another run. restore: a function
# that makes the value from what was stored, NULL where it is invalid. points: a function of the value and the sampler
# that returns the points of at_points(). where: the place of the entry, in words.
open_entry <- function(bytes, sampler, name, settings, restore, points, where) {
  entry <- if (is.list(bytes)) bytes else read_entry(bytes) # version 0.1.0 had lists
  if (is.null(entry)) {
    return(NULL)
  }
  check_settings(entry$settings, settings_of_entry(name, settings), where)
  value <- tryCatch(restore(entry$value), error = function(e) NULL)
  if (!is.null(value)) {
    check_same_target(entry$at_points, at_points(sampler, points(value, sampler)), where)
  }
  value
}

check_settings <- function(then, now, where) {
  # settings of another version may have another form
  names <- if (identical(then$version, now$version)) union(names(now), names(then)) else "version"
  same <- vapply(names, function(name) is_same_setting(then[[name]], now[[name]]), NA)
  if (!all(same)) {
    abort_mismatch(where, names[!same], then, now)
  }
}

check_same_target <- function(then, now, where) {
  is_same <- function(name, tolerance) isTRUE(all.equal(then[[name]], now[[name]], tolerance = tolerance))
  same <- is.list(then) == is.list(now) &&
    (is.null(now) || is_same("log_density", same_density) && is_same("gradient", same_setting))
  if (!same) {
    abort_mismatch(where, "target", list(), list())
  }
}

abort_mismatch <- function(where, differs, then, now) {
  told <- vapply(differs, function(name) {
    describe_mismatch(name, then[[name]], now[[name]])
  }, "")
  abort(
    c(
      "{where} belongs to another run.",
      stats::setNames(verbatim(told), rep("x", length(told))),
      "i" = "It was left unchanged. Use the same arguments and version as that run, or another place."
    ),
    "mismatch",
    differs = differs
  )
}

describe_mismatch <- function(name, then, now) {
  is_short <- function(x) is.atomic(x) && length(x) == 1
  if (name == "target" && is.null(now)) {
    "The target has other values at particles of that run: data or code may have changed."
  } else if (name == "target" && is.character(then)) {
    parts <- union(names(now), names(then))
    changed <- parts[!vapply(parts, function(part) identical(then[part], now[part]), NA)]
    sprintf("These parts of the target have changed: %s.", format_names(sub("^terms[$][0-9]+[$]", "", changed)))
  } else if (is_short(then) && is_short(now)) {
    sprintf("`%s` was %s, and is %s now.", name, then, now)
  } else {
    sprintf("`%s` has changed.", name)
  }
}

# the folder --------------------------------------------------------------------

# Longest path in bytes, that of Linux; other systems have shorter ones.
longest_path <- 4095

# The sampler with a checkpoint folder (NULL for none) and the fingerprint of the target at the start of the call.
with_checkpoint <- function(sampler, dir) {
  sampler$checkpoint <- check_folder(dir)
  if (is.null(dir)) sampler else with_fingerprint(sampler)
}

# The path of the folder `dir`, which is created if it does not exist; NULL for NULL.
check_folder <- function(dir) {
  if (is.null(dir)) {
    return(NULL)
  }
  dir <- check_string(dir, "checkpoint")
  if (nchar(dir, "bytes") > longest_path) {
    abort("{.arg checkpoint} must be the path of a folder; its {nchar(dir)} characters are too many.")
  }
  dir <- path.expand(dir)
  dir.create(dir, showWarnings = FALSE, recursive = TRUE)
  if (!dir.exists(dir)) {
    abort("{.arg checkpoint}: the folder {.file {dir}} cannot be created.")
  }
  normalizePath(dir)
}

with_fingerprint <- function(sampler) {
  sampler$fingerprint <- fingerprint_of_target(sampler$target)
  sampler
}

# The sampler with the seed of a call, which is stored in the folder for later calls without a seed. One number is drawn
# from R's generator in any case, so that its state after the call does not depend on the folder.
with_seed_of_call <- function(sampler, seed) {
  sampler$seed <- check_seed(seed)
  stored <- recall(sampler, "seed", list(), function(x) if (is_number(x)) check_seed(x), points = function(...) NULL)
  if (is.null(stored)) {
    # the warning is given once, for the file of the first run
    suppressWarnings(store(sampler, "seed", list(), sampler$seed, NULL), classes = "autosmc_warning_checkpoint")
  } else if (is.null(seed)) {
    sampler$seed <- stored
  }
  sampler
}

run_name <- function(run, index) sprintf("%s-%.0f", run, index)

run_file <- function(sampler, name, extension = ".smc") file.path(sampler$checkpoint, paste0(name, extension))

# The value with this name in the folder, or NULL. restore, points: of open_entry().
recall <- function(sampler, name, settings, restore, points = points_of) {
  if (is.null(sampler$checkpoint)) {
    return(NULL)
  }
  file <- run_file(sampler, name)
  before <- run_file(sampler, name, ".rds") # the name in version 0.1.0
  if (file.exists(before)) {
    abort_mismatch(paste("The file", before), "version", list(version = "0.1.0"), list(version = own_version()))
  }
  if (!file.exists(file)) {
    return(NULL)
  }
  bytes <- tryCatch(suppressWarnings(readBin(file, "raw", file.size(file))), error = function(e) NULL)
  value <- open_entry(bytes, sampler, name, settings, restore, points, paste("The file", file))
  if (is.null(value)) {
    put_aside(file)
  }
  value
}

store <- function(sampler, name, settings, value, points) {
  if (!is.null(sampler$checkpoint)) {
    write_file(new_entry(sampler, name, settings, value, points), run_file(sampler, name))
  }
}

# The value with this name from the folder, or else that of `code`, which is then stored. restore, points: of
# open_entry().
remember <- function(sampler, name, settings, restore, points, code) {
  value <- recall(sampler, name, settings, restore, points)
  if (is.null(value)) {
    value <- code
    store(sampler, name, settings, value, points(value, sampler))
  }
  value
}
