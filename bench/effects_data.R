# The long results of vignette("effects"): `Rscript bench/effects_data.R` renews vignettes/effects.rds, in some minutes.
# The models are those of the vignette, taken from its code.
library(autosmc)
code <- knitr::purl("vignettes/effects.Rmd", tempfile(), quiet = TRUE, documentation = 0)
lines <- sub("^## ", "", readLines(code)) # chunks that the page only shows
source(exprs = parse(text = grep("readRDS", lines, value = TRUE, invert = TRUE)))
