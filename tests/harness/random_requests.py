"""Requests made by chance from /openapi.json alone, and what must hold of every answer.

About half of them are sound; the others have something wrong with the path, the query, the headers, the type or the
bytes of the body. Ids that answers tell are used in later requests, so that chance gets past "no such session".
"""

import dataclasses
import http.client
import json
import random
import re
import socket
import urllib.parse

from harness.schema_values import HUGE, Values
from harness.server import Answer

# A server may be unable to do a thing, or full; it is never confused.
PERMITTED_5XX = {501, 503, 507}
KIND_OF = {"session_id": "sessions", "process_id": "processes", "delivery_id": "deliveries"}
STREAMS = {"text/event-stream", "application/x-ndjson"}
ENOUGH = 65536  # of a body that is no JSON

ODD_SEGMENTS = ["", ".", "..", "%00", "%ff%fe", "a%2Fb", "%2e%2e", "%2e%2e%2f%2e%2e", "%0d%0aX-Injected:%201", "null",
                "-1", "0", "99999999999999999999", "a" * 300, "a" * 9000, "%F0%9F%92%A5", "%zz", "%", "{id}", "*", "a%20b"]
ODD_HEADERS = [{"Accept": "nonsense"}, {"Accept": "*/*;q=0"}, {"X-Request-Id": "a b" * 50}, {"Range": "bytes=9-1"},
               {"Range": "bytes=-0"}, {"If-None-Match": "\"" * 5}, {"traceparent": "00-zz-zz-zz"},
               {"Last-Event-ID": "x"}, {"Upgrade": "websocket", "Connection": "Upgrade"}, {"Expect": "miracles"},
               {"Content-Range": "bytes 5-1/3"}, {"Idempotency-Key": "k" * 5000}, {"Accept-Encoding": "br, *;q=9"}]
ODD_TYPES = ["text/plain", "application/xml", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]


@dataclasses.dataclass
class Operation:
    method: str
    path: str
    about: dict

    def body_schema(self):
        content = self.about.get("requestBody", {}).get("content", {})
        return content.get("application/json", {}).get("schema")

    def media_of_body(self):
        return next(iter(self.about.get("requestBody", {}).get("content", {})), None)

    def parameters(self, where):
        return [p for p in self.about.get("parameters", []) if p["in"] == where]


@dataclasses.dataclass
class Request:
    operation: Operation
    target: str
    headers: dict
    body: bytes | None
    flaws: list = dataclasses.field(default_factory=list)  # for which it must be refused
    elsewhere: bool = False  # it may be refused on the wire, or its path may be another operation's, or none's

    def __str__(self):
        body = "" if self.body is None else f" {self.body[:300]!r} ({len(self.body)} bytes)"
        return f"{self.operation.method} {self.target[:300]} {self.headers}{body} flaws={self.flaws}"


def operations_of(spec):
    return [Operation(method.upper(), path, about) for path, methods in sorted(spec["paths"].items())
            for method, about in sorted(methods.items())]


class RandomRequests:
    def __init__(self, spec, seed):
        self.chance = random.Random(seed)
        self.values = Values(spec, self.chance)
        self._known = {}  # what stands before a parameter in the path, "sessions" -> values seen

    def learn(self, operation, answer):
        """Takes the ids out of an answer."""
        if not 200 <= answer.status < 300 or not answer.headers.get("content-type", "").startswith("application/json"):
            return
        literals = [part for part in operation.path.split("/") if part and not part.startswith("{")]
        self._learn(literals[-1], json.loads(answer.body))

    def known(self, kind):
        return list(self._known.get(kind, []))

    def know(self, kind, value):
        seen = self._known.setdefault(kind, [])
        if value not in seen:
            seen.append(value)
            del seen[:-8]

    def forget(self, kind, value):
        self._known[kind] = [v for v in self._known.get(kind, []) if v != value]

    def _learn(self, kind, value):
        if isinstance(value, list):
            for item in value:
                self._learn(kind, item)
        elif isinstance(value, dict):
            for key, inner in value.items():
                if isinstance(inner, (dict, list)):
                    self._learn(key, inner)
                elif inner is not None and (key in ("id", "name") or key.endswith("_id")):
                    self.know(KIND_OF.get(key, kind), str(inner))

    def make(self, operation, sound):
        flaw = None if sound else self.chance.choice(self._flaws_of(operation))
        request = Request(operation, "", {}, None)
        request.target = self._path(request, flaw == "path") + self._query(request, flaw)
        self._headers(request, flaw == "header")
        self._body(request, flaw)
        return request

    def _flaws_of(self, operation):
        flaws = ["unknown query", "header"]
        if operation.parameters("path"):
            flaws.append("path")
        if operation.parameters("query"):
            flaws += ["query type", "query twice", "query odd"]
        if any(p["required"] for p in operation.parameters("query")):
            flaws.append("query missing")
        if operation.body_schema():
            flaws += ["body value"] * 6 + ["body bytes"] * 2 + ["body type"]
        return flaws

    def _path(self, request, odd):
        pieces = []
        for part in request.operation.path.split("/"):
            if not part.startswith("{"):
                pieces.append(part)
                continue
            if odd and self.chance.random() < 0.7:
                request.elsewhere = True
                pieces.append(self.chance.choice(ODD_SEGMENTS))
                continue
            kind = "sessions" if part == "{session_id}" else pieces[-2 if pieces[-1].startswith("{") else -1]
            known = self._known.get("sessions" if kind == "signed" else kind)
            value = self.chance.choice(known) if known else "nothing"
            request.elsewhere |= not value.isprintable()
            pieces.append(urllib.parse.quote(value, safe=""))
        return "/".join(pieces)

    def _query(self, request, flaw):
        declared = request.operation.parameters("query")
        pairs = [pair for p in declared if p["required"] or self.chance.random() < 0.25 for pair in self._pairs_of(p)]
        if flaw == "unknown query":
            pairs.append((self.chance.choice(["nobody_knows", "limits", "", "Path", "a[]"]), "1"))
            request.flaws.append(flaw)
        elif flaw is not None and flaw.startswith("query "):
            pairs = self._spoiled(request, flaw, declared, pairs)
        request.elsewhere |= any("\0" in text or "\ud800" in text or len(text) > 4000 for _, text in pairs)
        return "?" + urllib.parse.urlencode(pairs, errors="surrogatepass") if pairs else ""

    def _spoiled(self, request, flaw, declared, pairs):
        """The query with something wrong about one of its parameters."""
        parameter = self.chance.choice([p for p in declared if p["required"] or flaw != "query missing"])
        name = parameter["name"]
        others = [pair for pair in pairs if pair[0] != name]
        if flaw == "query odd":
            return others + [(name, self.chance.choice(["", "\0", "\ud800", "x" * 5000, "a\nb", "'", "-1"]))]
        if flaw == "query type":
            wrong = self.values.wrong_text(parameter["schema"])
            if wrong is None:
                return pairs
            others.append((name, wrong))
        elif flaw == "query twice":
            if self.values.resolved(parameter["schema"]).get("type") == "array":
                return pairs
            others += self._pairs_of(parameter) * 2
        request.flaws.append(flaw)
        return others

    def _pairs_of(self, parameter):
        value = self.values.fitting(parameter["schema"])
        return [(parameter["name"], item if isinstance(item, str) else json.dumps(item))
                for item in (value if isinstance(value, list) else [value])]

    def _headers(self, request, odd):
        media = [m for response in request.operation.about["responses"].values() for m in response.get("content", {})]
        if media and self.chance.random() < 0.5:
            request.headers["Accept"] = self.chance.choice(media)
        if odd:
            request.headers.update(self.chance.choice(ODD_HEADERS))
            request.elsewhere |= "Expect" in request.headers

    def _body(self, request, flaw):
        operation = request.operation
        schema = operation.body_schema()
        if schema is None:
            if operation.media_of_body():
                request.headers["Content-Type"] = operation.media_of_body()
                request.body = self.chance.choice([b"", b"hello\n", b"\xff\0" * 700, b"x" * HUGE])
            return
        request.headers["Content-Type"] = "application/json"
        value = self._with_known_ids(self.values.nearly(schema) if flaw == "body value" else self.values.fitting(schema))
        request.body = json.dumps(value).encode()
        if flaw == "body value" and not self.values.fits(schema, without_nulls(value)):
            request.flaws.append(flaw)
        elif flaw == "body type":
            request.headers["Content-Type"] = self.chance.choice(ODD_TYPES)
            request.flaws.append(flaw)
        elif flaw == "body bytes":
            self._spoil(request)
            request.flaws.append(flaw)

    def _with_known_ids(self, value):
        known = self._known.get("sessions")
        if isinstance(value, dict) and isinstance(value.get("session_id"), str) and known and self.chance.random() < 0.8:
            value["session_id"] = self.chance.choice(known)
        return value

    def _spoil(self, request):
        """Bytes that are no JSON, not the JSON of an object, or too many."""
        whole = request.body
        request.body = self.chance.choice([
            whole[:-1], whole + b"}", whole + whole, whole.replace(b"{", b"{\"a\xff\xfeb\": 1, ", 1), whole + b"\0",
            b"{\"a\": NaN}", b"{\"a\": 1, \"a\": 1}", b"[" * 20000, b"{\"a\":" * 20000 + b"1" + b"}" * 20000, b"{'a': 1}",
            b"// {}", b"\0", b"{\"a\": 0123}", b"{\"a\": \"\n\"}", b"{\"\\ud800\": 1}", b"{\"a\": 1e99999}", b"[]", b"1",
            b"null", b"\"text\"", b"{\"a\": \"" + b"x" * (2 << 20) + b"\"}", b"{,}", b"{\"a\" 1}",
            "{\"a\": 1}".encode("utf-16")])


def without_nulls(value):
    """As the server reads a request: a field that is null is left out."""
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return value


def send(address, request, timeout):
    """The answer. Of a stream and of other long bodies only the beginning is waited for."""
    host, port = address.rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port), timeout=timeout)
    try:
        try:
            connection.request(request.operation.method, request.target, body=request.body, headers=request.headers)
        except (BrokenPipeError, ConnectionResetError):
            pass  # an answer given before the whole body was sent
        response = connection.getresponse()
        media = (response.getheader("Content-Type") or "").split(";")[0]
        if response.status == 101 or media in STREAMS:
            body = b""
        elif media in ("application/json", "application/problem+json"):
            body = response.read()
        else:
            body = response.read(ENOUGH)
        return Answer(response.status, response.getheaders(), body)
    except socket.timeout:
        raise AssertionError(f"no answer within {timeout} s: {request}") from None
    finally:
        connection.close()


def judge(document, request, answer):
    """Raises when the answer is not one that the document promises for this request."""
    what = f"{request}\n-> {answer.status} {answer.body[:600]!r}"
    assert answer.status < 500 or answer.status in PERMITTED_5XX, f"a server error: {what}"
    assert "x-injected" not in answer.headers, f"a header was injected: {what}"
    assert not (request.flaws and answer.status < 400), f"accepted what it must refuse: {what}"
    if answer.status >= 400 and answer.status != 503:
        told = answer.json()
        assert told.get("detail") or told.get("error"), f"an error without a word: {what}"
    if not request.elsewhere:
        assert re.fullmatch(r"[-_.0-9A-Za-z]{1,64}", answer.headers.get("x-request-id", "")), f"no request id: {what}"
        document.check_operation(request.operation.about, what, answer)
