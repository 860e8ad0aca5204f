# shellcheck shell=bash
# shellcheck disable=SC2034  # read in common.sh
# Perlmutter (NERSC): four A100 a node, NCCL over Slingshot. Sourced by the scripts beside it.
SITE=perlmutter
SITE_PPN=4
SITE_MODULES="pytorch nccl/2.24.3"
SITE_REQUIRE_NET="AWS Libfabric"
# The pytorch module asks MPI for GPU support that its mpi4py was not built with.
export MPICH_GPU_SUPPORT_ENABLED=0
