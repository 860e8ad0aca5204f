# shellcheck shell=bash
# What every experiment does: take its settings from the environment, say and store what they came to,
# and run ezpz with them, or with DRY_RUN=1 only show the commands. Sourced, not run.
#
# A setting that is unset has its default. One that is set and empty is empty on purpose: the flag is
# left away, or, where there must be a value, the script refuses.

settings=()
origins=()

die() {
  echo "$(basename "$0"): $*" >&2
  exit 2
}

# setting NAME DEFAULT: may be empty.
setting() {
  local name=$1
  if [ -z "${!name+set}" ]; then
    printf -v "$name" '%s' "$2"
    origins+=("default")
  elif [ -z "${!name}" ]; then
    origins+=("empty")
  else
    origins+=("given")
  fi
  settings+=("$name")
}

# needed NAME DEFAULT: must not be empty.
needed() {
  setting "$1" "$2"
  [ -n "${!1}" ] || die "$1 is set but empty: unset it for its default ($2), or give it a value"
}

# whole NAME DEFAULT: a number of 1 or more.
whole() {
  needed "$1" "$2"
  case ${!1} in
    *[!0-9]* | 0*) die "$1 is no number of 1 or more: ${!1}" ;;
  esac
}

# Settings that all experiments have; a machine's site.sh has set SITE_*.
common_settings() {
  needed EZPZ ezpz
  whole NODES 2
  whole PPN "$SITE_PPN"
  setting MODULES "$SITE_MODULES"
  setting REQUIRE_NET "$SITE_REQUIRE_NET"
  needed RESULTS "results/$1-$SITE-$(date -u +%Y%m%dT%H%M%SZ)"
  needed DRY_RUN 0
  case $DRY_RUN in
    0 | 1) ;;
    *) die "DRY_RUN is neither 0 nor 1: $DRY_RUN" ;;
  esac
  network=()
  if [ -n "$REQUIRE_NET" ]; then
    network=(--require-net "$REQUIRE_NET")
  else
    echo "REQUIRE_NET is empty: no network is asserted${SITE_NET_NOTE:+ ($SITE_NET_NOTE)}" >&2
  fi
}

# Says the resolved configuration and stores it where the results go, in a form that can be sourced.
resolved() {
  local i
  mkdir -p "$RESULTS"
  {
    echo "# $(basename "$0") on $SITE, $(date -u +%Y-%m-%dT%H:%M:%SZ), job ${SLURM_JOB_ID-${PBS_JOBID-none}}"
    for i in "${!settings[@]}"; do
      printf '%s=%q  # %s\n' "${settings[$i]}" "${!settings[$i]}" "${origins[$i]}"
    done
  } | tee "$RESULTS/config.sh"
  if [ "$DRY_RUN" = 0 ] && [ -n "$MODULES" ]; then
    # shellcheck disable=SC2086  # a list of modules
    module load $MODULES
  fi
}

# planned DIR LAUNCH-FLAG... -- CMD...: `ezpz launch` with its records in DIR. The command is said and
# stored first. DRY_RUN=1: its plan is all that is shown.
planned() {
  local dir=$1 command
  shift
  mkdir -p "$dir"
  command=("$EZPZ" launch --nhosts "$NODES" --ppn "$PPN" --log-dir "$dir/logs" "${network[@]}" "$@")
  printf '%q ' "${command[@]}" | sed 's/ $/\n/' | tee "$dir/command.sh"
  if [ "$DRY_RUN" = 1 ]; then
    "$EZPZ" launch --dry-run "${command[@]:2}"
    return
  fi
  "${command[@]}"
}

# summary_of DIR: the one object that the last attempt's rank 0 printed, behind a launcher's label or not.
summary_of() {
  find "$1/logs" -name 'attempt-*.log' -print0 | sort -zV | xargs -0 -r sed -n 's/^[^{]*\({.*"tokens_per_sec".*}\).*$/\1/p' |
    tail -n 1
}
