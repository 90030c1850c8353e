#!/usr/bin/env bash
# Runs the same check in several sandboxes at once, each with its own input, and collects results.
#
#   examples/parallel-runs.sh [COUNT]            8 unless given
#
# Each run has its own files: all of them write to the same path and none sees another's. CAISSON
# names the binary.
set -euo pipefail
caisson=${CAISSON:-$(dirname "${BASH_SOURCE[0]}")/../build/caisson}
count=${1:-8}

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

run_one() {
  "$caisson" exec --profile strict --timeout 20s --env "INPUT=$1" -- bash -c '
    test ! -e /workspace/number || { echo "somebody was here" >&2; exit 1; }
    echo "$INPUT" > /workspace/number
    read -r number < /workspace/number
    echo $((number * number))'
}

pids=()
for ((i = 1; i <= count; i++)); do
  run_one "$i" >"$results/$i" </dev/null &
  pids+=($!)
done

failed=0
for ((i = 1; i <= count; i++)); do
  status=0
  wait "${pids[i - 1]}" || status=$?
  answer=$(<"$results/$i")
  printf 'run %d: exit code %d, answer %s\n' "$i" "$status" "${answer:-none}"
  if ((status != 0)) || [[ $answer != $((i * i)) ]]; then failed=$((failed + 1)); fi
done
echo "$((count - failed)) of $count runs gave the right answer"
((failed == 0))
