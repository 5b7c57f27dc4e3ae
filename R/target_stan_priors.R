# Parameters without a prior, by the statements of a Stan program. A statement is about its variate, what stands
# before `~` or before the bar of a density, and a likelihood is about data. So a parameter has a prior where a
# statement is about it, or about what is computed from it. Whatever else is added to the target counts as a prior of
# all that is in it: rather none is told of a parameter without a prior than one of a parameter that has one. But a
# power of a positive parameter is no prior that is proper.

# Their names; not those of types that are bounded, on which the density 1 is proper but for a constant.
parameters_without_prior <- function(program) {
  code <- plain_stan_code(program)
  declared <- declared_parameters(stan_block(code, "parameters"))
  statements <- stan_statements(paste(stan_block(code, "transformed parameters"), stan_block(code, "model")))
  statements <- without_powers(statements, positive_parameters(code))
  setdiff(declared, told_of(lapply(statements, read_statement)))
}

# The text of a program with what it includes, without comments and strings, in one line, with the assignments of today.
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

# What is between the braces of a block; "" where there is none.
stan_block <- function(code, name) {
  block <- paste0("(?<!transformed )\\b", name, " ?(\\{(?:[^{}]++|(?1))*+\\})")
  found <- regmatches(code, regexpr(block, code, perl = TRUE))
  if (length(found) == 0) "" else sub("\\}$", "", sub("^[^{]*\\{", "", found))
}

# The names of parameters of types that have no finite volume.
declared_parameters <- function(block) {
  bounded <- c(
    "simplex", "unit_vector", "corr_matrix", "cholesky_factor_corr", "column_stochastic_matrix",
    "row_stochastic_matrix",
    "tuple" # which has several
  )
  names <- lapply(strsplit(block, ";")[[1]], function(declaration) {
    has_both <- grepl("<[^>]*\\blower\\b[^>]*>", declaration) && grepl("<[^>]*\\bupper\\b[^>]*>", declaration)
    words <- declared_words(declaration)
    if (!has_both && !words[1] %in% bounded) words[-1]
  })
  unlist(names)
}

# The type, and the names of what has it.
declared_words <- function(declaration) {
  identifiers(gsub("<[^>]*>|\\([^)]*\\)|\\[[^]]*\\]", " ", sub("^ *array ?\\[[^]]*\\]", "", declaration)))
}

# The names of parameters that are declared `<lower=0>`, one by one.
positive_parameters <- function(code) {
  block <- stan_block(code, "parameters")
  declaration <- "<lower ?= ?0([.]0*)?> ?([[][^]]*[]])? ?[[:alnum:]_]+"
  sub(".*\\W", "", regmatches(block, gregexpr(declaration, block))[[1]])
}

# Statements without those terms of what is added to the target, the first ones or the last ones, that are multiples of
# the logarithm of one of the parameters `positive`.
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

# Those of the body of a block, one after another. A loop over the elements of something gives these a name; other
# conditions tell nothing of densities.
stan_statements <- function(code) {
  in_parentheses <- "(\\((?:[^()]++|(?1))*+\\))"
  array <- "((?:[-=(\\[,{+*/]|\\bin) ?)\\{([^{};]*)\\}" # braces that are no block
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

# list(about, of): which identifiers a statement is about; where it is no density but an assignment, what it assigns,
# and from what.
read_statement <- function(statement) {
  if (grepl("\\w_lp ?\\(|\\bincrement_log_prob\\b", statement)) {
    list(about = identifiers(statement))
  } else if (grepl("~", statement, fixed = TRUE)) {
    sides <- c(sub("~.*", "", statement), sub("[^~]*~", "", statement))
    list(about = variate_of(sides[1], sides[2]))
  } else if (grepl("^(target|jacobian) ?\\+=", statement)) {
    list(about = identifiers(only_variates(sub("^[^=]*=", "", statement))))
  } else if (grepl("(?<![=<>!])=(?!=)", no_brackets(statement), perl = TRUE)) {
    statement <- gsub("^([^=]*)<[^>]*>", "\\1", statement)
    left <- sub("(?<![=<>!])=(?!=).*", "", statement, perl = TRUE)
    right <- substring(statement, nchar(left) + 1)
    list(to = identifiers(no_brackets(left)), from = identifiers(only_variates(right)))
  }
}

no_brackets <- function(text) gsub("(\\[(?:[^][]++|(?1))*+\\])", " ", text, perl = TRUE)

# A density of a constant, as of 0 for a sum that is to be next to it, is about its arguments.
variate_of <- function(variate, arguments) {
  found <- identifiers(variate)
  if (length(found) > 0) found else identifiers(arguments)
}

# An expression in which densities are replaced by what they are about.
only_variates <- function(expression) {
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

# All that statements are about, and what this is computed from.
told_of <- function(statements) {
  about <- unlist(lapply(statements, `[[`, "about"))
  repeat {
    from <- unlist(lapply(statements, function(s) if (any(s$to %in% about)) s$from))
    if (all(from %in% about)) {
      return(about)
    }
    about <- union(about, from)
  }
}

# what brms leaves out --------------------------------------------------------

by_brms <- function(program) isTRUE(grepl("generated with brms", program$code, fixed = TRUE))

# Densities in `lprior` without constants lack those of truncation too, which no density has by itself.
check_normalised <- function(program) {
  if (by_brms(program) && grepl("lprior \\+= \\w+_lup[dm]f", program$code)) {
    abort(c(
      "The program was made by {.code brm(normalize = FALSE)}, which leaves out the constants of truncated priors.",
      "i" = "Make it by {.code brm(normalize = TRUE, empty = TRUE)}, which takes no sampling."
    ))
  }
}

# What priors of brms lack of their constants.
tell_constants <- function(target) {
  if (by_brms(target$program)) {
    tell_thresholds(target)
    tell_car(target)
  }
}

# Of the n! orders that independent thresholds may have one is allowed, so that their density integrates to 1 / n!.
tell_thresholds <- function(target) {
  block <- stan_block(plain_stan_code(target$program), "parameters")
  ordered <- regmatches(block, gregexpr("\\bordered ?(\\[(?:[^][]++|(?1))*+\\]) ?\\K\\w+", block, perl = TRUE))[[1]]
  n <- table(factor(base_names(target$names), ordered))
  low <- sum(lfactorial(n))
  if (low > 0) {
    inform("ordered", c(
      "i" = "The prior of the thresholds {.field {ordered}} is that of independent ones, and is not normalised for
        their order: {.field log_z} is low by {.code log({paste0(n, '!', collapse = ' * ')})} = {fixed(low)}, if they
        all have the same. It cancels between models with as many thresholds."
    ))
  }
}

# Conditional autoregression has the precision (D - car W) / sdcar^2, of which brms leaves out (2 pi)^(-n / 2) and the
# determinant of D, the numbers of neighbours.
tell_car <- function(target) {
  values <- target$data$values
  neighbours <- unlist(values[grep("^Nneigh(_|$)", names(values))])
  if (any(grepl("^car(_|$)", target$names))) {
    high <- fixed(sum(log(2 * pi) - log(neighbours)) / 2)
    said <- "{.field log_z} is high by {high}, which cancels between models with the same neighbours."
  } else if (any(grepl("^[rz]car(_|\\[)", target$names))) {
    said <- "{.field log_z} compares only with that of models with the same {.code car()}."
  } else {
    return()
  }
  inform("car", c("i" = paste("The density of brms for {.code car()} is not normalised:", said)))
}
