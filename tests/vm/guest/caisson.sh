# How the suite speaks to Caisson and looks at what it did from outside. Sourced after tap.sh.
#
#   box [FLAGS] -- COMMAND      `caisson exec --stats --json`; sets $status, $output, $errors, $report
#   field JQ                    a value of $report
#   driver_start, ask JSON      the engine through the test driver, one JSON line each way; sets $reply
#   create JSON, exec_in, start_in
#   cgroup_of SECONDS           the cgroup directory of the process `sleep SECONDS`
#   after_case                  the residue check that ends every case
export CAISSON_HOME=/data/caisson
CAISSON=/opt/caisson/caisson
DRIVER=/opt/caisson/driver
CGROUPS=/sys/fs/cgroup
# For commands that end by themselves; emulation on a busy host can be very slow.
patience=$((CASE_SECONDS * 2 / 3))s

box() {
  status=0
  "$CAISSON" exec --stats --json "$@" >"$scratch/stdout" 2>"$scratch/stderr" </dev/null || status=$?
  read_report
}

# Finds the report: the last JSON object with an outcome, on either stream. The rest is the command's.
read_report() {
  report=$(cat "$scratch/stdout" "$scratch/stderr" | jq -cR 'fromjson? | select(type == "object" and .outcome)' |
    tail -n 1)
  output=$(jq -r '.stdout // empty' <<<"${report:-null}")
  [[ -n $output ]] || output=$(grep -av '^{.*"outcome"' "$scratch/stdout")
  errors=$(jq -r '.stderr // empty' <<<"${report:-null}")
  [[ -n $errors ]] || errors=$(grep -av '^{.*"outcome"' "$scratch/stderr")
  printf 'exit %s\nreport %s\nstdout %s\nstderr %s\n' "$status" "$report" "${output:0:400}" "${errors:0:400}"
}

field() {
  [[ -n $report ]] || fail "there is no JSON report with an outcome"
  jq -r "$1 // empty" <<<"$report"
}

expect_outcome() {
  local got
  [[ -n $report ]] || fail "there is no JSON report with an outcome"
  got=$(field .outcome.status)
  [[ " $* " == *" $got "* ]] || fail "outcome: expected one of '$*', got '$got' ($(field .outcome.reason))"
}

driver_start() {
  coproc ENGINE { exec "$DRIVER" 2>"$scratch/driver.log"; }
  engine_pid=$ENGINE_PID
}

# Sends one request and reads its reply; a reply that is not ok ends the case.
ask() {
  try "$1"
  [[ $(jq -r .ok <<<"$reply") == true ]] || fail "$1 -> $reply"
}
try() {
  echo "$1" >&"${ENGINE[1]}" || fail "the driver is gone: $(<"$scratch/driver.log")"
  read -r -t "$CASE_SECONDS" reply <&"${ENGINE[0]}" || fail "no reply to $1: $(tail -n 5 "$scratch/driver.log")"
  echo "$1 -> ${reply:0:600}"
}

create() {
  ask "$(jq -cn --argjson spec "$1" '{op: "create", spec: $spec}')"
  id=$(jq -r .id <<<"$reply")
}
exec_in() { ask "$(jq -cn --arg id "$id" '{op: "exec", id: $id, timeout_ms: '$((CASE_SECONDS * 500))', argv: $ARGS.positional}' --args -- "$@")"; }
start_in() {
  ask "$(jq -cn --arg id "$id" '{op: "start", id: $id, argv: $ARGS.positional}' --args -- "$@")"
  process=$(jq -r .process <<<"$reply")
}
update() { ask "$(jq -cn --arg id "$id" --argjson limits "$1" '{op: "update", id: $id, limits: $limits}')"; }
destroy() { ask "{\"op\":\"destroy\",\"id\":\"$id\"}"; }
driver_stop() {
  echo '{"op":"quit"}' >&"${ENGINE[1]}" || fail "the driver is gone: $(<"$scratch/driver.log")"
  wait "$engine_pid" || fail "the driver ended with status $?"
}

# A limit as create or update reported it: enforced, with the value and a mechanism that names cgroup v2.
expect_limit() {
  local name=$1 value=$2 mechanism=$3 entry
  entry=$(jq -c --arg name "$name" '.limits[] | select(.name == $name)' <<<"$reply")
  [[ -n $entry ]] || fail "limit $name is not reported"
  expect_equal "$name enforced" true "$(jq -r .enforced <<<"$entry")"
  expect_equal "$name value" "$value" "$(jq -r .value <<<"$entry")"
  [[ $(jq -r .by <<<"$entry") =~ $mechanism ]] || fail "$name is not enforced by $mechanism: $entry"
}

# The limit is enforced by what was asked for, and not by something that happened to work.
expect_mechanism() {
  local name=$1 mechanism=$2 by
  by=$(jq -r --arg name "$name" '[.limits[] | select(.name == $name and .enforced) | .by][0] // empty' <<<"$reply")
  [[ ${by,,} == *"$mechanism"* ]] || fail "$name is enforced by '$by', not by $mechanism"
}

# The process whose whole command line is `sleep $1`. No forks: under emulation they are dear.
process_of() {
  local directory words
  for directory in /proc/[0-9]*; do
    { mapfile -d '' words <"$directory/cmdline"; } 2>/dev/null || continue
    if [[ "${words[*]}" == "sleep $1" ]]; then
      echo "${directory#/proc/}"
      return 0
    fi
  done
  return 1
}

# Only the host's view of /proc decides which cgroup a sandbox is in; names inside Caisson do not matter.
cgroup_of() {
  local pid path tries
  for ((tries = 0; tries < CASE_SECONDS * 4; tries++)); do
    if pid=$(process_of "$1"); then
      path=$(sed -n 's/^0:://p' "/proc/$pid/cgroup")
      [[ $path == *caisson* ]] && echo "$CGROUPS$path" && return 0
    fi
    sleep 0.1
  done
  echo "no process 'sleep $1' in a cgroup of Caisson's" >&2
  return 1
}

cpu_usage() { awk '/^usage_usec/ {print $2}' "$1/cpu.stat"; }

left_behind() {
  local directory name words
  find "$CGROUPS" -mindepth 1 -type d -name '*caisson*' -printf 'cgroup %p\n'
  mounts | grep -vxFf "$scratch/mounts"
  grep -s . /sys/block/loop*/loop/backing_file | sed 's/^/loop /'
  for directory in /proc/[0-9]*; do
    { read -r name <"$directory/comm" && mapfile -d '' words <"$directory/cmdline"; } 2>/dev/null || continue
    [[ $name == caisson* || $name == driver* || $name == sleep ]] || continue
    [[ "${words[*]}" == "sleep $CASE_SECONDS" ]] || echo "process ${directory#/proc/} $name: ${words[*]}"
  done
}
mounts() { sed 's/^/mount /' /proc/self/mountinfo | cut -d' ' -f1,6-; }
mounts >"$scratch/mounts"

# Asynchronous teardown gets five seconds.
after_case() {
  local tries left
  for ((tries = 0; tries < 25; tries++)); do
    left=$(left_behind)
    [[ -n $left ]] || return 0
    sleep 0.2
  done
  fail "left behind: $left"
}

# One failed case must not redden the rest: what it left is killed and removed by force.
after_failure() {
  local directory pid kind rest
  while read -r kind pid rest; do
    [[ $kind != process ]] || kill -KILL "$pid" 2>/dev/null
  done < <(left_behind)
  for directory in "$CGROUPS"/*caisson* "$CGROUPS/test.slice"; do
    [[ -d $directory ]] || continue
    echo 1 >"$directory/cgroup.kill"
    sleep 0.5
    find "$directory" -depth -type d -exec rmdir {} + 2>/dev/null
  done
  "$CAISSON" sweep >/dev/null 2>&1
  while read -r kind rest; do
    case $kind in
      mount) umount -l "${rest%% *}" 2>/dev/null ;;
      loop) busybox losetup -d "/dev/$(cut -d/ -f4 <<<"$rest")" 2>/dev/null ;;
    esac
  done < <(left_behind)
}
