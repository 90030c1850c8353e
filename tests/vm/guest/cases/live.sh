# A running sandbox: freeze and thaw, changed limits, kill, and what is left afterwards.

freeze_and_thaw() {
  local group before after
  driver_start
  create '{"cpus":2}'
  start_in bash -c 'sleep 511.5 & while :; do :; done'
  group=$(cgroup_of 511.5) || fail "the sandbox is in no cgroup"
  ask "{\"op\":\"pause\",\"id\":\"$id\"}"
  expect_equal "frozen" 1 "$(awk '/^frozen/ {print $2}' "$group/cgroup.events")"
  before=$(cpu_usage "$group")
  sleep 1
  after=$(cpu_usage "$group")
  ((after - before < 50000)) || fail "a frozen sandbox used $((after - before)) us"
  ask "{\"op\":\"resume\",\"id\":\"$id\"}"
  expect_equal "frozen" 0 "$(awk '/^frozen/ {print $2}' "$group/cgroup.events")"
  sleep 1
  (($(cpu_usage "$group") - after > 200000)) || fail "the sandbox did not go on after resume"
  destroy
  driver_stop
}

destroy_while_frozen() {
  driver_start
  create '{}'
  start_in sleep 512.5
  cgroup_of 512.5 >/dev/null || fail "the sandbox is in no cgroup"
  ask "{\"op\":\"pause\",\"id\":\"$id\"}"
  destroy
  ! process_of 512.5 || fail "the frozen process is still there"
  driver_stop
}

limits_change_live() {
  local group
  driver_start
  create '{"memory":67108864,"pids":16,"cpus":0.25}'
  start_in sleep 513.5
  group=$(cgroup_of 513.5) || fail "the sandbox is in no cgroup"
  update '{"memory":134217728,"pids":80,"cpus":1.5}'
  expect_limit memory 134217728 'v2'
  expect_equal memory.max 134217728 "$(<"$group/memory.max")"
  expect_equal pids.max 80 "$(<"$group/pids.max")"
  expect_equal cpu.max 150000 "$(awk '{print int($1 * 100000 / $2)}' "$group/cpu.max")"
  exec_in python3 -c 'print(len(bytearray(b"x") * (90 << 20)))'
  expect_equal "90 MiB fit after the change" 0 "$(jq -r .exit_code <<<"$reply")"
  update '{"pids":8}'
  expect_equal pids.max 8 "$(<"$group/pids.max")"
  exec_in python3 -c 'import os,time
n = 0
try:
    while n < 60:
        if os.fork() == 0:
            time.sleep(5)
            os._exit(0)
        n += 1
except BlockingIOError:
    pass
print(n)'
  expect_between "children after lowering" 1 8 "$(jq -r .stdout <<<"$reply")"
  destroy
  driver_stop
}

# A memory limit below what is in use: refused with a reason, or applied; never half of it.
memory_below_usage() {
  local group wanted=16777216
  driver_start
  create '{"memory":134217728,"cpus":2}'
  start_in python3 -c 'import subprocess
block = bytearray(b"x") * (64 << 20)
subprocess.run(["sleep", "514.5"])'
  group=$(cgroup_of 514.5) || fail "the sandbox is in no cgroup"
  try "{\"op\":\"update\",\"id\":\"$id\",\"limits\":{\"memory\":$wanted}}"
  if [[ $(jq -r .ok <<<"$reply") == true ]]; then
    expect_equal memory.max "$wanted" "$(<"$group/memory.max")"
  else
    [[ -n $(jq -r '.error.message' <<<"$reply") ]] || fail "refused without a reason"
    expect_equal memory.max 134217728 "$(<"$group/memory.max")"
  fi
  destroy
  driver_stop
}

daemons_die_with_timeout() {
  box --timeout 3s --cpus 2 -- python3 -c 'import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "515.5"])
    os._exit(0)
time.sleep(60)'
  expect_equal "exit code" 124 "$status"
  expect_outcome timeout
  ! process_of 515.5 || fail "the daemonised grandchild is still there"
}

killed_owner_is_swept() {
  "$CAISSON" exec -- sleep 516.5 >/dev/null 2>&1 &
  cgroup_of 516.5 >/dev/null || fail "the sandbox is in no cgroup"
  kill -KILL $! && wait $! 2>/dev/null
  "$CAISSON" sweep --json || fail "sweep exits $?"
  ! process_of 516.5 || fail "the sandbox outlived its owner and the sweep"
}

many_lives_leave_nothing() {
  local before after round
  box -- true
  before=$(awk '$1 == "memory" {print $3}' /proc/cgroups)
  files=$(find "$CAISSON_HOME" | wc -l)
  for ((round = 0; round < 25; round++)); do
    "$CAISSON" exec -- true </dev/null >/dev/null 2>&1 || fail "life $round exits $?"
  done
  sleep 2
  after=$(awk '$1 == "memory" {print $3}' /proc/cgroups)
  echo "memory cgroups $before -> $after, files $files -> $(find "$CAISSON_HOME" | wc -l)"
  ((after - before <= 5)) || fail "25 lives left $((after - before)) memory cgroups"
  (($(find "$CAISSON_HOME" | wc -l) - files <= 2)) || fail "25 lives left files in the state folder"
}

own_id_range() {
  local pid first
  driver_start
  create '{"profile":"default"}'
  start_in sleep 517.5
  cgroup_of 517.5 >/dev/null || fail "the sandbox is in no cgroup"
  pid=$(process_of 517.5)
  first=$(awk '$1 == 0 {print $2}' "/proc/$pid/uid_map")
  ((first >= 65536)) || fail "root inside is uid $first outside"
  expect_equal "no_new_privs" 1 "$(awk '/^NoNewPrivs/ {print $2}' "/proc/$pid/status")"
  expect_equal "seccomp mode" 2 "$(awk '/^Seccomp:/ {print $2}' "/proc/$pid/status")"
  exec_in cat /etc/shadow
  [[ $(jq -r .stdout <<<"$reply") != *CANARY* ]] || fail "the host's shadow file is visible"
  destroy
  driver_stop
}

run_case "freeze stops a sandbox and thaw lets it go on" freeze_and_thaw
run_case "a frozen sandbox can be destroyed" destroy_while_frozen
run_case "limits change on a live sandbox" limits_change_live
run_case "a memory limit below the usage is applied or refused, not half applied" memory_below_usage
run_case "timeout kills daemonised grandchildren" daemons_die_with_timeout
run_case "a sandbox whose owner was killed is swept" killed_owner_is_swept
run_case "25 lives leave no cgroup and no file" many_lives_leave_nothing
run_case "a sandbox has its own id range, filter and root" own_id_range
