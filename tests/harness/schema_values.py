"""Values made from JSON Schemas: such as fit, and such as nearly do. All chance comes from one seeded source."""

import json

import jsonschema

HUGE = 200_000

# What programs stumble over. Those that are commands end by themselves.
STRINGS = ["a", "true", "root", "host", "/tmp/x/a", "/workspace", "*.txt", "native", "echo hello", "box-1", "/tmp/x", "x/y",
           "", " ", "0", "-1", "0644", "1.5", "64M", "30s", "0.5", "nobody", "session.created", "2026-01-31", "team=a", "SIGTERM", "cmVk",
           "../../etc/passwd", "/proc/self/mem", "/", ".", "..", "a" * 64, "a" * 300, "é", "💥", "a\u0000b", "\n", "\u007f",
           "%2e%2e", "%s%n", "'\"; --", "{}", "null", "NaN", "1e999", "\u202e", "http://127.0.0.1:9/hook",
           "*:*", "read:sessions", "a sixteen letter secret"]
NUMBERS = [0, 1, -1, 2, 7, 60, 255, 256, 1000, 65536, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64, 10**30,
           0.5, -0.001, 1e-9, 1.5e300]


class Values:
    def __init__(self, spec, chance):
        self._spec = spec
        self._chance = chance

    def fits(self, schema, value):
        whole = {**self.resolved(schema), "components": self._spec["components"]}
        return jsonschema.Draft202012Validator(whole).is_valid(value)

    def fitting(self, schema):
        """A value that the schema takes."""
        for _ in range(200):
            value = self._some(schema, 0)
            if self.fits(schema, value):
                return value
        raise AssertionError(f"no value was found for {schema}; teach harness/schema_values.py one")

    def nearly(self, schema):
        """A fitting value with one thing changed; it may still fit."""
        value = self.fitting(schema)
        resolved = self.resolved(schema)
        if not isinstance(value, dict) or self._chance.random() < 0.1:
            return self._of_another_type(value)
        value = json.loads(json.dumps(value))
        place, at = self._place_within(value)
        names = list(resolved.get("properties", {}))
        change = self._chance.choice(["drop", "unknown", "misspelt", "type", "number", "string", "huge", "null"])
        if change == "drop" and value:
            del value[self._chance.choice(list(value))]
        elif change == "misspelt" and names:
            value[self._chance.choice(names) + "s"] = 1
        elif change in ("unknown", "drop", "misspelt") or at is None:
            value["nobody_knows_this"] = 1
        elif change == "type":
            place[at] = self._of_another_type(place[at])
        else:
            place[at] = {"number": self._chance.choice(NUMBERS), "string": self._chance.choice(STRINGS),
                         "huge": "x" * HUGE, "null": None}[change]
        return value

    def wrong_text(self, schema):
        """For a parameter: text that is none of its values; None when every text is."""
        schema = self.resolved(schema)
        if schema.get("type") == "array":
            return self.wrong_text(schema["items"])
        kind = schema.get("type", "string")
        if kind == "integer":
            return self._chance.choice(["maybe", "1.5", "0x10", "1e3", "--1", str(10**30)])
        if kind == "boolean":
            return self._chance.choice(["maybe", "2", "TRUE!", "nul"])
        wrong = [text for text in STRINGS if not self.fits(schema, text)]
        return self._chance.choice(wrong) if wrong else None

    def resolved(self, schema):
        while "$ref" in schema:
            schema = {**self._spec["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]],
                      **{key: value for key, value in schema.items() if key != "$ref"}}
        return schema

    def _some(self, schema, depth):
        schema = self.resolved(schema)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._chance.choice(schema["enum"])
        if "anyOf" in schema and "properties" not in schema:
            return self._some(self._chance.choice(schema["anyOf"]), depth)
        kind = schema.get("type", "object" if "properties" in schema else "string")
        if isinstance(kind, list):
            kind = self._chance.choice(kind)
        return getattr(self, f"_some_{kind}")(schema, depth)

    def _some_null(self, _schema, _depth):
        return None

    def _some_boolean(self, _schema, _depth):
        return self._chance.random() < 0.5

    def _some_string(self, schema, _depth):
        fitting = [text for text in STRINGS if self.fits(schema, text)]
        assert fitting, f"no text of harness/schema_values.py fits {schema}"
        # Mostly the tame ones that stand in front, so that requests get past the first check.
        return self._chance.choice(fitting[:8] if self._chance.random() < 0.7 else fitting)

    def _some_integer(self, schema, _depth):
        low, high = schema.get("minimum", -(2**63)), schema.get("maximum", 2**63)
        edges = [low, high] if "minimum" in schema and "maximum" in schema else []
        fitting = [n for n in NUMBERS + edges if low <= n <= high and n == int(n)]
        return int(self._chance.choice(fitting))

    def _some_number(self, schema, _depth):
        return self._chance.choice([n for n in NUMBERS if self.fits(schema, n)])

    def _some_array(self, schema, depth):
        low = schema.get("minItems", 0)
        count = self._chance.choice([low, low + 1, schema.get("maxItems", 3) if depth == 0 else low])
        return [self._some(schema.get("items", {}), depth + 1) for _ in range(count)]

    def _some_object(self, schema, depth):
        required = set(schema.get("required", []))
        if "oneOf" in schema:  # as "exactly one of these fields"
            branches = [set(branch.get("required", [])) for branch in schema["oneOf"]]
            chosen = self._chance.choice(branches)
            required |= chosen
            barred = set().union(*branches) - chosen
        else:
            barred = set()
        often = self._chance.choice([0, 0.1, 0.4])
        value = {name: self._some(inner, depth + 1) for name, inner in schema.get("properties", {}).items()
                 if name in required or (name not in barred and self._chance.random() < often)}
        free = schema.get("additionalProperties")
        if isinstance(free, dict):
            for _ in range(self._chance.choice([0, 1, 3])):
                value[self._chance.choice(STRINGS)] = self._some(free, depth + 1)
        return value

    def _place_within(self, value):
        """An object or list below `value`, and a key of it; the key is None when there is nothing."""
        place = value
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                return place, None
            at = self._chance.choice(keys)
            if isinstance(place[at], (dict, list)) and place[at] and self._chance.random() < 0.7:
                place = place[at]
            else:
                return place, at

    def _of_another_type(self, value):
        others = [v for v in (1, "text", True, None, [], {}, [1, [2]], {"a": {"b": 1}}, 1.5) if type(v) is not type(value)]
        return self._chance.choice(others)
