"""The examples of docs/guides, run as they stand, and the dashboard beside them."""

import json
import os
import re
import subprocess

import pytest

from harness import paths
from harness.server import DEADLINE


def blocks_of(guide, kind):
    text = (paths.ROOT / "docs/guides" / guide).read_text(encoding="utf-8")
    return re.findall(rf"^```{kind} test\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def run_calls(guide, server, at_least):
    """Each line is a call by curl, which must succeed."""
    blocks = blocks_of(guide, "sh")
    assert len(blocks) >= at_least
    environment = {**os.environ, "URL": f"http://{server.address}"}
    for block in blocks:
        for command in block.replace("\\\n", " ").splitlines():
            run = subprocess.run(["bash", "-c", f"{command} --fail-with-body"], env=environment, capture_output=True,
                                 text=True, timeout=DEADLINE)
            assert run.returncode == 0, f"{command}\n{run.stdout}\n{run.stderr}"


def test_the_examples_of_the_server_guide_work(server):
    run_calls("server.md", server, 4)
    api = server.api()
    for session in api.get("/api/sessions").expect(200)["sessions"]:
        api.destroy(session)


def test_the_configuration_of_the_server_guide_is_taken(cli, tmp_path):
    file = tmp_path / "caisson.yaml"
    file.write_text(blocks_of("server.md", "yaml")[0], encoding="utf-8")
    shown = cli.run("config", "--config", str(file))
    assert shown.returncode == 0 and shown.stdout.count(f"{file}:") == 6, shown.stdout + shown.stderr


def test_the_examples_of_the_client_guide_work(server, tmp_path):
    blocks = blocks_of("client.md", "sh")
    assert len(blocks) >= 4
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/caisson").symlink_to(paths.require(paths.CAISSON))
    environment = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
                   "CAISSON_API_URL": f"http://{server.address}", "XDG_CONFIG_HOME": str(tmp_path / "config")}
    for block in blocks:
        run = subprocess.run(["bash", "-euxo", "pipefail", "-c", block], cwd=tmp_path, env=environment,
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE)
        assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"


def test_the_rules_of_the_alerts_guide_are_taken(make_server, tmp_path):
    rules = tmp_path / "alerts.yaml"
    rules.write_text(blocks_of("alerts.md", "yaml")[0], encoding="utf-8")
    server = make_server("--alerts", str(rules))
    run_calls("alerts.md", server, 2)
    alerts = server.api().get("/api/alerts").expect(200)["alerts"]
    assert {(a["name"], a["severity"]) for a in alerts} == {("many_sessions", "critical"), ("server_errors", "warning")}


@pytest.mark.parametrize("file", ["docs/grafana/caisson.json", "docs/guides/alerts.md"])
def test_every_metric_that_is_spoken_of_exists(api, file):
    text = (paths.ROOT / file).read_text(encoding="utf-8")
    if file.endswith(".json"):
        text = "\n".join(target["expr"] for panel in json.loads(text)["panels"] for target in panel["targets"])
    spoken = {re.sub(r"_bucket$", "", name) for name in re.findall(r"\bcaisson_[a-z_]+", text)}
    session = api.create()
    api.run(session, "true")
    api.destroy(session)
    real = set(re.findall(r"^# TYPE (\S+)", api.get("/metrics").body.decode(), re.MULTILINE))
    if not os.path.exists("/proc/pressure/cpu"):
        spoken = {name for name in spoken if "_pressure_" not in name}
    assert len(spoken) >= 8 and spoken <= real, spoken - real
    assert real <= spoken, f"not spoken of: {real - spoken}"
