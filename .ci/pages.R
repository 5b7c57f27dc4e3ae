# Rscript .ci/pages.R SOURCE SITE
#
# Builds the pages of pkgdown from the folder SOURCE into SITE, with every warning an error.
# The examples and the articles are not run again: R CMD check and R CMD build do that.
options(warn = 2, pkgdown.internet = FALSE)
folders <- commandArgs(TRUE)
package <- pkgdown::as_pkgdown(folders[1], override = list(destination = folders[2]))
pkgdown::init_site(package)
pkgdown::build_home(package, quiet = TRUE, preview = FALSE)
pkgdown::build_reference(package, examples = FALSE, preview = FALSE)
pkgdown::build_articles_index(package)
pkgdown::build_news(package, preview = FALSE)
