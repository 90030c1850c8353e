"""/openapi.json seen from outside: sound by the rules of OpenAPI 3.1, and good enough to make a client of."""

import importlib.util
import json
import re

import jsonschema
import pytest

from harness.client_generator import generate
from harness.server import Api


def operations_of(spec):
    return [(path, verb, about) for path, methods in spec["paths"].items() for verb, about in methods.items()]


def references_in(value):
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for inner in value.values():
            yield from references_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references_in(inner)


def objects_in(value):
    """Every schema of an object within a schema."""
    if isinstance(value, dict):
        if "properties" in value and isinstance(value["properties"], dict):
            yield value
        for inner in value.values():
            yield from objects_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from objects_in(inner)


def check_operation(path, verb, about):
    where = f"{verb} {path}"
    assert re.fullmatch(r"[a-z][A-Za-z0-9]*", about["operationId"]), where
    assert about["summary"] and about["tags"], where
    declared = [(p["in"], p["name"]) for p in about["parameters"]]
    assert len(declared) == len(set(declared)), f"{where} declares a parameter twice"
    assert {name for place, name in declared if place == "path"} == set(re.findall(r"\{(\w+)\}", path)), where
    assert all(p["required"] for p in about["parameters"] if p["in"] == "path"), where
    assert all(p["in"] in ("path", "query", "header") and p["schema"] for p in about["parameters"]), where
    assert verb in ("post", "put", "patch") or "requestBody" not in about, where
    answers = about["responses"]
    assert any(status[0] in "123" for status in answers), f"{where} cannot succeed"
    assert answers["default"]["content"], f"{where} says nothing of errors"
    assert all(answer["description"] for answer in answers.values()), where


def check_document(spec):
    """The rules of OpenAPI 3.1 that generators rely on, and our own: nothing unused, no field required but undeclared."""
    assert re.fullmatch(r"3\.1\.\d+", spec["openapi"]) and spec["info"]["title"] and spec["info"]["version"]
    schemas = spec["components"]["schemas"]
    for name, schema in schemas.items():
        jsonschema.Draft202012Validator.check_schema(schema)
        for inner in objects_in(schema):
            assert set(inner.get("required", [])) <= set(inner["properties"]), f"{name} requires what it does not declare"
    used = set(references_in(spec))
    assert used == {f"#/components/schemas/{name}" for name in schemas}, "a reference leads nowhere, or a schema is unused"
    for path, verb, about in operations_of(spec):
        check_operation(path, verb, about)
    ids = [about["operationId"] for _, _, about in operations_of(spec)]
    assert len(ids) == len(set(ids)), "two operations have one id"
    shapes = [re.sub(r"\{\w+\}", "{}", path) for path in spec["paths"]]
    assert len(shapes) == len(set(shapes)), "two paths differ in the names of parameters alone"
    for requirement in spec["security"]:
        assert set(requirement) <= set(spec["components"]["securitySchemes"])


def test_the_document_is_sound(server):
    check_document(json.loads(Api(server.address).get("/openapi.json").body))


@pytest.mark.judges_only
@pytest.mark.parametrize("spoil", [
    lambda spec: spec["paths"]["/x/{id}"]["get"].update(parameters=[]),
    lambda spec: spec["paths"]["/x/{id}"]["get"]["responses"].pop("default"),
    lambda spec: spec["paths"]["/x/{id}"].update(post=spec["paths"]["/x/{id}"]["get"]),
    lambda spec: spec["components"]["schemas"].pop("Problem"),
    lambda spec: spec["components"]["schemas"].update(Unused={"type": "object"}),
    lambda spec: spec["components"]["schemas"]["Problem"].update(required=["ttle"]),
    lambda spec: spec["components"]["schemas"]["Problem"].update(type="objekt"),
])
def test_an_unsound_document_is_found(spoil):
    answers = {"200": {"description": "OK"}, "default": {"description": "wrong", "content": {
        "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}}
    spec = {"openapi": "3.1.0", "info": {"title": "x", "version": "1"}, "security": [{"key": []}],
            "paths": {"/x/{id}": {"get": {"operationId": "getX", "summary": "x", "tags": ["x"], "responses": answers,
                                          "parameters": [{"name": "id", "in": "path", "required": True,
                                                          "schema": {"type": "string"}}]}}},
            "components": {"schemas": {"Problem": {"type": "object", "properties": {"title": {"type": "string"}}}},
                           "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}}}
    check_document(spec)
    spoil(spec)
    with pytest.raises((AssertionError, KeyError, jsonschema.SchemaError)):
        check_document(spec)


@pytest.fixture
def generated(make_server, tmp_path):
    """The module that the generator makes, and a client of it with the admin's key."""
    server = make_server(auth="keys")
    source = tmp_path / "caisson_client.py"
    source.write_text(generate(json.loads(Api(server.address).get("/openapi.json").body)), encoding="utf-8")
    loader = importlib.util.spec_from_file_location("caisson_client", source)
    module = importlib.util.module_from_spec(loader)
    loader.loader.exec_module(module)
    return module, module.Client(server.address, key=server.admin_key())


def test_a_generated_client_walks_a_session_from_create_to_destroy(generated):
    module, client = generated
    session = client.create_session(labels={"by": "generated"}, artifacts=["*.txt"], limits={"memory": "64M"})
    box = session["session_id"]
    assert [s["session_id"] for s in client.list_sessions(label=["by=generated"], limit=10)["sessions"]] == [box]

    ran = client.exec(box, command="echo out; echo err >&2; exit 3", env={"A": "1"})
    assert (ran["exit_code"], ran["stdout"], ran["stderr"]) == (3, "out\n", "err\n")
    stream = client.exec(box, argv=["echo", "streamed"], accept="application/x-ndjson")
    assert "streamed" in "".join(json.loads(line).get("data", "") for line in stream.splitlines() if line)

    client.make_directory(box, path="/workspace/a/b", parents=True)
    client.write_file(box, path="/workspace/a/b/data", body=b"\0\xff binary", permissions="0600")
    assert client.read_file(box, path="/workspace/a/b/data") == b"\0\xff binary"
    assert client.read_file(box, path="/workspace/a/b/data", range="bytes=3-4") == b"bi"
    client.move_file(box, from_="/workspace/a/b/data", to="/workspace/kept.txt")
    assert client.stat_file(box, path="/workspace/kept.txt")["permissions"] == "0600"
    assert {e["name"] for e in client.list_files(box, path="/workspace")["entries"]} == {"a", "kept.txt"}

    process = client.exec(box, command="read line; echo got $line", background=True, stdin_open=True)["process_id"]
    client.process_input(box, process, data="hello\n", eof=True)
    assert client.wait_process(box, process, timeout=30)["exit_code"] == 0
    assert client.process_output(box, process, accept="application/json")["stdout"] == "got hello\n"
    assert any(p["process_id"] == process for p in client.list_processes(box)["processes"])

    assert client.pause_session(box)["state"] == "paused" and client.resume_session(box)["state"] == "running"
    assert client.patch_session(box, metadata={"k": "v"})["metadata"] == {"k": "v"}
    client.keep_artifacts(box, patterns=["*.txt"])
    kept = client.list_artifacts(box)["artifacts"][0]
    assert client.download_artifact(box, kept["name"]) == b"\0\xff binary"
    logs = [json.loads(line) for line in client.session_logs(box).splitlines() if line]
    assert any("out" in json.dumps(line) for line in logs)
    assert {"session.created", "exec.ended"} <= {e["type"] for e in client.list_session_events(box)["events"]}

    agent = client.create_key(name="of the test", role="agent")
    assert client.revoke_key(agent["id"]) is None
    assert client.verify_audit()["sound"]
    client.destroy_session(box)
    with pytest.raises(module.ApiError) as gone:
        client.exec(box, command="true")
    assert gone.value.status == 410 and gone.value.problem["code"] == "gone"
    with pytest.raises(TypeError):
        client.move_file(box, from_="/a")  # the document says that `to` is needed, and so does the client
