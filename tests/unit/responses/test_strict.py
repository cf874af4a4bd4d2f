"""OpenAI's rules for strict schemas, one by one."""

from typing import Any

import pytest

from mino.responses.strict import is_strict


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def nested(levels: int) -> dict[str, Any]:
    schema = closed()
    for _ in range(levels):
        schema = closed(inner=schema)
    return schema


TEXT = {"type": "string"}
NODE = closed(next={"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]})


@pytest.mark.parametrize(
    "schema",
    [
        closed(),
        closed(名字=TEXT, age={"type": ["integer", "null"], "minimum": 0, "multipleOf": 2}),
        closed(a={"type": "array", "items": closed(b=TEXT), "minItems": 1, "maxItems": 3}),
        closed(a={"type": "string", "format": "date", "pattern": "^2"}, b={"enum": ["x", 1, None]}, c={"const": 1}),
        closed(a={"anyOf": [TEXT, closed(b=TEXT)], "description": "either"}),
        {**closed(a={"$ref": "#/$defs/node"}), "$defs": {"node": NODE}},
        closed(a={"$ref": "#"}),
        {**closed(), "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "T", "description": "d"},
        nested(10),
        closed(**{f"p{n}": TEXT for n in range(5000)}),
        closed(a={"enum": list(range(1000))}),
    ],
)
def test_what_meets_the_rules_is_strict(schema: Any) -> None:
    assert is_strict(schema)


@pytest.mark.parametrize(
    "schema",
    [
        True,
        [],
        {},
        TEXT,
        {"anyOf": [closed()]},
        {**closed(), "anyOf": [closed()]},
        {**closed(a=TEXT), "required": []},
        {**closed(a=TEXT), "additionalProperties": True},
        {key: value for key, value in closed(a=TEXT).items() if key != "additionalProperties"},
        closed(a={"type": "string", "minLength": 1}),
        closed(a={"type": "string", "format": "uri"}),
        closed(a={"type": "array", "items": TEXT, "uniqueItems": True}),
        closed(a={"type": "array"}),
        closed(a={"type": "array", "items": {"type": "object"}}),
        closed(a={}),
        closed(a=True),
        closed(a={"allOf": [TEXT]}),
        closed(a={"type": "string", "default": "x"}),
        closed(a={"type": "integer", "pattern": "x"}),
        closed(a={"$ref": "#", "description": "beside it"}),
        closed(a={"$ref": "http://example.com/x"}),
        {**closed(), "$defs": {"x": {"type": "object"}}},
        {**closed(), "patternProperties": {"x": TEXT}},
        nested(11),
        closed(**{f"p{n}": TEXT for n in range(5001)}),
        closed(a={"enum": list(range(1001))}),
        closed(**{"长" * 120_001: TEXT}),
    ],
)
def test_what_breaks_a_rule_is_not(schema: Any) -> None:
    assert not is_strict(schema)
