# Checkpoints: a run is a pure function of its settings and its number, so its record can
# be kept in a file, and taken from there by the next call that would make the same run.

# An entry holds a run. It is a list of
# * `settings`: those of settings_of_run();
# * `points` and `log_density`: a few of its particles, on the unconstrained scale, and the
#   log target there, which show whether the target is still the same;
# * `value`: the record.

new_entry <- function(sampler, settings, value, points) {
  list(
    settings = settings,
    points = points,
    log_density = density_at(sampler, points),
    value = value
  )
}

density_at <- function(sampler, points) {
  evaluate_located(
    sampler$target, points, "checkpoint",
    gradient = FALSE, evaluators = sampler$evaluators
  )$log_density
}

# Four particles, or the origin of the unconstrained scale where all have died.
points_of <- function(record, sampler) {
  if (!is.null(record$points)) {
    return(record$points) # of an island of which no particles are kept
  }
  if (is.null(record$particles)) {
    return(matrix(0, 1, sampler$target$dim))
  }
  x <- unconstrained_particles(record)
  unname(x[unique(round(seq(1, nrow(x), length.out = 4))), , drop = FALSE])
}

# A point beside the mode of each of the first basins; the origin where there is none.
points_of_scout <- function(scout, sampler) {
  points <- lapply(utils::head(scout$normals, 4), function(x) x$mean + normal_sd(x))
  if (length(points) > 0) do.call(rbind, points) else matrix(0, 1, sampler$target$dim)
}

# settings ----------------------------------------------------------------------

# Everything that a run depends on, except the target's density and the run's number.
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
    version = as.character(utils::packageVersion("autosmc")),
    seed = format(sampler$seed, digits = 15),
    variables = unclass(sampler$target)[intersect(c("names", "lower", "upper", scale_names), names(sampler$target))]
  )
}

# With the text of functions instead of these.
without_code <- function(x) {
  if (is.function(x)) {
    c(deparse(args(x)), deparse(body(x)))
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
    is_rounded && isTRUE(all.equal(a, b, tolerance = rules$same_setting))
}

# where: what holds the entry, in words.
check_entry <- function(entry, sampler, settings, where) {
  names <- union(names(settings), names(entry$settings))
  same <- vapply(names, function(name) {
    is_same_setting(entry$settings[[name]], settings[[name]])
  }, NA)
  if (!all(same)) {
    abort_mismatch(where, names[!same], entry$settings, settings)
  }
  now <- density_at(sampler, entry$points)
  if (!isTRUE(all.equal(entry$log_density, now, tolerance = rules$same_density))) {
    abort_mismatch(where, "target", list(), list())
  }
}

abort_mismatch <- function(where, differs, then, now) {
  told <- vapply(differs, function(name) {
    is_short <- function(x) is.atomic(x) && length(x) == 1
    if (name == "target") {
      "The target has other values at particles of that run: have data or code changed?"
    } else if (is_short(then[[name]]) && is_short(now[[name]])) {
      sprintf("{.field %s} was %s, and is %s now.", name, then[[name]], now[[name]])
    } else {
      sprintf("{.field %s} was another one.", name)
    }
  }, "")
  abort(
    c(
      "{where} is of another run.",
      stats::setNames(told, rep("x", length(told))),
      "i" = "Nothing was changed there. Give the same arguments, or another place."
    ),
    "mismatch",
    differs = differs
  )
}

# the folder --------------------------------------------------------------------

# dir: NULL, or the path of a folder, which is created if need be. Returns its path.
open_checkpoint <- function(dir) {
  if (is.null(dir)) {
    return(NULL)
  }
  dir <- path.expand(check_string(dir, "checkpoint"))
  if (!dir.exists(dir)) {
    dir.create(dir, showWarnings = FALSE, recursive = TRUE)
  }
  if (!dir.exists(dir)) {
    abort("{.arg checkpoint}: the folder {.file {dir}} cannot be made.", "input")
  }
  normalizePath(dir)
}

# The seed of a call, which the folder keeps for later calls without one. One number is drawn
# from R's generator in any case, so that what follows the call is the same too.
seed_for <- function(seed, checkpoint) {
  own <- check_seed(seed)
  if (is.null(checkpoint)) {
    return(own)
  }
  file <- file.path(checkpoint, "seed.rds")
  if (!file.exists(file)) {
    # where nothing can be written, the first run's file says so
    suppressWarnings(write_file(own, file), classes = "autosmc_warning_checkpoint")
  }
  stored <- if (is.null(seed) && file.exists(file)) read_file(file)
  if (is_number(stored)) stored else own
}

run_name <- function(run, index) sprintf("%s-%.0f", run, index)

run_file <- function(sampler, name) file.path(sampler$checkpoint, paste0(name, ".rds"))

# The entry of this name in the folder, or NULL.
recall <- function(sampler, name, settings) {
  if (is.null(sampler$checkpoint)) {
    return(NULL)
  }
  file <- run_file(sampler, name)
  entry <- if (file.exists(file)) read_file(file)
  if (!is.null(entry)) {
    entry <- if (is.list(entry)) entry else list()
    check_entry(entry, sampler, settings, paste("The file", file))
  }
  entry$value
}

store <- function(sampler, name, settings, value, points) {
  if (!is.null(sampler$checkpoint)) {
    write_file(new_entry(sampler, settings, value, points), run_file(sampler, name))
  }
}

# The value of `code`, from the folder where it is there. points: a function of
# the value and the sampler.
remember <- function(sampler, name, settings, points, code) {
  value <- recall(sampler, name, settings)
  if (is.null(value)) {
    value <- code
    store(sampler, name, settings, value, points(value, sampler))
  }
  value
}

# files -------------------------------------------------------------------------

# NULL, and a warning, where a file cannot be read; it is put aside.
read_file <- function(file) {
  tryCatch(
    suppressWarnings(readRDS(file)),
    error = function(e) {
      aside <- paste0(file, ".damaged")
      file.rename(file, aside)
      cli::cli_warn(
        "{.file {file}} cannot be read, and is run again; it is now {.file {aside}}.",
        class = warning_class("checkpoint")
      )
      NULL
    }
  )
}

# The file is written under another name and then renamed: a process that is killed leaves
# no partial file of this name, and of two processes the first one's file stays. The warnings
# of failures all have the same words, so that once_each() shows the first one only.
write_file <- function(x, file) {
  part <- tempfile(paste0(basename(file), ".part-"), dirname(file))
  on.exit(unlink(part))
  tryCatch(
    {
      write_whole(x, part)
      if (!suppressWarnings(file.link(part, file)) && !file.exists(file)) {
        file.rename(part, file) # there are file systems without links
      }
    },
    error = function(e) {
      dir <- dirname(file)
      cli::cli_warn(
        c(
          "Nothing can be written to {.file {dir}}: this part of the run is not kept.",
          "i" = "Is the disk full, or the folder read-only? The run goes on."
        ),
        class = warning_class("checkpoint")
      )
    }
  )
}

# R does not notice a full disk when it closes a file: so the size is compared.
write_whole <- function(x, file) {
  bytes <- serialize(x, NULL, xdr = FALSE)
  suppressWarnings({
    connection <- file(file, "wb")
    tryCatch(writeBin(bytes, connection), finally = close(connection))
  })
  if (!identical(as.double(file.size(file)), as.double(length(bytes)))) {
    stop("the file is not complete")
  }
}
