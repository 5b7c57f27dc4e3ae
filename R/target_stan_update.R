# Updates programs in Stan versions before 2.33, which the current compiler rejects: the syntax of arrays, assignments
# and comments, and the names of functions. Called by translate_stan().
#
# The text is split into tokens, so that comments and strings do not change and brackets can be matched. Line numbers do
# not change, so that errors of the compiler refer to the user's text. Since version 2.33 stanc cannot convert old
# programs itself; bench/old_stan.R compares the results with those of stanc 2.26.

# list(program, changes): the updated program with its includes, and the names of the updates that changed them.
update_stan <- function(program, updates = stan_updates) {
  changes <- character()
  update <- function(code) {
    tokens <- tokens_of_stan(code)
    for (name in names(updates)) {
      before <- tokens$text
      tokens <- updates[[name]](tokens)
      if (!identical(tokens$text, before)) changes <<- c(changes, name)
    }
    paste(tokens$text, collapse = "")
  }
  program$code <- update(program$code)
  program$includes <- lapply(program$includes, update)
  list(program = program, changes = unique(changes))
}

# tokens ----------------------------------------------------------------------

# list(text, code, partner): the tokens of a program; the indices of those that are neither blanks nor comments; and for
# each bracket the index of the matching one, NA for other tokens.
tokens_of_stan <- function(code) {
  kinds <- c(
    "//[^\n]*", "/[*][\\s\\S]*?[*]/", "#[^\n]*", "\"[^\"\n]*\"", "[A-Za-z]\\w*",
    "(?:\\d+[.]?\\d*|[.]\\d+)(?:[eE][+-]?\\d+)?", "\\s+", "[\\s\\S]"
  )
  text <- regmatches(code, gregexpr(paste(kinds, collapse = "|"), code, perl = TRUE))[[1]]
  tokens <- list(text = text, code = which(!is_stan_comment(text) & !grepl("^\\s", text)))
  tokens$partner <- partners_of(tokens)
  tokens
}

is_stan_comment <- function(text) grepl("^(//|/[*]|#)", text)

partners_of <- function(tokens) {
  partner <- rep(NA_integer_, length(tokens$text))
  open <- integer()
  for (i in tokens$code) {
    if (tokens$text[i] %in% c("(", "[", "{")) {
      open <- c(open, i)
    } else if (paste0(tokens$text[open[length(open)]], tokens$text[i]) %in% c("()", "[]", "{}")) {
      partner[c(i, open[length(open)])] <- c(open[length(open)], i)
      open <- open[-length(open)]
    }
  }
  partner
}

# The text of the code token that is `by` tokens after token i (before, if negative); "" if there is none. place_near()
# returns its index, or NA.
code_near <- function(tokens, i, by) {
  at <- place_near(tokens, i, by)
  if (is.na(at)) "" else tokens$text[at]
}

place_near <- function(tokens, i, by) {
  k <- findInterval(i, tokens$code) + by
  if (k < 1) NA else tokens$code[k]
}

# Whether a statement may begin at token i.
begins_statement <- function(tokens, i) code_near(tokens, i, -1) %in% c("", "{", "}", ";", ")", "else")

# The text between two tokens, without comments.
text_between <- function(tokens, from, to) {
  text <- tokens$text[seq_len(to - from - 1) + from]
  paste(text[!is_stan_comment(text)], collapse = "")
}

# Removes the text of tokens, but not line breaks.
blank_out <- function(tokens, from, to) {
  inside <- seq(from, to)
  tokens$text[inside] <- gsub("[^\n]", "", tokens$text[inside])
  tokens
}

# the updates -----------------------------------------------------------------

stan_types <- c(
  "int", "real", "vector", "row_vector", "matrix", "simplex", "ordered", "positive_ordered", "unit_vector",
  "cov_matrix", "corr_matrix", "cholesky_factor_cov", "cholesky_factor_corr"
)

# Declarations such as real x[N], vector[K] x[N] and int[,] f(real[] x).
update_arrays <- function(tokens) {
  for (i in tokens$code[tokens$text[tokens$code] %in% stan_types]) {
    j <- after_bounds(tokens, place_near(tokens, i, 1))
    if (is.na(j)) next
    if (tokens$text[j] == "[" && !is.na(tokens$partner[j])) {
      close <- tokens$partner[j]
      inside <- text_between(tokens, j, close)
      if (grepl("^[\\s,]*$", inside, perl = TRUE)) {
        tokens <- blank_out(tokens, j, close)
        tokens$text[i] <- paste0("array[", gsub("\\s", "", inside), "] ", tokens$text[i])
        next
      }
      j <- place_near(tokens, close, 1)
    }
    # a declaration with sizes after the name
    k <- place_near(tokens, j, 1)
    is_name <- isTRUE(grepl("^[A-Za-z]", tokens$text[j]))
    if (begins_statement(tokens, i) && is_name && isTRUE(tokens$text[k] == "[") && !is.na(tokens$partner[k])) {
      sizes <- text_between(tokens, k, tokens$partner[k])
      tokens <- blank_out(tokens, k, tokens$partner[k])
      tokens$text[i] <- paste0("array[", gsub("\\s*\n\\s*", " ", sizes), "] ", tokens$text[i])
    }
  }
  tokens
}

# The index of the token after bounds such as <lower=0>, which may begin at j.
after_bounds <- function(tokens, j) {
  if (is.na(j) || tokens$text[j] != "<") {
    return(j)
  }
  while (!is.na(j) && tokens$text[j] != ">") {
    if (tokens$text[j] %in% c("(", "[")) j <- tokens$partner[j]
    j <- if (is.na(j)) NA else place_near(tokens, j, 1)
  }
  if (is.na(j)) NA else place_near(tokens, j, 1)
}

# x <- y
update_assignments <- function(tokens) {
  for (i in tokens$code[grepl("^[A-Za-z]", tokens$text[tokens$code])]) {
    if (!begins_statement(tokens, i)) next
    j <- place_near(tokens, i, 1)
    while (isTRUE(tokens$text[j] == "[") && !is.na(tokens$partner[j])) j <- place_near(tokens, tokens$partner[j], 1)
    if (isTRUE(tokens$text[j] == "<") && isTRUE(tokens$text[j + 1] == "-")) {
      tokens$text[c(j, j + 1)] <- c("=", "")
    }
  }
  tokens
}

# `# comment`
update_comments <- function(tokens) {
  is_comment <- grepl("^#", tokens$text) & !grepl("^#include\\b", tokens$text)
  tokens$text[is_comment] <- sub("^#", "//", tokens$text[is_comment])
  tokens
}

# increment_log_prob(x)
update_increments <- function(tokens) {
  calls <- calls_of(tokens, "^increment_log_prob$")
  tokens$text[calls] <- "target += "
  tokens
}

renamed_stan_functions <- c(
  binomial_coefficient_log = "lchoose", cov_exp_quad = "gp_exp_quad_cov", fabs = "abs", get_lp = "target",
  multiply_log = "lmultiply"
)

# Renamed functions, and if_else(a, b, c).
update_functions <- function(tokens) {
  own <- tokens$text[own_functions(tokens)]
  calls <- calls_of(tokens, paste0("^(", paste(c("if_else", names(renamed_stan_functions)), collapse = "|"), ")$"))
  for (i in calls[!tokens$text[calls] %in% own]) {
    if (tokens$text[i] != "if_else") {
      tokens$text[i] <- renamed_stan_functions[[tokens$text[i]]]
      next
    }
    commas <- commas_in(tokens, place_near(tokens, i, 1))
    if (length(commas) == 2) tokens$text[c(i, commas)] <- c("", " ?", " :")
  }
  tokens
}

discrete_stan <- c(
  "bernoulli", "bernoulli_logit", "bernoulli_logit_glm", "beta_binomial", "binomial", "binomial_logit", "categorical",
  "categorical_logit", "categorical_logit_glm", "discrete_range", "hypergeometric", "multinomial",
  "multinomial_logit", "neg_binomial", "neg_binomial_2", "neg_binomial_2_log", "neg_binomial_2_log_glm",
  "ordered_logistic", "ordered_logistic_glm", "ordered_probit", "poisson", "poisson_log", "poisson_log_glm"
)
continuous_stan <- c(
  "beta", "beta_proportion", "cauchy", "chi_square", "dirichlet", "double_exponential", "exp_mod_normal",
  "exponential", "frechet", "gamma", "gaussian_dlm_obs", "gumbel", "inv_chi_square", "inv_gamma", "inv_wishart",
  "lkj_corr", "lkj_corr_cholesky", "logistic", "lognormal", "multi_gp", "multi_gp_cholesky", "multi_normal",
  "multi_normal_cholesky", "multi_normal_prec", "multi_student_t", "normal", "normal_id_glm", "pareto",
  "pareto_type_2", "rayleigh", "scaled_inv_chi_square", "skew_normal", "std_normal", "student_t", "uniform",
  "von_mises", "weibull", "wiener", "wishart"
)

# Densities and distribution functions, such as normal_log(y, mu, sigma) and normal_cdf_log(y, mu, sigma), of Stan and
# of the program itself: the new name, and a bar after the variate.
update_densities <- function(tokens) {
  own <- own_functions(tokens)
  own_names <- stats::setNames(current_density(tokens$text[own], has_integer_argument(tokens, own)), tokens$text[own])
  own_names[vapply(own, function(i) code_near(tokens, i, -1), "") != "real"] <- NA
  for (i in calls_of(tokens, "_(log|lpdf|lpmf|cdf|lcdf|lccdf)$")) {
    name <- tokens$text[i]
    now <- if (name %in% names(own_names)) own_names[[name]] else current_density(name)
    if (is.na(now) || code_near(tokens, i, -1) == "~") next # a distribution
    tokens$text[i] <- now
    open <- place_near(tokens, i, 1)
    commas <- commas_in(tokens, open)
    has_bar <- any(tokens$text[seq(open, tokens$partner[open])] == "|")
    if (!i %in% own && !has_bar && length(commas) > 0) tokens$text[commas[1]] <- " |"
  }
  tokens
}

# The current name of a density or distribution function; NA for other functions. is_discrete: whether a distribution
# that is not one of Stan's is discrete; NA if it is not known.
current_density <- function(name, is_discrete = NA) {
  base <- sub("_(cdf_log|ccdf_log|log)$", "", name)
  is_discrete <- ifelse(base %in% discrete_stan, TRUE, ifelse(base %in% continuous_stan, FALSE, is_discrete))
  now <- ifelse(grepl("_(lpdf|lpmf|cdf|lcdf|lccdf)$", name), name, NA_character_)
  now <- ifelse(grepl("_log$", name) & !is.na(is_discrete), paste0(base, ifelse(is_discrete, "_lpmf", "_lpdf")), now)
  now <- ifelse(grepl("_cdf_log$", name), paste0(base, "_lcdf"), now)
  ifelse(grepl("_ccdf_log$", name), paste0(base, "_lccdf"), now)
}

# The indices of function names that match, in calls and definitions.
calls_of <- function(tokens, pattern) {
  Filter(function(i) code_near(tokens, i, 1) == "(", tokens$code[grepl(pattern, tokens$text[tokens$code])])
}

# The indices of the names of functions that the program defines: a type precedes them.
own_functions <- function(tokens) {
  Filter(function(i) {
    before <- code_near(tokens, i, -1)
    before %in% c("void", stan_types) || before == "]" && begins_type(tokens, place_near(tokens, i, -1))
  }, calls_of(tokens, "^[A-Za-z]"))
}

begins_type <- function(tokens, close) {
  open <- tokens$partner[close]
  !is.na(open) && code_near(tokens, open, -1) %in% c("array", stan_types)
}

# Whether the first argument of the functions defined at `own` is an integer or an array of integers.
has_integer_argument <- function(tokens, own) {
  vapply(own, function(i) {
    open <- place_near(tokens, i, 1)
    first <- tokens$text[seq(open, c(commas_in(tokens, open), tokens$partner[open])[1])]
    any(grepl("\\bint$", first))
  }, NA)
}

# The indices of the commas between the arguments of a call. open: the index of its opening bracket.
commas_in <- function(tokens, open) {
  if (is.na(tokens$partner[open])) {
    return(integer())
  }
  inside <- tokens$code[tokens$code >= open & tokens$code < tokens$partner[open]]
  change <- sign(tokens$partner[inside] - inside) # 1 where a bracket opens, -1 where it closes
  depth <- cumsum(ifelse(is.na(change), 0, change))
  inside[tokens$text[inside] == "," & depth == 1]
}

# In the order of their application, named as in messages.
stan_updates <- list(
  comments = update_comments,
  arrays = update_arrays,
  assignments = update_assignments,
  increment_log_prob = update_increments,
  densities = update_densities,
  functions = update_functions
)

# neg_binomial_2_log_glm_lpmf() adds the lgamma() of the shape. For huge shapes, which the default prior of brms allows,
# all digits cancel and the density grows without bound. neg_binomial_2_log_lpmf() is accurate everywhere.
without_glm <- function(program) update_stan(program, list(digits = replace_glm))$program

# neg_binomial_2_log_glm_lpmf(y | x, alpha, beta, phi) as neg_binomial_2_log_lpmf(y | (alpha) + (x) * (beta), phi).
replace_glm <- function(tokens) {
  glm <- "^neg_binomial_2_log_glm(_lu?pmf|)$"
  for (i in calls_of(tokens, glm)) {
    open <- place_near(tokens, i, 1)
    ends <- commas_in(tokens, open)
    if (length(ends) != 3) next
    bar <- match("|", tokens$text[seq(open, ends[1])], 1) - 1
    ends <- c(open + bar, ends)
    arguments <- vapply(1:3, function(k) trimws(text_between(tokens, ends[k], ends[k + 1])), "")
    tokens <- blank_out(tokens, ends[1] + 1, ends[4] - 1)
    mean <- sprintf("(%s) + (%s) * (%s)", arguments[2], arguments[1], arguments[3])
    tokens$text[ends[1]] <- paste(tokens$text[ends[1]], mean, sep = if (bar > 0) " " else "")
    tokens$text[i] <- sub("_glm", "", tokens$text[i])
  }
  tokens
}
