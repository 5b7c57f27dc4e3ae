# The long results of vignette("effects"): `Rscript bench/effects_data.R` renews vignettes/effects.rds, in some minutes,
# by the code of the vignette's own chunks.
lines <- readLines("vignettes/effects.Rmd")
chunk <- function(name) {
  first <- grep(paste0("^```\\{r ", name, ","), lines)
  last <- min(grep("^```$", lines)[grep("^```$", lines) > first])
  lines[(first + 1):(last - 1)]
}
for (name in c("models", "fits", "keep")) eval(parse(text = chunk(name)))
