# What functions are made of: their text and what they use from around them. By it a model that has been changed is
# known, also where it has the same values at some points.

# The hashes of all functions in x, a function or a list with names, of the variables that these use, and of what else
# is in it, each by a name. What is in environments is left out, and what a function sets by `<<-`: what it remembers is
# no part of the model. So is what a package's own functions use.
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

# What a model is made of, of what it holds: of a Stan program its text and its data, wherever it is compiled.
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

# What a model object of TMB or RTMB is made of, in its environment. The rest is what it remembers, and tapes that a copy
# does not have: to ask for these ends R.
tmb_definition <- c("data", "parameters", "random", "MakeADFunObject")

is_remembered_by_tmb <- function(variable, where) {
  !variable %in% tmb_definition && all(vapply(tmb_definition, exists, NA, where, inherits = FALSE))
}

quoted <- function(name) sprintf("`%s`", name)

# The environment from which a function made in `home` takes a variable; NULL where it has none, or takes it from a
# package.
where_is <- function(variable, home) {
  while (!identical(home, emptyenv()) && !isNamespace(home)) {
    if (exists(variable, home, inherits = FALSE)) {
      return(home)
    }
    if (identical(home, globalenv())) break # beyond are the packages
    home <- parent.env(home)
  }
  NULL
}

# The names of the variables that a function takes from around it (`free`), and of those that it sets there (`state`).
used_by <- function(f) {
  own <- free <- state <- character()
  # what one branch or another function sets is not always set
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
