"""The command line as a client of a server: every verb, for people and for machines."""

import json
import os
import re
import signal
import stat
import subprocess

import pytest

from harness import paths
from harness.cli import Cli
from harness.paths import require


@pytest.fixture
def client(server, home, tmp_path):
    return Cli(home, require(paths.CAISSON),
               env={"CAISSON_API_URL": f"http://{server.address}", "CAISSON_API_KEY": "",
                    "XDG_CONFIG_HOME": str(tmp_path / "config"), "NO_COLOR": "1"})


@pytest.fixture
def web(client):
    good(client, "create", "--name", "web", "--label", "team=search")
    yield "web"
    client.run("rm", "--force", "web")


def good(client, *arguments, **options):
    result = client.run(*arguments, **options)
    assert result.returncode == 0, result
    return result.stdout


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def test_a_session_is_created_listed_inspected_and_destroyed(client):
    identity = good(client, "create", "--name", "web", "--memory", "64M").strip()
    assert re.fullmatch("[a-z0-9]{8,40}", identity)
    table = good(client, "ls").splitlines()
    assert table[0].split()[:3] == ["SESSION", "NAME", "STATE"]
    assert table[1].split()[:3] == [identity, "web", "running"]
    assert good(client, "ls", "--names") == "web\n" and good(client, "ls", "-q") == identity + "\n"
    assert [session["name"] for session in lines(good(client, "ls", "--json"))] == ["web"]
    assert "running" in good(client, "inspect", "web")
    assert lines(good(client, "inspect", "--json", "web"))[0]["session_id"] == identity
    assert good(client, "rm", "web") == "web\n"
    assert good(client, "ls", "-q") == ""
    assert identity in good(client, "ls", "--all", "-q")


def test_a_command_in_a_session_has_our_streams_and_exit_code(client, web):
    result = client.run("exec", web, "--", "sh", "-c", "cat; echo err >&2; exit 7", stdin=b"\x00\xffin", text=False)
    assert (result.returncode, result.stdout, result.stderr) == (7, b"\x00\xffin", b"err\n")


def test_a_command_in_a_session_as_json(client, web):
    report = json.loads(client.run("exec", "--json", web, "--", "echo", "hi").stdout)
    assert report["stdout"] == "hi\n" and report["exit_code"] == 0 and report["outcome"]["status"] == "exited"


def test_what_cannot_be_started_is_127_and_a_session_that_is_not_there_125(client, web):
    assert client.run("exec", web, "--", "/no/such").returncode == 127
    result = client.run("exec", "nobody", "--", "true")
    assert result.returncode == 125 and "(not_found)" in result.stderr


def test_options_that_do_not_fit_are_refused(client, web):
    assert "--memory" in client.run("exec", "--memory", "64M", web, "--", "true").stderr
    assert "--url" in client.run("exec", "--url", "http://127.0.0.1:1", "--", "true").stderr


def test_local_exec_needs_no_server(client):
    result = client.run("exec", "--", "echo", "here", env={"CAISSON_API_URL": "http://127.0.0.1:1"})
    assert result.stdout == "here\n", result


def test_a_detached_command_is_attached_to_from_an_offset(client, web):
    process = good(client, "exec", "-d", web, "--", "sh", "-c", "printf 0123456789; exit 4").strip()
    whole = client.run("attach", "--no-input", web, process)
    assert (whole.stdout, whole.returncode) == ("0123456789", 4), whole
    assert client.run("attach", "--no-input", "--from", "6", web, process).stdout == "6789"


def test_a_signal_goes_to_the_command(client, web):
    child = client.popen("exec", web, "--", "sh", "-c", "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.05; done",
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    child.send_signal(signal.SIGINT)
    assert child.stdout.readline() == b"caught\n" and child.wait(30) == 9
    child.stdout.close()


def test_a_shell_is_left_by_keys_and_come_back_to(client, web):
    with client.terminal("shell", web, "sh", rows=33, cols=99) as terminal:
        terminal.write(b"stty size; echo on''e\r")
        terminal.expect(b"33 99")
        terminal.expect(b"one")
        terminal.write(b"\x10\x11")
        said = terminal.expect(b"--from ")
        assert terminal.wait() == 0
    process = re.search(rb"caisson attach web (\d+)", said)[1].decode()
    with client.terminal("attach", web, process) as terminal:
        terminal.write(b"echo tw''o; exit 5\r")
        terminal.expect(b"two")
        assert terminal.wait() == 5


def test_a_shell_without_a_terminal_is_refused(client, web):
    result = client.run("shell", web)
    assert result.returncode == 125 and "terminal" in result.stderr


def test_files_and_directories_go_in_and_out(client, web, tmp_path):
    tree = tmp_path / "tree"
    (tree / "a").mkdir(parents=True)
    (tree / "a/big").write_bytes(os.urandom(2_000_000))
    (tree / "link").symlink_to("a/big")
    good(client, "cp", tree, f"{web}:/workspace/")
    good(client, "cp", f"{web}:/workspace/tree", tmp_path / "back")
    assert (tmp_path / "back/a/big").read_bytes() == (tree / "a/big").read_bytes()
    assert os.readlink(tmp_path / "back/link") == "a/big"
    good(client, "cp", "-", f"{web}:note", stdin=b"from stdin")
    assert client.run("cp", f"{web}:/workspace/note", "-").stdout == "from stdin"


def test_a_broken_copy_is_gone_on_with(client, web, tmp_path):
    data = tmp_path / "data"
    data.write_bytes(os.urandom(500_000))
    good(client, "cp", data, f"{web}:data")
    etag = json.loads(client.run("cp", "--json", "--resume", f"{web}:data", tmp_path / "one").stdout)
    assert etag["bytes"] == 500_000 and (tmp_path / "one").read_bytes() == data.read_bytes()
    good(client, "cp", "--resume", data, f"{web}:again")
    assert client.run("exec", web, "--", "cmp", "data", "again").returncode == 0


def test_a_file_that_is_not_there_is_told(client, web, tmp_path):
    result = client.run("cp", f"{web}:/no/such", tmp_path / "x")
    assert result.returncode == 125 and "/no/such" in result.stderr and not (tmp_path / "x").exists()
    assert "neither" in client.run("cp", "a", "b").stderr


def test_logs_stats_top_events(client, web):
    good(client, "exec", web, "--", "echo", "said")
    assert "$ echo said\nsaid\n" in good(client, "logs", web)
    assert any(entry["event"] == "ended" for entry in lines(good(client, "logs", "--json", web)))
    assert "memory" in good(client, "stats", web) and "memory_bytes" in lines(good(client, "stats", "--json", web))[0]
    assert "web" in good(client, "top", "--interval", "100ms")
    assert lines(good(client, "top", "--json", "--interval", "100ms"))[0]["cpu_percent"] is not None
    assert "session.running" in good(client, "events", "--session", web)
    assert lines(good(client, "events", "--json"))[0]["type"] == "session.created"


def test_top_on_a_terminal_ends_with_q(client, web):
    with client.terminal("top", "--interval", "200ms") as terminal:
        terminal.expect(b"web")
        terminal.write(b"q")
        assert terminal.wait() == 0


def test_pause_and_resume(client, web):
    good(client, "pause", web)
    assert lines(good(client, "inspect", "--json", web))[0]["state"] == "paused"
    good(client, "resume", web)
    assert lines(good(client, "inspect", "--json", web))[0]["state"] == "running"


def test_rm_tries_all_and_forgives_when_forced(client, web):
    result = client.run("rm", "nobody", web)
    assert result.returncode == 125 and result.stdout == "web\n" and "nobody" in result.stderr
    assert client.run("rm", "--force", "nobody").returncode == 0


def test_keys_and_audit(client):
    made = client.run("keys", "create", "--role", "viewer", "ci")
    identity = re.search("key (\\S+) ", made.stderr)[1]
    assert made.stdout.startswith("csn_") and made.stdout.strip() not in good(client, "keys", "list")
    assert client.run("keys", "rotate", identity).stdout != made.stdout
    good(client, "keys", "revoke", identity)
    assert [key["state"] for key in lines(good(client, "keys", "list", "--json"))] == ["revoked"]
    assert "each as it was written" in good(client, "audit", "verify")
    assert "create" in good(client, "audit", "list") and lines(good(client, "audit", "export"))[0]["seq"] == 1
    assert "--role" in client.run("keys", "list", "--role", "viewer").stderr


def test_login_is_tried_stored_for_its_owner_and_forgotten(client, server, tmp_path):
    url = f"http://{server.address}"
    bare = {"CAISSON_API_URL": ""}
    assert client.run("login", "--url", "http://127.0.0.1:1", env=bare).returncode == 125
    good(client, "login", "--url", url, stdin=b"secret-key\n", env=bare)
    file = tmp_path / "config/caisson/client.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and json.loads(file.read_text())["url"] == url
    shown = good(client, "config", env=bare)
    assert url in shown and "secret-key" not in shown and str(file) in shown
    good(client, "login", "--forget", env=bare)
    assert not file.exists()


def test_a_bad_url_and_no_server_are_told(client):
    assert "URL" in client.run("ls", "--url", "gopher://x").stderr
    result = client.run("ls", "--url", "http://127.0.0.1:1")
    assert result.returncode == 125 and "caisson serve" in result.stderr


def test_a_bad_key_is_told(make_server, home, tmp_path):
    server = make_server(auth="keys")
    cli = Cli(home, require(paths.CAISSON), env={"CAISSON_API_URL": f"http://{server.address}",
                                                 "XDG_CONFIG_HOME": str(tmp_path)})
    result = cli.run("ls", "--key", "csn_wrong")
    assert result.returncode == 125 and "(unauthenticated)" in result.stderr and "csn_wrong" not in result.stderr
