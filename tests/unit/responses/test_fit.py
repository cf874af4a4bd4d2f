"""Whether an answer fits a schema: exactly when jsonschema says so, in bounded time, without opening anything."""

import json
import random
import socket
from contextlib import suppress
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for
from jsonschema_specifications import REGISTRY

from mino.errors import InvalidData, MinoError
from mino.responses.fit import AnswerSchema, Misfit, read_schema

DRAFTS = {
    "4": "http://json-schema.org/draft-04/schema#",
    "6": "http://json-schema.org/draft-06/schema#",
    "7": "http://json-schema.org/draft-07/schema#",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}


def schema_of(value: Any) -> AnswerSchema:
    return read_schema(json.dumps(value, ensure_ascii=False).encode(), "s.json")


def check(schema: Any, text: str, limit: float = 5.0) -> Any:
    return schema_of(schema).check(text, limit)


@pytest.fixture(autouse=True)
def nothing_connects(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError("a schema made Mino open a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


# Generated schemas, and values that fit them more or less.

NAMES = ["a", "b", "名字", "x-1"]
WORDS = ["", "a", "北京 🙂", "2026-12-01", "aaaa"]


def make_schema(chance: random.Random, depth: int = 3) -> Any:
    """A schema of keywords in any combination, also contradictory ones."""
    if depth == 0 or chance.random() < 0.1:
        return chance.choice([True, {}, {"type": "string"}, {"type": "integer"}, {"const": None}])
    schema: dict[str, Any] = {}
    if chance.random() < 0.7:
        kinds = ["object", "array", "string", "integer", "number", "boolean", "null"]
        schema["type"] = chance.choice(kinds) if chance.random() < 0.8 else chance.sample(kinds, 2)
    for keyword, make in (
        ("properties", lambda: {name: make_schema(chance, depth - 1) for name in chance.sample(NAMES, 2)}),
        ("required", lambda: chance.sample(NAMES, chance.randint(0, 2))),
        ("additionalProperties", lambda: chance.choice([False, True, make_schema(chance, depth - 1)])),
        ("patternProperties", lambda: {chance.choice(["^a", "字$"]): make_schema(chance, depth - 1)}),
        ("items", lambda: make_schema(chance, depth - 1)),
        ("minItems", lambda: chance.randint(0, 2)),
        ("uniqueItems", lambda: True),
        ("enum", lambda: [make_value(chance, 1) for _ in range(3)]),
        ("minLength", lambda: chance.randint(0, 3)),
        ("pattern", lambda: chance.choice(["^a*$", "京", "[0-9]{4}"])),
        ("minimum", lambda: chance.randint(-3, 3)),
        ("multipleOf", lambda: chance.choice([2, 0.5])),
        ("anyOf", lambda: [make_schema(chance, depth - 1) for _ in range(2)]),
        ("allOf", lambda: [make_schema(chance, depth - 1)]),
        ("oneOf", lambda: [make_schema(chance, depth - 1) for _ in range(2)]),
        ("not", lambda: make_schema(chance, depth - 1)),
        ("if", lambda: make_schema(chance, depth - 1)),
        ("then", lambda: make_schema(chance, depth - 1)),
        ("$ref", lambda: "#/$defs/other"),
    ):
        if chance.random() < 0.15:
            schema[keyword] = make()
    return schema


def make_value(chance: random.Random, depth: int = 3) -> Any:
    kind = chance.randint(0, 7 if depth else 5)
    if kind == 6:
        return [make_value(chance, depth - 1) for _ in range(chance.randint(0, 3))]
    if kind == 7:
        return {name: make_value(chance, depth - 1) for name in chance.sample(NAMES, chance.randint(0, 3))}
    return [None, chance.random() < 0.5, chance.randint(-3, 4), chance.choice([0.5, 1.0, -1e300]), *WORDS][
        chance.choice([0, 1, 2, 3, 4, 5, 6, 7, 8])
    ]


def fit_value(chance: random.Random, schema: Any, root: Any, depth: int = 4) -> Any:
    """A value that tries to fit."""
    if not isinstance(schema, dict) or depth == 0:
        return make_value(chance, 1)
    if "$ref" in schema:
        return fit_value(chance, root["$defs"]["other"], root, depth - 1)
    if "enum" in schema:
        return chance.choice(schema["enum"])
    kind = schema.get("type", "object" if "properties" in schema else "")
    kind = kind if isinstance(kind, str) else chance.choice(kind)
    if kind == "object":
        wanted = {*schema.get("required", ()), *chance.sample(NAMES, 1)} & {*NAMES}
        properties = schema.get("properties", {})
        return {name: fit_value(chance, properties.get(name, True), root, depth - 1) for name in sorted(wanted)}
    if kind == "array":
        return [fit_value(chance, schema.get("items", True), root, depth - 1) for _ in range(chance.randint(0, 3))]
    simple = {"string": chance.choice(WORDS), "integer": chance.randint(-3, 4), "number": 0.5, "boolean": True}
    return simple.get(kind, make_value(chance, 1))


@pytest.mark.parametrize("seed", range(3))
def test_it_fits_exactly_when_jsonschema_accepts(seed: int) -> None:
    chance = random.Random(seed)
    verdicts = {True: 0, False: 0}
    for number in range(160):
        schema = make_schema(chance)
        if not isinstance(schema, dict):
            schema = {"allOf": [schema]}
        schema["$defs"] = {"other": make_schema(chance, 1)}
        if number % 4 == 0:
            schema["$schema"] = chance.choice([*DRAFTS.values()])
        text = json.dumps(schema)
        kind: Any = validator_for(schema, default=Draft202012Validator)
        try:
            kind.check_schema(schema)
        except Exception:
            with pytest.raises(InvalidData):
                read_schema(text.encode(), "s.json")
            continue
        judge, reference = read_schema(text.encode(), "s.json"), kind(schema, registry=REGISTRY)
        for _ in range(3):
            value = fit_value(chance, schema, schema) if chance.random() < 0.7 else make_value(chance)
            try:
                expected = reference.is_valid(value)
            except RecursionError:  # a reference to itself
                with pytest.raises(InvalidData, match="too many levels"):
                    judge.check(json.dumps(value))
                continue
            verdicts[expected] += 1
            try:
                assert judge.check(json.dumps(value)) == value and expected, (schema, value)
            except Misfit:
                assert not expected, (schema, value)
    assert verdicts[True] > 100 and verdicts[False] > 100 and sum(verdicts.values()) > 350


@pytest.mark.parametrize("draft", DRAFTS)
def test_each_draft_has_its_own_rules(draft: str) -> None:
    definitions = "$defs" if draft.startswith("20") else "definitions"
    schema = {"$schema": DRAFTS[draft], definitions: {"n": {"type": "number", "maximum": 3}}, "type": "array"}
    schema["items"] = {"$ref": f"#/{definitions}/n", "minimum": 2}  # beside a $ref it counts from 2019-09 on
    assert check(schema, "[2, 3.0]") == [2, 3.0]
    with pytest.raises(Misfit):
        check(schema, "[4]")
    if definitions == "$defs":
        with pytest.raises(Misfit):
            check(schema, "[1]")
    else:
        assert check(schema, "[1]") == [1]


@pytest.mark.parametrize(
    ("schema", "text", "path", "reason"),
    [
        ({"type": "object"}, "[]", "$", "[] is not of type 'object'"),
        (
            {"properties": {"a": {"items": {"type": "integer"}}}},
            '{"a":[1,"二"]}',
            "$.a[1]",
            "'二' is not of type 'integer'",
        ),
        ({"required": ["名字"]}, "{}", "$", "'名字' is a required property"),
        ({}, "", "$", "not JSON: expecting value (line 1, column 1)"),
        ({}, '{"a": 1\n"b": 2}', "$", "not JSON: expecting ',' delimiter (line 2, column 1)"),
        ({}, "{} {}", "$", "not JSON: extra data (line 1, column 4)"),
        ({}, '{"a":1,"a":2}', "$", "found a key twice in one object"),
        ({}, "[Infinity]", "$", "Infinity is not JSON"),
        ({}, '["\\ud83d"]', "$", "found half of a character"),
        ({}, "[1e999]", "$", "found a number that is not finite"),
        ({}, "9" * 4001, "$", "found an integer of more than 4000 digits"),
        ({}, "[" * 100_000, "$", "found more than 400 levels of nesting"),
        ({}, "[" * 401 + "]" * 401, "$", "found too many levels of nesting"),
        ({"enum": ["\x1b[31m"]}, '"\\u001b"', "$", "'\\x1b' is not one of ['\\x1b[31m']"),
        ({"maxLength": 3}, json.dumps("长" * 1000), "$", "…"),
    ],
)
def test_a_misfit_says_where_and_why_in_one_line(schema: Any, text: str, path: str, reason: str) -> None:
    with pytest.raises(Misfit) as caught:
        check(schema, text)
    assert caught.value.path == path and not caught.value.is_fenced
    assert caught.value.reason == reason or caught.value.reason.endswith(reason)
    assert len(caught.value.reason) <= 200 and caught.value.reason.isprintable()


@pytest.mark.parametrize("text", ["```json\n{}\n```", "\n~~~\n{}", "  ````\n{}"])
def test_a_code_block_is_a_misfit_of_its_own(text: str) -> None:
    with pytest.raises(Misfit) as caught:
        check({}, text)
    assert caught.value.is_fenced
    assert check({}, " \n{} \t\r\n") == {}  # white space around it is JSON's own


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe", "is not UTF-8 at byte 0"),
        (b"{", "(line 1, column 2)"),
        (b"[]", "found [], expected an object"),
        (b"null", "found null, expected an object"),
        (b'{"type":"strin"}', "$.type: 'strin' is not valid"),
        (b'{"type":"string","type":"object"}', "twice"),
        (b'{"minLength":-1}', "$.minLength"),
        (b'{"$schema":"http://example.com/x"}', "unknown $schema"),
        (b'{"$schema":["x"]}', "unknown $schema"),
        (b'{"$ref":"http://127.0.0.1:9/x"}', "has the $ref 'http://127.0.0.1:9/x', which is not in it"),
        (b'{"$ref":"https://example.com/x#/y"}', "which is not in it"),
        (b'{"$ref":"file:///etc/passwd"}', "which is not in it"),
        (b'{"$ref":"other.json"}', "which is not in it"),
        (b'{"$ref":"#/nowhere"}', "which is not in it"),
        (b'{"$id":"http://example.com/a","$ref":"b"}', "which is not in it"),
        (b'{"properties":{"a":{"items":{"$ref":"http://x/y"}}}}', "which is not in it"),
        (b'{"$ref":"#/x","x":{"$ref":"http://x/y"}}', "which is not in it"),
        (b'{"$dynamicRef":"http://x/y"}', "which is not in it"),
        (b'{"pattern":"("}', "regex"),
        (b'{"patternProperties":{"[":{}}}', "'['"),
        (b'{"not":' * 500 + b"{}" + b"}" * 500, "levels"),
    ],
)
def test_what_is_no_schema_is_refused_with_the_file(content: bytes, said: str) -> None:
    with pytest.raises(InvalidData) as caught:
        read_schema(content, "人.json")
    assert said in caught.value.message and "'人.json'" in caught.value.message and caught.value.status == 65


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}},
        {"$defs": {"a": {"$anchor": "here", "type": "integer"}}, "$ref": "#here"},
        {"$id": "http://example.com/a", "$defs": {"b": {"$id": "b", "type": "integer"}}, "$ref": "b"},
        {"properties": {"next": {"$ref": "#"}}},
        {"not": {"$ref": "https://json-schema.org/draft/2020-12/schema", "type": "object"}},
    ],
)
def test_references_inside_are_followed(schema: Any) -> None:
    assert check(schema, "1") == 1


def doubling() -> dict[str, Any]:
    twice = {f"a{n}": {"anyOf": [{"$ref": f"#/$defs/a{n - 1}"}] * 2} for n in range(1, 40)}
    return {"$ref": "#/$defs/a39", "$defs": {"a0": {"type": "integer"}, **twice}}


SLOW: list[tuple[Any, str]] = [
    ({"pattern": "^(a+)+$"}, '"' + "a" * 60 + '!"'),
    ({"patternProperties": {"^(a|aa)+$": {}}, "additionalProperties": False}, '{"' + "a" * 60 + '!": 1}'),
    ({"uniqueItems": True}, json.dumps([{"n": n} for n in range(30_000)])),
    (doubling(), '"x"'),
]


@pytest.mark.parametrize(("schema", "text"), SLOW)
def test_a_check_that_takes_too_long_is_given_up(schema: Any, text: str) -> None:
    judge = schema_of(schema)
    with pytest.raises(InvalidData, match=r"takes longer than 0\.2 s"):
        judge.check(text, 0.2)


@pytest.mark.parametrize("schema", [{"$ref": "#"}, {"allOf": [{"$ref": "#"}]}])
def test_a_schema_that_never_ends_is_given_up(schema: Any) -> None:
    with pytest.raises(InvalidData, match="too many levels"):
        check(schema, "1")


def test_a_schema_that_takes_too_long_to_judge_is_given_up() -> None:
    huge = {"enum": [{"n": n} for n in range(200_000)], "allOf": [{"type": "strin"}]}
    with pytest.raises(InvalidData):
        read_schema(json.dumps(huge).encode(), "s.json", 0.05)


@pytest.mark.parametrize("seed", range(3))
def test_nothing_that_is_broken_makes_another_error(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(150):
        schema = {"allOf": [make_schema(chance, 2), {"$ref": "#"}]} if seed else doubling()
        content = bytearray(json.dumps(schema).encode())
        for _ in range(chance.randint(1, 4)):
            content[chance.randrange(len(content))] = chance.choice(b'{}[]",:0x\xff#/')
        answer = bytearray(json.dumps(make_value(chance)).encode())
        answer[chance.randrange(len(answer))] = chance.choice(b'{}[]",:0x')
        with suppress(MinoError, Misfit):
            read_schema(bytes(content), "s.json", 0.5).check(answer.decode("utf-8", "replace"), 0.2)
