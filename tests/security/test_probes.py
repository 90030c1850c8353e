"""Every attempt of the catalogue, in both profiles, as uid 0 and 1000, through the first command of a
sandbox and through a later exec, against the expectation in the probe's table."""

import itertools

import pytest

from harness import catalogue, paths, residue
from harness.driver import Driver, Refused
from harness.paths import require
from harness.sentinels import Sentinels

PROFILES = ("default", "strict")
USERS = ("0", "1000")
ENTRIES = ("first", "later")
ATTEMPTS = catalogue.attempts()

pytestmark = pytest.mark.judges_only


@pytest.fixture(scope="module")
def matrix(home, probe_mount, tmp_path_factory):
    """All runs of the matrix, made once: {(profile, user, entry): {name: verdict}}, and what was seen outside.

    Sentinels stand during all of them, and residue is looked for after each."""
    found, outside = {}, []
    with Sentinels(tmp_path_factory.mktemp("sentinels")) as sentinels:
        for key in itertools.product(PROFILES, USERS, ENTRIES):
            before = residue.snapshot(home=home)
            try:
                found[key] = _run(home, probe_mount, *key)
            except (Refused, AssertionError) as failure:
                found[key] = {}
                outside.append(f"{key}: {failure}")
            left = residue.wait_until_clean(before, home=home)
            outside += [f"{key}: left behind:\n{residue.describe(left)}"] if left else []
        outside += sentinels.changes()
    return found, outside


@pytest.fixture
def verdicts(matrix):
    return matrix[0]


def _run(home, probe_mount, profile, user, entry):
    program = probe_mount["target"] + "/probe"
    with Driver(require(paths.DRIVER), home=home) as driver:
        with driver.create(profile=profile, user=user, mounts=[probe_mount]) as sandbox:
            if entry == "later":
                _live_a_little(sandbox, ("0", "1000") if profile == "default" else (user,))
            verdicts = catalogue.run_all(sandbox, program, user)
            sandbox.exec(program, "exit", "0").ok()
    return verdicts


def _live_a_little(sandbox, users):
    """Several users (a strict sandbox has one), a failure, a background process, a file: what could change the
    state that a later exec inherits."""
    for user in users:
        sandbox.exec("/bin/sh", "-c", "umask 0; cd /tmp; ulimit -n 64; true", user=user).ok()
        sandbox.exec("/bin/false", user=user)
        sandbox.start("/bin/sleep", "30", user=user)
        sandbox.write(f"/tmp/seen-{user}", b"x", user=user)


def _has_capability(number):
    with open("/proc/self/status", encoding="ascii") as status:
        return any(line.startswith("CapEff") and int(line.split()[1], 16) >> number & 1 for line in status)


# What the kernel grants to a launcher with a capability that root does not have everywhere.
NEEDS = {"C10.lower": (24, "the floor of oom_score_adj is set by a launcher with CAP_SYS_RESOURCE only")}


@pytest.mark.parametrize("name", ATTEMPTS)
def test_attempt_meets_its_wall(name, verdicts):
    if name in NEEDS and not _has_capability(NEEDS[name][0]):
        pytest.skip(NEEDS[name][1])
    complaints = []
    for (profile, user, entry), run in verdicts.items():
        complaint = catalogue.complaint(ATTEMPTS[name], run.get(name), profile, user)
        if complaint:
            complaints.append(f"{entry} command: {complaint}")
    assert not complaints, "\n".join(complaints)


def test_the_runs_came_through_and_nothing_was_touched_or_left(matrix):
    assert not matrix[1], "\n".join(matrix[1])


def test_first_command_and_later_exec_meet_the_same_walls(verdicts):
    different = []
    for profile, user in itertools.product(PROFILES, USERS):
        first, later = verdicts[profile, user, "first"], verdicts[profile, user, "later"]
        assert set(first) == set(later) == set(ATTEMPTS)
        different += [f"{name} as {user} in {profile}: {catalogue.answer(first[name])} then "
                      f"{catalogue.answer(later[name])}" for name in first
                      if catalogue.answer(first[name]) != catalogue.answer(later[name])]
    assert not different, "\n".join(different)


def test_no_attempt_failed_to_be_made(verdicts):
    errors = [f"{key}: {verdict}" for key, run in verdicts.items() for verdict in run.values()
              if verdict["result"] in ("error", "skipped")]
    assert not errors, "\n".join(errors)
