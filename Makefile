# For people who work on the package, or try it from a checkout. Every target
# works as the first command: it installs what is missing (see .ci/setup).
# The steps themselves are in .ci/run.

help:
	@echo "make demo    install the package and run its demonstration"
	@echo "make test    test the C core and the package"
	@echo "make check   R CMD build and R CMD check"
	@echo "make docs    write man/ and NAMESPACE from the comments in R/"
	@echo "make ci      all of the checks, as continuous integration runs them"
	@echo "make abuse   faults at random evaluations, with the address sanitizer: minutes"
	@echo "make paper   run the experiments of the paper: hours; goes on where it stopped"
	@echo "             (POSTERIORDB=DIR: also on problems of this checkout of posteriordb)"
	@echo "make article draw them, and all that is measured, in vignettes/articles/"
	@echo "make setup   only install what the targets above need"
	@echo "make format  format the C files and, with styler, the R files"

demo test check docs abuse:
	@bash .ci/run $@

paper:
	Rscript bench/backward_kernels.R
	Rscript bench/scaling.R
	Rscript bench/tuner_search.R
	if [ -n "$(POSTERIORDB)" ]; then Rscript bench/paper_truths.R --posteriordb "$(POSTERIORDB)"; fi
	if [ -n "$(POSTERIORDB)" ]; then Rscript bench/posteriordb.R "$(POSTERIORDB)"; fi
	Rscript bench/fixed_steps.R $(if $(POSTERIORDB),--posteriordb "$(POSTERIORDB)")
	Rscript bench/paper_rounds.R $(if $(POSTERIORDB),--posteriordb "$(POSTERIORDB)")
	Rscript bench/end_to_end.R
	if [ -n "$(POSTERIORDB)" ]; then Rscript bench/reference_draws.R "$(POSTERIORDB)"; fi

article:
	Rscript -e 'for (page in c("paper", "measured")) rmarkdown::render(sprintf("vignettes/articles/%s.Rmd", page), quiet = TRUE)'

ci:
	@bash .ci/run

setup:
	@bash .ci/setup

format:
	clang-format -i src/*.[ch] inst/include/*.h tests/core/*.[ch]
	Rscript -e 'styler::style_dir("R"); styler::style_dir("bench"); styler::style_dir("tests")'

.PHONY: help demo test check docs abuse paper article ci setup format
