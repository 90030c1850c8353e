"""The server's settings from a file: those that hold, those that are refused, and what `caisson config` says of them."""

import http.client
import json

import pytest

from harness.paths import CAISSON, require
from harness.cli import Cli

ORIGINAL = """resource_limits: {cpu_limit: 2.0, memory_limit: "2G", max_connections: 100, connection_timeout: 30}
"""


@pytest.fixture
def configured(home, tmp_path):
    """The command line with a configuration file of this content."""

    def write(text):
        file = tmp_path / "caisson.yaml"
        file.write_text(text, encoding="utf-8")
        file.chmod(0o600)
        return Cli(home, require(CAISSON), env={"CAISSON_CONFIG": str(file), "XDG_CONFIG_HOME": str(tmp_path / "none")}), file

    return write


def settings(cli, *arguments):
    result = cli.run("config", "--json", *arguments)
    assert result.returncode == 0, result.stderr
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return {(row["part"], row["setting"]): (row["value"], row["from"]) for row in rows}


def test_config_shows_the_settings_of_commands_and_server_and_where_they_come_from(configured):
    cli, file = configured(ORIGINAL)
    shown = settings(cli, "--drain", "5s", "--listen", "127.0.0.1:1", "--listen", "127.0.0.1:2")
    origin = f"{file}:1"
    assert shown["server", "resource_limits.cpu_limit"] == ("2.0", origin)
    assert shown["server", "resource_limits.memory_limit"] == ("2G", origin)
    assert shown["server", "resource_limits.max_connections"] == ("100", origin)
    assert shown["server", "resource_limits.connection_timeout"] == ("30", origin)
    assert shown["server", "drain"] == ("5s", "--drain")
    assert shown["server", "listen"] == (["127.0.0.1:1", "127.0.0.1:2"], "--listen")
    assert shown["server", "tls_cert"] == (None, "not set")
    assert shown["server", "auth"] == ("keys", "default")
    assert shown["commands", "url"] == ("http://127.0.0.1:8000", "default")
    table = cli.run("config").stdout
    assert table.startswith("COMMANDS") and "\nSERVER" in table and origin in table


@pytest.mark.parametrize("text, said", [
    ("resource_limits: {cpu_limt: 2}\n", "did you mean resource_limits.cpu_limit?"),
    ("database_config: {pool_size: 20, max_overflow: 10}\n", "remove database_config"),
    ("resource_limits: {memory_limit: plenty}\n", "\"plenty\" is not a size"),
    ("resource_limits: {max_connections: 0}\n", "resource_limits.max_connections"),
    ("warm: [1, 2]\n", "warm is a list"),
])
def test_a_key_or_value_that_cannot_hold_is_refused_with_its_line(configured, text, said):
    cli, file = configured(text)
    for verb in ("config", "serve"):
        refused = cli.run(verb)
        assert refused.returncode != 0 and f"{file}:1" in refused.stderr and said in refused.stderr, refused.stderr


def test_limits_of_the_file_hold_for_sessions_that_name_none(make_server, configured):
    _, file = configured("resource_limits: {cpu_limit: 0.25, memory_limit: 96M}\n")
    api = make_server("--config", str(file)).api()

    def limits(**spec):
        session = api.create(**spec)
        held = {limit["name"]: limit["value"] for limit in session["limits"] if limit["enforced"]}
        api.destroy(session)
        return held["memory"], held["cpu"]

    assert limits() == (96 << 20, 250)
    assert limits(limits={"memory": "64M"}) == (64 << 20, 250)
    assert limits(profile="strict") == (256 << 20, 500)


def test_more_connections_than_the_file_allows_are_refused(make_server, configured):
    _, file = configured("resource_limits: {max_connections: 2}\n")
    server = make_server("--config", str(file))
    host, port = server.address.rsplit(":", 1)
    connections = [http.client.HTTPConnection(host, int(port), timeout=30) for _ in range(3)]
    try:
        for connection in connections[:2]:
            connection.request("GET", "/health")
            response = connection.getresponse()
            assert response.status == 200 and response.read()
        connections[2].connect()
        refusal = http.client.HTTPResponse(connections[2].sock)
        refusal.begin()
        assert refusal.status == 503
    finally:
        for connection in connections:
            connection.close()
