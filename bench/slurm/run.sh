#!/usr/bin/env bash
# An array of 16 islands on the Slurm of this machine, after a fit with 8: run by hand, in a
# copy of this folder, with autosmc installed where R looks for it.
set -euo pipefail
Rscript fit.R
sbatch --wait --array=9-24 --wrap "Rscript island.R"
Rscript combine.R
Rscript check.R
