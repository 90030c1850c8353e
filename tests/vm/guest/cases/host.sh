# What Caisson says about this host, and its own unit tests on this kernel.

doctor_names_v2_and_landlock() {
  local abi
  "$CAISSON" doctor --json >"$scratch/doctor" || echo "doctor exits $?"
  jq . "$scratch/doctor" >/dev/null || fail "doctor --json is not JSON"
  jq -c . "$scratch/doctor"
  abi=$(python3 -c 'import ctypes; print(ctypes.CDLL(None).syscall(444, None, 0, 1))')
  jq -c '.. | objects' "$scratch/doctor" | grep -Eqi 'cgroup[^{}]*\bv2\b' || fail "no cgroup entry names v2"
  jq -c '.. | objects' "$scratch/doctor" | grep -Eqi "landlock[^{}]*\b$abi\b" ||
    fail "no landlock entry names ABI $abi"
}

# unit FILTER: the tests of that name pass, and at least one of them really ran.
unit() {
  local ran
  mkdir -p /data/unit
  TMPDIR=/data/unit /opt/caisson/unit_tests --gtest_filter="$1" --gtest_brief=0 >"$scratch/unit" 2>&1 ||
    { grep -aE '^\[  FAILED|Failure' -A6 "$scratch/unit" | tail -n 40; fail "unit tests $1 failed"; }
  ran=$(grep -ac '^\[       OK \]' "$scratch/unit")
  ((ran > 0)) || fail "no test of $1 ran"
  note "$ran ran, $(grep -ac '^\[  SKIPPED \].*ms)' "$scratch/unit") skipped"
  rm -rf /data/unit
}
unit_cgroup() { unit 'Cgroup*:*Cgroup*'; }
unit_disk() { unit '*DiskTest*:*Disk.*:ProbeDisks*'; }
unit_security() { unit 'Seccomp*:Landlock*:Capab*'; }
unit_mounts() { unit 'Mount*:UserNs*:NetNs*:Process*'; }

run_case "doctor names cgroup v2 and the kernel's Landlock ABI" doctor_names_v2_and_landlock
run_case "unit tests of cgroups pass on a real v2 hierarchy" unit_cgroup
run_case "unit tests of disk back ends pass on a disk with project quota" unit_disk
run_case "unit tests of seccomp, Landlock and capabilities pass" unit_security
run_case "unit tests of mounts, namespaces and processes pass" unit_mounts
