# Rscript .ci/alone.R COUNTS FILE...
#
# Runs these test files (see test.R) where no suggested package is but testthat and what it needs: in a library of links.

package <- read.dcf("DESCRIPTION")[[1, "Package"]]
installed <- utils::installed.packages()
installed <- installed[!duplicated(installed[, "Package"]), ] # R takes the first
roots <- c(package, "testthat")
strong <- c("Depends", "Imports", "LinkingTo")
needed <- unlist(tools::package_dependencies(roots, installed, strong, recursive = TRUE), use.names = FALSE)
needed <- intersect(c(roots, needed), rownames(installed)[!installed[, "Priority"] %in% "base"])
folder <- tempfile("library-")
dir.create(folder)
invisible(file.symlink(file.path(installed[needed, "LibPath"], needed), file.path(folder, needed)))

none <- tempfile("none-")
Sys.setenv(R_LIBS = folder, R_LIBS_SITE = none, R_LIBS_USER = none)
rscript <- file.path(R.home("bin"), "Rscript")
quit(status = system2(rscript, c("--vanilla", ".ci/test.R", shQuote(commandArgs(TRUE)))))
