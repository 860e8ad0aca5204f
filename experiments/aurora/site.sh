# shellcheck shell=bash
# shellcheck disable=SC2034  # read in common.sh
# Aurora (ALCF): twelve tiles a node, oneCCL over Slingshot. Sourced by the scripts beside it.
SITE=aurora
SITE_PPN=12
SITE_MODULES="frameworks"
SITE_REQUIRE_NET=""
SITE_NET_NOTE="collectives here go through oneCCL, which says no such thing"
