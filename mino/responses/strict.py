"""Whether a JSON Schema meets OpenAI's rules for `strict` structured outputs. No I/O.

The rules are those of "Supported schemas" in OpenAI's guide to structured outputs. A schema that does not meet them is
sent without `strict`; who is unsure says no, because the answer is checked in any case.
"""

from typing import Any

_ANYWHERE = frozenset({"type", "title", "description", "enum", "const", "anyOf", "$defs", "definitions"})
_OF_TYPE = {
    "object": frozenset({"properties", "required", "additionalProperties"}),
    "array": frozenset({"items", "minItems", "maxItems"}),
    "string": frozenset({"pattern", "format"}),
    **dict.fromkeys(
        ("number", "integer"),
        frozenset({"multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"}),
    ),
    "boolean": frozenset(),
    "null": frozenset(),
}
_FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")
_LEVELS = 10  # of nesting
_PROPERTIES = 5000
_ENUM_VALUES = 1000
_NAME_CHARACTERS = 120_000  # of the names of properties and definitions, and of the values of enum and const


class _Lax(Exception):
    """The schema does not meet the rules."""


def is_strict(schema: Any) -> bool:
    """Whether every object is closed and requires all its properties, with keywords and sizes that OpenAI supports."""
    if not isinstance(schema, dict) or schema.get("type") != "object" or "anyOf" in schema:
        return False
    counts = {"properties": 0, "values": 0, "characters": 0}
    try:
        _look({name: value for name, value in schema.items() if name != "$schema"}, 0, counts)
    except _Lax:
        return False
    return (
        counts["properties"] <= _PROPERTIES
        and counts["values"] <= _ENUM_VALUES
        and counts["characters"] <= _NAME_CHARACTERS
    )


def _look(schema: Any, level: int, counts: dict[str, int]) -> None:
    if not isinstance(schema, dict) or level > _LEVELS:
        raise _Lax
    if "$ref" in schema:
        if len(schema) > 1 or not str(schema["$ref"]).startswith("#"):
            raise _Lax
        return
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    allowed = _ANYWHERE.union(*(_OF_TYPE.get(kind, frozenset()) for kind in kinds))
    if not schema.keys() <= allowed or not (kinds or schema.keys() & {"anyOf", "enum", "const"}):
        raise _Lax
    if schema.get("format", _FORMATS[0]) not in _FORMATS:
        raise _Lax
    values = [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())]
    counts["values"] += len(values)
    counts["characters"] += sum(len(value) for value in values if isinstance(value, str))
    if "object" in kinds:
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(properties):
            raise _Lax
        counts["properties"] += len(properties)
        _look_at_each(properties, level + 1, counts)
    if "array" in kinds:
        _look(schema.get("items"), level + 1, counts)
    for inner in schema.get("anyOf", ()):
        _look(inner, level, counts)
    for name in ("$defs", "definitions"):
        _look_at_each(schema.get(name, {}), level, counts)


def _look_at_each(schemas: dict[str, Any], level: int, counts: dict[str, int]) -> None:
    counts["characters"] += sum(map(len, schemas))
    for inner in schemas.values():
        _look(inner, level, counts)
