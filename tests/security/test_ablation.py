"""The mutation test of the jail: with one layer left out, named attempts must succeed.

A suite that stays green without a layer does not test it. The hooks build leaves layers out on
request; the shipped programs cannot. OPENS says, per set of layers left out, which attempts open for which
user (or get another answer than the wall's, where a second layer still holds)."""

import pytest

from harness import catalogue, paths
from harness.driver import Driver
from harness.paths import require

ATTEMPTS = catalogue.attempts()

SECCOMP_OPENS = ("A19.filter", "B10", "E02", "E03", "E04.call", "E05.keyctl", "E05.add", "E05.request",
                 "E10.ldt", "E12", "E14.getpid", "E14.socket", "E16", "E17.exec", "E17.limit", "E17.zero",
                 "E22.kcmp", "E22.mbind", "F10", "F11.filtered", "F12", "G07", "G08.high", "G08.bit32", "G09.ldisc")

# (layers left out, profile, user): attempts that open
OPENS = {
    ("seccomp", "default", "1000"): SECCOMP_OPENS,
    ("seccomp", "strict", "0"): SECCOMP_OPENS + ("E18", "E21", "E25.splice", "E25.vmsplice", "E25.memfd",
                                                 "E25.mincore"),
    ("seccomp,namespaces_limit", "default", "1000"): ("A01", "A02", "A03", "A05.user_mnt", "A05.user_net",
                                                      "A06.all"),
    ("landlock", "default", "0"): ("E29",),
    ("userns", "strict", "0"): ("A23", "A10.userns"),
    ("capabilities", "strict", "0"): ("A12.more",),
    ("capabilities", "default", "0"): ("A12.more", "A13.capset", "A20.securebits"),
    ("masks", "default", "0"): ("C05.kallsyms", "C05.zoneinfo", "C05.interrupts", "C05.softirqs",
                                "C05.iomem", "C06.irq", "C06.fs", "C07", "C19.thread", "C19.root"),
    ("readonly_dev", "default", "0"): ("G05.touch", "G05.create"),
    # Without it the kernel takes neither filter nor ruleset from us, so all three go.
    ("seccomp,landlock,no_new_privs", "default", "0"): ("A19.own", "A19.all"),
    ("cgroup", "default", "0"): ("I01", "I02"),
    # Init's program becomes readable; its own refusal to be dumped stays, see below.
    ("dumpable", "default", "0"): ("C08.fd",),
}

# (layers left out, profile, user): {attempt: the answer of the layer behind}
SECOND_WALLS = {
    # A04: nested namespaces stay impossible without the filter's help.
    ("seccomp", "default", "1000"): {"A01": {"ENOSPC"}, "A02": {"ENOSPC"}, "A03": {"ENOSPC"},
                                     "A05.user_net": {"ENOSPC"}, "A06.all": {"ENOSPC"}},
    ("seccomp", "default", "0"): {"A01": {"ENOSPC"}, "B01.tmpfs": {"EPERM"}, "B05.fsopen": {"EPERM"},
                                  "A09": {"EPERM"}, "F06.raw": {"EPERM"}, "F13.link": {"EPERM"},
                                  "F13.qdisc": {"EPERM"}, "G01.disk": {"EPERM"}},
    # The namespaces belong to the initial user namespace: every capability inside opens none of them.
    ("seccomp,capabilities", "default", "0"): {
        "B01.tmpfs": {"EPERM"}, "B01.bind": {"EPERM"}, "B02.v1": {"EPERM"}, "B05.open_tree": {"EPERM"},
        "A09": {"EPERM"}, "F06.raw": {"EPERM"}, "F13.link": {"EPERM"}, "F13.qdisc": {"EPERM"},
        "F13.address": {"EPERM"}, "G01.disk": {"EPERM"}, "G01.mem": {"EPERM"}, "E27.host": {"EPERM"}},
    ("readonly_dev", "default", "0"): {"G05.chmod": {"EPERM"}, "G05.chown": {"EPERM"}},
    ("dumpable", "default", "0"): {"A21.ptrace": {"EPERM"}, "A21.memory": {"EPERM"}, "C08.mem": {"EACCES"},
                                   "C08.maps": {"EACCES"}, "C08.root": {"EACCES"}, "C08.ns": {"EACCES"}},
}

pytestmark = pytest.mark.judges_only


@pytest.fixture(scope="module")
def runs(home, probe_mount):
    """Verdicts by (layers, profile, user), each made when first asked for."""
    made = {}

    def run(key):
        if key not in made:
            layers, profile, user = key
            with Driver(require(paths.DRIVER_HOOKS), home=home, env={"CAISSON_ABLATE": layers}) as driver:
                with driver.create(profile=profile, user=user, mounts=[probe_mount], pids=256) as sandbox:
                    made[key] = catalogue.run_all(sandbox, probe_mount["target"] + "/probe", user)
        return made[key]

    return run


def _id(key):
    return "without-" + "-".join(key)


@pytest.mark.parametrize("key", OPENS, ids=_id)
def test_attempts_open_without_their_layer(key, runs):
    verdicts = runs(key)
    closed = [f"{name}: {catalogue.answer(verdicts[name])} {verdicts[name]['detail']}"
              for name in OPENS[key] if catalogue.answer(verdicts[name]) != "open"]
    assert not closed, f"without {key[0]} these stay closed, so nothing tests that layer:\n" + "\n".join(closed)


@pytest.mark.parametrize("key", OPENS, ids=_id)
def test_the_suite_goes_red_without_the_layer(key, runs):
    _, profile, user = key
    red = [name for name, row in ATTEMPTS.items() if catalogue.complaint(row, runs(key)[name], profile, user)]
    assert set(OPENS[key]) <= set(red)


@pytest.mark.parametrize("key", SECOND_WALLS, ids=_id)
def test_a_second_wall_stands_behind(key, runs):
    verdicts = runs(key)
    fallen = [f"{name}: {verdicts[name]}" for name, answers in SECOND_WALLS[key].items()
              if catalogue.answer(verdicts[name]) not in answers]
    assert not fallen, "\n".join(fallen)


def test_the_shipped_engine_ignores_the_switches(home, probe_mount):
    with Driver(require(paths.DRIVER), home=home,
                env={"CAISSON_ABLATE": "seccomp,masks,userns", "CAISSON_CRASH_AT": "1"}) as driver:
        with driver.create(mounts=[probe_mount]) as sandbox:
            program = probe_mount["target"] + "/probe"
            for name in ("A19.filter", "A23", "C07", "F10"):
                verdict = sandbox.exec(program, name).json()
                assert not catalogue.complaint(ATTEMPTS[name], verdict, "default", "0")
