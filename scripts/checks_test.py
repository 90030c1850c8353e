"""The checks can fail: each rule is broken once in a small tree, and must be named."""
import os
import pathlib
import subprocess
import sys

import pytest

SCRIPTS = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPTS))
import test as runner  # noqa: E402  (scripts/test.py)


class Tree:
    def __init__(self, root):
        self.root = root

    def write(self, name, text=""):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, script):
        run = subprocess.run([sys.executable, SCRIPTS / script, "--root", self.root],
                             capture_output=True, text=True)
        assert run.stderr == ""
        assert (run.returncode != 0) == bool(run.stdout)
        return run.stdout


@pytest.fixture
def tree(tmp_path):
    tree = Tree(tmp_path)
    for header in ("base/error.h", "sys/fd.h", "wire/frame.h", "net/http.h", "sandbox/spec.h",
                   "launcher/jail.h", "init/server.h", "providers/native/provider.h",
                   "providers/docker/provider.h", "sys/fake_fd.h", "tools/run.h", "agent/loop.h", "api/route.h"):
        tree.write(f"src/{header}")
    return tree


ALLOWED = [
    ("src/sys/fd.cc", '#include "sys/fd.h"\n#include <unistd.h>\n#include <linux/fs.h>\n#include <vector>\n'),
    ("src/launcher/main.cc", '#include "launcher/jail.h"\n#include "sys/fd.h"\n#include "wire/frame.h"\n'),
    ("src/providers/native/a.cc", '#include "sandbox/spec.h"\n#include <archive.h>\n#include <fmt/core.h>\n'),
    ("src/cli/main.cc", '#include "providers/native/provider.h"\n#include "api/route.h"\n'),
    ("src/providers/native/a_test.cc", '#include "launcher/jail.h"\n#include <gtest/gtest.h>\n'),
    ("src/init/test_client.h", "#include <gtest/gtest.h>\n"),
]
FORBIDDEN = [
    ("src/base/a.cc", '#include "sys/fd.h"', "base may not include sys"),
    ("src/sys/a.cc", '#include "sandbox/spec.h"', "sys may not include sandbox"),
    ("src/sandbox/a.cc", '#include "providers/native/provider.h"', "sandbox may not include providers/native"),
    ("src/providers/native/a.cc", '#include "providers/docker/provider.h"', "may not include providers/docker"),
    ("src/cli/a.cc", '#include "launcher/jail.h"', "launcher is a program of its own"),
    ("src/init/a.cc", '#include "launcher/jail.h"', "launcher is a program of its own"),
    ("src/tools/a.cc", '#include "agent/loop.h"', "tools may not include agent"),
    ("src/api/a.cc", '#include "providers/native/provider.h"', "api may not include providers/native"),
    ("src/sys/a_test.cc", '#include "sandbox/spec.h"', "sys may not include sandbox"),
    ("src/sys/a.cc", '#include "sys/fake_fd.h"', "is part of the tests"),
    ("src/misc/a.cc", "", "unknown folder misc"),
    ("src/a.cc", "", "unknown folder src"),
    ("src/sys/a.cc", '#include "fd.h"', "is not named by its path"),
    ("src/sys/a.cc", '#include "sys/gone.h"', "does not exist"),
    ("src/sys/a.cc", "#include <fmt/core.h>", "is third-party"),
    ("src/init/a.cc", "#include <boost/asio.hpp>", "is third-party"),
    ("src/wire/a.cc", "#  include <archive.h>", "is third-party"),
    ("src/launcher/a.cc", "#include <iostream>", "bloats the static helpers"),
    ("src/cli/a.cc", "#include <sqlite3.h>", "is not in cli's row"),
]


@pytest.mark.parametrize("name,text", ALLOWED)
def test_includes_that_point_down_are_fine(tree, name, text):
    tree.write(name, text)
    assert tree.run("check_layers.py") == ""


@pytest.mark.parametrize("name,text,complaint", FORBIDDEN)
def test_includes_that_break_the_order_are_named(tree, name, text, complaint):
    tree.write(name, f"// a comment\n{text}\n")
    found = tree.run("check_layers.py")
    assert complaint in found
    assert found.startswith(f"{name}:{1 if not text else 2}: ")


@pytest.fixture
def documented(tree):
    tree.write("Makefile", "build: ## build\n\ttrue\ntest-vm:\n")
    tree.write("docs/guide.md", "# A `guide`: first steps\n\n## Twice\n\n## Twice\n")
    tree.write("src/sys/fd_test.cc")
    return tree


GOOD_DOCS = [
    "`src/sys/fd.h` and `sys/fd.h` and `src/sys/` and `src/sys/fd.h:12`",
    "`src/sys/fd{.h,_test.cc}` and `src/**/fd*.h`",
    "`make build`, `make test-vm` and `sudo make build`",
    "```sh\nmake build && make test-vm  # make nothing\n```",
    "[guide](docs/guide.md#a-guide-first-steps) [again](docs/guide.md#twice-1) [web](https://x.y/z)",
    "`/etc/passwd`, `build/caisson`, `text/plain`, `and/or`, `docs/adr/NNNN-title.md`, `src/<layer>/x.h`",
    "we make sure of it",
]
BAD_DOCS = [
    ("see `src/sys/gone.h`", "`src/sys/gone.h` does not exist"),
    ("see `sys/gone.h`", "`sys/gone.h` does not exist"),
    ("see `elsewhere/gone.py`", "`elsewhere/gone.py` does not exist"),
    ("see `src/sys/fd{.h,.cc}`", "`src/sys/fd.cc` does not exist"),
    ("see `src/**/*.rs`", "does not exist"),
    ("see `tests/gone/`", "does not exist"),
    ("see `SECURITY.md`", "`SECURITY.md` does not exist"),
    ("run `make everything`", "`make everything` is not a verb"),
    ("```\nmake everything\n```", "`make everything` is not a verb"),
    ("[guide](docs/gone.md)", "docs/gone.md does not exist"),
    ("[guide](docs/guide.md#nowhere)", "no such heading"),
]


@pytest.mark.parametrize("text", GOOD_DOCS)
def test_documents_that_name_what_exists_are_fine(documented, text):
    documented.write("README.md", text + "\n")
    assert documented.run("check_docs.py") == ""


@pytest.mark.parametrize("text,complaint", BAD_DOCS)
def test_documents_that_name_what_does_not_exist_are_named(documented, text, complaint):
    documented.write("README.md", f"# Title\n{text}\n")
    found = documented.run("check_docs.py")
    assert complaint in found
    assert found.startswith("README.md:")


def test_long_functions_are_reported_and_fail_nothing(tree):
    body = "  work();\n" * 70
    tree.write("src/sys/long.cc", f"int Short() {{\n  work();\n}}\n\nint Long(int a) {{\n{body}}}\n")
    run = subprocess.run([sys.executable, SCRIPTS / "check_size.py", "--root", tree.root],
                         capture_output=True, text=True)
    assert run.returncode == 0
    assert run.stdout == "src/sys/long.cc:5: a function of 72 lines; is it two things?\n"


def test_unformatted_sources_are_named(tmp_path):
    (tmp_path / ".clang-format").write_text((SCRIPTS.parent / ".clang-format").read_text())
    bad, good = tmp_path / "bad.cc", tmp_path / "good.cc"
    bad.write_text("int  main( ){return 0;}\n")
    good.write_text("int main() { return 0; }\n")
    run = subprocess.run([SCRIPTS / "check_format.sh", bad, good], capture_output=True, text=True)
    assert run.returncode == 1
    assert f"{bad}:1: not formatted" in run.stdout and str(good) not in run.stdout
    assert subprocess.run([SCRIPTS / "check_format.sh", good]).returncode == 0


def report(tmp_path, text):
    path = tmp_path / "report.xml"
    path.write_text(text)
    return path


CASES = """<testsuites><testsuite name="s">
<testcase name="a" status="run" result="completed"/>
<testcase name="b" classname="B"><failure message="m">text</failure></testcase>
<testcase name="c"><skipped message="why"/></testcase>
<testcase name="d" status="notrun" result="suppressed"/>
<testcase name="e"><error message="setup broke"/></testcase>
</testsuite></testsuites>"""


def test_reports_are_counted_case_by_case(tmp_path):
    outcome = runner.judge(1, report(tmp_path, CASES), tmp_path / "log")
    assert (outcome.passed, outcome.failed, outcome.skipped) == (1, 2, 2)
    assert outcome.failures == [("B.b", "text"), ("e", "setup broke")]


GREEN = '<testsuites><testsuite><testcase name="a"/></testsuite></testsuites>'


@pytest.mark.parametrize("status,text,failed", [
    (0, GREEN, 0),
    (1, GREEN, 1),                      # a leak found at exit, say
    (-int(runner.signal.SIGSEGV), "", 1),  # no report: it crashed
    (None, GREEN, 1),                   # out of time
    (99, "<broken", 1),
])
def test_suites_that_end_badly_count_as_failed(tmp_path, status, text, failed):
    assert runner.judge(status, report(tmp_path, text), tmp_path / "log").failed == failed


def test_a_suite_that_hangs_is_stopped_with_all_its_children(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "PATIENCE", 0.2)
    marker = tmp_path / "pid"
    command = ["bash", "-c", f"trap '' INT; sleep 1000 & echo $! > {marker}; wait; wait"]
    started = runner.time.monotonic()
    assert runner.run_bounded(command, tmp_path / "log", 0.5, dict(os.environ)) is None
    assert runner.time.monotonic() - started < 10
    child = int(marker.read_text())
    for _ in range(50):
        state = pathlib.Path(f"/proc/{child}/stat")
        if not state.exists() or state.read_text().split(")")[1].split()[0] == "Z":
            return
        runner.time.sleep(0.1)
    pytest.fail("the grandchild is still alive")
