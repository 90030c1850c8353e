"""Keys, roles, tokens, the audit log and usage, through a real server."""

import json

import pytest


@pytest.fixture
def guarded(make_server):
    return make_server(auth="keys")


@pytest.fixture
def admin(guarded):
    return guarded.api(guarded.admin_key())


def key(admin, role, **more):
    return admin.post("/api/keys", {"name": role, "role": role, **more}).expect(201)


def test_nothing_is_told_to_those_who_show_no_key(guarded):
    nobody = guarded.api()
    answer = nobody.get("/api/sessions")
    answer.expect(401)
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.json()["code"] == "unauthenticated"
    nobody.get("/health").expect(200)
    for headers in (
        {"Authorization": "Basic " + guarded.admin_key()},
        {"Authorization": "Bearer " + guarded.admin_key()[:-1]},
        {"Authorization": "Bearer " + guarded.admin_key(), "X-API-Key": guarded.admin_key()},
    ):
        nobody.call("GET", "/api/sessions", headers=headers).expect(401)
    nobody.call("GET", "/api/sessions", headers={"X-API-Key": guarded.admin_key()}).expect(200)


def test_pages_of_other_sites_are_turned_away(guarded, admin):
    admin.get("/api/sessions", headers={"Host": "evil.example"}).expect(421)
    admin.get("/api/sessions", headers={"Origin": "https://evil.example"}).expect(403)
    admin.get("/api/sessions", headers={"Sec-Fetch-Site": "cross-site"}).expect(403)


def test_a_key_lives_from_its_making_to_its_end(guarded, admin):
    made = key(admin, "developer")
    developer = guarded.api(made["key"])
    session = developer.create()
    developer.get("/api/keys").expect(403)
    admin.get(f"/api/keys/{made['id']}").expect(200)
    assert made["key"] not in json.dumps(admin.get("/api/keys").expect(200))
    rotated = admin.call("POST", f"/api/keys/{made['id']}/rotate").expect(200)
    guarded.api(rotated["key"]).get("/api/sessions").expect(200)
    developer.get("/api/sessions").expect(200)
    admin.delete(f"/api/keys/{made['id']}").expect(204)
    developer.get("/api/sessions").expect(401)
    admin.destroy(session)


def test_a_revoked_keys_stream_ends(guarded, admin):
    made = key(admin, "viewer")
    viewer = guarded.api(made["key"])
    stream = viewer.stream("GET", "/api/events", headers={"Accept": "application/x-ndjson"}, query={"after": 0})
    assert stream.status == 200
    admin.delete(f"/api/keys/{made['id']}").expect(204)
    try:
        while stream.read(1):
            pass
    except Exception:  # cut in the middle, which is what a client should see
        pass
    stream.connection.close()


def test_another_tenants_sessions_are_not_there(guarded, admin):
    session = admin.create()
    stranger = guarded.api(key(admin, "developer", tenant="other")["key"])
    path = f"/api/sessions/{session['session_id']}"
    stranger.get(path).expect(404)
    stranger.delete(path).expect(404)
    stranger.get(path + "/events").expect(404)
    assert stranger.get("/api/sessions").expect(200)["sessions"] == []
    admin.destroy(session)


def test_a_token_works_in_its_session_alone(guarded, admin):
    mine, other = admin.create(), admin.create()
    made = admin.post(f"/api/sessions/{mine['session_id']}/tokens", {"expires_in": "10m"}).expect(201)
    inside = guarded.api(made["token"])
    assert inside.run(mine, "echo hello")["stdout"] == "hello\n"
    inside.get(f"/api/sessions/{other['session_id']}").expect(404)
    inside.post("/api/sessions").expect(403)
    admin.destroy(mine)
    inside.get(f"/api/sessions/{mine['session_id']}").expect(200)  # how it ended may be looked at
    admin.destroy(other)


def test_limits_of_a_key_are_held(guarded, admin):
    made = key(admin, "developer", limits={"creates_per_second": 0.001, "create_burst": 1})
    developer = guarded.api(made["key"])
    session = developer.create()
    answer = developer.post("/api/sessions")
    assert answer.expect(429)["code"] == "rate_limited"
    assert int(answer.headers["retry-after"]) > 1
    admin.destroy(session)


def test_the_audit_log_has_what_happened_and_is_sound(guarded, admin):
    session = admin.create()
    admin.destroy(session)
    viewer = guarded.api(key(admin, "viewer")["key"])
    viewer.post("/api/sessions").expect(403)
    page = admin.get("/api/audit", query={"limit": 1000}).expect(200)
    seen = {(record["verb"], record["object"].split("/")[0], record["decision"]) for record in page["records"]}
    assert {("create", "sessions", "allow"), ("delete", "sessions", "allow"), ("create", "keys", "allow"),
            ("create", "sessions", "deny")} <= seen
    assert admin.get("/api/audit/verify").expect(200)["sound"] is True
    lines = [json.loads(line) for line in admin.get("/api/audit/export").body.splitlines()]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert guarded.admin_key() not in json.dumps(lines)
    assert guarded.admin_key() not in guarded.messages()


def test_usage_counts_what_a_key_did(guarded, admin):
    made = key(admin, "developer")
    developer = guarded.api(made["key"])
    session = developer.create()
    developer.run(session, "true")
    developer.destroy(session)
    total = developer.get("/api/usage", query={"key": made["id"]}).expect(200)["total"]
    assert total["creates"] == 1 and total["execs"] == 1 and total["requests"] >= 3


def test_keys_survive_the_server(guarded, admin):
    made = key(admin, "viewer")
    revoked = key(admin, "viewer")
    admin.delete(f"/api/keys/{revoked['id']}").expect(204)
    guarded.kill()
    guarded.start()
    guarded.api(made["key"]).get("/api/sessions").expect(200)
    guarded.api(revoked["key"]).get("/api/sessions").expect(401)
    assert guarded.api(guarded.admin_key()).get("/api/audit/verify").expect(200)["sound"] is True
