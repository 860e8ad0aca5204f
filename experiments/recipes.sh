# shellcheck shell=bash
# shellcheck disable=SC2153  # settings are assigned by name, in common.sh
# The experiments, the same on every machine; each machine's scripts call one. Sourced, not run.

# One cell of the AmSC benchmark: twenty steps, the speed in summary.json.
amsc() {
  needed MODEL agpt-2b
  whole BATCH 1
  whole SEQ 2048
  whole TP 1
  whole STEPS 20
  setting CONFIG "$MODEL/bs$BATCH/seq$SEQ/tp$TP"
  common_settings amsc
  resolved
  planned "$RESULTS" --auto-retry -- "$EZPZ" train --model "$MODEL" --batch-size "$BATCH" --seq-len "$SEQ" --tp "$TP" \
    --train-iters "$STEPS" --json
  [ "$DRY_RUN" = 1 ] || keep_summary "$RESULTS"
}

keep_summary() {
  local summary
  summary=$(summary_of "$1")
  [ -n "$summary" ] || {
    echo "$1: no summary was printed" >&2
    return 1
  }
  printf '%s\n' "$summary" | tee "$1/summary.json"
}

# LoRA ranks and targets, one launch each. Ranks 8 to 17 on attention and MLP were seen to hang in their
# first pass on Perlmutter, so the first step has a limit; a cell that fails costs only itself.
lora_sweep() {
  needed MODEL agpt-2b
  whole BATCH 1
  whole SEQ 2048
  whole STEPS 20
  needed LORA_RANKS "8 16 17 18 32 64"
  needed LORA_TARGETS "attn attn,mlp"
  needed LORA_ALPHA 32
  setting FIRST_STEP_LIMIT 2m
  common_settings lora-sweep
  resolved
  local limit=() target rank cell status failed=0
  [ -z "$FIRST_STEP_LIMIT" ] || limit=(--first-step-timeout "$FIRST_STEP_LIMIT")
  : >"$RESULTS/cells.txt"
  for target in $LORA_TARGETS; do
    for rank in $LORA_RANKS; do
      cell="r$rank-${target/,/-}"
      status=0
      planned "$RESULTS/$cell" --timeout 10m "${limit[@]}" -- "$EZPZ" train --model "$MODEL" --batch-size "$BATCH" \
        --seq-len "$SEQ" --train-iters "$STEPS" --lora-rank "$rank" --lora-alpha "$LORA_ALPHA" \
        --lora-target "$target" --json || status=$?
      [ "$DRY_RUN" = 1 ] || [ "$status" -ne 0 ] || keep_summary "$RESULTS/$cell" || status=1
      [ "$status" -eq 0 ] || failed=$((failed + 1))
      echo "$cell exit=$status" >>"$RESULTS/cells.txt"
    done
  done
  cat "$RESULTS/cells.txt"
  [ "$failed" -eq 0 ]
}

# All ranks of one host kill themselves before a step; the job must go on with a spare and come to the
# losses that it had already printed. Passes when it does.
node_kill() {
  needed MODEL debug
  whole STEPS 60
  whole KILL_AT 25
  whole SAVE_EVERY 10
  needed VICTIM "$(second_host)"
  common_settings node-kill
  if [ "$KILL_AT" -le "$SAVE_EVERY" ] || [ "$KILL_AT" -ge "$STEPS" ]; then
    die "KILL_AT must lie between SAVE_EVERY and STEPS"
  fi
  resolved
  local hosts
  hosts=$(job_hosts | wc -l)
  [ "$DRY_RUN" = 1 ] || [ "$hosts" -gt "$NODES" ] || die "$hosts hosts for NODES=$NODES: no spare is left"
  planned "$RESULTS" --auto-retry -- "$EZPZ" train --model "$MODEL" --train-iters "$STEPS" --save-interval "$SAVE_EVERY" \
    --outdir "$RESULTS/out" --fault "kill@$KILL_AT:host=$VICTIM" --json
  [ "$DRY_RUN" = 1 ] || judge_failover
}

# Names as the ranks know them: without a domain.
job_hosts() {
  if [ -n "${SLURM_JOB_NODELIST-}" ]; then
    "$EZPZ" hostlist expand "$SLURM_JOB_NODELIST"
  elif [ -n "${PBS_NODEFILE-}" ]; then
    sed 's/\..*//' "$PBS_NODEFILE" | awk '!seen[$0]++'
  fi
}

second_host() { job_hosts | sed -n 2p; }

judge_failover() {
  local dir
  dir=$(find "$RESULTS/logs" -maxdepth 1 -name 'failover-*' | sort | tail -n 1)
  "$EZPZ" report "$dir" | tee "$RESULTS/report.txt"
  compare_losses "$dir" || die "the relaunched run does not go on where the killed one was"
  echo "passed: the job lost $VICTIM, went on, and came to the same losses"
}

# compare_losses DIR: steps that two attempts printed have the same loss, and there are such steps.
compare_losses() {
  # shellcheck disable=SC2016  # an awk program
  find "$1" -name 'attempt-*.log' -print0 | sort -zV | xargs -0 -r awk '
    match($0, /step=[0-9]+ loss=[0-9.]+/) {
      split(substr($0, RSTART, RLENGTH), word, /[= ]/)
      step = word[2]; loss = word[4]
      if (!(step in first)) { first[step] = loss; from[step] = FILENAME; next }
      if (from[step] == FILENAME) next
      again++
      if (loss != first[step]) { print "step " step ": loss " first[step] ", then " loss; wrong++ }
    }
    END {
      print again + 0 " steps were done again, " wrong + 0 " with another loss"
      exit !(again > 0 && wrong == 0)
    }'
}
