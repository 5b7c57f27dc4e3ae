# Checkpoints: a run is a pure function of its settings and its number, so its record can
# be kept in a file, and taken from there by the next call that would make the same run.

# The same of the log density at one point: a million times the rounding of a double.
same_density <- 1e-10

# An entry holds a run, as a vector of bytes, in a file or of smc_islands(): `entry_mark`, a hash of what follows, and
# the serialised list of
# * `settings`: those of settings_of_run(), the name of the `run` and the package's `version`;
# * `value`: the record;
# * `at_points`: the target at a few of its particles, which shows whether it is still the same.
# What is in it is data: no functions, and nothing else that R would run.
entry_mark <- charToRaw("autosmc entry\n")

# points: of the unconstrained scale, or NULL.
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

# The list that an entry holds; NULL where it is damaged.
read_entry <- function(bytes) {
  n_mark <- length(entry_mark)
  head <- seq_len(n_mark + 16) # characters of a hash
  body <- bytes[-head]
  is_whole <- is.raw(bytes) && length(bytes) > length(head) &&
    identical(bytes[head], c(entry_mark, charToRaw(hash_of(body))))
  entry <- if (is_whole) {
    tryCatch(.Call(r_data_or_null, unserialize(body)), error = function(e) NULL)
  }
  if (is.list(entry) && is.list(entry$settings)) entry
}

# The target at some points of the unconstrained scale: its log density, and its gradient where that is its own.
at_points <- function(sampler, points) {
  if (!is.null(points)) {
    evaluate_located(
      sampler$target, points, "checkpoint",
      gradient = sampler$kernel$gradients && !gradient_needs_call(sampler$target), evaluators = sampler$evaluators
    )
  }
}

# A point beside the mode of each of the first basins; the origin where there is none.
points_of_scout <- function(scout, sampler) {
  points <- lapply(utils::head(scout$normals, 4), function(x) x$mean + normal_sd(x))
  if (length(points) > 0) do.call(rbind, points) else matrix(0, 1, sampler$target$dim)
}

# settings ----------------------------------------------------------------------

# Everything that a run depends on, except the run's number, and what in the target is compiled.
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

# The target without its variables; its label, and where its library is, say nothing of the model.
fingerprint_of_target <- function(target) {
  target <- unclass(definition_of(target))
  target$library$path <- NULL
  fingerprint(target[setdiff(names(target), c(names_of_variables(), "label"))])
}

# With the fingerprints of functions instead of these.
without_code <- function(x) {
  if (is.function(x)) {
    fingerprint(x, "reference")
  } else if (is.list(x)) {
    lapply(unclass(x), without_code)
  } else {
    x
  }
}

# Numbers may differ in their last digits, as they do on another machine; counts may not.
is_same_setting <- function(a, b) {
  is_rounded <- is.double(unlist(a)) && is.double(unlist(b))
  identical(a, b) ||
    is_rounded && isTRUE(all.equal(a, b, tolerance = same_setting))
}

# The value that an entry holds; NULL where it is damaged. It is an error where it is of another run. restore: makes the
# value of what was stored, or NULL of what cannot be one. points: a function of the value and the sampler. where: what
# holds the entry, in words.
open_entry <- function(bytes, sampler, name, settings, restore, points, where) {
  entry <- if (is.list(bytes)) bytes else read_entry(bytes) # lists are what version 0.1.0 had
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
  # the settings of another version may have other forms
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
      "{where} is of another run.",
      stats::setNames(verbatim(told), rep("x", length(told))),
      "i" = "Nothing was changed there. Give the same arguments to the same version, or another place."
    ),
    "mismatch",
    differs = differs
  )
}

describe_mismatch <- function(name, then, now) {
  is_short <- function(x) is.atomic(x) && length(x) == 1
  if (name == "target" && is.null(now)) {
    "The target has other values at particles of that run: have data or code changed?"
  } else if (name == "target" && is.character(then)) {
    parts <- union(names(now), names(then))
    changed <- parts[!vapply(parts, function(part) identical(then[part], now[part]), NA)]
    sprintf("Of the target this has changed: %s.", format_names(sub("^terms[$][0-9]+[$]", "", changed)))
  } else if (is_short(then) && is_short(now)) {
    sprintf("`%s` was %s, and is %s now.", name, then, now)
  } else {
    sprintf("`%s` was another one.", name)
  }
}

# the folder --------------------------------------------------------------------

# Of Linux, and more than elsewhere.
longest_path <- 4095

# The sampler with a folder, and for its entries the fingerprint of the target as it is when the call begins.
with_checkpoint <- function(sampler, dir) {
  sampler$checkpoint <- check_folder(dir)
  if (is.null(dir)) sampler else with_fingerprint(sampler)
}

# A folder, which is created if need be. dir: NULL, or a path.
check_folder <- function(dir) {
  if (is.null(dir)) {
    return(NULL)
  }
  dir <- check_string(dir, "checkpoint")
  if (nchar(dir, "bytes") > longest_path) {
    abort("{.arg checkpoint} must be the path of a folder; it has {nchar(dir)} characters.")
  }
  dir <- path.expand(dir)
  dir.create(dir, showWarnings = FALSE, recursive = TRUE)
  if (!dir.exists(dir)) {
    abort("{.arg checkpoint}: the folder {.file {dir}} cannot be made.")
  }
  normalizePath(dir)
}

with_fingerprint <- function(sampler) {
  sampler$fingerprint <- fingerprint_of_target(sampler$target)
  sampler
}

# The sampler with the seed of a call, which the folder keeps for later calls without one. One number is drawn from R's
# generator in any case, so that what follows the call is the same too.
with_seed_of_call <- function(sampler, seed) {
  sampler$seed <- check_seed(seed)
  stored <- recall(sampler, "seed", list(), function(x) if (is_number(x)) check_seed(x), points = function(...) NULL)
  if (is.null(stored)) {
    # where nothing can be written, the first run's file says so
    suppressWarnings(store(sampler, "seed", list(), sampler$seed, NULL), classes = "autosmc_warning_checkpoint")
  } else if (is.null(seed)) {
    sampler$seed <- stored
  }
  sampler
}

run_name <- function(run, index) sprintf("%s-%.0f", run, index)

run_file <- function(sampler, name, extension = ".smc") file.path(sampler$checkpoint, paste0(name, extension))

# The value of this name in the folder, or NULL. restore, points: of open_entry().
recall <- function(sampler, name, settings, restore, points = points_of) {
  if (is.null(sampler$checkpoint)) {
    return(NULL)
  }
  file <- run_file(sampler, name)
  before <- run_file(sampler, name, ".rds") # what the files of version 0.1.0 are called
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

# The value of `code`, from the folder where it is there. restore, points: of open_entry().
remember <- function(sampler, name, settings, restore, points, code) {
  value <- recall(sampler, name, settings, restore, points)
  if (is.null(value)) {
    value <- code
    store(sampler, name, settings, value, points(value, sampler))
  }
  value
}
