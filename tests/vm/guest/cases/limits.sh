# Memory, swap, CPU, processes, I/O rate: each limit is hit from inside and read from outside.

hog='import sys
blocks = []
for _ in range(int(sys.argv[1])):
    blocks.append(bytearray(b"x" * (1 << 20)))
print("allocated", len(blocks))'

memory_hog() {
  local swap_before swap_after
  swap_before=$(awk '/^SwapFree/ {print $2}' /proc/meminfo)
  box --profile "$profile" --memory 64M --cpus 2 --timeout "$patience" -- tail /dev/zero
  expect_outcome out_of_memory
  expect_equal "exit code" 137 "$status"
  swap_after=$(awk '/^SwapFree/ {print $2}' /proc/meminfo)
  ((swap_before - swap_after < 8192)) || fail "the hog pushed $((swap_before - swap_after)) KiB into swap"
}
memory_within() {
  box --profile "$profile" --memory 128M --cpus 2 --timeout "$patience" -- python3 -c "$hog" 48
  expect_equal "exit code" 0 "$status"
  expect_outcome exited
  expect_equal "output" "allocated 48" "$output"
  expect_between "peak in bytes" $((48 << 20)) $((128 << 20)) \
    "$(field '[.usage | to_entries[] | select(.key | test("memory")) | .value] | max')"
}
hog_dies_alone() {
  box --profile "$profile" --memory 64M --cpus 2 --timeout "$patience" -- \
    bash -c 'tail /dev/zero; echo "child $?, survived"'
  [[ $output == *"child 137, survived"* ]] || fail "the shell did not outlive its child"
}
limits_in_kernel() {
  driver_start
  create "{\"profile\":\"$profile\",\"memory\":67108864,\"cpus\":0.25,\"pids\":40}"
  expect_limit memory 67108864 'v2'
  expect_limit pids 40 'v2'
  start_in sleep 501.5
  local group
  group=$(cgroup_of 501.5) || fail "the sandbox is in no cgroup"
  expect_equal memory.max 67108864 "$(<"$group/memory.max")"
  expect_equal memory.swap.max 0 "$(<"$group/memory.swap.max")"
  expect_equal memory.oom.group 0 "$(<"$group/memory.oom.group")"
  expect_equal pids.max 40 "$(<"$group/pids.max")"
  expect_equal cpu.max 25000 "$(awk '{print int($1 * 100000 / $2)}' "$group/cpu.max")"
  exec_in cat /proc/self/cgroup
  expect_equal "cgroup seen from inside" "0::/" "$(jq -r '.stdout | rtrimstr("\n")' <<<"$reply")"
  destroy
  driver_stop
}

forks='import os, time
count = 0
try:
    while count < 200:
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
        count += 1
except BlockingIOError:
    pass
print(count)'

process_limit() {
  box --profile "$profile" --pids 32 --cpus 2 --timeout "$patience" -- python3 -c "$forks"
  expect_outcome process_limit exited
  expect_between "children" 16 32 "$output"
}
fork_bomb() {
  local started=$SECONDS
  sleep 502.5 &
  box --profile "$profile" --pids 64 --cpus 0.5 --timeout 5s -- bash -c 'b() { b | b & }; b; sleep 100'
  ((SECONDS - started < CASE_SECONDS / 2)) || fail "the bomb took $((SECONDS - started)) s to end"
  expect_outcome timeout process_limit
  kill -0 $! || fail "a process outside the sandbox died"
  kill $! && wait $! 2>/dev/null
  true
}

# burn CPUS: hundredths of one core that a busy loop really gets, measured over about three seconds of
# the machine's own clock. Sets $share and $throttles.
burn() {
  local group before after started
  "$CAISSON" exec --profile "$profile" --cpus "$1" --timeout "$patience" -- \
    bash -c 'sleep 503.5 & while :; do :; done' >/dev/null 2>&1 &
  group=$(cgroup_of 503.5) || fail "the sandbox is in no cgroup"
  sleep 0.5
  before=$(cpu_usage "$group")
  started=$(now_us)
  sleep 3
  after=$(cpu_usage "$group")
  share=$(((after - before) * 100 / ($(now_us) - started)))
  throttles=$(awk '/^nr_throttled/ {print $2}' "$group/cpu.stat")
  kill $! && wait $! 2>/dev/null
  echo "cpus $1: $share hundredths of a core, throttled $throttles times"
}
cpu_limit() {
  burn 0.25
  expect_between "share under 0.25" 5 32 "$share"
  ((throttles > 5)) || fail "throttled only $throttles times"
  burn 1
  expect_between "share under 1" 50 110 "$share"
}

# Four MiB past the page cache at one MiB a second.
io_limit() {
  local group started elapsed
  driver_start
  create "{\"profile\":\"$profile\",\"disk\":67108864,\"disk_backend\":\"quota\",\"cpus\":2,\"io_write_bps\":1048576}"
  start_in sleep 504.5
  group=$(cgroup_of 504.5) || fail "the sandbox is in no cgroup"
  grep -q 'wbps=1048576' "$group/io.max" || fail "io.max is '$(<"$group/io.max")'"
  started=$(now_us)
  exec_in dd if=/dev/zero of=/workspace/blob bs=64k count=64 oflag=direct
  elapsed=$((($(now_us) - started) / 1000))
  expect_equal "dd" 0 "$(jq -r .exit_code <<<"$reply")"
  echo "4 MiB took $elapsed ms"
  expect_between "milliseconds for 4 MiB" 2500 $((CASE_SECONDS * 500)) "$elapsed"
  destroy
  driver_stop
}

for profile in default strict; do
  run_case "$profile: a memory hog ends as out_of_memory and nothing goes to swap" memory_hog
  run_case "$profile: a command within its memory runs, and its peak is reported" memory_within
  run_case "$profile: out of memory kills the hog, not its shell" hog_dies_alone
  run_case "$profile: the limits asked for are the ones in the kernel" limits_in_kernel
  run_case "$profile: the process limit stops fork" process_limit
  run_case "$profile: a fork bomb is contained and gone" fork_bomb
  run_case "$profile: the CPU limit throttles a busy loop" cpu_limit
  run_case "$profile: the write rate holds on a real disk" io_limit
done
