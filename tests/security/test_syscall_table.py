"""E19: the set of system calls that pass is exactly the one that was reviewed.

The snapshot holds the numbers that answer other than ENOSYS to a call without arguments, as uid 0. A kernel
older than the snapshot's may lack some; none may be added. After a reviewed change of the policy:
CAISSON_UPDATE_SNAPSHOTS=1 pytest tests/security/test_syscall_table.py"""

import json
import os
import pathlib
import platform

import pytest

SNAPSHOTS = pathlib.Path(__file__).parent


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
