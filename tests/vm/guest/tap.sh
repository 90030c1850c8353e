# The Test Anything Protocol for bash, sourced by the suites.
#
#   run_case NAME FUNCTION   runs FUNCTION in a subshell and prints `ok` or `not ok`
#   fail MESSAGE             ends the case as failed
#   skip REASON              ends the case as skipped; every skip states why
#   finish                   prints the plan and exits 1 if any case failed
#
# What a case prints is shown as `#` lines when it fails. A case that takes more than CASE_SECONDS
# fails. A suite may define after_case, which runs at the end of each case and may fail it, and
# after_failure, which clears the way for the next case. CASE_FILTER, an extended regular expression, selects cases by name.
tap_count=0
tap_failed=0
CASE_SECONDS=${CASE_SECONDS:-100}
scratch=$(mktemp -d /tmp/suite.XXXXXX)

fail() {
  echo "FAILED: $*"
  exit 1
}
skip() {
  echo "$*" >"$scratch/skip"
  exit 0
}
note() { echo "# $*"; }
now_us() { echo "${EPOCHREALTIME/./}"; }

expect_equal() {
  local what=$1 want=$2 got=$3
  [[ $got == "$want" ]] || fail "$what: expected '$want', got '$got'"
}
expect_between() {
  local what=$1 low=$2 high=$3 got=$4
  [[ $got =~ ^[0-9]+$ ]] && ((got >= low && got <= high)) ||
    fail "$what: expected $low..$high, got '$got'"
}

# Runs the case in its own process group under a watchdog, so that a hang costs one case.
run_case() {
  local name=$1 function=$2 pid watchdog status started=$SECONDS
  [[ -z ${CASE_FILTER:-} || $name =~ $CASE_FILTER ]] || return 0
  tap_count=$((tap_count + 1))
  rm -f "$scratch/skip"
  set -m
  (
    set +m
    "$function"
    [[ $(type -t after_case) != function ]] || after_case
  ) >"$scratch/output" 2>&1 &
  pid=$!
  (sleep "$CASE_SECONDS" && echo "FAILED: no end after $CASE_SECONDS s" >>"$scratch/output" &&
    kill -KILL -- "-$pid") >/dev/null 2>&1 &
  watchdog=$!
  set +m
  wait "$pid" 2>/dev/null
  status=$?
  kill -KILL -- "-$watchdog" "-$pid" 2>/dev/null
  wait "$watchdog" 2>/dev/null
  if ((status == 0)) && [[ -f $scratch/skip ]]; then
    echo "ok $tap_count - $name # SKIP $(<"$scratch/skip")"
  elif ((status == 0)); then
    echo "ok $tap_count - $name # $((SECONDS - started)) s"
    sed -n 's/^# /#   /p' "$scratch/output"
  else
    tap_failed=$((tap_failed + 1))
    echo "not ok $tap_count - $name"
    tail -n 40 "$scratch/output" | cut -c1-600 | sed 's/^/#   /'
    [[ $(type -t after_failure) != function ]] || after_failure
  fi
}

finish() {
  echo "1..$tap_count"
  rm -rf "$scratch"
  ((tap_failed == 0))
  exit
}
