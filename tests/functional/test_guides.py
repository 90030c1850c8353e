"""The examples of docs/guides/server.md, run as they stand."""

import os
import re
import subprocess

from harness import paths


def test_the_examples_of_the_server_guide_work(server):
    text = (paths.ROOT / "docs/guides/server.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh test\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 4
    environment = {**os.environ, "URL": f"http://{server.address}"}
    for block in blocks:
        for command in block.replace("\\\n", " ").splitlines():
            run = subprocess.run(["bash", "-c", f"{command} --fail-with-body"], env=environment, capture_output=True,
                                 text=True, timeout=60)
            assert run.returncode == 0, f"{command}\n{run.stdout}\n{run.stderr}"
    api = server.api()
    for session in api.get("/api/sessions").expect(200)["sessions"]:
        api.destroy(session)
