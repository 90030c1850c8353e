"""E19: the set of system calls that pass is exactly the one that was reviewed.

The snapshot holds the numbers that answer other than ENOSYS to a call without arguments, as uid 0; it is held
against the policy's own table, so that it cannot bless what the policy does not mean. A kernel
older than the snapshot's may lack some; none may be added. After a reviewed change of the policy:
CAISSON_UPDATE_SNAPSHOTS=1 pytest tests/security/test_syscall_table.py"""

import json
import os
import pathlib
import platform

import pytest

from harness import policy

SNAPSHOTS = pathlib.Path(__file__).parent

# (profile, number): what the snapshot says where the kernel and not the policy decides.
KERNELS_OWN = {
    # uretprobe and uprobe pass every filter (kernel/seccomp.c); outside a probe's trampoline they are a SIGILL.
    **{(profile, number): "pass" for profile in ("default", "strict") for number in (335, 336)},
    # Allowed by the policy, absent without the processor's shadow stacks.
    **{(profile, 453): "ENOSYS" for profile in ("default", "strict")},
    # setgroups: allowed, and nobody in a strict sandbox has the capability.
    ("strict", 116): "EPERM",
}


@pytest.mark.judges_only
@pytest.mark.skipif(not policy.NUMBERS.exists(), reason="the numbers of x86_64 come from its kernel headers")
@pytest.mark.parametrize("profile", ["default", "strict"])
def test_e19_the_snapshot_says_what_the_policys_table_says(profile):
    snapshot = {int(n): answer for n, answer in json.loads((SNAPSHOTS / f"syscalls_{profile}.json").read_text()).items()}
    meant = policy.answers(profile)
    names = policy.calls()
    different = {}
    for number in range(1024):
        wanted = KERNELS_OWN.get((profile, number), meant.get(number, "ENOSYS"))
        if snapshot.get(number, "ENOSYS") not in (wanted, meant.get(number, "ENOSYS")):
            different[number] = (names.get(number, ("?",))[0], snapshot.get(number, "ENOSYS"), wanted)
    assert not different, f"number: (name, snapshot, policy) {different}"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the snapshot is of x86_64")
@pytest.mark.parametrize("user", ["0", "1000"])
@pytest.mark.parametrize("profile", ["default", "strict"])
def test_e19_the_effective_table_is_the_reviewed_one(driver, probe_mount, profile, user):
    with driver.create(profile=profile, user=user, mounts=[probe_mount]) as sandbox:
        table = sandbox.exec(probe_mount["target"] + "/probe", "syscalls", user=user, timeout_ms=60_000).json()
    path = SNAPSHOTS / f"syscalls_{profile}.json"
    if user == "0" and os.environ.get("CAISSON_UPDATE_SNAPSHOTS"):
        path.write_text(json.dumps(table, indent=0) + "\n")
    reviewed = json.loads(path.read_text())
    assert len(reviewed) > 250
    passing = {n for n, answer in table.items() if answer == "pass"}
    allowed = {n for n, answer in reviewed.items() if answer == "pass"}
    assert not passing - allowed, "numbers that pass and were not reviewed"
    # What is refused by name must stay refused; EPERM may not turn into a pass or a kill.
    refused = {n for n, answer in reviewed.items() if answer == "EPERM"}
    assert not refused & passing
    assert not [n for n, answer in table.items() if answer.startswith("SIG")]
    missing = allowed - passing
    assert not [n for n in missing if table.get(n, "ENOSYS") not in ("ENOSYS", "EPERM")]
    assert len(missing) < 12, f"so many calls of the snapshot are refused: {sorted(missing)}"
