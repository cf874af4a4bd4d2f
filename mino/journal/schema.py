"""`schemas/` → validators: jsonschema-rs decides, jsonschema explains (and is loaded only when a record is bad).

This module also checks a rule that JSON Schema 2020-12 cannot express, because it takes 1.0 for an integer.
"""

import os
from functools import cache
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, cast

import orjson

from mino.journal.findings import BadLine
from mino.journal.record import VERSION, Record
from mino.text import quote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jsonschema import Draft202012Validator
    from jsonschema_rs import Validator

_v, _seq = itemgetter("v"), itemgetter("seq")
TYPES = ("user_message", "assistant_message", "turn_end")


@cache
def load(name: str) -> dict[str, Any]:
    """The published schema `name`, such as `record.v1`: beside the package in a checkout, inside it in a wheel."""
    package = os.path.dirname(os.path.dirname(__file__))
    file = f"schemas/{name}.schema.json"
    path = next(filter(os.path.exists, (os.path.join(place, file) for place in (package, os.path.dirname(package)))))
    with open(path, "rb") as schema:
        return cast("dict[str, Any]", orjson.loads(schema.read()))


def _alternatives() -> dict[str, Any]:
    schema = load("record.v1")
    return {"$defs": schema["$defs"], "items": {"oneOf": schema["oneOf"]}}


@cache
def _batch_validator() -> "Validator":
    import jsonschema_rs

    return jsonschema_rs.validator_for({**_alternatives(), "type": "array"})


def are_valid(records: "Sequence[Any]") -> bool:
    """Whether the schema accepts each of `records`, and every `v` and `seq` in them is an integer written as one."""
    return _batch_validator().is_valid(records) and {int}.issuperset(
        map(type, chain(map(_v, records), map(_seq, records)))
    )


def check(value: object) -> Record:
    """`value` as a record. Raises BadLine if the schema refuses it, but leaves any integer `seq` to the order."""
    if not are_valid([value]) and not _is_valid_but_for_seq(value):
        raise _explain(value)
    return cast("Record", value)


def _is_valid_but_for_seq(value: object) -> bool:
    return isinstance(value, dict) and type(value.get("seq")) is int and are_valid([{**value, "seq": 1}])


def _explain(value: object) -> BadLine:
    if not isinstance(value, dict):
        return BadLine("bad-record", f"found {quote(value)}, expected an object")
    if "v" not in value:
        return _missing("v")
    version = value["v"]
    if type(version) is not int:
        return _wrong("v", version, f"the integer {VERSION}")
    if version != VERSION:  # before any other rule: nothing is known about the records of another version
        return BadLine("unknown-version", f"found format version {quote(version)}, expected {VERSION}: {_NEWER}")
    if "type" not in value:
        return _missing("type")
    kind = value["type"]
    if not isinstance(kind, str):
        return _wrong("type", kind, "a string")
    if kind not in TYPES:
        return BadLine("unknown-type", f"found a record of type {quote(kind)}: {_NEWER}")
    unknown = sorted(value.keys() - load("record.v1")["$defs"][kind]["properties"].keys())
    if unknown:
        return BadLine("unknown-field", f"found the field {quote(unknown[0])} in a {kind}: {_NEWER}")
    if "seq" in value and type(value["seq"]) is not int:
        return _wrong("seq", value["seq"], "an integer")
    return _explain_fields(value, kind)


_NEWER = "written by a newer Mino, or edited by hand"


@cache
def _explainer(kind: str) -> "Draft202012Validator":
    from jsonschema import Draft202012Validator

    return Draft202012Validator({"$defs": load("record.v1")["$defs"], "$ref": f"#/$defs/{kind}"})


def _explain_fields(record: dict[str, Any], kind: str) -> BadLine:
    # Only the first flaw is reported: an `output` of a million wrong items has as many.
    for flaw in _explainer(kind).iter_errors(record):
        path = ".".join(str(part) for part in flaw.absolute_path)
        match flaw.validator:
            case "required":
                present = flaw.instance.keys()
                missing = next(name for name in cast("list[str]", flaw.validator_value) if name not in present)
                return _missing(f"{path}.{missing}" if path else missing)
            case "minimum" if path == "seq":
                continue
            case "pattern" | "maxLength" if path == "turn_id":
                found = quote(flaw.instance)
                return BadLine("bad-turn-id", f"found the turn id {found}, expected 32 lower-case hex digits")
            case "type":
                return _wrong(path, flaw.instance, f"a value of type {flaw.validator_value}")
            case "minLength":
                return _wrong(path, flaw.instance, "at least one character")
            case "enum":
                return _wrong(path, flaw.instance, "one of " + ", ".join(cast("list[str]", flaw.validator_value)))
            case _:
                return _wrong(path, flaw.instance, f"what the schema says of {path}")
    return BadLine("bad-record", f"found what is no {kind} by the schema of records")


def _missing(field: str) -> BadLine:
    return BadLine("bad-record", f"the field {quote(field)} is missing")


def _wrong(field: str, value: object, expected: str) -> BadLine:
    return BadLine("bad-record", f"found {quote(value)} in the field {quote(field)}, expected {expected}")
