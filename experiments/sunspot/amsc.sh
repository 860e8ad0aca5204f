#!/bin/bash -l
# AmSC benchmark on Sunspot. From the repository's root:
#   qsub -A MyProject experiments/sunspot/amsc.sh
#PBS -l select=2:system=sunspot -l place=scatter -l walltime=00:30:00 -l filesystems=home:gila
#PBS -q workq -W tolerate_node_failures=all
set -euo pipefail
cd "${PBS_O_WORKDIR-.}"
[ -f experiments/common.sh ] || { echo "submit this from the repository's root" >&2; exit 2; }
# shellcheck source=experiments/sunspot/site.sh
. experiments/sunspot/site.sh
# shellcheck source=experiments/common.sh
. experiments/common.sh
# shellcheck source=experiments/recipes.sh
. experiments/recipes.sh
amsc
