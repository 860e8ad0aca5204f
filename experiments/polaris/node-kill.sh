#!/bin/bash -l
# A node is killed and swapped for a spare on Polaris. From the repository's root:
#   qsub -A MyProject experiments/polaris/node-kill.sh
#PBS -l select=3:system=polaris -l place=scatter -l walltime=00:30:00 -l filesystems=home:eagle
#PBS -q debug -W tolerate_node_failures=all
set -euo pipefail
cd "${PBS_O_WORKDIR-.}"
[ -f experiments/common.sh ] || { echo "submit this from the repository's root" >&2; exit 2; }
# shellcheck source=experiments/polaris/site.sh
. experiments/polaris/site.sh
# shellcheck source=experiments/common.sh
. experiments/common.sh
# shellcheck source=experiments/recipes.sh
. experiments/recipes.sh
node_kill
