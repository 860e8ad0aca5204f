#!/bin/bash
# A node is killed and swapped for a spare on Perlmutter. From the repository's root:
#   sbatch -A m1234 experiments/perlmutter/node-kill.sh
#SBATCH -N 3 -C gpu -q regular -t 00:30:00 --gpus-per-node=4
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
node_kill
