# Finds the parameters without a prior from the statements of a Stan program. The variate of a statement stands before
# `~` or before the bar of a density. A parameter has a prior if it, or a quantity computed from it, is the variate of a
# statement; the variates of a likelihood are data. Any other term that is added to the target counts as a prior of all
# variables in it, so that no parameter with a prior is named; some without may be missed. A power of a positive
# parameter does not count, since it is improper.

# Their names, without types of finite volume, on which a constant density is proper.
parameters_without_prior <- function(program) {
  code <- plain_stan_code(program)
  declared <- declared_parameters(stan_block(code, "parameters"))
  statements <- stan_statements(paste(stan_block(code, "transformed parameters"), stan_block(code, "model")))
  statements <- without_powers(statements, positive_parameters(code))
  setdiff(declared, identifiers_with_prior(lapply(statements, read_statement)))
}

# The text of a program with its included files in one line, without comments and strings, and with `=` for `<-`.
plain_stan_code <- function(program) {
  code <- program$code
  for (name in rep(names(program$includes), length(program$includes))) {
    line <- paste0("(?m)^\\s*#include\\s+[<\"]?\\Q", name, "\\E[>\"]?\\s*(//.*)?$")
    text <- gsub("\\", "\\\\", program$includes[[name]], fixed = TRUE)
    code <- sub(line, text, code, perl = TRUE)
  }
  code <- gsub("(?s)\"[^\"\n]*\"|//[^\n]*|/[*].*?[*]/", " ", code, perl = TRUE)
  gsub("\\s+", " ", gsub("<-", "=", code, fixed = TRUE))
}

# The text between the braces of a block; "" if there is no such block.
stan_block <- function(code, name) {
  block <- paste0("(?<!transformed )\\b", name, " ?(\\{(?:[^{}]++|(?1))*+\\})")
  found <- regmatches(code, regexpr(block, code, perl = TRUE))
  if (length(found) == 0) "" else sub("\\}$", "", sub("^[^{]*\\{", "", found))
}

# The names of parameters whose type has infinite volume.
declared_parameters <- function(block) {
  bounded <- c(
    "simplex", "unit_vector", "corr_matrix", "cholesky_factor_corr", "column_stochastic_matrix",
    "row_stochastic_matrix",
    "tuple" # not examined, since its parts have different types
  )
  names <- lapply(strsplit(block, ";")[[1]], function(declaration) {
    has_both <- grepl("<[^>]*\\blower\\b[^>]*>", declaration) && grepl("<[^>]*\\bupper\\b[^>]*>", declaration)
    words <- declared_words(declaration)
    if (!has_both && !words[1] %in% bounded) words[-1]
  })
  unlist(names)
}

# The words of a declaration: the type, and the names of the variables.
declared_words <- function(declaration) {
  identifiers(gsub("<[^>]*>|\\([^)]*\\)|\\[[^]]*\\]", " ", sub("^ *array ?\\[[^]]*\\]", "", declaration)))
}

positive_parameters <- function(code) {
  block <- stan_block(code, "parameters")
  declaration <- "<lower ?= ?0([.]0*)?> ?([[][^]]*[]])? ?[[:alnum:]_]+"
  sub(".*\\W", "", regmatches(block, gregexpr(declaration, block))[[1]])
}

# Removes terms from `target +=` statements, at the beginning and the end of the sum, that are multiples of the
# logarithm of one of the parameters `positive`.
without_powers <- function(statements, positive) {
  if (length(positive) == 0) {
    return(statements)
  }
  log <- sprintf("log ?\\( ?(1 ?/ ?)?(%s)( ?\\[[^][]*\\])? ?\\)", paste(positive, collapse = "|"))
  power <- sprintf("([0-9.]+ ?[*] ?)?(%1$s|sum ?\\( ?%1$s ?\\))", log)
  first <- sprintf("(?<=\\+=) ?[-+]? ?%s ?(?=[-+]|$)", power)
  last <- sprintf("[-+] ?%s$", power)
  added <- grepl("^target ?\\+=[^?]*$", statements)
  repeat {
    shorter <- sub(last, "", sub(first, "", statements[added], perl = TRUE))
    if (identical(shorter, statements[added])) {
      return(statements)
    }
    statements[added] <- shorter
  }
}

identifiers <- function(text) unlist(regmatches(text, gregexpr("[A-Za-z]\\w*", text)))

# The statements of a block, as strings. A `for` becomes an assignment to the loop variable; `if` and `while` are
# dropped.
stan_statements <- function(code) {
  in_parentheses <- "(\\((?:[^()]++|(?1))*+\\))"
  array <- "((?:[-=(\\[,{+*/]|\\bin) ?)\\{([^{};]*)\\}" # braces of an array, not of a block
  while (grepl(array, code, perl = TRUE)) {
    code <- gsub(array, "\\1(\\2)", code, perl = TRUE)
  }
  loops <- gregexpr(paste0("\\bfor ?", in_parentheses), code, perl = TRUE)
  regmatches(code, loops) <- lapply(regmatches(code, loops), function(heads) {
    sub("\\)$", ";", sub("\\bin\\b", "=", sub("^for ?\\(", "; ", heads)))
  })
  code <- gsub(paste0("\\b(?:if|while|profile) ?", in_parentheses, "|\\belse\\b"), ";", code, perl = TRUE)
  trimws(strsplit(code, "[;{}]")[[1]])
}

# For a statement that adds to the target, list(about), the identifiers in its variates. For an assignment,
# list(to, from), the identifiers that are assigned and those that they are computed from. NULL for others.
read_statement <- function(statement) {
  if (grepl("\\w_lp ?\\(|\\bincrement_log_prob\\b", statement)) {
    list(about = identifiers(statement))
  } else if (grepl("~", statement, fixed = TRUE)) {
    sides <- c(sub("~.*", "", statement), sub("[^~]*~", "", statement))
    list(about = variate_of(sides[1], sides[2]))
  } else if (grepl("^(target|jacobian) ?\\+=", statement)) {
    list(about = identifiers(keep_variates(sub("^[^=]*=", "", statement))))
  } else if (grepl("(?<![=<>!])=(?!=)", no_brackets(statement), perl = TRUE)) {
    statement <- gsub("^([^=]*)<[^>]*>", "\\1", statement)
    left <- sub("(?<![=<>!])=(?!=).*", "", statement, perl = TRUE)
    right <- substring(statement, nchar(left) + 1)
    list(to = identifiers(no_brackets(left)), from = identifiers(keep_variates(right)))
  }
}

no_brackets <- function(text) gsub("(\\[(?:[^][]++|(?1))*+\\])", " ", text, perl = TRUE)

# The identifiers in the variate or, if that is a constant, in the arguments, as for normal_lpdf(0 | sum(x), 1).
variate_of <- function(variate, arguments) {
  found <- identifiers(variate)
  if (length(found) > 0) found else identifiers(arguments)
}

# The expression with each density replaced by the identifiers in its variate.
keep_variates <- function(expression) {
  density <- "\\b\\w+_l(?:u?p[dm]f|c?cdf) ?(\\((?:[^()]++|(?1))*+\\))"
  found <- gregexpr(density, expression, perl = TRUE)
  regmatches(expression, found) <- lapply(regmatches(expression, found), function(calls) {
    inner <- sub("\\)$", "", sub("^[^(]*\\(", "", calls))
    vapply(inner, function(call) {
      variate <- sub("(?<!\\|)\\|(?!\\|).*", "", call, perl = TRUE)
      toString(variate_of(variate, substring(call, nchar(variate) + 1)))
    }, "")
  })
  expression
}

# The identifiers in the variates of all statements, and those that they are computed from.
identifiers_with_prior <- function(statements) {
  about <- unlist(lapply(statements, `[[`, "about"))
  repeat {
    from <- unlist(lapply(statements, function(s) if (any(s$to %in% about)) s$from))
    if (all(from %in% about)) {
      return(about)
    }
    about <- union(about, from)
  }
}

# constants that brms omits ---------------------------------------------------

by_brms <- function(program) isTRUE(grepl("generated with brms", program$code, fixed = TRUE))

# Without normalising constants the evidence cannot be recovered if priors are truncated.
check_normalised <- function(program) {
  if (by_brms(program) && grepl("lprior \\+= \\w+_lup[dm]f", program$code)) {
    abort(c(
      "The program was made by {.code brm(normalize = FALSE)}, which omits the constants of truncated priors.",
      "i" = "Make it again with {.code brm(normalize = TRUE, empty = TRUE)}, which does not sample."
    ))
  }
}

# Messages about priors that brms does not normalise.
tell_constants <- function(target) {
  if (by_brms(target$program)) {
    tell_thresholds(target)
    tell_car(target)
  }
}

# The priors of n ordered thresholds are those of independent ones. Only one of n! orders is allowed, so the density
# integrates to 1 / n!.
tell_thresholds <- function(target) {
  block <- stan_block(plain_stan_code(target$program), "parameters")
  ordered <- regmatches(block, gregexpr("\\bordered ?(\\[(?:[^][]++|(?1))*+\\]) ?\\K\\w+", block, perl = TRUE))[[1]]
  n <- table(factor(base_names(target$names), ordered))
  low <- sum(lfactorial(n))
  if (low > 0) {
    inform("ordered", c(
      "i" = "The prior of the thresholds {.field {ordered}} is that of independent ones, and is not normalised for
        their order. If all have the same prior, {.field log_z} is too low by
        {.code log({paste0(n, '!', collapse = ' * ')})} = {fixed(low)}. This cancels between models with equally many
        thresholds."
    ))
  }
}

# The prior of car() is normal with precision matrix (D - car W) / sdcar^2, where D is the diagonal matrix of numbers of
# neighbours. brms omits the constants (2 pi)^(-n / 2) and sqrt(det(D)).
tell_car <- function(target) {
  values <- target$data$values
  neighbours <- unlist(values[grep("^Nneigh(_|$)", names(values))])
  if (any(grepl("^car(_|$)", target$names))) {
    high <- fixed(sum(log(2 * pi) - log(neighbours)) / 2)
    said <- "{.field log_z} is too high by {high}. This cancels between models with the same neighbours."
  } else if (any(grepl("^[rz]car(_|\\[)", target$names))) {
    said <- "Compare {.field log_z} only with that of models with the same {.code car()}."
  } else {
    return()
  }
  inform("car", c("i" = paste("The density of brms for {.code car()} is not normalised.", said)))
}
