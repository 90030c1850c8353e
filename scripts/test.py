#!/usr/bin/env python3
"""Builds and runs every test suite, and sums them up.

    test.py [--only NAME,...] [--skip NAME,...] [--list]

Each suite runs in its own process group with a time limit, writes build/reports/NAME.{xml,log}, and
gets a line in the table. A suite that cannot run here is named with the reason. The last line is
`N passed, N failed`; the exit status is 1 if anything failed. A name stands for every suite that
starts with it: `--only asan` is asan-unit and asan-functional.

The Python suites find the binaries under test in the folder that CAISSON_BUILD names.
"""
import argparse
import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
REPORTS = ROOT / "build" / "reports"
PYTHON = "/usr/bin/python3"
FUZZ_SECONDS = 5
PATIENCE = 20  # seconds that an interrupted suite has to clean up


@dataclasses.dataclass
class Suite:
    name: str
    command: list
    preset: str = "release"   # what is built before
    targets: tuple = ()       # of that preset; none: all
    minutes: int = 10         # time limit
    root: str = ""            # why it needs root; empty: it does not
    by_default: bool = True
    needs: str = ""           # a glob below the project that must match something
    build_minutes: int = 60


@dataclasses.dataclass
class Outcome:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    note: str = ""
    failures: list = dataclasses.field(default_factory=list)  # (name, text)


def gtest(name, folder, preset, **more):
    return Suite(name, [f"{folder}/unit_tests", "--gtest_brief=1",
                        f"--gtest_output=xml:{REPORTS}/{name}.xml"], preset=preset, **more)


def files(*patterns):
    return [str(path) for pattern in patterns for path in sorted(ROOT.glob(pattern))]


def pytest(name, *paths, **more):
    return Suite(name, [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short",
                        f"--junitxml={REPORTS}/{name}.xml", *paths], **more)


SUITES = [
    gtest("unit", "build", "release", needs="src/**/*_test.cc"),
    Suite("check", [PYTHON, "scripts/check.py", "--junit", f"{REPORTS}/check.xml"], minutes=30),
    pytest("tools", *files("scripts/*_test.py", "bench/*_test.py"), preset=""),
    pytest("harness", "tests/harness", needs="tests/harness/test_*.py"),
    pytest("functional", "tests/functional", minutes=20, needs="tests/functional/test_*.py"),
    pytest("security", "tests/security", minutes=40, needs="tests/security/test_*.py",
           root="it checks what the privileged jail is made of"),
    pytest("reliability", "tests/reliability", minutes=30, needs="tests/reliability/test_*.py",
           root="it kills the privileged launcher at every stage"),
    gtest("asan-unit", "build/asan", "asan", targets=("unit_tests",), minutes=30,
          needs="src/**/*_test.cc"),
    pytest("asan-functional", "tests/functional", preset="asan",
           targets=("caisson", "driver", "probe"),
           minutes=40, needs="tests/functional/test_*.py"),
    gtest("tsan-unit", "build/tsan", "tsan", targets=("unit_tests",), by_default=False,
          needs="src/**/*_test.cc"),
    pytest("tsan-server", *files("tests/functional/test_server*.py"), preset="tsan",
           targets=("caisson", "driver"), minutes=40, by_default=False),
    Suite("fuzz", [PYTHON, "scripts/fuzz.py", "--seconds", str(FUZZ_SECONDS), "--junit",
                   f"{REPORTS}/fuzz.xml"], preset="", minutes=60, needs="fuzz/*_fuzz.cc"),
]


def environment(suite):
    env = dict(os.environ)
    folder = "build" if suite.preset in ("", "release") else f"build/{suite.preset}"
    symbolizer = "/usr/bin/llvm-symbolizer-19"
    env.update({
        "CAISSON_BUILD": str(ROOT / folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "ASAN_SYMBOLIZER_PATH": symbolizer,
        "ASAN_OPTIONS": env.get("ASAN_OPTIONS", "detect_stack_use_after_return=1"),
        "UBSAN_OPTIONS": f"print_stacktrace=1:external_symbolizer_path={symbolizer}",
        "TSAN_OPTIONS": f"halt_on_error=1:external_symbolizer_path={symbolizer}",
    })
    return env


def run_bounded(command, log, seconds, env):
    """Runs a command with its output in `log`; gives its status, or None when it ran out of time.

    The command leads a process group, which is interrupted first and killed if that does not help.
    """
    with open(log, "ab") as output:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            return process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            stop(process)
            return None
        except BaseException:
            stop(process)
            raise


def stop(process):
    for number, patience in ((signal.SIGINT, PATIENCE), (signal.SIGKILL, 10)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        try:
            process.wait(timeout=patience)  # its children may outlive it: the kill comes regardless
        except subprocess.TimeoutExpired:
            pass


def read_report(path):
    """Counts the test cases of a JUnit or GoogleTest report."""
    outcome = Outcome()
    for case in ElementTree.parse(path).iter("testcase"):
        bad = case.find("failure")
        bad = case.find("error") if bad is None else bad
        if bad is not None:
            outcome.failed += 1
            name = ".".join(filter(None, [case.get("classname"), case.get("name")]))
            outcome.failures.append((name, (bad.text or bad.get("message") or "").strip()))
        elif case.find("skipped") is not None or case.get("status") == "notrun":
            outcome.skipped += 1
        else:
            outcome.passed += 1
    return outcome


def tail(path, lines=30):
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""


def judge(status, report, log):
    """The outcome of a suite that ended with `status` (None: out of time)."""
    try:
        outcome = read_report(report)
    except (OSError, ElementTree.ParseError):
        outcome = Outcome()
    if status is None:
        complaint = "ran out of time"
    elif status == 0 or (status == 1 and outcome.failed):
        return outcome
    elif status < 0:
        complaint = f"was ended by {signal.Signals(-status).name}"
    else:
        complaint = f"ended with status {status}"
    outcome.failed += 1
    outcome.failures.append(("the suite itself", f"{complaint}\n{tail(log)}"))
    return outcome


def why_not(suite):
    """Why a suite cannot run here; empty when it can."""
    if suite.needs and not any(ROOT.glob(suite.needs)):
        return f"there is no {suite.needs}"
    if suite.root and os.geteuid() != 0:
        return f"needs root: {suite.root}"
    return ""


def build(suite, built, env):
    """Builds what the suite needs, once; gives what went wrong or an empty text."""
    key = (suite.preset, suite.targets)
    if not suite.preset:
        return ""
    if key not in built:
        log = REPORTS / f"build-{suite.preset}.log"
        log.unlink(missing_ok=True)
        status = run_bounded(["scripts/build.sh", suite.preset, *suite.targets], log,
                             suite.build_minutes * 60, env)
        built[key] = "" if status == 0 else f"the {suite.preset} build failed\n{tail(log)}"
    return built[key]


def run_suite(suite, built):
    started = time.monotonic()
    env = environment(suite)
    report, log = REPORTS / f"{suite.name}.xml", REPORTS / f"{suite.name}.log"
    for stale in (report, log):
        stale.unlink(missing_ok=True)
    problem = build(suite, built, env)
    if problem:
        outcome = Outcome(failed=1, failures=[("build", problem)])
    else:
        status = run_bounded(suite.command, log, suite.minutes * 60, env)
        outcome = judge(status, report, log)
        if status == 0 and not (outcome.passed or outcome.skipped):
            outcome.failed += 1
            outcome.failures.append(("the suite itself", "it ran no test"))
    outcome.seconds = time.monotonic() - started
    return outcome


def choose(only, skip):
    def named(suite, names):
        return any(suite.name == name or suite.name.startswith(name + "-") for name in names)
    chosen = [s for s in SUITES if (named(s, only) if only else s.by_default)]
    return [s for s in chosen if not named(s, skip)]


def show(name, outcome):
    print(f"{name:<16} {outcome.passed:>7} {outcome.failed:>7} {outcome.skipped:>8} "
          f"{outcome.seconds:>8.1f} s  {outcome.note}".rstrip(), flush=True)


def show_failures(outcomes, most=20, lines=25):
    failures = [(name, *failure) for name, outcome in outcomes for failure in outcome.failures]
    for suite, test, text in failures[:most]:
        print(f"\n{suite}: {test}")
        shown = text.splitlines()
        for line in shown[:lines]:
            print(f"    {line}")
        if len(shown) > lines:
            print(f"    … (all of it in build/reports/{suite}.log)")
    if len(failures) > most:
        print(f"\n… and {len(failures) - most} more (see build/reports)")


def main():
    parser = argparse.ArgumentParser(description="Build and run every test suite.")
    parser.add_argument("--only", default="", help="comma-separated suites to run")
    parser.add_argument("--skip", default="", help="comma-separated suites to leave out")
    parser.add_argument("--list", action="store_true", help="name the suites and end")
    args = parser.parse_args()
    if args.list:
        for suite in SUITES:
            print(suite.name if suite.by_default else f"{suite.name} (only when named)")
        return 0
    only, skip = ([name for name in text.split(",") if name] for text in (args.only, args.skip))
    suites = choose(only, skip)
    for name in only + skip:
        if not choose([name], []):
            parser.error(f"no suite {name}; there are {', '.join(s.name for s in SUITES)}")
    REPORTS.mkdir(parents=True, exist_ok=True)
    print(f"{'suite':<16} {'passed':>7} {'failed':>7} {'skipped':>8} {'time':>10}", flush=True)
    outcomes, built = [], {}
    for suite in suites:
        reason = why_not(suite)
        outcome = Outcome(note=f"not run: {reason}") if reason else run_suite(suite, built)
        show(suite.name, outcome)
        outcomes.append((suite.name, outcome))
    show_failures(outcomes)
    passed = sum(outcome.passed for _, outcome in outcomes)
    failed = sum(outcome.failed for _, outcome in outcomes)
    not_run = [name for name, outcome in outcomes if outcome.note]
    skipped = sum(outcome.skipped for _, outcome in outcomes)
    print()
    if skipped:
        print(f"{skipped} tests skipped themselves (reasons in build/reports)")
    if not_run:
        print(f"suites not run: {', '.join(not_run)}")
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
