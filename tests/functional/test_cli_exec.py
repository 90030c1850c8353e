"""`caisson exec -- command`: what it passes on, what it reports, what it refuses."""

import hashlib
import json
import os
import re
import signal
import subprocess
import time

import pytest

from harness.cli import Terminal


# Says when it is there, and sleeps by itself: a shell that is just forking its `sleep` when the signal comes catches
# it, the child does not have it yet, and the shell goes on waiting. It does so on any terminal.
SLEEPER = ("python3", "-c", "import signal, time; signal.signal(signal.SIGINT, signal.SIG_DFL); print('ready', flush=True); time.sleep(60)")


def sh(script):
    return ["--", "/bin/sh", "-c", script]


# --- exit codes ----------------------------------------------------------------------------------

@pytest.mark.parametrize("code", [0, 1, 2, 42, 123, 255])
def test_the_commands_exit_code_is_passed_on(cli, code):
    assert cli.exec(*sh(f"exit {code}")).returncode == code


def test_a_signal_becomes_128_plus_its_number(cli):
    assert cli.exec(*sh("kill -TERM $$")).returncode == 128 + 15
    assert cli.exec(*sh("kill -KILL $$")).returncode == 128 + 9


def test_a_timeout_is_124_and_ends_the_whole_tree(cli):
    begin = time.monotonic()
    result = cli.exec("--timeout", "500ms", *sh("(setsid sleep 100 &) ; sleep 100"))
    assert result.returncode == 124, result
    assert time.monotonic() - begin < 8


def test_a_command_that_is_not_there_is_127(cli):
    result = cli.exec("--", "/no/such/program")
    assert result.returncode == 127 and "/no/such/program" in result.stderr, result


def test_a_command_not_on_the_path_is_127(cli):
    result = cli.exec("--", "no-such-program-anywhere")
    assert result.returncode == 127 and "no-such-program-anywhere" in result.stderr, result


def test_a_file_that_is_not_executable_is_126(cli):
    result = cli.exec("--", "/etc/passwd")
    assert result.returncode == 126 and "/etc/passwd" in result.stderr, result


def test_a_directory_as_command_is_126(cli):
    assert cli.exec("--", "/tmp").returncode == 126


def test_a_command_is_looked_up_on_the_path(cli):
    assert cli.exec("--", "true").returncode == 0


# --- streams -------------------------------------------------------------------------------------

def test_stdin_stdout_and_stderr_are_byte_exact(cli):
    data = os.urandom(1 << 20) + bytes(range(256)) + b"no newline at the end"
    result = cli.exec("--", "/bin/cat", stdin=data, text=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, data, b"")
    result = cli.exec("--", "/bin/sh", "-c", "cat >&2", stdin=data, text=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", data)


def test_stdout_and_stderr_stay_apart(cli):
    result = cli.exec(*sh("echo out; echo err >&2; exit 3"))
    assert (result.returncode, result.stdout, result.stderr) == (3, "out\n", "err\n")


def test_a_large_output_comes_whole(cli):
    result = cli.exec(*sh("head -c 20000000 /dev/zero"), text=False)
    assert result.returncode == 0
    assert hashlib.sha256(result.stdout).digest() == hashlib.sha256(bytes(20_000_000)).digest()


def test_a_closed_stdin_is_an_end_of_file(cli):
    assert cli.exec("--", "/bin/cat", stdin=b"").stdout == ""
    process = cli.popen("exec", "--", "/bin/cat", stdin=None, stdout=subprocess.PIPE, close_fds=True,
                        preexec_fn=lambda: os.close(0))
    try:
        assert process.communicate(timeout=30)[0] == b"" and process.returncode == 0
    finally:
        process.kill()


def test_a_stdout_or_stderr_that_is_closed_from_the_start_gets_nothing_of_ours(cli):
    """What is opened first must not become descriptor 1 or 2 and be written to."""
    for script, closed in (("echo lost", 1), ("echo lost >&2", 2), ("echo lost; echo lost >&2", (0, 1, 2))):
        closed = closed if isinstance(closed, tuple) else (closed,)
        process = cli.popen("exec", "--timeout", "20s", *sh(script), stdin=subprocess.DEVNULL,
                            preexec_fn=lambda: [os.close(fd) for fd in closed])
        assert process.wait(timeout=30) in ((0,) if closed == (2,) else (0, 137, 141)), (script, closed)


def test_a_closed_stdout_ends_the_command(cli):
    process = cli.popen("exec", "--timeout", "20s", "--", "/usr/bin/yes", stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    process.stdout.read(100)
    process.stdout.close()
    begin = time.monotonic()
    assert process.wait(timeout=20) != 0
    assert time.monotonic() - begin < 15


def test_a_slow_reader_loses_nothing(cli):
    process = cli.popen("exec", *sh("seq 200000"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    time.sleep(0.7)
    data = process.stdout.read()
    process.stdout.close()
    assert process.wait(timeout=20) == 0
    assert data == b"".join(b"%d\n" % n for n in range(1, 200001))


# --- options -------------------------------------------------------------------------------------

def test_env_is_given_and_the_callers_is_not(cli):
    result = cli.exec("--env", "A=1", "--env", "B=two words", "--env", "C=x=y", "--env", "E=", "--",
                      "/usr/bin/env", env={"SECRET_OF_CALLER": "s"})
    lines = result.stdout.splitlines()
    assert {"A=1", "B=two words", "C=x=y", "E="} <= set(lines)
    assert "SECRET" not in result.stdout


def test_cwd(cli):
    assert cli.exec("--cwd", "/usr", "--", "/bin/pwd").stdout == "/usr\n"


def test_a_mount_is_writable_unless_ro(cli, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    os.chmod(shared, 0o777)
    (shared / "in").write_text("from the host\n")
    result = cli.exec("--mount", f"{shared}:/mnt/rw", "--mount", f"{shared}:/mnt/ro:ro", "--",
                      "/bin/sh", "-c", "cat /mnt/ro/in && echo x > /mnt/rw/out && ! echo y > /mnt/ro/no")
    assert result.returncode == 0, result
    assert result.stdout == "from the host\n"
    assert (shared / "out").read_text() == "x\n" and not (shared / "no").exists()


def test_a_mounted_file(cli, tmp_path):
    source = tmp_path / "file"
    source.write_text("one file")
    assert cli.exec("--mount", f"{source}:/mnt/file:ro", "--", "/bin/cat", "/mnt/file").stdout == "one file"


def test_the_user_can_be_a_number_or_a_name(cli):
    assert cli.exec("--user", "1000", "--", "/usr/bin/id", "-u").stdout == "1000\n"
    assert cli.exec("--user", "root", "--", "/usr/bin/id", "-u").stdout == "0\n"
    assert cli.exec("--user", "nobody", "--", "/usr/bin/id", "-u").stdout == "65534\n"


def test_the_memory_limit_is_a_wall_and_is_named(cli):
    result = cli.exec("--memory", "64M", "--stats", "--", "/usr/bin/python3", "-c", "x = b'x' * (1 << 30)")
    assert result.returncode == 137, result
    assert "out_of_memory" in result.stderr or "out of memory" in result.stderr.lower(), result.stderr


def test_the_process_limit_is_a_wall(cli):
    result = cli.exec("--pids", "16", *sh("for i in $(seq 64); do sleep 3 & done; wait"))
    assert result.returncode != 0 or "fork" in result.stderr.lower(), result


def test_the_disk_limit_is_a_wall(cli):
    result = cli.exec("--disk", "16M", "--memory", "256M", *sh("head -c 64M /dev/zero > /workspace/x"))
    assert result.returncode != 0 and "space" in result.stderr.lower(), result


def test_the_cpu_limit_slows_a_burner_down(cli):
    script = "import time; e=time.monotonic()+2\nwhile time.monotonic()<e: pass\nprint(time.process_time())"
    used = float(cli.exec("--cpus", "0.25", "--", "/usr/bin/python3", "-c", script).stdout)
    assert used < 1.0


def test_the_strict_profile_has_a_read_only_root(cli):
    result = cli.exec("--profile", "strict", *sh("touch /tmp/a /workspace/b && ! touch /usr/c && ! touch /etc/c 2>&1"))
    assert result.returncode == 0, result


def test_the_default_profile_can_add_a_user(cli):
    result = cli.exec("--user", "root", *sh("useradd -m alice && su alice -c 'id -un'"))
    assert result.returncode == 0 and result.stdout == "alice\n", result


def test_another_root(cli, tmp_path, probe_directory):
    root = tmp_path / "root"
    (root / "bin").mkdir(parents=True)
    (root / "bin/probe").write_bytes((probe_directory / "probe").read_bytes())
    os.chmod(root / "bin/probe", 0o755)
    os.chmod(tmp_path, 0o755)
    assert cli.exec("--rootfs", root, "--", "/bin/probe", "exit", "7").returncode == 7


def test_a_tar_as_root(cli, tmp_path, probe_directory):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/probe").write_bytes((probe_directory / "probe").read_bytes())
    os.chmod(tmp_path / "bin/probe", 0o755)
    archive = tmp_path / "root.tar.gz"
    subprocess.run(["tar", "-C", tmp_path, "-czf", archive, "bin"], check=True)
    assert cli.exec("--rootfs", archive, "--", "/bin/probe", "exit", "7").returncode == 7


def test_stats_tell_outcome_and_usage_on_stderr(cli):
    result = cli.exec("--stats", *sh("echo out; exit 4"))
    assert (result.returncode, result.stdout) == (4, "out\n")
    for word in ("exited", "cpu", "memory"):
        assert word in result.stderr.lower(), result.stderr


def test_json_is_one_object_with_the_outcome(cli):
    result = cli.exec("--json", *sh("echo out; echo err >&2; exit 4"))
    assert result.returncode == 4
    answer = json.loads(result.stdout)
    assert answer["exit_code"] == 4 and answer["outcome"]["status"] == "exited"
    assert (answer["stdout"], answer["stderr"]) == ("out\n", "err\n")
    assert answer["usage"] and answer["isolation"] and answer["limits"]


def test_json_names_a_timeout(cli):
    result = cli.exec("--json", "--timeout", "300ms", "--", "/bin/sleep", "50")
    assert result.returncode == 124
    answer = json.loads(result.stdout)
    assert answer["outcome"]["status"] == "timeout" and answer["outcome"]["reason"]


def test_json_reports_each_limit_as_enforced_or_why_not(cli):
    answer = json.loads(cli.exec("--json", "--", "/bin/true").stdout)
    for limit in answer["limits"]:
        assert limit["name"]
        assert limit["by"] if limit["enforced"] else limit["reason"], limit


def test_options_after_the_command_belong_to_the_command(cli):
    assert cli.exec("--", "/bin/echo", "--timeout", "1s", "--", "-x").stdout == "--timeout 1s -- -x\n"


@pytest.mark.parametrize("program, script, wanted", [
    ("/usr/bin/python3", "print(6 * 7)", "42\n"),
    ("/usr/bin/perl", "print 6 * 7, qq(\\n)", "42\n"),
    ("/bin/bash", "echo $((6 * 7))", "42\n"),
    ("/usr/bin/node", "console.log(6 * 7)", "42\n"),
])
def test_the_hosts_languages_work_inside(cli, program, script, wanted):
    if not os.path.exists(program):
        pytest.skip(f"the host has no {program}")
    flag = {"/usr/bin/node": "-e", "/usr/bin/perl": "-e"}.get(program, "-c")
    result = cli.exec("--", program, flag, script)
    assert (result.returncode, result.stdout) == (0, wanted), result


def test_secrets_of_the_host_are_invisible(cli):
    result = cli.exec("--user", "root", *sh("cat /etc/shadow; ls -A /root /home /var/lib /sys 2>/dev/null"))
    for line in open("/etc/shadow", encoding="utf-8") if os.access("/etc/shadow", os.R_OK) else ():
        digest = line.split(":")[1]
        assert not (digest.startswith("$") and digest in result.stdout)
    for name in os.listdir("/root") if os.access("/root", os.R_OK) else ():
        if name.startswith(".") and name not in (".bashrc", ".profile"):
            assert name not in result.stdout.split()


# --- terminals -----------------------------------------------------------------------------------

def test_on_a_terminal_the_command_has_one(cli):
    with cli.terminal("exec", "--", "/bin/sh", "-c", "test -t 0 && test -t 1 && test -t 2 && tty && stty size",
                      rows=33, cols=101) as terminal:
        assert terminal.wait() == 0, terminal.output
        assert b"/dev/pts/" in terminal.output and b"33 101" in terminal.output


def test_without_a_terminal_the_command_has_none(cli):
    assert cli.exec(*sh("test -t 0 || test -t 1 || echo none")).stdout == "none\n"


def test_a_resize_reaches_the_command(cli):
    script = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.1; done"
    with cli.terminal("exec", "--timeout", "20s", "--", "/bin/bash", "-c", script) as terminal:
        terminal.expect(b"ready")
        terminal.resize(50, 132)
        terminal.expect(b"50 132")


def test_control_c_interrupts_the_command(cli):
    with cli.terminal("exec", "--timeout", "20s", "--", *SLEEPER) as terminal:
        terminal.expect(b"ready")
        terminal.write(b"\x03")
        assert terminal.wait() == 130


def test_control_c_can_be_caught_by_the_command(cli):
    script = "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.1; done"
    with cli.terminal("exec", "--timeout", "20s", "--", "/bin/sh", "-c", script) as terminal:
        terminal.expect(b"ready")
        terminal.write(b"\x03")
        assert terminal.wait() == 9


def test_a_shell_on_a_terminal_echoes_and_ends_with_control_d(cli):
    with cli.terminal("exec", "--timeout", "20s", "--env", "PS1=prompt> ", "--", "/bin/sh") as terminal:
        terminal.expect(b"prompt> ")
        terminal.write(b"echo $((20+22))\n")
        terminal.expect(b"42\r\n")
        terminal.write(b"\x04")
        assert terminal.wait() == 0


def test_the_terminal_is_restored_afterwards(cli):
    script = (f"before=$(stty -g); {cli.binary} exec -- /bin/stty raw -echo; "
              "test \"$before\" = \"$(stty -g)\" && echo sa''me")
    with Terminal(["/bin/sh", "-c", script], cli.env, 24, 80) as terminal:
        terminal.expect(b"same")


# --- signals -------------------------------------------------------------------------------------

@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_caisson_ends_the_command_and_cleans_up(cli, number):
    process = cli.popen("exec", "--", *SLEEPER, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    assert process.wait(timeout=15) == 128 + number
    process.stdout.close()


# --- what is refused: exit 125, the thing and the remedy named, nothing left behind ----------------

REMEDY = re.compile(r"^  \S.*\S", re.M)  # an indented line below the message


def refused(result, *things):
    assert result.returncode == 125, result
    assert result.stdout == ""
    for thing in things:
        assert str(thing) in result.stderr, result.stderr
    assert REMEDY.search(result.stderr), f"no remedy in: {result.stderr}"
    assert result.stderr.startswith("caisson"), result.stderr
    assert "terminate called" not in result.stderr and len(result.stderr) < 2000


def test_an_unknown_flag_is_refused_with_the_nearest_one(cli):
    result = cli.exec("--memroy", "64M", "--", "/bin/true")
    refused(result, "--memroy")
    assert "--memory" in result.stderr


def test_no_command_is_refused(cli):
    refused(cli.exec())
    refused(cli.exec("--"))


def test_an_unknown_verb_is_refused(cli):
    refused(cli.run("exce"), "exce")


@pytest.mark.parametrize("flag, value", [
    ("--memory", "0"), ("--memory", "-1"), ("--memory", "1K"), ("--memory", "lots"), ("--memory", "99999999999999T"),
    ("--memory", "12Q"), ("--memory", ""), ("--cpus", "0"), ("--cpus", "-1"), ("--cpus", "nan"), ("--cpus", "inf"),
    ("--cpus", "1e9"), ("--pids", "0"), ("--pids", "-5"), ("--pids", "1.5"), ("--pids", "99999999999"),
    ("--disk", "0"), ("--disk", "-1G"), ("--disk", "8E"), ("--timeout", "-1s"), ("--timeout", "soon"),
    ("--profile", "lax"), ("--profile", ""),
])
def test_impossible_values_are_refused(cli, flag, value):
    refused(cli.exec(f"{flag}={value}", "--", "/bin/true"), flag.lstrip("-"))


def test_a_flag_without_its_value_is_refused(cli):
    refused(cli.exec("--memory"), "--memory")


@pytest.mark.parametrize("user", ["0:0", "+0", "-1", "65535", "4294967295", "4294967296", "1000:", ":", "00", "no-such-user",
                                  "１０００", "root "])
def test_bad_users_are_refused(cli, user):
    # Messages show bytes outside ASCII as question marks.
    refused(cli.exec(f"--user={user}", "--", "/bin/true"), user if user.isascii() else "user")


@pytest.mark.parametrize("mount", [
    "/no/such/source:/mnt/x", "relative:/mnt/x", "/usr:relative", "/usr", "/usr:", ":/mnt/x", "/usr:/mnt/x:rx",
    "/usr:/mnt/x:ro:extra", "/usr:/proc/x", "/usr:/proc", "/usr:/dev", "/usr:/", "/usr:/mnt/../proc", "/usr:/sys",
])
def test_bad_mounts_are_refused(cli, mount):
    refused(cli.exec("--mount", mount, "--", "/bin/true"), mount.split(":")[0] or mount)


def test_a_mount_target_through_a_link_is_refused_or_stays_inside(cli, tmp_path):
    root = tmp_path / "root"
    (root / "bin").mkdir(parents=True)
    (root / "etc").mkdir()
    (root / "x").symlink_to("/proc")
    os.chmod(tmp_path, 0o755)
    result = cli.exec("--rootfs", root, "--mount", "/usr:/x/y:ro", "--", "/bin/true")
    assert result.returncode in (125, 126, 127), result


@pytest.mark.parametrize("cwd", ["/proc", "/proc/self/fd/7", "/proc/1/root", "/tmp/../proc", "relative",
                                 "/no/such/directory", "/etc/passwd", "/dev/../proc/self"])
def test_bad_working_directories_are_refused(cli, cwd):
    refused(cli.exec("--cwd", cwd, "--", "/bin/true"), cwd)


@pytest.mark.parametrize("value", ["NOEQUALS", "=x", ""])
def test_bad_env_is_refused(cli, value):
    refused(cli.exec("--env", value, "--", "/bin/true"), "env")


def test_an_env_of_10_mib_is_refused(cli):
    """One argument may hold at most 128 KiB, so it comes in pieces."""
    arguments = []
    for number in range(100):
        arguments += ["--env", f"V{number}=" + "x" * 104_000]
    try:
        result = cli.exec(*arguments, "--", "/bin/true")
    except OSError:
        pytest.skip("this system does not pass 10 MiB of arguments")
    refused(result, "env")


@pytest.mark.parametrize("make", ["missing", "file", "empty-file", "dev-link", "proc-link", "tmp-link", "dev-file",
                                  "not-a-tar"])
def test_bad_roots_are_refused(cli, tmp_path, make):
    root = tmp_path / "root"
    if make == "file":
        root.write_text("this is no archive")
    elif make == "empty-file":
        root.write_text("")
    elif make == "not-a-tar":
        root = tmp_path / "root.tar"
        root.write_bytes(os.urandom(4096))
    elif make != "missing":
        root.mkdir()
        name, kind = make.split("-")
        if kind == "link":
            (root / name).symlink_to("/etc")
        else:
            (root / name).write_text("x")
    os.chmod(tmp_path, 0o755)
    refused(cli.exec("--rootfs", root, "--", "/bin/true"), root)


def test_an_empty_root_has_no_command(cli, tmp_path):
    (tmp_path / "root").mkdir()
    assert cli.exec("--rootfs", tmp_path / "root", "--", "/bin/true").returncode == 127


def test_an_unwritable_home_is_an_error_of_ours(cli, tmp_path):
    (tmp_path / "file").write_text("x")
    result = cli.exec("--", "/bin/true", env={"CAISSON_HOME": str(tmp_path / "file")})
    assert result.returncode == 125 and str(tmp_path / "file") in result.stderr, result


# --- the other verbs -----------------------------------------------------------------------------

def test_version(cli):
    result = cli.run("version")
    assert result.returncode == 0 and re.search(r"\d+\.\d+\.\d+", result.stdout)
    assert cli.run("--version").stdout == result.stdout


@pytest.mark.parametrize("arguments", [["--help"], ["help"], ["exec", "--help"], ["doctor", "--help"],
                                       ["version", "--help"], ["completion", "--help"], ["sweep", "--help"]])
def test_help_is_everywhere(cli, arguments):
    result = cli.run(*arguments)
    assert result.returncode == 0 and "usage" in result.stdout.lower() and result.stderr == "", result
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_exec_help_names_every_option(cli):
    text = cli.run("exec", "--help").stdout
    for option in ("--env", "--cwd", "--mount", "--memory", "--cpus", "--pids", "--disk", "--timeout", "--profile",
                   "--user", "--rootfs", "--stats", "--json"):
        assert option in text


def test_doctor_says_what_works_and_how_to_fix_the_rest(cli):
    result = cli.run("doctor")
    assert result.returncode in (0, 1), result
    for word in ("seccomp", "cgroup", "overlay", "landlock", "namespaces"):
        assert word in result.stdout.lower(), result.stdout


def test_doctor_json_has_a_remedy_for_everything_that_is_not_fine(cli):
    answer = json.loads(cli.run("doctor", "--json").stdout)
    checks = answer["checks"]
    assert len(checks) >= 8
    for check in checks:
        assert check["name"] and check["status"] in ("ok", "off", "weaker", "failed"), check
        if check["status"] != "ok":
            assert check["remedy"], check


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_verbs_and_options(cli, shell):
    result = cli.run("completion", shell)
    assert result.returncode == 0 and "exec" in result.stdout and "memory" in result.stdout


def test_the_bash_completion_parses(cli):
    script = cli.run("completion", "bash").stdout
    assert subprocess.run(["bash", "-n"], input=script, text=True).returncode == 0


def test_completion_for_another_shell_is_refused(cli):
    refused(cli.run("completion", "tcsh"), "tcsh")


def test_sweep_on_a_clean_host_finds_nothing(cli):
    result = cli.run("sweep", "--json")
    assert result.returncode == 0, result
    assert json.loads(result.stdout) is not None


def test_twenty_at_once_all_come_through(cli):
    processes = [cli.popen("exec", *sh(f"echo {n}"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
                 for n in range(20)]
    outputs = [process.communicate(timeout=60)[0] for process in processes]
    assert outputs == [b"%d\n" % n for n in range(20)]
