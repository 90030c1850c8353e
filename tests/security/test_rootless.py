"""The same walls for an ordinary user: a launcher without any power over the host.

The namespaces then belong to the sandbox's own user namespace, so that a capability inside counts for more; what is
weaker is said here attempt by attempt, and nothing else may be."""

import os
import pathlib
import shutil
import tempfile

import pytest

from harness import catalogue, covers, paths, residue
from harness.cli import Cli
from harness.driver import Driver, Refused
from harness.paths import require

ATTEMPTS = catalogue.attempts()
USER = 12347  # nobody's: no passwd entry, no subordinate ids
BECOME = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]

# What an ordinary user's sandbox answers otherwise than root's.
WEAKER = {
    "A14.own": {"EPERM"}, "A15": {"EPERM"}, "A17": {"EINVAL"}, "A18": {"EPERM"},  # there is one id, and no other to become
    "A23": {"open"},       # seen from inside the map is 0 to 0; test_uid_0_inside_is_the_user_outside looks from outside
    "C08.fd": {"open"},    # init's program is the user's own file; the numbers can be listed, their targets not read
    "C10.start": {"open"},  # an ordinary user cannot raise the score of a process that is not dumpable
    "G05.chmod": {"EPERM"}, "G05.chown": {"EPERM"}, "G05.xattr": {"EPERM"},  # the host's own nodes, bound
}

pytestmark = [
    pytest.mark.judges_only,
    pytest.mark.skipif(not paths.IS_ROOT, reason="becomes another user"),
    pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv (util-linux)"),
    pytest.mark.skipif(pathlib.Path("/proc/sys/user/max_user_namespaces").read_text().strip() == "0",
                       reason="this host gives ordinary users no user namespaces"),
]


@pytest.fixture(scope="module")
def place():
    """The programs and a CAISSON_HOME where the user can reach them."""
    top = pathlib.Path(tempfile.mkdtemp(prefix="caisson-rootless-"))
    os.chmod(top, 0o755)
    for program in (paths.DRIVER, paths.CAISSON, paths.PROBE):
        shutil.copy(require(program), top / program.name)
        os.chmod(top / program.name, 0o755)
    (top / "home").mkdir()
    os.chown(top / "home", USER, USER)
    before = residue.snapshot(home=top / "home")
    yield top
    residue.assert_clean(before, home=top / "home")
    shutil.rmtree(top)


@pytest.fixture
def driver(place):
    with Driver(place / "driver", home=place / "home", prefix=BECOME) as running:
        yield running


def mount(place):
    return {"source": str(place / "probe"), "target": "/mnt/probe", "mode": "ro"}


@pytest.mark.parametrize("profile", ["default", "strict"])
def test_the_walls_stand_without_root(driver, place, profile):
    with driver.create(profile=profile, user="0", mounts=[mount(place)]) as box:
        assert box.created["isolation"]["mode"] == "rootless"
        verdicts = catalogue.run_all(box, "/mnt/probe", "0")
    complaints = []
    for name, row in ATTEMPTS.items():
        complaint = catalogue.complaint(row, verdicts.get(name), profile, "0")
        if complaint and catalogue.answer(verdicts[name]) not in WEAKER.get(name, ()):
            complaints.append(complaint)
    assert not complaints, "\n".join(complaints)


def test_uid_0_inside_is_the_user_outside(driver):
    with driver.create() as box:
        sleeper = box.start("/bin/sleep", "30")
        uids = {pid: _uids(pid) for pid in residue.descendants(driver.pid)}
        assert len(uids) >= 3 and all(found == {str(USER)} for found in uids.values() if found), uids
        sleeper.signal(9)


def _uids(pid):
    try:
        with open(f"/proc/{pid}/status", encoding="latin-1") as status:
            return next(set(line.split()[1:]) for line in status if line.startswith("Uid:"))
    except OSError:
        return None


def test_the_covers_of_proc_cannot_be_written(driver):
    with driver.create() as box:
        found = covers.tried(box)
    assert len(found["cover"]) > 5 and found["writable"] == []


def test_every_limit_is_enforced_or_refused_with_a_reason(driver):
    with driver.create() as box:
        for limit in box.created["limits"]:
            assert limit["by"] if limit["enforced"] else limit["reason"], limit


def test_a_limit_that_was_asked_for_and_cannot_be_had_is_refused(driver):
    try:
        with driver.create(memory=64 << 20) as box:
            assert box.limit("memory")["enforced"], "asked for, not enforced, and not refused"
    except Refused as refusal:
        assert refusal.code == "limit_refused" and "memory" in refusal.message and refusal.remedy, refusal


def test_another_user_than_ones_own_needs_subordinate_ids(driver):
    with pytest.raises(Refused) as caught:
        driver.create(profile="strict", user="1000")
    assert caught.value.remedy and "subuid" in caught.value.remedy, caught.value


def test_the_command_line_works_for_an_ordinary_user(place):
    class Plain(Cli):
        def run(self, *arguments, **options):
            self_binary, self.binary = self.binary, BECOME[0]
            try:
                return super().run(*BECOME[1:], self_binary, *arguments, **options)
            finally:
                self.binary = self_binary

    cli = Plain(place / "home", place / "caisson")
    result = cli.run("exec", "--", "/bin/sh", "-c", "id -u; echo hello > /workspace/x && cat /workspace/x; exit 5")
    assert (result.returncode, result.stdout) == (5, "0\nhello\n"), result
    assert cli.run("exec", "--timeout", "300ms", "--", "/bin/sleep", "20").returncode == 124
    assert "$" not in cli.run("exec", "--", "/bin/cat", "/etc/shadow").stdout  # no password of the host's
    refused = cli.run("exec", "--min-isolation", "namespaces", "--", "/bin/true")
    assert refused.returncode == 125 and "namespaces-rootless" in refused.stderr, refused


@pytest.mark.parametrize("profile", ["default", "strict"])
def test_the_process_limit_is_a_wall_without_a_cgroup_too(driver, place, profile):
    """RLIMIT_NPROC counts the one user of one sandbox: a neighbour is not touched."""
    with driver.create(pids=40, profile=profile, mounts=[mount(place)]) as box, driver.create(pids=40) as neighbour:
        assert box.limit("pids")["enforced"] and box.limit("pids")["value"] == 40, box.limit("pids")
        neighbour.exec("/bin/sh", "-c", "for i in $(seq 30); do sleep 60 >/dev/null 2>&1 & done").ok()
        verdict = box.exec("/mnt/probe", "I01").json()
        assert verdict["errno"] == "EAGAIN" and 20 < int(verdict["detail"].split()[0]) < 40, verdict
        neighbour.exec("/bin/true").ok()
