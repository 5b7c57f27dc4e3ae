# The floors of R/, as the names of its files say them: a file needs only those of its own floor and of the floors
# below it, and no two need each other.

floors <- c("utils", "target", "reference", "run", "learn", "estimate", "diagnose", "loop", "fit", "smc")
# belong to the lowest floor
without_floor <- c("autosmc-package.R", "data.R", "rules.R")

# The definitions of each file: lists of expressions, named.
definitions_in <- function(file) {
  code <- Filter(function(e) is.call(e) && identical(e[[1]], quote(`<-`)) && is.name(e[[2]]), as.list(parse(file)))
  stats::setNames(lapply(code, `[[`, 3), vapply(code, function(e) as.character(e[[2]]), ""))
}

# The names that a definition needs.
needed_by <- function(expression) {
  codetools::findGlobals(as.function(list(expression), envir = baseenv()), merge = TRUE)
}

floor_of <- function(file) {
  ifelse(file %in% without_floor, 1, match(sub("[_.].*", "", file), floors))
}

sources <- test_path("..", "..", "R")

test_that("each file needs only files of its own floor and of the floors below, without a circle", {
  skip_if_not(dir.exists(sources), "the sources are not here")
  files <- list.files(sources, "[.]R$")
  expect_identical(files[is.na(floor_of(files))], character(0))
  by_file <- lapply(file.path(sources, files), definitions_in)
  file_of <- stats::setNames(rep(files, lengths(by_file)), unlist(lapply(by_file, names)))
  expect_identical(names(file_of)[duplicated(names(file_of))], character(0))
  needs <- lapply(stats::setNames(by_file, files), function(definitions) {
    unique(unname(file_of[intersect(unlist(lapply(definitions, needed_by)), names(file_of))]))
  })
  needs <- Map(setdiff, needs, files)
  above <- Map(function(file, needed) needed[floor_of(needed) > floor_of(file)], files, needs)
  expect_identical(Filter(length, above), stats::setNames(list(), character(0)))

  # files that need nothing but what is already there are taken away until none is left
  left <- needs
  while (length(free <- names(left)[!vapply(left, function(needed) any(needed %in% names(left)), NA)]) > 0) {
    left <- left[setdiff(names(left), free)]
  }
  expect_identical(names(left), character(0))
})

test_that("no file is longer than a reader can take in", {
  skip_if_not(dir.exists(sources), "the sources are not here")
  files <- list.files(sources, "[.]R$", full.names = TRUE)
  lines <- vapply(files, function(file) length(readLines(file)), 0L)
  expect_identical(basename(files)[lines > 400], character(0))
})

test_that("the pages are in British English", {
  skip_if_not(dir.exists(sources), "the sources are not here")
  root <- file.path(sources, "..")
  files <- c(
    list.files(sources, "[.]R$", full.names = TRUE), file.path(root, c("README.md", "NEWS.md")),
    list.files(file.path(root, "vignettes"), "[.]Rmd$", full.names = TRUE)
  )
  american <- paste0(
    "\\b(behavior|colors?|colored|center(ed|ing|s)?|modeling|modeled|labeled|canceled|favor|neighbors?|gray|judgment|",
    "(optim|normal|initial|recogn|minim|maxim|summar|vector|standard|random|penal|general|factor|diagonal|real|organ|",
    "emphas|discret|marginal)iz(e[ds]?|ing|ation)|analyz(e[ds]?|ing))\\b"
  )
  # of titles and of arguments; and what is code or an address
  quoted <- paste0(
    "divergence minimization|the generalized Pareto|normalizing constants|non-normalized|vectorized|",
    "generalized epidemics|the generalized$|`[^`]*`?|https?://[^ ]*|[(][^)]*/[^)]*[)]"
  )
  found <- lapply(files, function(file) {
    text <- readLines(file, encoding = "UTF-8")
    is_told <- if (grepl("[.]R$", file)) grepl("^ *#", text) else cumsum(grepl("^```", text)) %% 2 == 0
    text <- gsub(quoted, "", text[is_told])
    text[grepl(american, text, perl = TRUE)]
  })
  expect_identical(unlist(found), character(0))
})
