#!/bin/bash -l
# LoRA sweep on Aurora. From the repository's root:
#   qsub -A MyProject experiments/aurora/lora-sweep.sh
#PBS -l select=2 -l place=scatter -l walltime=02:00:00 -l filesystems=home:flare
#PBS -q prod -W tolerate_node_failures=all
set -euo pipefail
cd "${PBS_O_WORKDIR-.}"
[ -f experiments/common.sh ] || { echo "submit this from the repository's root" >&2; exit 2; }
# shellcheck source=experiments/aurora/site.sh
. experiments/aurora/site.sh
# shellcheck source=experiments/common.sh
. experiments/common.sh
# shellcheck source=experiments/recipes.sh
. experiments/recipes.sh
lora_sweep
