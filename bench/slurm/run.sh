#!/usr/bin/env bash
# On the Slurm of this machine, after a fit with 8 islands: an array of 16 more, and 16 as
# jobs of future.batchtools. Run by hand, in a copy of this folder, with autosmc and
# future.batchtools installed where R looks for them. Its version 0.30 asks sacct for the state
# of jobs: so Slurm needs accounting (slurmdbd), and the environment the variable USER.
set -euo pipefail
Rscript fit.R
sbatch --wait --array=9-24 --wrap "Rscript island.R"
Rscript combine.R
Rscript check.R
Rscript future.R
