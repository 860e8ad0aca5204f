# shellcheck shell=bash
# shellcheck disable=SC2034  # read in common.sh
# Polaris (ALCF): four A100 a node, NCCL over Slingshot. Sourced by the scripts beside it.
SITE=polaris
SITE_PPN=4
SITE_MODULES="conda"
SITE_REQUIRE_NET="AWS Libfabric"
# Without the plugin NCCL takes TCP and says no error.
export NCCL_NET="${NCCL_NET-AWS Libfabric}"
export LD_LIBRARY_PATH="/soft/libraries/aws-ofi-nccl/v1.9.1-aws/lib:/soft/libraries/hwloc/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
