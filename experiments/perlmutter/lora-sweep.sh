#!/bin/bash
# LoRA sweep on Perlmutter. From the repository's root:
#   sbatch -A m1234 experiments/perlmutter/lora-sweep.sh
#SBATCH -N 2 -C gpu -q regular -t 02:00:00 --gpus-per-node=4
#SBATCH --exclusive --no-kill
set -euo pipefail
cd "${SLURM_SUBMIT_DIR-.}"
[ -f experiments/common.sh ] || { echo "submit this from the repository's root" >&2; exit 2; }
# shellcheck source=experiments/perlmutter/site.sh
. experiments/perlmutter/site.sh
# shellcheck source=experiments/common.sh
. experiments/common.sh
# shellcheck source=experiments/recipes.sh
. experiments/recipes.sh
lora_sweep
