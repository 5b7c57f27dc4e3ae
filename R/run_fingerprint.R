# Fingerprints of a model: hashes of its functions and of the variables that these use. They show whether a model has
# changed, also where its density at some points is the same. Called for checkpoints.

# The named hashes of all functions in x, a function or a named list, of the variables that these use, and of all other
# data in x. Contents of environments, variables that a function sets by `<<-`, such as a cache, and variables that a
# package's functions use are left out.
fingerprint <- function(x, name = "") {
  seen <- list()
  found <- state <- character()
  add <- function(name, x) {
    if (is.function(x)) {
      add_function(name, x)
    } else if (is.language(x)) {
      found[[name]] <<- hash_of(deparse(x))
    } else if (!is.null(.Call(r_data_or_null, x))) {
      found[[name]] <<- hash_of(x)
    } else if (is.list(x)) {
      x <- definition_of(x)
      labels <- if (is.null(names(x))) seq_along(x) else names(x)
      Map(add, paste0(name, "$", labels), unclass(x))
    } else if (isS4(x)) {
      add(name, attributes(x))
    }
  }
  add_function <- function(name, f) {
    if (any(vapply(seen, identical, NA, f))) {
      return()
    }
    seen <<- c(seen, list(f))
    found[[name]] <<- hash_of(c(deparse(args(f)), deparse(body(f))))
    home <- environment(f)
    used <- if (!is.null(home) && !isNamespace(home)) used_by(f)
    state <<- c(state, used$state)
    for (variable in used$free) {
      where <- where_is(variable, home)
      if (is.null(where) || is_remembered_by_tmb(variable, where)) next
      value <- tryCatch(get(variable, where), error = function(e) NULL)
      if (!is.null(value)) add(quoted(variable), value)
    }
  }
  if (is.list(x)) Map(add, names(x), unclass(x)) else add(name, x)
  found[!sub("[$].*", "", names(found)) %in% quoted(state)]
}

# The parts of a model that define it: for a Stan program its code and data, not the compiled program.
definition_of <- function(x) {
  if (is_tmb_model(x)) {
    mget(tmb_definition, x$env)
  } else if (inherits(x, "smc_target_stan")) {
    text <- intersect(c("code", "includes", "sum"), names(x$program))
    others <- setdiff(names(x), c("program", "data", "outputs", "why", "label"))
    c(unclass(x)[others], x$program[text], x$data[c("values", "seed")])
  } else {
    x
  }
}

# The variables that define a model object of TMB or RTMB, in its environment. The others are caches, and tapes, which a
# copy of the object does not have; using them would crash R.
tmb_definition <- c("data", "parameters", "random", "MakeADFunObject")

is_remembered_by_tmb <- function(variable, where) {
  !variable %in% tmb_definition && all(vapply(tmb_definition, exists, NA, where, inherits = FALSE))
}

quoted <- function(name) sprintf("`%s`", name)

# The environment in which a function with the environment `home` finds a variable; NULL where there is none, or it is
# in a package.
where_is <- function(variable, home) {
  while (!identical(home, emptyenv()) && !isNamespace(home)) {
    if (exists(variable, home, inherits = FALSE)) {
      return(home)
    }
    if (identical(home, globalenv())) break # its parents are packages
    home <- parent.env(home)
  }
  NULL
}

# The names of a function's free variables (`free`), and of those that it sets by `<<-` (`state`).
used_by <- function(f) {
  own <- free <- state <- character()
  # a variable that is set in a branch or an inner function may not be set elsewhere
  aside <- function(parts, names = character()) {
    before <- own
    own <<- c(own, names)
    lapply(parts, look)
    own <<- before
  }
  name_of <- function(target) {
    while (is.call(target)) target <- target[[2]]
    as.character(target)
  }
  look <- function(code) {
    if (is.name(code)) {
      free <<- c(free, setdiff(as.character(code), c(own, "")))
    } else if (is.call(code)) {
      parts <- as.list(code)
      switch(if (is.name(code[[1]])) as.character(code[[1]]) else "",
        "function" = aside(c(code[[2]], code[[3]]), names(code[[2]])),
        "if" = {
          look(code[[2]])
          aside(parts[-(1:2)])
        },
        "for" = {
          look(code[[3]])
          aside(parts[4], as.character(code[[2]]))
        },
        "while" = aside(parts[-1]),
        "<-" = ,
        "=" = {
          look(code[[3]])
          if (is.call(code[[2]])) look(code[[2]]) else own <<- c(own, as.character(code[[2]]))
        },
        "<<-" = {
          state <<- c(state, name_of(code[[2]]))
          lapply(parts[-1], look)
        },
        "$" = ,
        "@" = look(code[[2]]),
        "get" = ,
        "get0" = {
          if (length(parts) > 1 && is.character(code[[2]])) look(as.name(code[[2]]))
          lapply(parts, look)
        },
        lapply(parts, look)
      )
    }
  }
  aside(c(formals(f), body(f)), names(formals(f)))
  list(free = unique(free), state = unique(state))
}
