"""A Python client from an OpenAPI document: one method for each operation, with its parameters as arguments.

`generate` gives the source of a module that needs nothing but the standard library. What it cannot express (a name
used twice, an operation without an id) is an error: then other generators stumble as well.
"""

import keyword
import re

PRELUDE = '''"""{title} {version}. Generated; each method is an operation of the API."""

import http.client
import json
import urllib.parse

UNSET = object()


class ApiError(Exception):
    """An answer of 400 or more; `problem` is what it said."""

    def __init__(self, status, problem):
        super().__init__(f"{{status}}: {{problem}}")
        self.status = status
        self.problem = problem


def _given(values):
    return {{name: value for name, value in values.items() if value is not UNSET}}


def _text(value):
    return value if isinstance(value, str) else json.dumps(value)


def _segment(value):
    return urllib.parse.quote(str(value), safe="")


class Client:
    def __init__(self, address, key=None, timeout=60):
        self._address, self._key, self._timeout = address, key, timeout

    def _call(self, method, path, query, headers, body, media):
        query = _given(query)
        headers = {{name: _text(value) for name, value in _given(headers).items()}}
        pairs = {{n: [_text(i) for i in v] if isinstance(v, list) else _text(v) for n, v in query.items()}}
        target = path + ("?" + urllib.parse.urlencode(pairs, doseq=True) if pairs else "")
        if self._key:
            headers["Authorization"] = "Bearer " + self._key
        if media is not None:
            headers["Content-Type"] = media
        connection = http.client.HTTPConnection(self._address, timeout=self._timeout)
        try:
            connection.request(method, target, body=body, headers=headers)
            response = connection.getresponse()
            content = response.read()
            kind = (response.getheader("Content-Type") or "").split(";")[0]
            answer = json.loads(content) if kind in ("application/json", "application/problem+json") else content
            if response.status >= 400:
                raise ApiError(response.status, answer)
            return answer if content else None
        finally:
            connection.close()
'''


def generate(spec):
    methods = [_method(spec, path, verb.upper(), operation)
               for path, operations in spec["paths"].items() for verb, operation in operations.items()]
    return PRELUDE.format(**spec["info"]) + "".join(methods)


def snake(name):
    """sessionMetrics, Last-Event-ID -> session_metrics, last_event_id"""
    text = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).replace("-", "_").lower()
    return text + "_" if keyword.iskeyword(text) else text


def _method(spec, path, verb, operation):
    arguments = _Arguments()
    places = {"path": {}, "query": {}, "header": {}}
    for parameter in operation.get("parameters", []):
        places[parameter["in"]][parameter["name"]] = arguments.add(parameter["name"], parameter.get("required", False))
    media, body = _body(spec, operation, arguments)
    answers = [m for r in operation["responses"].values() for m in r.get("content", {}) if "problem" not in m]
    if len(set(answers)) > 1 and "Accept" not in places["header"]:
        places["header"]["Accept"] = arguments.add("accept", False)
    target = re.sub(r"\{(\w+)\}", lambda found: "{_segment(" + places["path"][found.group(1)] + ")}", path)
    return f'''
    def {snake(operation["operationId"])}({arguments.text()}):
        """{operation["summary"]}"""
        query, headers = {_table(places["query"])}, {_table(places["header"])}
        return self._call({verb!r}, f"{target}", query, headers, {body}, {media!r})
'''


def _body(spec, operation, arguments):
    """The media type, and the expression that makes the body."""
    content = operation.get("requestBody", {}).get("content", {})
    if not content:
        return None, "None"
    media, about = next(iter(content.items()))
    if media != "application/json":
        return media, arguments.add("body", True)
    schema = about["schema"]
    if "$ref" in schema:
        schema = spec["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    fields = {name: arguments.add(name, name in schema.get("required", [])) for name in schema["properties"]}
    return media, f"json.dumps(_given({_table(fields)}))"


def _table(names):
    return "{" + ", ".join(f"{name!r}: {argument}" for name, argument in names.items()) + "}"


class _Arguments:
    def __init__(self):
        self._required, self._optional = [], []

    def add(self, name, required):
        argument = snake(name)
        assert argument.isidentifier(), f"{name} is no name for an argument"
        assert argument not in self._required + self._optional, f"two arguments have the name {argument}"
        (self._required if required else self._optional).append(argument)
        return argument

    def text(self):
        return ", ".join(["self", *self._required] + (["*"] if self._optional else []) +
                         [f"{name}=UNSET" for name in self._optional])
