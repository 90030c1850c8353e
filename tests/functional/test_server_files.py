"""Files of a session over HTTP: listed, read, written, moved, watched, packed and unpacked."""

import hashlib
import io
import json
import os
import tarfile
import threading

import pytest
import websocket


@pytest.fixture
def session(api):
    made = api.create()
    yield made
    api.destroy(made)


@pytest.fixture
def files(session):
    return f"/api/sessions/{session['session_id']}/files"


def put(api, files, path, body, **query):
    return api.put(f"{files}/content", body=body, query={"path": path, **query})


def content(api, files, path, **headers):
    return api.get(f"{files}/content", query={"path": path}, headers=headers)


def archive(*members, **options):
    """A tar archive of (name, content or TarInfo changes)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", **options) as tar:
        for name, data, changes in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            for field, value in changes.items():
                setattr(info, field, value)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def test_a_file_is_written_read_listed_and_removed(api, session, files):
    written = put(api, files, "/workspace/a/b.txt", b"hello\n", parents="true", permissions="0640").expect(200)
    assert (written["size"], written["permissions"], written["type"]) == (6, "0640", "file")
    assert api.run(session, "cat /workspace/a/b.txt")["stdout"] == "hello\n"
    read = content(api, files, "/workspace/a/b.txt")
    assert read.expect(200) == b"hello\n"
    assert read.headers["etag"] == written["etag"]
    assert read.headers["content-type"].startswith("text/plain")
    assert read.headers["content-disposition"] == 'attachment; filename="b.txt"'
    assert read.headers["x-content-type-options"] == "nosniff"
    listed = api.get(files, query={"path": "/workspace", "depth": 3}).expect(200)
    assert {entry["path"] for entry in listed["entries"]} == {"/workspace/a", "/workspace/a/b.txt"}
    stat = api.get(f"{files}/stat", query={"path": "/workspace/a"}).expect(200)
    assert stat["type"] == "directory"
    assert api.delete(f"{files}/content", query={"path": "/workspace/a"}).status == 409
    api.delete(f"{files}/content", query={"path": "/workspace/a", "recursive": "true"}).expect(204)
    assert content(api, files, "/workspace/a/b.txt").status == 404


def test_a_large_file_goes_both_ways_unchanged(api, session, files):
    data = os.urandom(1 << 20) * 9 + b"tail"
    put(api, files, "/workspace/big", data).expect(200)
    digest = hashlib.sha256(data).hexdigest()
    assert api.run(session, "sha256sum /workspace/big")["stdout"].split()[0] == digest
    assert hashlib.sha256(content(api, files, "/workspace/big").expect(200)).hexdigest() == digest


def test_ranges_and_versions_are_honoured(api, files):
    data = bytes(range(256)) * 1024
    etag = put(api, files, "/workspace/r.bin", data).expect(200)["etag"]
    for asked, part in (("bytes=0-9", data[:10]), ("bytes=70000-140000", data[70000:140001]),
                        ("bytes=-5", data[-5:]), ("bytes=262000-", data[262000:])):
        answer = content(api, files, "/workspace/r.bin", Range=asked)
        assert answer.expect(206) == part
    assert answer.headers["content-range"] == f"bytes 262000-{len(data) - 1}/{len(data)}"
    outside = content(api, files, "/workspace/r.bin", Range="bytes=999999-")
    assert outside.status == 416 and outside.headers["content-range"] == f"bytes */{len(data)}"
    assert content(api, files, "/workspace/r.bin", **{"If-None-Match": etag}).status == 304
    assert content(api, files, "/workspace/r.bin", **{"If-Match": '"other"'}).status == 412
    head = api.call("HEAD", f"{files}/content", query={"path": "/workspace/r.bin"})
    assert head.status == 200 and head.headers["content-length"] == str(len(data)) and not head.body
    put(api, files, "/workspace/r.bin", b"other").expect(200)
    assert content(api, files, "/workspace/r.bin", Range="bytes=0-1", **{"If-Range": etag}).expect(200) == b"other"


def test_an_upload_is_resumed_where_it_stopped(api, files):
    put(api, files, "/workspace/part", b"0123", offset=0).expect(200)
    hole = put(api, files, "/workspace/part", b"x", offset=10)
    assert hole.status == 409 and "4 bytes" in hole.json()["detail"]
    answer = api.put(f"{files}/content", body=b"4567", query={"path": "/workspace/part"},
                     headers={"Content-Range": "bytes 4-7/8"})
    assert answer.expect(200)["size"] == 8
    assert content(api, files, "/workspace/part").expect(200) == b"01234567"
    wrong = api.put(f"{files}/content", body=b"89", query={"path": "/workspace/part"},
                    headers={"Content-Range": "bytes 8-20/21"})
    assert wrong.status == 400


def test_what_exists_is_replaced_whole_or_refused(api, session, files):
    put(api, files, "/workspace/f", b"old", mode="create").expect(201)
    assert put(api, files, "/workspace/f", b"new", mode="create").status == 409
    # A client that goes in the middle leaves the old file, and nothing beside it.
    connection = api.connect()
    connection.putrequest("PUT", f"{files}/content?path=/workspace/f")
    connection.putheader("Content-Length", "1000000")
    connection.endheaders()
    connection.send(b"half of it")
    connection.close()
    listing = "ls -A /workspace"
    for _ in range(200):
        if api.run(session, listing)["stdout"] == "f\n":
            break
    assert api.run(session, listing)["stdout"] == "f\n"
    assert content(api, files, "/workspace/f").expect(200) == b"old"


def test_names_are_moved_made_and_linked(api, files):
    api.post(f"{files}/mkdir", {"path": "/workspace/d/e", "parents": True, "permissions": "0700"}).expect(201)
    put(api, files, "/workspace/x", b"x").expect(200)
    put(api, files, "/workspace/y", b"y").expect(200)
    assert api.post(f"{files}/move", {"from": "/workspace/x", "to": "/workspace/y"}).status == 409
    moved = api.post(f"{files}/move", {"from": "/workspace/x", "to": "/workspace/y", "overwrite": True})
    assert moved.expect(200)["path"] == "/workspace/y"
    assert content(api, files, "/workspace/y").expect(200) == b"x"
    link = api.post(f"{files}/symlink", {"path": "/workspace/l", "target": "y"}).expect(201)
    assert (link["type"], link["target"]) == ("symlink", "y")
    assert api.get(f"{files}/stat", query={"path": "/workspace/l", "follow": "true"}).expect(200)["type"] == "file"
    changed = api.post(f"{files}/permissions", {"path": "/workspace/y", "permissions": "0600"}).expect(200)
    assert changed["permissions"] == "0600"


def test_directories_are_listed_page_by_page(api, session, files):
    api.run(session, "mkdir /workspace/many; cd /workspace/many; for i in $(seq 300); do : > f$i; done")
    seen, cursor = [], None
    while True:
        query = {"path": "/workspace/many", "limit": 100, **({"cursor": cursor} if cursor else {})}
        page = api.get(files, query=query).expect(200)
        assert len(page["entries"]) <= 100
        seen += [entry["name"] for entry in page["entries"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert sorted(seen) == sorted(f"f{i}" for i in range(1, 301))
    tree = api.get(files, query={"path": "/workspace", "depth": 2, "limit": 10}).expect(200)
    assert tree["truncated"] and len(tree["entries"]) == 10


@pytest.mark.parametrize("method, place, query, body, status", [
    ("GET", "/content", {}, None, 400),
    ("GET", "/content", {"path": "relative"}, None, 400),
    ("GET", "/content", {"path": ""}, None, 400),
    ("GET", "/content", {"path": "/" + "x" * 5000}, None, 400),
    ("GET", "/content", {"path": "/workspace"}, None, 400),
    ("GET", "/content", {"path": "/nosuch"}, None, 404),
    ("GET", "/content", {"path": "/dev/zero"}, None, 400),
    ("GET", "/content", {"path": "/proc/self/mem"}, None, 403),
    ("GET", "/content", {"path": "/etc/passwd", "user": "nosuchuser"}, None, 404),
    ("GET", "/content", {"path": "/etc/passwd", "bogus": "1"}, None, 400),
    ("GET", "/stat", {"path": "/nosuch"}, None, 404),
    ("GET", "", {"path": "/nosuch"}, None, 404),
    ("GET", "", {"path": "/", "depth": "99"}, None, 400),
    ("GET", "", {"path": "/", "cursor": "x"}, None, 400),
    ("PUT", "/content", {"path": "/etc/passwd", "user": "1000"}, b"x", 403),
    ("PUT", "/content", {"path": "/workspace/x", "permissions": "4755"}, b"x", 400),
    ("PUT", "/content", {"path": "/workspace/x", "mode": "append"}, b"x", 400),
    ("PUT", "/content", {"path": "/workspace/x", "offset": "-1"}, b"x", 400),
    ("PUT", "/content", {"path": "/workspace/no/parent"}, b"x", 404),
    ("DELETE", "/content", {"path": "/usr", "recursive": "true", "user": "1000"}, None, 403),
    ("POST", "/move", {}, {"from": "/workspace/a"}, 400),
    ("POST", "/mkdir", {}, {"path": "/workspace/a", "parent": True}, 400),
    ("GET", "/watch", {"path": "/nosuch"}, None, 404),
    ("GET", "/tar", {"path": "/nosuch"}, None, 404),
])
def test_what_cannot_be_done_is_a_typed_problem(api, files, method, place, query, body, status):
    answer = api.call(method, files + place, body=body, query=query)
    problem = answer.json()
    assert answer.status == status, problem
    assert problem["code"] and problem["detail"]


def test_a_tree_goes_out_and_back_in_as_tar(api, session, files):
    long_name = "n" * 120
    api.run(session, f"mkdir -p /workspace/t/{long_name}/sub; cd /workspace/t; echo one > one; chmod 750 one;"
                     f"head -c 300000 /dev/urandom > {long_name}/sub/big; ln -s one link; mkfifo pipe")
    packed = api.get(f"{files}/tar", query={"path": "/workspace/t"})
    body = packed.expect(200)
    assert packed.headers["content-type"] == "application/x-tar"
    with tarfile.open(fileobj=io.BytesIO(body)) as tar:
        members = {member.name.removeprefix("./"): member for member in tar.getmembers()}
        assert members["one"].mode == 0o750 and members["link"].linkname == "one"
        assert "pipe" not in members
    result = api.put(f"{files}/tar", body=body, query={"path": "/workspace/copy/of"}).expect(200)
    assert result["skipped"] == 0 and result["bytes"] == 300004
    same = api.run(session, "cd /workspace; rm t/pipe; diff -r t copy/of && stat -c %a copy/of/one && readlink copy/of/link")
    assert same["stdout"] == "750\none\n", same
    # Once more over what is there.
    api.put(f"{files}/tar", body=body, query={"path": "/workspace/copy/of"}).expect(200)


def test_other_tools_archives_are_unpacked(api, session, files):
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT):
        body = archive(("d", b"", {"type": tarfile.DIRTYPE, "mode": 0o500}), ("d/f", b"data", {"mode": 0o4755}),
                       ("d/h", b"", {"type": tarfile.LNKTYPE, "linkname": "d/f"}), format=form)
        api.put(f"{files}/tar", body=body, query={"path": f"/workspace/{form}"}).expect(200)
        shown = api.run(session, f"cd /workspace/{form}; stat -c %a d d/f; cat d/h")["stdout"]
        assert shown == "500\n755\ndata"


@pytest.mark.parametrize("members", [
    [("../out", b"x", {})],
    [("/workspace/out", b"x", {})],
    [("l", b"", {"type": tarfile.SYMTYPE, "linkname": "/workspace"}), ("l/out", b"x", {})],
    [("h", b"", {"type": tarfile.LNKTYPE, "linkname": "/etc/passwd"})],
    [("d", b"", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3})],
    [("p", b"", {"type": tarfile.FIFOTYPE})],
])
def test_hostile_archives_are_refused(api, session, files, members):
    answer = api.put(f"{files}/tar", body=archive(*members), query={"path": "/workspace/in"})
    assert answer.status == 400 and answer.json()["remediation"]
    assert api.run(session, "ls /workspace")["stdout"] == "in\n"


def test_archives_that_are_none_are_refused(api, files):
    whole = archive(("f", b"x" * 2000, {}))
    for body, status in ((b"\x1f\x8b\x08" + bytes(100), 400), (b"BZh9" + bytes(100), 415), (b"PK\x03\x04" + bytes(100), 415),
                         (b"no archive" * 200, 400), (whole[:1500], 400), (b"", 400)):
        assert api.put(f"{files}/tar", body=body, query={"path": "/workspace/in"}).status == status


def test_changes_are_told_as_they_happen(api, session, files):
    events = api.events("GET", f"{files}/watch", query={"path": "/workspace", "recursive": "true"})
    assert next(events) == {"type": "watching", "path": "/workspace"}
    api.run(session, "echo hi > /workspace/new")
    seen = []
    while {"type": "written", "path": "/workspace/new"} not in seen:
        seen.append(next(events))
    assert {"type": "created", "path": "/workspace/new"} in seen
    events.close()


def test_changes_come_over_a_websocket_too(api, session, files):
    socket = websocket.create_connection(f"ws://{api.address}{files}/watch?path=/workspace", timeout=30)
    assert json.loads(socket.recv())["type"] == "watching"
    put(api, files, "/workspace/w", b"x").expect(200)
    while json.loads(socket.recv()).get("path") != "/workspace/w":
        pass
    socket.close()


def test_many_transfers_go_side_by_side(api, session, files):
    data = os.urandom(3 << 20)
    failures = []

    def transfer(number):
        own = type(api)(api.address, api.key)
        try:
            path = f"/workspace/p{number}"
            put(own, files, path, data).expect(200)
            assert content(own, files, path).expect(200) == data
        except Exception as error:  # pylint: disable=broad-except
            failures.append(error)
        finally:
            own.close()

    threads = [threading.Thread(target=transfer, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
