# Where Caisson is started from: below a service's cgroup, and as an ordinary user with and without a
# delegated subtree. uid 1000 has a folder of its own and a subordinate id range.
slice=$CGROUPS/test.slice

# Runs a program alone in cgroup DIRECTORY: no shell stays behind there.
in_cgroup() {
  local directory=$1
  shift
  bash -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' in_cgroup "$directory" "$@"
}

mkdir -p /run/user/1000 && chown 1000:1000 /run/user/1000
as_user=(setpriv --reuid 1000 --regid 1000 --clear-groups --inh-caps=-all
  env -i PATH="$PATH" HOME=/home/user USER=user XDG_RUNTIME_DIR=/run/user/1000
  CAISSON_HOME=/home/user/.caisson)

# A subtree as systemd gives it to a user: the directory and its three control files are the user's, the
# limits are not.
delegate() {
  local directory=$1 file
  mkdir -p "$directory"
  chown 1000:1000 "$directory"
  for file in cgroup.procs cgroup.threads cgroup.subtree_control; do
    chown 1000:1000 "$directory/$file"
  done
}
# A scope in the user's part of the tree, like `systemd-run --user --scope -p Delegate=yes` makes.
delegated_scope() {
  enable_controllers test.slice
  delegate "$slice/user.service"
  echo '+cpu +io +memory +pids' >"$slice/user.service/cgroup.subtree_control" || fail "controllers for the user"
  delegate "$slice/user.service/run.scope"
}
enable_controllers() {
  local directory=$CGROUPS part
  for part in '' "$@"; do
    directory=$directory${part:+/$part}
    mkdir -p "$directory"
    echo '+cpu +io +memory +pids' >"$directory/cgroup.subtree_control" || fail "controllers in $directory"
  done
}

# The user's own folders may stay; cgroups of the test are removed here.
remove_slice() {
  local tries
  for ((tries = 0; tries < 25; tries++)); do
    find "$slice" -depth -type d -exec rmdir {} + 2>/dev/null
    [[ -d $slice ]] || return 0
    sleep 0.2
  done
  fail "cgroups left: $(find "$slice" -type d)"
}

below_a_service() {
  enable_controllers test.slice
  mkdir -p "$slice/caller.service"
  status=0
  in_cgroup "$slice/caller.service" "$CAISSON" exec --stats --json --memory 64M --cpus 2 --timeout "$patience" -- tail /dev/zero \
    >"$scratch/stdout" 2>"$scratch/stderr" </dev/null || status=$?
  read_report
  expect_outcome out_of_memory
  after_case
  remove_slice
}

# Another process stays in the caller's cgroup, so nothing can be enabled there without moving it.
below_a_shared_service() {
  local other tries
  enable_controllers test.slice
  mkdir -p "$slice/shared.service"
  in_cgroup "$slice/shared.service" sleep 521.5 &
  for ((tries = 0; tries < CASE_SECONDS; tries++)); do
    other=$(process_of 521.5) && break
    sleep 0.2
  done
  status=0
  in_cgroup "$slice/shared.service" "$CAISSON" exec --stats --json --memory 64M --cpus 2 --timeout "$patience" -- tail /dev/zero \
    >"$scratch/stdout" 2>"$scratch/stderr" </dev/null || status=$?
  read_report
  if ((status == 125)); then
    grep -Eqi 'cgroup|deleg' <<<"$errors" || fail "refused without naming the cgroup"
  else
    expect_outcome out_of_memory
  fi
  expect_equal "cgroup of the other process" "0::/test.slice/shared.service" "$(<"/proc/$other/cgroup")"
  kill "$other" && wait 2>/dev/null
  after_case
  remove_slice
}

rootless_box() {
  status=0
  "$@" exec --stats --json "${flags[@]}" >"$scratch/stdout" 2>"$scratch/stderr" </dev/null || status=$?
  read_report
}

rootless_runs() {
  flags=(--profile "$profile" --cpus 2 --timeout "$patience" -- bash -c 'id -u; cat /etc/shadow')
  mkdir -p "$slice"
  rootless_box in_cgroup "$slice" "${as_user[@]}" "$CAISSON"
  if [[ -z $report ]]; then
    # A default limit that cannot be held may be refused, but then by name and with what to do.
    expect_equal "exit code" 125 "$status"
    grep -Eqi 'deleg|cgroup' <<<"$errors" || fail "refused without naming the missing delegation"
  else
    [[ $output =~ ^[0-9]+ ]] || fail "the command did not run"
    [[ $output != *CANARY* ]] || fail "the host's shadow file is visible"
  fi
  after_case
  remove_slice
}

# Without delegation a memory limit is refused or reported as not enforced; it never silently vanishes.
rootless_limit_is_honest() {
  flags=(--memory 64M --cpus 2 --timeout 20s -- tail /dev/zero)
  mkdir -p "$slice"
  rootless_box in_cgroup "$slice" "${as_user[@]}" "$CAISSON"
  if ((status == 125)); then
    grep -Eqi 'memory|cgroup|deleg' <<<"$errors" || fail "refused without naming what is missing"
  else
    [[ $(field .outcome.status) == out_of_memory ||
      $(field '[.limits[]? | select(.name == "memory") | .enforced][0] | tostring') == false ]] ||
      fail "the limit was neither held nor reported as not enforced"
  fi
  after_case
  remove_slice
}

rootless_delegated() {
  delegated_scope
  flags=(--profile "$profile" --memory 64M --cpus 2 --timeout "$patience" -- tail /dev/zero)
  rootless_box in_cgroup "$slice/user.service/run.scope" "${as_user[@]}" "$CAISSON"
  expect_outcome out_of_memory
  after_case
  remove_slice
}

rootless_delegated_pids() {
  delegated_scope
  flags=(--pids 32 --cpus 2 --timeout "$patience" -- python3 -c "$forks")
  rootless_box in_cgroup "$slice/user.service/run.scope" "${as_user[@]}" "$CAISSON"
  expect_between "children" 8 32 "$output"
  after_case
  remove_slice
}

run_case "root, below a service's cgroup: the memory limit holds" below_a_service
run_case "root, in a cgroup it shares: the limit holds or is refused, others stay where they are" below_a_shared_service
for profile in default strict; do
  run_case "rootless, $profile, no delegation: a command runs, or the reason is given" rootless_runs
  run_case "rootless, $profile, delegated: a memory hog ends as out_of_memory" rootless_delegated
done
run_case "rootless, no delegation: a memory limit is held, refused or reported" rootless_limit_is_honest
run_case "rootless, delegated: the process limit stops fork" rootless_delegated_pids
